#![no_main]

#[path = "../../crates/policy/tests/it/generate.rs"]
mod generate;
#[path = "../same_walk.rs"]
mod same_walk;
#[path = "../oracles/policy_decisions.rs"]
mod oracle;
#[path = "../oracles/policy_document.rs"]
mod policy_document;
#[expect(dead_code, reason = "the tests choose by seeds")]
#[path = "../../crates/policy/tests/it/random.rs"]
mod random;
#[path = "../../crates/policy/tests/it/reference.rs"]
mod reference;
#[path = "../../crates/policy/tests/it/reference_paths.rs"]
mod reference_paths;
#[path = "../../crates/policy/tests/it/run.rs"]
mod run;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::holds(bytes));
