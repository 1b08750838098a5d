//! Networks that must not build, each with the message that a reader sees, and networks that must, each with its numbers.
//!
//! After a change of messages, `TRYBUILD=overwrite cargo test --test ui` writes them anew: read the difference.

#[test]
fn messages_and_forms() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui-tests/fail/*/*.rs");
    cases.pass("ui-tests/pass/*.rs");
}
