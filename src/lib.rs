//! Neural networks whose memory is planned at compile time.

#[doc(hidden)]
pub mod fits;

pub use plimsoll_macros::network;
pub use plimsoll_plan as plan;
pub use plimsoll_plan::network::{LayerRow, Network, PlanRef};
pub use plimsoll_plan::plan::Plan;
#[doc(hidden)]
pub use plimsoll_plan::sums::{Totals, check_sums};
pub use plimsoll_runtime::data;
