//! The planner of Plimsoll: shapes, layers, steps, lifetimes, offsets and footprints of a neural network.

pub mod arena;
