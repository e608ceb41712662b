//! The commands, one file each.

pub(crate) mod admin;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod catalogue;
pub(crate) mod configuration;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod healthcheck;
pub(crate) mod migrate;
pub(crate) mod policy;
pub(crate) mod risk;
pub(crate) mod rotate_keys;
pub(crate) mod scan;
pub(crate) mod serve;
