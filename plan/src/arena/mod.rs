//! Placement of buffers in one arena: an offset for every buffer, such that no two buffers that are live at the same
//! time overlap, and the arena is as low as can be.
//!
//! This is *dynamic storage allocation* with all lifetimes known in advance; finding the lowest arena is NP-hard. It is
//! tried in the order of cost, until a placement meets the [lower bound](lower_bound()):
//!
//! 1. greedy orders, the first of which is exact if lifespans nest, as those of a chain of layers do;
//! 2. the same orders from the bottom of the arena up;
//! 3. an exact search, bounded by a number of nodes. It never looks at a clock: the same problem has the same placement
//!    on every machine.
//!
//! [`validate()`] checks a placement and shares no code with what made it.
//!
//! ```
//! use plimsoll_plan::arena::{place, Buffer, Effort, Lifespan, Problem};
//!
//! let buffer = |lower, upper, size| Buffer { lifespan: Lifespan::new(lower, upper), size, alignment: 256 };
//! let problem = Problem { buffers: vec![buffer(0, 4, 1024), buffer(1, 2, 512), buffer(2, 3, 300)], capacity: None };
//! let solution = place(&problem, &Effort::EXPANSION)?;
//! assert_eq!(solution.offsets, [0, 1024, 1024]);
//! assert_eq!((solution.height, solution.lower_bound), (1536, 1536));
//! # Ok::<(), plimsoll_plan::arena::PlaceError>(())
//! ```

mod bound;
mod buffer;
mod effort;
mod error;
mod greedy;
mod place;
mod problem;
mod search;
mod sections;
mod skyline;
mod solution;
mod tree;
mod validate;

pub use bound::lower_bound;
pub use buffer::{Buffer, Lifespan};
pub use effort::Effort;
pub use error::PlaceError;
pub use place::place;
pub use problem::Problem;
pub use solution::{Method, Solution};
pub use validate::{Fault, validate};
