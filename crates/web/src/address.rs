//! The client's address: the peer's, or behind trusted proxies the right-most forwarded address
//! that is not one of them.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use ipnet::IpNet;

use crate::WebSettings;

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl std::fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Notes the client's address as an extension of the request.
pub(crate) async fn note(
    State(settings): State<Arc<WebSettings>>,
    mut request: Request,
    next: Next,
) -> Response {
    // Without a connection (a router driven by a test) the peer is this machine.
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.0.ip());
    let address = client(peer, request.headers(), &settings.trusted_proxies);
    request.extensions_mut().insert(ClientAddress(address));
    next.run(request).await
}

/// Walks the chain from its trusted end; an entry that cannot be read ends the walk.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let mut address = peer.to_canonical();
    if !is_trusted(address) {
        return address;
    }
    let lines: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        if !is_trusted(address) {
            break;
        }
        let Some(next) = parse(entry.trim()) else { break };
        address = next.to_canonical();
    }
    address
}

/// An address with or without a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let local = Self(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Ok(parts.extensions.get().copied().unwrap_or(local))
    }
}

/// The `User-Agent` header, empty where there is none.
#[derive(Debug, Clone)]
pub struct UserAgent(pub String);

impl<S: Send + Sync> FromRequestParts<S> for UserAgent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get(http::header::USER_AGENT);
        Ok(Self(header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed_from_the_right() {
        let nets: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        let table = [
            ("203.0.113.9", "1.2.3.4", "203.0.113.9"),
            ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.9.9.9", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, garbage, 10.9.9.9", "10.9.9.9"),
            ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("10.0.0.1", "1.2.3.4:5678", "1.2.3.4"),
            ("::ffff:10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ];
        for (peer, forwarded, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().expect("a header"));
            let found = client(peer.parse().expect("an address"), &headers, &nets);
            assert_eq!(found.to_string(), expected, "{peer} {forwarded}");
        }
    }

    #[test]
    fn several_header_lines_are_one_list() {
        let nets: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "6.6.6.6".parse().expect("a header"));
        headers.append("x-forwarded-for", "1.2.3.4, 10.1.1.1".parse().expect("a header"));
        let found = client("10.0.0.1".parse().expect("an address"), &headers, &nets);
        assert_eq!(found.to_string(), "1.2.3.4");
    }
}
