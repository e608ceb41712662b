//! Which headers cross the gateway. Both ways by allow-list: credentials,
//! cookies and addresses of one side never reach the other.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use sluice_mcp::{Era, RoutingHeaders};

/// `Mcp-Session-Id`.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Method`.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Last-Event-ID`.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// `X-Request-Id`.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// `X-Accel-Buffering`.
pub(crate) const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

const UP: &[&str] = &[
    "accept",
    "mcp-protocol-version",
    "last-event-id",
    "traceparent",
    "tracestate",
    "baggage",
    "user-agent",
];
const UP_MODERN: &[&str] = &["mcp-method", "mcp-name"];
const PARAM: &str = "mcp-param-";
const DOWN: &[&str] =
    &["content-type", "cache-control", "x-accel-buffering", "allow", "retry-after"];

/// A routing header that occurs twice or is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadRoutingHeader;

/// One header's value, if it is there exactly once.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, BadRoutingHeader> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| BadRoutingHeader),
        (Some(_), Some(_)) => Err(BadRoutingHeader),
    }
}

/// The headers that route a request.
pub(crate) fn routing(headers: &HeaderMap) -> Result<RoutingHeaders<'_>, BadRoutingHeader> {
    single(headers, &LAST_EVENT)?;
    Ok(RoutingHeaders {
        version: single(headers, &VERSION)?,
        method: single(headers, &METHOD)?,
        name: single(headers, &NAME)?,
        session: single(headers, &SESSION)?,
    })
}

/// Whether no header that repeats an argument occurs twice.
pub(crate) fn params_once(headers: &HeaderMap) -> bool {
    let mut params = headers.keys().filter(|name| name.as_str().starts_with(PARAM));
    params.all(|name| headers.get_all(name).into_iter().nth(1).is_none())
}

/// Header names that `Connection` declares to be for this hop only.
fn hop_by_hop(headers: &HeaderMap, name: &str) -> bool {
    headers
        .get_all(header::CONNECTION)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|listed| listed.trim().eq_ignore_ascii_case(name)))
}

/// What goes up of a client's headers. The session id is the upstream's own; legacy servers get none of
/// the headers that mirror the body.
pub(crate) fn up(headers: &HeaderMap, era: Era, session: Option<&HeaderValue>) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(12);
    let modern = era == Era::Modern;
    for (name, value) in headers {
        let known = UP.contains(&name.as_str())
            || modern && (UP_MODERN.contains(&name.as_str()) || name.as_str().starts_with(PARAM));
        if known && !hop_by_hop(headers, name.as_str()) {
            out.append(name.clone(), value.clone());
        }
    }
    if let Some(session) = session {
        out.insert(SESSION, session.clone());
    }
    // Never the client's words: a charset would make the upstream read other text than was checked.
    if headers.contains_key(header::CONTENT_TYPE) {
        out.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    out.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    out
}

/// What comes down of an upstream's headers.
pub(crate) fn down(headers: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(8);
    for (name, value) in headers {
        if DOWN.contains(&name.as_str()) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// The same value in bytes of its own: a received one keeps the connection's whole read buffer alive.
pub(crate) fn copied(value: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

/// Whether a body with these headers is in the identity coding.
pub(crate) fn is_identity(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).into_iter().all(|value| {
        value.to_str().is_ok_and(|coding| coding.trim().eq_ignore_ascii_case("identity"))
    })
}

/// The media type without its parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Whether a request says, once, that its body is JSON in UTF-8 (RFC 8259 section 8.1).
pub(crate) fn is_utf8_json(headers: &HeaderMap) -> bool {
    let Ok(Some(value)) = single(headers, &header::CONTENT_TYPE) else { return false };
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let utf8 = |charset: &str| {
        let charset = charset.trim().trim_matches('"');
        charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
    };
    json && parts.all(|part| match part.split_once('=') {
        Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => utf8(charset),
        // A parameter whose name is spelt oddly may still be a charset to somebody.
        _ => !part.to_ascii_lowercase().contains("charset"),
    })
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok()).any(
        |value| {
            value.split(',').any(|range| {
                range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
            })
        },
    )
}

/// Whether the client says that it takes server-sent events.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether the client takes server-sent events but no JSON.
pub(crate) fn wants_events_only(headers: &HeaderMap) -> bool {
    let json = ["application/json", "application/*", "*/*"];
    accepts_events(headers) && !json.iter().any(|kind| accepts(headers, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut out = HeaderMap::new();
        for (name, value) in pairs {
            out.append(
                HeaderName::from_bytes(name.as_bytes()).expect("a name"),
                value.parse().expect("a value"),
            );
        }
        out
    }

    #[test]
    fn only_listed_headers_go_up() {
        let client = map(&[
            ("authorization", "Bearer slg_x"),
            ("cookie", "a=b"),
            ("x-api-key", "z"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1"),
            ("origin", "http://localhost"),
            ("host", "gateway"),
            ("proxy-authorization", "p"),
            ("te", "trailers"),
            ("accept-encoding", "gzip"),
            ("content-length", "5"),
            ("mcp-session-id", "ours"),
            ("content-type", "application/json"),
            ("accept", "*/*"),
            ("user-agent", "c/1"),
            ("mcp-protocol-version", "2025-11-25"),
            ("last-event-id", "7"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "x"),
            ("mcp-param-region", "eu"),
            ("traceparent", "00-1"),
        ]);
        let names = |headers: &HeaderMap| {
            let mut names: Vec<String> = headers.keys().map(|n| n.as_str().to_owned()).collect();
            names.sort();
            names
        };
        let session = HeaderValue::from_static("theirs");
        let legacy = up(&client, Era::Legacy, Some(&session));
        assert_eq!(
            names(&legacy),
            [
                "accept",
                "accept-encoding",
                "content-type",
                "last-event-id",
                "mcp-protocol-version",
                "mcp-session-id",
                "traceparent",
                "user-agent"
            ]
        );
        assert_eq!(legacy[SESSION], "theirs");
        assert_eq!(legacy[header::ACCEPT_ENCODING], "identity");
        let modern = up(&client, Era::Modern, None);
        assert!(modern.contains_key("mcp-param-region") && modern.contains_key(NAME));
        assert!(!modern.contains_key(SESSION));
    }

    #[test]
    fn headers_of_one_hop_stay_there() {
        let client =
            map(&[("connection", "close, User-Agent"), ("user-agent", "c"), ("accept", "*/*")]);
        let sent = up(&client, Era::Legacy, None);
        assert!(!sent.contains_key("user-agent") && !sent.contains_key("connection"));
        assert!(sent.contains_key("accept"));
    }

    #[test]
    fn a_copied_value_keeps_nothing_of_the_buffer_it_came_in() {
        let buffer = bytes::Bytes::from(vec![b'a'; 8_192]);
        let received = HeaderValue::from_maybe_shared(buffer.slice(100..116)).expect("a value");
        drop(buffer);
        let copy = copied(&received).expect("the same value");
        assert_eq!(copy, received);
        assert_ne!(copy.as_bytes().as_ptr(), received.as_bytes().as_ptr());
    }

    #[test]
    fn only_listed_headers_come_down() {
        let upstream = map(&[
            ("content-type", "text/event-stream"),
            ("set-cookie", "a=b"),
            ("location", "http://x"),
            ("www-authenticate", "Bearer"),
            ("server", "s"),
            ("mcp-session-id", "theirs"),
            ("retry-after", "3"),
            ("allow", "POST"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
            ("access-control-allow-origin", "*"),
        ]);
        assert_eq!(down(&upstream).len(), 5);
    }

    #[test]
    fn a_routing_header_may_occur_once() {
        assert!(routing(&map(&[("mcp-method", "a"), ("mcp-method", "a")])).is_err());
        assert!(routing(&map(&[("mcp-session-id", "a"), ("mcp-session-id", "b")])).is_err());
        assert_eq!(routing(&map(&[("mcp-name", "a")])).map(|r| r.name), Ok(Some("a")));
    }

    #[test]
    fn a_body_is_json_in_utf_8_once_and_goes_up_as_that() {
        for fine in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json; profile=x",
        ] {
            assert!(is_utf8_json(&map(&[("content-type", fine)])), "{fine}");
        }
        for odd in [
            "application/json; charset=utf-7",
            "application/json; charset=\"utf-7\"",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; x-charset =utf-16",
            "application/json; charset*=utf-7''x",
            "application/json; charset=latin1",
            "text/plain",
        ] {
            assert!(!is_utf8_json(&map(&[("content-type", odd)])), "{odd}");
        }
        let two = [("content-type", "application/json"), ("content-type", "application/json")];
        assert!(!is_utf8_json(&map(&two)));
        let sent = map(&[("content-type", "application/json; charset=\"UTF-8\"; a=b")]);
        assert_eq!(up(&sent, Era::Modern, None)[header::CONTENT_TYPE], "application/json");
    }

    #[test]
    fn accepted_forms_and_codings_are_read() {
        assert!(wants_events_only(&map(&[("accept", "text/event-stream")])));
        assert!(!wants_events_only(&map(&[("accept", "application/json, text/event-stream")])));
        assert!(!wants_events_only(&map(&[])));
        assert!(is_identity(&map(&[])) && is_identity(&map(&[("content-encoding", "Identity")])));
        assert!(!is_identity(&map(&[
            ("content-encoding", "identity"),
            ("content-encoding", "gzip")
        ])));
        assert_eq!(
            media_type(&map(&[("content-type", "Application/JSON; charset=utf-8")])).as_deref(),
            Some("application/json")
        );
    }
}
