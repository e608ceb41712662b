#![no_main]

#[path = "../same_walk.rs"]
mod same_walk;
#[path = "../oracles/mcp_events.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::holds(bytes));
