//! `cargo xtask`: tests, benches and reports.
fn main() {}
