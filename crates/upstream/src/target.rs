//! Where a server's requests go, and with which credentials.

use std::fmt;
use std::time::Duration;

use http::HeaderName;
use secrecy::SecretString;
use sluice_domain::{RouteRecord, ServerId, ServerSettings, Transport, WorkspaceId};
use sluice_vault::{SealError, Vault};
use url::Url;

use crate::check::{self, UrlProblem};
use crate::send::Prepared;

/// Headers that the connection itself sets: a credential cannot be one of them.
const OWN_HEADERS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "accept-encoding",
    "keep-alive",
    "proxy-connection",
];

/// One upstream MCP server. Values of headers are secrets; the URL's query may be one.
#[derive(Clone)]
pub struct Target {
    pub server: ServerId,
    pub url: Url,
    pub headers: Vec<(HeaderName, SecretString)>,
    pub transport: Transport,
    pub connect_timeout: Duration,
    pub idle_timeout: Duration,
    /// Rises with every change of the server, so that old connections are not used again.
    pub revision: i64,
    pub prepared: Prepared,
}

/// Why a stored server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("the server's address cannot be used")]
    Url(#[from] UrlProblem),
    #[error("the server's credentials cannot be opened")]
    Sealed(#[from] SealError),
    #[error("the header `{0}` cannot be sent")]
    Header(String),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Target")
            .field("server", &self.server)
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &names)
            .field("transport", &self.transport)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// The target of a grant's calls.
    pub fn from_route(vault: &Vault, route: &RouteRecord) -> Result<Self, TargetError> {
        let server = &route.server;
        Self::build(
            vault,
            route.workspace,
            server.id,
            &server.upstream_url,
            server.sealed_headers.as_deref(),
            &server.settings,
            server.revision,
        )
    }

    /// A target from a stored server's columns.
    pub fn build(
        vault: &Vault,
        workspace: WorkspaceId,
        server: ServerId,
        url: &str,
        sealed_headers: Option<&[u8]>,
        settings: &ServerSettings,
        revision: i64,
    ) -> Result<Self, TargetError> {
        let mut headers = Vec::new();
        if let Some(sealed) = sealed_headers {
            for (name, value) in vault.open_headers(workspace, server, sealed)?.0 {
                let known = Self::header(&name, &value);
                headers.push((known.ok_or(TargetError::Header(name))?, value));
            }
        }
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds.max(1)));
        Ok(Self {
            server,
            url: check::read(url)?,
            headers,
            transport: settings.transport,
            connect_timeout: seconds(settings.connect_timeout_s),
            idle_timeout: seconds(settings.idle_timeout_s),
            revision,
            prepared: Prepared::default(),
        })
    }

    /// The header's name, if name and value can be sent as an upstream credential.
    pub fn header(name: &str, value: &SecretString) -> Option<HeaderName> {
        let known = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let free = !OWN_HEADERS.contains(&known.as_str());
        (free && crate::send::secret_value(value).is_some()).then_some(known)
    }

    /// The same server at another address of the same origin, as an `endpoint` event of HTTP+SSE
    /// names it: absolute, or relative to this one.
    pub fn with_path(&self, reference: &str) -> Result<Self, UrlProblem> {
        let mut url = self.url.join(reference).map_err(|_| UrlProblem::Unreadable)?;
        url.set_fragment(None);
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.origin() != self.url.origin() || has_user {
            return Err(UrlProblem::OtherOrigin);
        }
        Ok(Self { url, ..self.clone() })
    }
}
