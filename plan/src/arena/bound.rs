//! The lower bound on every placement.

use super::sections::Sections;
use super::{PlaceError, Problem};

/// The most bytes live at any one time, sizes rounded up to the alignments: no placement is lower.
pub fn lower_bound(problem: &Problem) -> Result<u64, PlaceError> {
    Ok(Sections::new(problem)?.lower_bound())
}
