//! The planner of Plimsoll: shapes, layers, steps, lifetimes, offsets and footprints of a neural network.
//!
//! A [`graph::Graph`] is the network as data. [`lower`] turns it into a [`schedule::Schedule`], steps over buffers;
//! [`arena`] places the buffers; [`plan::Plan`] holds the outcome, from which every number, table and picture is drawn.
//!
//! The macro `network!` makes graphs from a declaration. One can also be put together call by call:
//!
//! ```
//! use plimsoll_plan::arguments::{Arguments, Value};
//! use plimsoll_plan::graph::{Budget, GraphBuilder};
//! use plimsoll_plan::layers;
//! use plimsoll_plan::shape::DType;
//!
//! let definition = layers::find("linear").expect("a layer of the language");
//! let arguments = Arguments::check(definition.arguments, vec![Some(Value::Int(10))]).expect("its one size");
//! let linear = (definition.build)(&arguments).expect("a linear layer");
//!
//! let mut builder = GraphBuilder::new("Small");
//! let x = builder.input("x", DType::F32, &[784])?;
//! let fc = builder.member("fc", linear, false);
//! let y = builder.call(fc, &[x])?;
//! let plan = builder.finish(y, None, Some(32), Budget::default())?.plan()?;
//!
//! // A weight of 10 x 784 and a bias, then 32 samples of 784 floats and 32 of 10, each rounded up to 256 bytes.
//! assert_eq!(plan.inference_bytes(), 31_488 + 256 + 100_352 + 1_280);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | modules | what they hold |
//! |---|---|
//! | [`shape`], [`layers`], [`losses`], [`optimizers`], [`arguments`] | the vocabulary: what each part is, takes and keeps |
//! | [`graph`] | a network |
//! | [`order`], [`strategy`] | in which order it runs, and what is done to need less memory |
//! | [`lower`], [`schedule`] | its steps and buffers |
//! | [`arena`], [`placement`] | offsets |
//! | [`chain`] | what is kept and what is computed once more |
//! | [`plan`], [`footprint`], [`layer_table`], [`network`] | the outcome and its numbers |
//! | [`report`], [`units`] | tables, pages, pictures, JSON, messages |
//! | [`what_if`], [`known`] | what would fit, and what its plans share |
//! | [`validate`], [`sums`] | checks that trust nobody |

pub mod arena;
pub mod arguments;
pub mod chain;
pub mod consistency;
pub mod footprint;
pub mod graph;
pub mod known;
pub mod layer_table;
pub mod layers;
pub mod losses;
pub mod lower;
pub mod network;
pub mod optimizers;
pub mod order;
pub mod placement;
pub mod plan;
pub mod report;
pub mod schedule;
pub mod shape;
pub mod strategy;
pub mod sums;
pub mod units;
pub mod validate;
pub mod what_if;
