//! REST callers: an API token in `Authorization`, and the permission that a handler asks for. Who
//! may is decided before the body is looked at.

use axum::extract::{FromRef, FromRequestParts};
use http::header;
use http::request::Parts;
use sluice_control::codes;
use sluice_control::{Actor, ControlError, Permission};

use crate::path::param;
use crate::{ClientAddress, Problem, WebState};

/// Whoever holds a valid API token.
#[derive(Debug)]
pub struct Bearer(pub Actor);

/// The caller inside the workspace `{ws}` of the path, with permission `P`.
#[derive(Debug)]
pub struct As<P>(pub P);

/// Whose token the request carries, once that is known.
#[derive(Debug, Clone)]
struct Known(Actor);

/// No, malformed, unknown, expired and revoked: the same answer.
fn unauthenticated() -> Problem {
    Problem::from(ControlError::Unauthenticated {
        code: codes::UNAUTHENTICATED,
        detail: "send a valid API token as `Authorization: Bearer slu_…`; an admin makes them \
                 under API tokens",
    })
}

/// The token of exactly one `Authorization: Bearer` header.
fn token(parts: &Parts) -> Option<&str> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (first, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl<S> FromRequestParts<S> for Bearer
where
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Asked for by layers and handler of one request; the store is asked once.
        if let Some(Known(actor)) = parts.extensions.get() {
            return Ok(Self(actor.clone()));
        }
        let control = WebState::from_ref(state).control;
        let Ok(address) = ClientAddress::from_request_parts(parts, state).await;
        let token = token(parts).ok_or_else(unauthenticated)?;
        let actor = control.who_by_api_token(token, &address.to_string()).await?;
        let actor = actor.ok_or_else(unauthenticated)?;
        parts.extensions.insert(Known(actor.clone()));
        Ok(Self(actor))
    }
}

impl<S, P> FromRequestParts<S> for As<P>
where
    S: Send + Sync,
    WebState: FromRef<S>,
    P: Permission,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Bearer(actor) = Bearer::from_request_parts(parts, state).await?;
        let control = WebState::from_ref(state).control;
        let slug = param(parts, state, "ws").await.unwrap_or_default();
        Ok(Self(control.enter::<P>(&actor, &slug).await?))
    }
}
