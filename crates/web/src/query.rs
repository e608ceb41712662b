//! Query strings, read strictly.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;
use sluice_control::Fault;
use sluice_control::codes;

use crate::Problem;

/// The query's fields; an unknown or faulty one is a 422 that names it.
#[derive(Debug)]
pub struct Queried<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Queried<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        serde_urlencoded::from_str(query).map(Self).map_err(|error| {
            let words = error.to_string();
            let name = words.split('`').nth(1).unwrap_or_default();
            let code = if words.starts_with("unknown field") {
                codes::UNKNOWN_FIELD
            } else {
                codes::INVALID_QUERY
            };
            Problem::invalid(Fault::new(format!("/{name}"), code, format!("query: {words}")))
        })
    }
}
