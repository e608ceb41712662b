//! Ids in paths.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use crate::Problem;

/// The path's `{id}`. A malformed id names nothing: 404, as for an id that is not there.
#[derive(Debug)]
pub struct PathId<T>(pub T);

impl<T: FromStr + Send, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = param(parts, state, "id").await;
        match text.and_then(|text| text.parse().ok()) {
            Some(id) => Ok(Self(id)),
            None => Err(crate::not_found().await),
        }
    }
}

/// One of the path's parameters, decoded.
pub(crate) async fn param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
