//! The proxy's ports, plugged into the store.

mod approvals;
#[cfg(test)]
mod model;
mod routes;
mod security;
mod tools;

pub(crate) use approvals::{ClockOf, StoredApprovals};
pub(crate) use routes::StoredRoutes;
pub(crate) use security::SecurityQueue;
pub(crate) use tools::ToolsQueue;
