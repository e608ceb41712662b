//! People in a browser: who is logged in, and the workspace they are in.

use axum::extract::{FromRef, FromRequestParts, OriginalUri};
use axum::response::{IntoResponse, Redirect, Response};
use http::Method;
use http::request::Parts;
use sluice_control::{Actor, Permission};

use crate::cookies::session_token;
use crate::path::param;
use crate::{ClientAddress, Problem, WebState};

/// Whoever is logged in, or nobody. For public pages.
#[derive(Debug, Clone)]
pub struct MaybeActor(pub Option<Actor>);

/// Somebody who is logged in; anybody else is sent to `/login`, and back afterwards.
#[derive(Debug)]
pub struct SignedIn(pub Actor);

/// Somebody who is logged in, inside the workspace `{ws}` of the path, with permission `P`.
#[derive(Debug)]
pub struct In<P>(pub P);

impl<S> FromRequestParts<S> for MaybeActor
where
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Asked for by several extractors of one request; the store is asked once.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let web = WebState::from_ref(state);
        let Ok(address) = ClientAddress::from_request_parts(parts, state).await;
        let actor = match session_token(&web, &parts.headers) {
            Some(token) => web.control.who(&token, &address.to_string()).await?,
            None => None,
        };
        let found = Self(actor);
        parts.extensions.insert(found.clone());
        Ok(found)
    }
}

/// A path of ours to go to, or `/`: never another host.
pub fn safe_next(next: &str) -> &str {
    let inside = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && !next.chars().any(char::is_control);
    if inside { next } else { "/" }
}

/// Where to log in, and come back from.
pub fn login_redirect(next: &str) -> Redirect {
    let next = serde_urlencoded::to_string([("next", safe_next(next))]).unwrap_or_default();
    Redirect::to(&format!("/login?{next}"))
}

/// The page that was asked for, or of a form the page to start from.
fn wanted(parts: &Parts) -> String {
    if parts.method != Method::GET {
        return "/".to_owned();
    }
    let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned()
}

impl<S> FromRequestParts<S> for SignedIn
where
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let found = MaybeActor::from_request_parts(parts, state).await;
        match found.map_err(IntoResponse::into_response)?.0 {
            Some(actor) => Ok(Self(actor)),
            None => Err(login_redirect(&wanted(parts)).into_response()),
        }
    }
}

impl<S, P> FromRequestParts<S> for In<P>
where
    S: Send + Sync,
    WebState: FromRef<S>,
    P: Permission,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let SignedIn(actor) = SignedIn::from_request_parts(parts, state).await?;
        let control = WebState::from_ref(state).control;
        let slug = param(parts, state, "ws").await.unwrap_or_default();
        let entered = control.enter::<P>(&actor, &slug).await;
        entered.map(Self).map_err(|error| Problem::from(error).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_never_leads_away() {
        for inside in ["/", "/w/acme?x=1&y=%2F", "/start?server=a&tool=b"] {
            assert_eq!(safe_next(inside), inside);
        }
        for away in [
            "",
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "x",
            "/a\r\nb",
            "/\t/e",
        ] {
            assert_eq!(safe_next(away), "/", "{away:?}");
        }
    }
}
