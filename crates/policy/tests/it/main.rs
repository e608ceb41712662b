//! Tests of the policy language from outside.

mod checker;
mod contract;
mod corpus;
mod decisions;
mod docs;
mod edits;
mod faults;
mod files;
mod fuzz;
mod generate;
mod messages;
mod operators;
#[path = "../../../../fuzz/oracles/policy_document.rs"]
mod policy_document;
mod properties;
mod random;
mod reference;
mod reference_paths;
mod run;
mod schema;
mod simulation;
mod support;
mod warnings;
