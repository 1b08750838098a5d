//! Placement, as a caller sees it.

mod timing;
mod training;
