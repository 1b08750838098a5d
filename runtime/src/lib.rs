//! Runs Plimsoll's plans: trainers, predictors and devices.

pub mod data;
