//! REST as a client sees it: the real router over both databases and a fake upstream.

mod allowance;
mod bad_input;
mod common;
mod configuration;
mod document;
mod edits;
mod errors;
mod examples;
mod limits;
mod notices;
mod operations;
mod path;
mod tenancy;
mod workspace;
