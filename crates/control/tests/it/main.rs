//! Everything a member may do, on both databases.

mod accounts;
mod approvals;
mod common;
mod configuration;
mod grants;
mod operator;
mod permissions;
mod policies;
mod servers;
