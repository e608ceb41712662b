//! The state that the extractors need, and the layers that every answer passes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use ipnet::IpNet;
use sluice_control::Control;
use tower_http::catch_panic::CatchPanicLayer;
use url::Url;

use crate::{ClientAddress, Problem, address, headers, host, request_id};

/// What the operator decided about HTTP.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// What pages and cookies are built from.
    pub public_url: Url,
    /// Host names that are answered, lower case, without port.
    pub allowed_hosts: Vec<String>,
    /// Networks whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// Shared by every extractor. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WebState {
    pub control: Control,
    pub settings: Arc<WebSettings>,
}

impl WebState {
    /// Puts the parts together.
    pub fn new(control: Control, settings: WebSettings) -> Self {
        Self { control, settings: Arc::new(settings) }
    }

    /// Cookies are marked `Secure` and bound to the host where the public URL is https.
    pub(crate) fn secure(&self) -> bool {
        self.settings.public_url.scheme() == "https"
    }
}

/// What the layers ask of every request, for the data path, which goes a shorter way than a router.
#[derive(Debug, Clone)]
pub struct Guard(Arc<WebSettings>);

impl Guard {
    /// The same questions as [`wrap`]'s.
    pub fn new(state: &WebState) -> Self {
        Self(Arc::clone(&state.settings))
    }

    /// The client's address; a problem where the request names a host that is not ours.
    pub fn admit<B>(
        &self,
        request: &http::Request<B>,
        peer: IpAddr,
    ) -> Result<ClientAddress, Problem> {
        host::admit(&self.0, request)?;
        let address = address::client(peer, request.headers(), &self.0.trusted_proxies);
        Ok(ClientAddress(address))
    }
}

/// Puts the layers around a router, outermost first: request id, client address, host check,
/// security headers, and a net for panics.
pub fn wrap(router: Router, state: &WebState) -> Router {
    let settings = || Arc::clone(&state.settings);
    router
        .layer(CatchPanicLayer::custom(|_panic| {
            axum::response::IntoResponse::into_response(Problem::internal())
        }))
        .layer(from_fn(headers::add))
        .layer(from_fn_with_state(settings(), host::check))
        .layer(from_fn_with_state(settings(), address::note))
        .layer(from_fn(request_id::add))
}
