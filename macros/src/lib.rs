//! The procedural macro network! of Plimsoll.
