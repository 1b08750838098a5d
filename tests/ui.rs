//! Networks that must not build, each with the message that a reader sees, and networks that must, each with its numbers.
//!
//! After a change of messages, `TRYBUILD=overwrite cargo test --test ui` writes them anew: read the difference.

/// All of them are checked by one run of cargo, as long as none is to be run.
#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("ui-tests/fail/*/*.rs");
}

#[test]
fn every_form_of_the_language_builds() {
    trybuild::TestCases::new().pass("ui-tests/pass/*.rs");
}
