//! End-to-end tests with what newcomers really use: browsers, MCP clients, MCP servers and bridges, as
//! `cargo xtask test` installs them.

mod approvals;
mod browser;
mod clients;
mod stdio;
mod world;
