//! Counters in process and in Redis under one contract.
