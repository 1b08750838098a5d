//! The language of Plimsoll's network! macro: parse, check, lower to a plan, expand.
