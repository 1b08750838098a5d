//! Datasets fetched from where their publishers keep them. With the feature `download`.
//!
//! A file is written under a temporary name, checked against its published checksum, and only then given its own name: what
//! has its name is whole. What was fetched before a connection broke is kept and continued from.

mod cache;
mod fetch;
mod progress;
mod sources;

pub use cache::cache_folder;
pub use fetch::{Download, Progress};
