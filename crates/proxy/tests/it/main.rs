//! The data path from outside: a real port in front, a raw upstream behind, and every byte looked at.

#![expect(clippy::missing_panics_doc, reason = "a helper of tests fails the test by a panic")]

mod approvals;
mod auth;
mod failures;
mod gateway;
mod json;
mod limits;
mod lists;
mod log;
mod sessions;
mod stage;
mod streaming;
