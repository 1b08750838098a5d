//! The planner of Plimsoll: shapes, layers, steps, lifetimes, offsets and footprints of a neural network.

pub mod arguments;
pub mod graph;
pub mod layers;
pub mod losses;
pub mod lower;
pub mod optimizers;
pub mod schedule;
pub mod shape;
pub mod units;
