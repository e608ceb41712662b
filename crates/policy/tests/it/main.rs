//! Tests of the policy language from outside.

mod checker;
mod decisions;
mod docs;
mod edits;
mod faults;
mod files;
mod fuzz;
mod generate;
mod messages;
mod operators;
mod properties;
mod reference;
mod reference_paths;
mod schema;
mod simulation;
mod support;
mod warnings;
