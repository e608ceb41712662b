//! Who reads a public page, as far as the frame needs to know.

use axum::extract::{FromRef, FromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use sluice_web::{MaybeActor, WebState};

use crate::DashboardState;
use crate::frame::{Head, PublicFrame};

/// Anyone, signed in or not.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    head: Head,
    signed_in: bool,
    /// The public address, without a slash at the end.
    base: String,
}

impl Visitor {
    /// The frame of the page at `path`, of a section of the top bar.
    pub(crate) fn frame(self, section: &'static str, path: &str) -> PublicFrame {
        let canonical = format!("{}{path}", self.base);
        let Self { head, signed_in, base } = self;
        PublicFrame { head, section, signed_in, canonical, base }
    }

    /// The public address, without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

impl<S> FromRequestParts<S> for Visitor
where
    DashboardState: FromRef<S>,
    WebState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let actor = MaybeActor::from_request_parts(parts, state).await;
        let signed_in = actor.map_err(IntoResponse::into_response)?.0.is_some();
        let state = DashboardState::from_ref(state);
        Ok(Self {
            head: Head::new(&parts.headers, &parts.uri),
            signed_in,
            base: state.base().to_owned(),
        })
    }
}
