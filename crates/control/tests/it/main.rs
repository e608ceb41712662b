//! Everything a member may do, on both databases.

mod account_links;
mod accounts;
mod approvals;
mod catalogue;
mod common;
mod configuration;
mod endpoints;
mod enumeration;
mod grants;
mod join_domains;
mod limits;
mod notices;
mod operator;
mod parking;
mod passkeys;
mod permissions;
mod policies;
mod providers;
mod providers_required;
mod publishing;
mod second_factor;
mod servers;
mod walls;
mod workspaces;
