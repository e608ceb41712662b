//! Everything a member may do, on both databases.

mod account_links;
mod accounts;
mod approvals;
mod catalogue;
mod common;
mod configuration;
mod endpoints;
mod grants;
mod limits;
mod notices;
mod operator;
mod parking;
mod permissions;
mod policies;
mod providers;
mod providers_required;
mod publishing;
mod second_factor;
mod servers;
mod walls;
mod workspaces;
