//! A request for a host that is not ours is misdirected (RFC 9110 section 15.5.20): a page on
//! another name that resolves to this machine must not drive it.

use sluice_control::codes;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use crate::{Problem, WebSettings};

/// Health checks come by address, from load balancers that know no name.
const EXEMPT: [&str; 2] = ["/healthz", "/readyz"];

pub(crate) async fn check(
    State(settings): State<Arc<WebSettings>>,
    request: Request,
    next: Next,
) -> Response {
    if EXEMPT.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match admit(&settings, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses a request that names a host that is not ours.
pub(crate) fn admit<B>(settings: &WebSettings, request: &http::Request<B>) -> Result<(), Problem> {
    let allowed = |host: &str| settings.allowed_hosts.iter().any(|known| known == host);
    if plain(request).is_some_and(allowed) {
        return Ok(());
    }
    let host = named(request);
    if host.as_deref().is_some_and(allowed) {
        return Ok(());
    }
    let detail = match host {
        Some(host) => format!(
            "`{host}` is not a name of this Sluice. Its operator can add it to SLUICE_ALLOWED_HOSTS"
        ),
        None => "the request names no host".to_owned(),
    };
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, codes::WRONG_HOST, detail))
}

/// The host in the form that nearly all requests name it: one header, lower case, no address in
/// brackets. None: [`named`] has to look.
fn plain<B>(request: &http::Request<B>) -> Option<&str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None, None) = (hosts.next(), hosts.next(), request.uri().authority()) else {
        return None;
    };
    let host = host.to_str().ok()?;
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
    let fits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (fits && !name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// The host that the request names, lower case, without port and brackets.
fn named<B>(request: &http::Request<B>) -> Option<String> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let first = hosts.next();
    if hosts.next().is_some() {
        return None;
    }
    let named = first.map(|value| value.to_str()).transpose().ok()?;
    let text = match (request.uri().authority(), named) {
        // HTTP/2 and absolute targets name the host in the request line, which then counts
        // (RFC 9112 section 3.2.2); a header that says otherwise is a trick.
        (Some(authority), None) => authority.as_str(),
        (Some(authority), Some(host)) if authority.as_str().eq_ignore_ascii_case(host) => host,
        (None, Some(host)) => host,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let authority: http::uri::Authority = text.parse().ok()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let port = text.strip_prefix(authority.host())?;
    let is_port = port
        .strip_prefix(':')
        .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    if !(port.is_empty() || is_port) {
        return None;
    }
    let bare = authority.host().trim_start_matches('[').trim_end_matches(']');
    Some(bare.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_target_and_a_header_that_name_two_hosts_name_none() {
        let table = [
            ("/mcp/x", Some("LocalHost:8080"), Some("localhost")),
            ("http://localhost:8080/mcp/x", Some("localhost:8080"), Some("localhost")),
            ("http://localhost/mcp/x", None, Some("localhost")),
            ("http://evil.example/mcp/x", Some("localhost"), None),
            ("/mcp/x", Some("a@localhost"), None),
            ("/mcp/x", None, None),
            ("/mcp/x", Some("localhost"), Some("localhost")),
            ("/mcp/x", Some("127.0.0.1:8080"), Some("127.0.0.1")),
            ("/mcp/x", Some("[::1]:8080"), Some("::1")),
            ("/mcp/x", Some("localhost:80:80"), None),
            ("/mcp/x", Some("localhost:x"), None),
        ];
        for (target, host, expected) in table {
            let mut request = Request::builder().uri(target);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let request = request.body(Body::empty()).expect("a request");
            assert_eq!(named(&request).as_deref(), expected, "{target} {host:?}");
            // The short way never sees another host than the long one.
            assert!(plain(&request).is_none_or(|host| Some(host) == expected), "{target} {host:?}");
        }
    }
}
