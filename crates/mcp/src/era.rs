//! Which of MCP's two eras a request belongs to, decided once from body and
//! headers; mixtures are refused.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::envelope::{Envelope, Kind};
use crate::error::codes;

/// The first version without handshake and sessions.
const FIRST_MODERN: &str = "2026-07-28";

/// MCP before and since 2026-07-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, sessions, server-to-client requests.
    Legacy,
    /// Stateless POSTs whose headers mirror the body.
    Modern,
}

/// The headers that route a request, each present at most once.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoutingHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'a str>,
    /// `Mcp-Method`.
    pub method: Option<&'a str>,
    /// `Mcp-Name`.
    pub name: Option<&'a str>,
    /// `Mcp-Session-Id`.
    pub session: Option<&'a str>,
}

/// Headers that do not fit the body; answered with HTTP 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HeaderProblem {
    /// JSON-RPC error code.
    pub code: i64,
    /// A sentence for the client.
    pub message: &'static str,
}

const fn mismatch(message: &'static str) -> HeaderProblem {
    HeaderProblem { code: codes::HEADER_MISMATCH, message }
}

/// A version of the modern era, by its date.
fn is_modern(version: &str) -> bool {
    version.len() == FIRST_MODERN.len()
        && version.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        && version >= FIRST_MODERN
}

/// Resolves the `=?base64?…?=` form of `Mcp-Name`; none if it is not valid.
pub fn decode_header(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok().map(Cow::Owned),
    }
}

/// Decides the era of a message and checks that its headers agree with its body.
pub fn decide_era(
    envelope: &Envelope<'_>,
    headers: RoutingHeaders<'_>,
) -> Result<Era, HeaderProblem> {
    let Some(version) = envelope.meta_version.as_deref() else {
        return if headers.version.is_some_and(is_modern) {
            Err(without_meta(envelope))
        } else {
            Ok(Era::Legacy)
        };
    };
    if headers.version != Some(version) {
        return Err(mismatch("MCP-Protocol-Version and the version in `_meta` differ"));
    }
    if headers.session.is_some() {
        return Err(mismatch("this protocol version has no sessions"));
    }
    if headers.method != Some(&*envelope.method) {
        return Err(mismatch("Mcp-Method and the body's method differ"));
    }
    if needs_name(&envelope.method) || headers.name.is_some() {
        let named = headers.name.and_then(decode_header);
        if named.is_none() || named != envelope.subject {
            return Err(mismatch("Mcp-Name and the body differ"));
        }
    }
    Ok(Era::Modern)
}

/// A modern version header over a body that has no modern `_meta`.
fn without_meta(envelope: &Envelope<'_>) -> HeaderProblem {
    match envelope.kind {
        Kind::Response => HeaderProblem {
            code: codes::INVALID_REQUEST,
            message: "this protocol version has no answers from clients",
        },
        // Such notifications carry no `_meta` in the specification's own examples.
        Kind::Request | Kind::Notification => HeaderProblem {
            code: codes::INVALID_PARAMS,
            message: "`_meta` must name the protocol version that the header names",
        },
    }
}

fn needs_name(method: &str) -> bool {
    matches!(
        method,
        "tools/call"
            | "prompts/get"
            | "resources/read"
            | "tasks/get"
            | "tasks/update"
            | "tasks/cancel"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn era(body: &str, headers: RoutingHeaders<'_>) -> Result<Era, i64> {
        let envelope = crate::read(body.as_bytes()).expect("valid");
        decide_era(&envelope, headers).map_err(|problem| problem.code)
    }

    fn modern<'a>(method: &'a str, name: Option<&'a str>) -> RoutingHeaders<'a> {
        RoutingHeaders { version: Some("2026-07-28"), method: Some(method), name, session: None }
    }

    #[test]
    fn a_modern_call_needs_headers_that_agree() {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"échо","arguments":{{}},{META}}}}}"#
        );
        let coded = format!("=?base64?{}?=", STANDARD.encode("échо"));
        assert_eq!(era(&call, modern("tools/call", Some(&coded))), Ok(Era::Modern));
        let wrong = [
            modern("tools/list", Some(&coded)),
            modern("tools/call", Some("other")),
            modern("tools/call", Some("=?base64?!!?=")),
            modern("tools/call", None),
            RoutingHeaders { method: None, ..modern("tools/call", Some(&coded)) },
            RoutingHeaders { version: None, ..modern("tools/call", Some(&coded)) },
            RoutingHeaders { version: Some("2025-11-25"), ..modern("tools/call", Some(&coded)) },
            RoutingHeaders { session: Some("s"), ..modern("tools/call", Some(&coded)) },
        ];
        for headers in wrong {
            assert_eq!(era(&call, headers), Err(codes::HEADER_MISMATCH), "{headers:?}");
        }
    }

    #[test]
    fn a_name_header_that_the_body_does_not_back_is_a_mismatch() {
        let list =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
        assert_eq!(era(&list, modern("tools/list", None)), Ok(Era::Modern));
        assert_eq!(era(&list, modern("tools/list", Some("x"))), Err(codes::HEADER_MISMATCH));
    }

    #[test]
    fn a_legacy_body_ignores_routing_headers_but_not_a_modern_version() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}"#;
        let headers = RoutingHeaders { version: Some("2025-11-25"), ..modern("tools/list", None) };
        assert_eq!(era(call, headers), Ok(Era::Legacy));
        assert_eq!(era(call, RoutingHeaders::default()), Ok(Era::Legacy));
        let odd = RoutingHeaders { version: Some("1999-01-01"), ..RoutingHeaders::default() };
        assert_eq!(era(call, odd), Ok(Era::Legacy));
        assert_eq!(era(call, modern("tools/call", Some("x"))), Err(codes::INVALID_PARAMS));
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(era(answer, modern("x", None)), Err(codes::INVALID_REQUEST));
    }
}
