//! The policy language: parse, check, compile, decide, explain, simulate. Pure: no clock, no I/O, no async.
