//! The first questions of every request: a foreign web page? a grant for this
//! server? Nothing of the body is looked at before they are answered.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use sluice_domain::metrics;
use sluice_domain::{GrantId, SecurityEvent, SecurityKind, ServerId, WorkspaceId};
use sluice_mcp::codes;
use sluice_vault::{TokenHash, TokenKind, parse_token};

use crate::cache::Entry;
use crate::respond::Form;
use crate::state::Inner;

/// The client's address, as a layer in front found it; without it, the connection's peer is the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// A request whose grant opens the server.
pub(crate) struct Admitted {
    pub(crate) entry: Arc<Entry>,
    pub(crate) token: TokenHash,
    pub(crate) address: Option<IpAddr>,
    /// The grant may be used from the client's network.
    pub(crate) network: bool,
}

pub(crate) fn client_address(parts: &Parts) -> Option<IpAddr> {
    let told = parts.extensions.get::<ClientAddress>().map(|address| address.0);
    told.or_else(|| parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
}

/// Answers for those who may not come in.
pub(crate) async fn admit(
    inner: &Arc<Inner>,
    server: &str,
    parts: &Parts,
    form: Form,
) -> Result<Admitted, Response> {
    let address = client_address(parts);
    let security = Security { inner, form, address };
    if let Some(origin) = inner.origins.foreign(&parts.headers) {
        let origin = String::from_utf8_lossy(origin);
        security.log(SecurityKind::ForeignOrigin, None, &origin);
        let message = "requests from this web origin are not accepted";
        return Err(form.plain_error(StatusCode::FORBIDDEN, codes::INVALID_REQUEST, message));
    }
    let server_id: Option<ServerId> = server.parse().ok();
    let Some(token) = bearer(&parts.headers) else {
        security.log(SecurityKind::BadToken, None, parts.uri.path());
        return Err(form.unauthorized());
    };
    let entry = match inner.cache.find(&token).await {
        Ok(Some(entry)) => entry,
        Ok(None) => {
            security.log(SecurityKind::BadToken, None, parts.uri.path());
            return Err(form.unauthorized());
        }
        Err(_) => {
            let message = "the gateway cannot check the token at the moment; nothing was forwarded";
            return Err(form.unavailable(None, "store_unavailable", message));
        }
    };
    let record = &entry.route.record;
    let whose = (record.workspace, record.grant.id);
    if let Err(kind) = entry.route.admits(server_id, (inner.clock)()) {
        security.log(kind, Some(whose), parts.uri.path());
        return Err(form.unauthorized());
    }
    let network = entry.route.admits_address(address);
    if !network {
        security.log(SecurityKind::NetworkNotAllowed, Some(whose), parts.uri.path());
    }
    Ok(Admitted { entry, token, address, network })
}

/// Writes the security log for one request.
pub(crate) struct Security<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) form: Form,
    pub(crate) address: Option<IpAddr>,
}

impl Security<'_> {
    pub(crate) fn log(
        &self,
        kind: SecurityKind,
        whose: Option<(WorkspaceId, GrantId)>,
        detail: &str,
    ) {
        metrics::SECURITY_EVENTS.add([kind as usize], 1);
        self.inner.security.record(SecurityEvent {
            id: self.form.id,
            at: (self.inner.clock)(),
            kind,
            workspace: whose.map(|(workspace, _)| workspace),
            grant: whose.map(|(_, grant)| grant),
            address: self.address.map(|address| address.to_string()).unwrap_or_default(),
            detail: detail.chars().take(256).collect(),
            times: 1,
        });
    }
}

/// The grant token of the one `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<TokenHash> {
    let mut values = headers.get_all(header::AUTHORIZATION).into_iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let (kind, hash) = parse_token(token.trim())?;
    (scheme.eq_ignore_ascii_case("bearer") && kind == TokenKind::Grant).then_some(hash)
}
