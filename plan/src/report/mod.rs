//! A plan for people and for other programs: tables, a picture, JSON, and what to say when it does not fit.

pub mod failure;
pub mod json;
pub mod markdown;
pub mod picture;
pub mod savings;
pub mod text;
