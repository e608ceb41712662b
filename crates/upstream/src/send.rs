//! Sends one request to an upstream and says exactly whether it may have run.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE, HOST};
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use moka::sync::Cache;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret, SecretString};
use sluice_domain::ServerId;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::check::{self, UrlProblem};
use crate::connect::{Bounded, CheckedTcp, ConnectFault, causes};
use crate::counted::{Connections, Tally};
use crate::resolve::{Dial, Resolve, Resolver};
use crate::target::Target;

/// Connection pools held at once; the least used goes first.
const MAX_POOLS: u64 = 10_000;
/// How long an unused connection is kept.
pub(crate) const POOL_IDLE: Duration = Duration::from_mins(1);
/// How long an unused pool is kept.
const POOLS_IDLE: Duration = Duration::from_mins(10);
pub(crate) const MAX_IDLE_CONNECTIONS: usize = 64;

/// How connections are made.
#[derive(Clone, Default)]
pub struct UpstreamOptions {
    /// Also connect to this machine and to private networks.
    pub allow_private: bool,
    /// Certificate authorities (DER) that are trusted besides the public ones.
    pub extra_roots: Vec<Vec<u8>>,
    /// A resolver in place of the system's, for tests.
    pub resolve: Option<Resolve>,
    /// Where checked addresses are connected to in their place, for tests.
    pub dial: Option<Dial>,
}

impl fmt::Debug for UpstreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamOptions")
            .field("allow_private", &self.allow_private)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer. The words hold no address.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the upstream's address is refused: it is {0}")]
    Refused(&'static str),
    #[error("the upstream's name cannot be resolved")]
    Dns,
    #[error("the upstream does not accept connections")]
    Connect,
    #[error("no secure connection to the upstream: {0}")]
    Tls(String),
    #[error("connecting to the upstream took too long")]
    TimedOutBeforeSend,
    #[error("the upstream did not answer in time")]
    TimedOutAfterSend,
    /// The connection ended before the request was sent.
    #[error("the upstream closed the connection")]
    ClosedBeforeSend,
    #[error("the upstream broke off the connection")]
    Cut(#[source] ClientError),
    /// Something answered, but not in HTTP; perhaps before it was asked.
    #[error("the upstream does not speak HTTP")]
    NotHttp {
        sent: bool,
        #[source]
        cause: ClientError,
    },
    #[error("the request cannot be sent: {0}")]
    Unsendable(&'static str),
}

impl SendError {
    /// Whether the upstream may have seen the request, and so may have done what it asks.
    pub const fn may_have_run(&self) -> bool {
        matches!(self, Self::TimedOutAfterSend | Self::Cut(_) | Self::NotHttp { sent: true, .. })
    }
}

/// What every request to a target needs, found at the first one and kept with it. A clone of a target,
/// which may be made into another, starts anew.
#[derive(Default)]
pub struct Prepared(OnceLock<Ready>);

#[derive(Clone)]
struct Ready {
    key: PoolKey,
    url: Url,
    uri: Uri,
    pool: Pool,
}

impl Ready {
    /// A target's fields are anybody's to change.
    fn fits(&self, key: PoolKey, url: &Url) -> bool {
        self.key == key && self.url == *url
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared")
    }
}

impl Clone for Prepared {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Server, revision and connect timeout.
type PoolKey = (ServerId, i64, Duration);

const fn pool_key(target: &Target) -> PoolKey {
    (target.server, target.revision, target.connect_timeout)
}

type Pool = Client<Bounded<HttpsConnector<CheckedTcp>>, Tracked>;

/// Connections to upstreams, in pools of each server's own. Cheap to clone; clones share the pools.
#[derive(Clone)]
pub struct Upstream {
    pub(crate) resolver: Resolver,
    tls: Arc<ClientConfig>,
    pools: Cache<PoolKey, Pool>,
    tally: Tally,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("resolver", &self.resolver).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Made once, and shared.
    pub fn new(options: UpstreamOptions) -> Self {
        let (instead, dial) = (options.resolve, options.dial);
        let resolver = Resolver { allow_private: options.allow_private, instead, dial };
        let pools = Cache::builder().max_capacity(MAX_POOLS).time_to_idle(POOLS_IDLE).build();
        Self { resolver, tls: Arc::new(tls(options.extra_roots)), pools, tally: Tally::default() }
    }

    /// Checks an address when it is saved: spelling, scheme, and where its name leads now.
    pub async fn check_url(&self, text: &str) -> Result<Url, UrlProblem> {
        check::check(&self.resolver, text).await
    }

    /// Whether the address leads to the public internet and nowhere else now, whatever the operator allows.
    pub async fn check_public(&self, text: &str) -> Result<(), UrlProblem> {
        check::check(&self.resolver.strict(), text).await.map(|_| ())
    }

    /// Sends a request with the target's credentials to the target's address; only method, body and
    /// the other headers are the caller's. A redirect is an answer like any other. Waits for the
    /// answer's head no longer than the target's idle time; the body is the caller's to bound.
    pub async fn send(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendError> {
        self.send_until(target, request, None).await
    }

    /// [`Self::send`], but no longer than until `deadline`.
    pub async fn send_until(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
        deadline: Option<Instant>,
    ) -> Result<Response<Incoming>, SendError> {
        let (mut parts, body) = request.into_parts();
        let ready = self.ready(target)?;
        parts.uri = ready.uri.clone();
        for own in [HOST, ACCEPT_ENCODING, AUTHORIZATION, COOKIE] {
            parts.headers.remove(own);
        }
        // A coded answer could not be read by the policy.
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, secret) in &target.headers {
            let value = secret_value(secret)
                .ok_or(SendError::Unsendable("a credential is not a header value"))?;
            parts.headers.insert(name, value);
        }
        // An empty body is never asked for: then only a failed connection proves that nothing was sent.
        let sent = Arc::new(AtomicBool::new(body.is_end_stream()));
        let body = Tracked { inner: body, sent: Arc::clone(&sent) };
        let sending = ready.pool.request(Request::from_parts(parts, body));
        let patience = Instant::now() + target.connect_timeout + target.idle_timeout;
        // One timer for both: each costs a call as much as one of its counters.
        let until = deadline.map_or(patience, |deadline| deadline.min(patience));
        match timeout_at(until, sending).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(explain(error, sent.load(Ordering::Acquire))),
            Err(_) if sent.load(Ordering::Acquire) => Err(SendError::TimedOutAfterSend),
            Err(_) => Err(SendError::TimedOutBeforeSend),
        }
    }

    /// How connections are used now.
    pub fn connections(&self) -> Connections {
        self.tally.read(self.pools.entry_count())
    }

    fn ready<'a>(&self, target: &'a Target) -> Result<Cow<'a, Ready>, SendError> {
        let (key, url) = (pool_key(target), &target.url);
        if let Some(ready) = target.prepared.0.get().filter(|ready| ready.fits(key, url)) {
            return Ok(Cow::Borrowed(ready));
        }
        let uri = url.as_str().parse::<Uri>();
        let uri = uri.map_err(|_| SendError::Unsendable("its address is not one for HTTP"))?;
        let ready = Ready { key, url: url.clone(), uri, pool: self.pool(key) };
        let kept = target.prepared.0.get_or_init(|| ready.clone());
        Ok(if kept.fits(key, url) { Cow::Borrowed(kept) } else { Cow::Owned(ready) })
    }

    fn pool(&self, key: PoolKey) -> Pool {
        self.pools.get_with(key, || {
            let tcp = CheckedTcp { resolver: self.resolver.clone(), tally: self.tally.clone() };
            let https = HttpsConnectorBuilder::new()
                .with_tls_config(ClientConfig::clone(&self.tls))
                .https_or_http()
                .enable_http1()
                .enable_http2()
                .wrap_connector(tcp);
            Client::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE)
                .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
                .build(Bounded { inner: https, timeout: key.2 })
        })
    }
}

fn tls(extra_roots: Vec<Vec<u8>>) -> ClientConfig {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(extra_roots.into_iter().map(CertificateDer::from));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The value as a header that is never shown or indexed.
pub(crate) fn secret_value(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn explain(error: ClientError, sent: bool) -> SendError {
    if let Some(fault) = causes::<ConnectFault>(&error).next() {
        return match fault {
            ConnectFault::Refused(what) => SendError::Refused(what),
            ConnectFault::Dns => SendError::Dns,
            ConnectFault::Closed => SendError::Connect,
            ConnectFault::TimedOut => SendError::TimedOutBeforeSend,
        };
    }
    if let Some(words) = tls_words(&error) {
        return if sent { SendError::Cut(error) } else { SendError::Tls(words) };
    }
    let is_http = !causes::<hyper::Error>(&error).any(hyper::Error::is_parse);
    match (is_http, sent) {
        (false, _) => SendError::NotHttp { sent, cause: error },
        (true, true) => SendError::Cut(error),
        (true, false) => SendError::ClosedBeforeSend,
    }
}

/// What went wrong with TLS, short enough for a page.
fn tls_words(error: &ClientError) -> Option<String> {
    let is_connect = error.is_connect();
    match causes::<rustls::Error>(error).next() {
        Some(rustls::Error::InvalidCertificate(why)) => {
            Some(format!("its certificate is not valid ({why})"))
        }
        Some(rustls::Error::InvalidMessage(_)) => Some("it does not speak TLS".to_owned()),
        Some(_) => Some("the TLS handshake failed".to_owned()),
        None if is_connect => Some("the TLS handshake was broken off".to_owned()),
        None => None,
    }
}

/// A request body that notes when it begins to be sent: an upstream that did not get the body did
/// not get the request.
#[derive(Debug)]
struct Tracked {
    inner: Full<Bytes>,
    sent: Arc<AtomicBool>,
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.sent.store(true, Ordering::Release);
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
