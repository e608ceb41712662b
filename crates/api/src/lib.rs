//! REST under `/api/v1`, and the OpenAPI 3.1 document that is generated from it. Each file is one
//! kind of object; a handler asks for its permission in its signature, reads, calls `control`, and
//! shapes the answer in a struct of its own.

#![expect(unused_qualifications, reason = "what `utoipa::path` expands to names its types in full")]

mod allowance;
mod api_tokens;
mod approval_exceptions;
mod approvals;
mod calls;
mod calls_export;
pub mod configuration;
mod deliveries;
mod endpoints;
mod events;
mod grants;
mod idempotency;
mod join_domains;
mod limits;
mod log_filters;
mod me;
mod members;
mod notices;
mod openapi;
mod page;
mod policies;
mod policy_checks;
mod policy_compare;
mod policy_history;
mod policy_tests;
mod security_events;
mod servers;
mod stale;
mod state;
mod tools;
mod workspace;

pub use openapi::{document, published};
pub use state::{ApiState, router};
