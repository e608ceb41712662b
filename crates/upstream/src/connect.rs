//! TCP connections to checked addresses only: what was checked is what is connected to.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::counted::{Counted, Tally};
use crate::resolve::Resolver;

/// How long one address is tried alone before the next joins in.
const HEAD_START: Duration = Duration::from_millis(300);

/// Why there is no connection. The request was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectFault {
    #[error("the address is refused: it is {0}")]
    Refused(&'static str),
    #[error("the name cannot be resolved")]
    Dns,
    #[error("nobody accepts the connection")]
    Closed,
    #[error("connecting took too long")]
    TimedOut,
}

/// Resolves, checks and connects.
#[derive(Debug, Clone)]
pub(crate) struct CheckedTcp {
    pub(crate) resolver: Resolver,
    pub(crate) tally: Tally,
}

impl Service<Uri> for CheckedTcp {
    type Response = TokioIo<Counted>;
    type Error = ConnectFault;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (resolver, tally) = (self.resolver.clone(), self.tally.clone());
        Box::pin(async move {
            let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            let host = uri.host().ok_or(ConnectFault::Dns)?;
            let addresses = resolver.checked(host, uri.port_u16().unwrap_or(default)).await?;
            let stream = first_of(&alternating(resolver.dialled(addresses))).await?;
            // Small messages must not wait for each other.
            stream.set_nodelay(true).map_err(|_| ConnectFault::Closed)?;
            Ok(TokioIo::new(tally.counted(stream)))
        })
    }
}

/// The resolver's order, but v6 and v4 by turns, so that a dead family costs one head start.
fn alternating(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::new();
    loop {
        let (a, b) = (first.next(), second.next());
        if a.is_none() && b.is_none() {
            return ordered;
        }
        ordered.extend(a);
        ordered.extend(b);
    }
}

/// The first connection that stands (RFC 8305: each next address joins in after a head start).
async fn first_of(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectFault> {
    let mut waiting = addresses.iter();
    let mut tries: FuturesUnordered<_> =
        waiting.next().map(|first| TcpStream::connect(*first)).into_iter().collect();
    loop {
        let joined = tokio::time::timeout(HEAD_START, tries.next()).await;
        match joined {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(None) if waiting.len() == 0 => return Err(ConnectFault::Closed),
            _ => tries.extend(waiting.next().map(|next| TcpStream::connect(*next))),
        }
    }
}

/// Bounds the whole of connecting, TLS included.
#[derive(Debug, Clone)]
pub(crate) struct Bounded<S> {
    pub(crate) inner: S,
    pub(crate) timeout: Duration,
}

/// What a failed connector says.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<S> Service<Uri> for Bounded<S>
where
    S: Service<Uri, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.inner.call(uri));
        Box::pin(
            async move { connecting.await.unwrap_or_else(|_| Err(ConnectFault::TimedOut.into())) },
        )
    }
}

/// The causes of a type, however deep.
pub(crate) fn causes<'a, T: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a T> {
    std::iter::successors(Some(error), |error| {
        // An `io::Error` does not name the error that it was made of as its source.
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
    .filter_map(|error| error.downcast_ref())
}
