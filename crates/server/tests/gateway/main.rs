//! End-to-end tests of the binary: started as a process, driven over REST and MCP.

mod approvals;
mod approvals_cli;
mod attack_pages;
mod attacks;
mod audit;
mod catalogue;
mod chaos;
mod configuration;
mod drift;
mod edges;
mod endless;
mod example;
mod failures;
mod odd;
mod outages;
mod pages;
mod pressure;
mod replicas;
mod scan;
mod script;
mod spread;
mod starts;
mod stops;
mod streams;
mod traps;
mod world;
