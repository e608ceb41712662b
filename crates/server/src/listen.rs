//! Sockets: bind with words for what goes wrong, accept within a bound, end gracefully.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::failure::{Failure, Outcome};
use crate::front::{Connection, Front};
use crate::wire::Guarded;

/// What a client of HTTP/2 begins with (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that a request's head may have, in HTTP/1.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// The same in HTTP/2, where it counts each header's name, value and 32 bytes.
const MAX_HEAD_LIST: u32 = 64 * 1024;

/// What a listener allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) connections: usize,
    pub(crate) header_timeout: Duration,
    pub(crate) grace: Duration,
}

/// Listens on `address`, which `setting` named.
pub(crate) async fn bind(setting: &str, address: SocketAddr) -> Outcome<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "another process has that port (perhaps another Sluice): stop it, or choose \
                 another port, for example `{setting} {}:{}`",
                address.ip(),
                address.port().checked_add(1).unwrap_or(8080)
            ),
            std::io::ErrorKind::PermissionDenied => {
                format!("ports below 1024 need a privilege; choose a higher one with `{setting}`")
            }
            std::io::ErrorKind::AddrNotAvailable => {
                format!("no network interface has {}; see `{setting}`", address.ip())
            }
            _ => format!("see `{setting}`"),
        };
        let error = anyhow::Error::from(error).context(format!("cannot listen on {address}"));
        Failure::settings(error).remedy(remedy)
    })
}

/// Where a listener really listens; port 0 becomes the one that was given.
pub(crate) fn address(listener: &TcpListener) -> Outcome<SocketAddr> {
    listener.local_addr().context("a socket without an address").map_err(Failure::bad)
}

/// Serves `front` until `stop`, then lets requests in flight end within the grace.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Front,
    allowance: Allowance,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(allowance.connections));
    let open = GracefulShutdown::new();
    let http = Arc::new(Http::new(allowance));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                stream.set_nodelay(true).ok();
                let (http, stop) = (Arc::clone(&http), stop.clone());
                let (front, open) = (front.connected(peer), open.watcher());
                tokio::spawn(async move {
                    http.serve(stream, front, open, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors and the like: others must close first.
                warn!(%error, "Could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    if timeout(allowance.grace, open.shutdown()).await.is_err() {
        warn!("Requests were still open after the grace and are cut off");
    }
}

/// HTTP as it is spoken here, in both its versions.
struct Http {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
    patience: Duration,
}

impl Http {
    fn new(allowance: Allowance) -> Self {
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new())
            .header_read_timeout(allowance.header_timeout)
            .max_buf_size(MAX_HEAD);
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .max_concurrent_streams(256)
            .max_header_list_size(MAX_HEAD_LIST)
            .keep_alive_interval(Duration::from_secs(30));
        Self { one, two, patience: allowance.header_timeout }
    }

    /// Serves a connection to its end.
    async fn serve(
        &self,
        stream: TcpStream,
        front: Connection,
        open: Watcher,
        stop: CancellationToken,
    ) {
        // Looked at where it lies: whoever takes bytes out first makes hyper's buffer grow to twice its size.
        let begins = tokio::select! {
            () = stop.cancelled() => return,
            begins = timeout(self.patience, is_framed(&stream)) => begins,
        };
        let framed = match begins {
            Ok(Ok(framed)) => framed,
            Ok(Err(error)) => return debug!(%error, "A connection ended before it said anything"),
            Err(_) => return debug!("A connection said nothing in time"),
        };
        let stream = TokioIo::new(Guarded::new(stream));
        let served = if framed {
            Box::pin(open.watch(self.two.serve_connection(stream, front))).await
        } else {
            open.watch(self.one.serve_connection(stream, front)).await
        };
        if let Err(error) = served {
            debug!(%error, "A connection ended early");
        }
    }
}

/// Whether a client begins with the preface of HTTP/2. Waits for the whole of it: hyper has no bound for that.
async fn is_framed(stream: &TcpStream) -> std::io::Result<bool> {
    let mut begun = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut begun).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if !PREFACE.starts_with(&begun[..count]) {
            return Ok(false);
        }
        if count == PREFACE.len() {
            return Ok(true);
        }
        // The socket stays readable, so nothing tells of the next byte.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
