//! Sockets: bind with words for what goes wrong, accept within a bound, end gracefully.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::failure::{Failure, Outcome};
use crate::front::Front;
use crate::wire::Guarded;

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
    let http = http(allowance);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => connection(&http, &open, stream, peer, &front, place),
            Err(error) => {
                // Out of file descriptors and the like: others must close first.
                warn!(%error, "Could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(allowance.grace, open.shutdown()).await.is_err() {
        warn!("Requests were still open after the grace and are cut off");
    }
}

fn http(allowance: Allowance) -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(allowance.header_timeout)
        .max_buf_size(64 * 1024);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .max_header_list_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(30));
    http
}

fn connection(
    http: &Builder<TokioExecutor>,
    open: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
    front: &Front,
    place: OwnedSemaphorePermit,
) {
    stream.set_nodelay(true).ok();
    let stream = TokioIo::new(Guarded::new(stream));
    let serving = http.serve_connection(stream, front.connected(peer)).into_owned();
    let serving = open.watch(serving);
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            debug!(%error, "A connection ended early");
        }
        drop(place);
    });
}
