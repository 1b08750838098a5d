//! The planner of Plimsoll: shapes, layers, steps, lifetimes, offsets and footprints of a neural network.
//!
//! A [`graph::Graph`] is the network as data. [`lower`] turns it into a [`schedule::Schedule`], steps over buffers;
//! [`arena`] places the buffers; [`plan::Plan`] holds the outcome, from which every number, table and picture is drawn.

pub mod arena;
pub mod arguments;
pub mod footprint;
pub mod graph;
pub mod layer_table;
pub mod layers;
pub mod losses;
pub mod lower;
pub mod network;
pub mod optimizers;
pub mod placement;
pub mod plan;
pub mod report;
pub mod schedule;
pub mod shape;
pub mod sums;
pub mod units;
pub mod validate;
pub mod what_if;
