//! Requests that a lenient server would read otherwise than the gateway, in all five protocol versions, to
//! the binary's own socket: every one is refused and logged, and the server hears nothing of it.

use ::http::Method;
use serde_json::json;
use sluice_testkit::http::Answer;
use sluice_testkit::{RawUpstream, http};

use crate::odd::{ANY, HEADERS, INVALID, ODD_MESSAGES, ODD_PARAMS, PARAMS, PARSE};
use crate::world::{Agent, World, setup};

const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const MODERN: &str = "2026-07-28";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

type Headers = Vec<(&'static str, String)>;

/// A request as a client of this version would send it.
#[derive(Debug, Clone)]
struct Asked {
    method: Method,
    headers: Headers,
    body: Vec<u8>,
}

impl Asked {
    fn new(agent: &Agent, version: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut headers: Headers = vec![
            ("authorization", agent.bearer.clone()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
            ("mcp-protocol-version", version.to_owned()),
        ];
        if version == MODERN {
            headers.push(("mcp-method", "tools/call".to_owned()));
            headers.push(("mcp-name", "echo".to_owned()));
        }
        Self { method: Method::POST, headers, body: body.into() }
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(own, _)| *own != name);
        self
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn set(self, name: &'static str, value: impl Into<String>) -> Self {
        self.without(name).with(name, value)
    }

    async fn at(&self, world: &World, path: &str) -> Answer {
        let headers: Vec<_> = self.headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let (at, method) = (world.sluice.address(), self.method.clone());
        http::send(at, method, path, &headers, self.body.clone()).await.expect("an answer")
    }
}

/// `params` with what the version adds.
fn params(version: &str, params: &str) -> String {
    if version == MODERN { format!("{params},{META}") } else { params.to_owned() }
}

/// A call with these members of `params`.
fn call(version: &str, members: &str) -> String {
    let params = params(version, members);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#)
}

/// Bodies that are no text in UTF-8, and one that is deeper than it may be.
fn odd_bytes(version: &str) -> Vec<(Vec<u8>, i64)> {
    let good = call(version, r#""name":"echo","arguments":{}"#);
    let deep =
        format!(r#""name":"echo","arguments":{{"a":{}1{}}}"#, "[".repeat(80), "]".repeat(80));
    let wide: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut latin = good.clone().into_bytes();
    latin.splice(latin.len() - 2..latin.len() - 2, *b",\"x\":\"\xe9\"");
    let mut overlong = good.into_bytes();
    overlong.splice(1..1, *b"\"\xc0\xae\":1,");
    let bytes = [wide, latin, overlong].into_iter().map(|body| (body, PARSE));
    bytes.chain([(call(version, &deep).into_bytes(), INVALID)]).collect()
}

/// A good body under headers that do not fit it.
fn odd_headers(agent: &Agent, version: &str) -> Vec<(Asked, u16, i64)> {
    let good = Asked::new(agent, version, call(version, r#""name":"echo","arguments":{}"#));
    let mut odd = vec![
        (good.clone().with("content-encoding", "gzip"), 415, ANY),
        (good.clone().with("content-encoding", "identity, br"), 415, ANY),
        (good.clone().without("content-type"), 415, ANY),
        (good.clone().set("content-type", "text/plain"), 415, ANY),
        (good.clone().set("content-type", "application/json; charset=utf-7"), 415, ANY),
        (good.clone().with("content-type", "application/json"), 415, ANY),
        (good.clone().with("mcp-protocol-version", version), 400, HEADERS),
        (
            good.clone().with("mcp-method", "tools/call").with("mcp-method", "tools/list"),
            400,
            HEADERS,
        ),
        (good.clone().with("mcp-name", "echo").with("mcp-name", "purge"), 400, HEADERS),
        (good.clone().with("mcp-session-id", "a").with("mcp-session-id", "b"), 400, HEADERS),
        (good.clone().with("last-event-id", "a").with("last-event-id", "b"), 400, HEADERS),
    ];
    if version == MODERN {
        odd.extend([
            (good.clone().without("mcp-protocol-version"), 400, HEADERS),
            (good.clone().set("mcp-protocol-version", "2025-11-25"), 400, HEADERS),
            (good.clone().set("mcp-protocol-version", "2026-07-28, 2025-11-25"), 400, HEADERS),
            (good.clone().without("mcp-method"), 400, HEADERS),
            (good.clone().set("mcp-method", "tools/list"), 400, HEADERS),
            (good.clone().set("mcp-method", "Tools/Call"), 400, HEADERS),
            (good.clone().without("mcp-name"), 400, HEADERS),
            (good.clone().set("mcp-name", "purge"), 400, HEADERS),
            (good.clone().set("mcp-name", "=?base64?!!?="), 400, HEADERS),
            (good.clone().set("mcp-name", "=?base64?cHVyZ2U=?="), 400, HEADERS),
            (good.clone().with("mcp-session-id", "made-up"), 400, HEADERS),
        ]);
        let bare = call("2025-11-25", r#""name":"echo","arguments":{}"#);
        odd.push((Asked { body: bare.into_bytes(), ..good }, 400, PARAMS));
    } else {
        odd.push((good.clone().with("mcp-session-id", "made-up"), 404, ANY));
        odd.push((good.set("mcp-protocol-version", MODERN), 400, PARAMS));
    }
    odd
}

fn all_odd(agent: &Agent, version: &str) -> Vec<(Asked, u16, i64)> {
    let members = params(version, r#""name":"echo","arguments":{}"#);
    let good = call(version, r#""name":"echo","arguments":{}"#);
    let message = |text: &str| text.replace("$C", &good).replace("$P", &format!("{{{members}}}"));
    let bodies = ODD_PARAMS.iter().map(|(odd, code)| (call(version, odd).into_bytes(), *code));
    let bodies = bodies
        .chain(ODD_MESSAGES.iter().map(|(odd, code)| (message(odd).into_bytes(), *code)))
        .chain(odd_bytes(version));
    let bodies = bodies.map(|(body, code)| (Asked::new(agent, version, body), 400, code));
    bodies.chain(odd_headers(agent, version)).collect()
}

/// What reached the server beside the gateway's own reading of its tools.
fn heard(upstream: &RawUpstream) -> Vec<String> {
    let own = ["initialize", "server/discover", "tools/list", "notifications/initialized"];
    let text = |request: &Vec<u8>| String::from_utf8_lossy(request).into_owned();
    let asked = |request: &String| {
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let message: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        message["method"].as_str().is_some_and(|method| own.contains(&method))
    };
    upstream.requests().iter().map(text).filter(|request| !asked(request)).collect()
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused_in_every_version_and_the_server_hears_nothing() {
    let upstream = RawUpstream::start(RawUpstream::json("{}")).await;
    let world = World::start(setup()).await;
    let agent = world.unread("notes", json!({"upstream_url": upstream.url()})).await;
    let mut refused = 0;
    for version in VERSIONS {
        for (asked, status, code) in all_odd(&agent, version) {
            let answer = asked.at(&world, &agent.path).await;
            let shown = String::from_utf8_lossy(&asked.body).into_owned();
            let shown = format!("{version} {:?} {shown}: {}", &asked.headers[1..], answer.text());
            assert_eq!(answer.status.as_u16(), status, "{shown}");
            assert!(!answer.header("x-request-id").is_empty(), "{shown}");
            if code != ANY {
                assert_eq!(answer.json()["error"]["code"], code, "{shown}");
            }
            refused += 1;
        }
    }
    assert!(refused > 400, "{refused}");
    assert_eq!(heard(&upstream), [""; 0]);
    // Each left a row, except those that were no message of their grant at all.
    let rows = world.calls("outcome=rejected", refused).await;
    assert!(rows.iter().all(|row| row["code"] == "malformed"));
    world.sluice.stop().await;
}

/// Methods that are not the specification's, spelt so that a lenient server runs one that is.
#[tokio::test]
async fn other_spellings_of_a_method_are_no_method_in_any_version() {
    let upstream = RawUpstream::start(RawUpstream::json("{}")).await;
    let world = World::start(setup()).await;
    let strict = world.unread("strict", json!({"upstream_url": upstream.url()})).await;
    let any = world.unread("any", json!({"upstream_url": upstream.url(), "methods": "any"})).await;
    for version in VERSIONS {
        for method in [
            "Tools/Call",
            "TOOLS/CALL",
            "tools/call ",
            " tools/call",
            "tools/call\\u0000",
            "tool\\u017f/call",
        ] {
            let params = params(version, r#""name":"echo","arguments":{}"#);
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
            for agent in [&strict, &any] {
                let asked = Asked::new(agent, version, body.clone()).without("mcp-name");
                let answer = asked.at(&world, &agent.path).await;
                let refused = answer.json()["error"]["code"].clone();
                // The modern era has the header, which cannot say what the body does.
                let expected = if version == MODERN { json!(HEADERS) } else { json!(-32_601) };
                assert_eq!(refused, expected, "{version} {method:?}: {}", answer.text());
            }
        }
    }
    assert_eq!(heard(&upstream), [""; 0]);
    world.sluice.stop().await;
}

#[tokio::test]
async fn who_may_not_come_in_is_told_the_same_in_every_version() {
    let upstream = RawUpstream::start(RawUpstream::json("{}")).await;
    let world = World::start(setup()).await;
    let agent = world.unread("notes", json!({"upstream_url": upstream.url()})).await;
    let other = world.unread("other", json!({"upstream_url": upstream.url()})).await;
    let token = agent.bearer.trim_start_matches("Bearer ").to_owned();
    for version in VERSIONS {
        let good = || Asked::new(&agent, version, call(version, r#""name":"echo","arguments":{}"#));
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let base = || Asked { method: method.clone(), ..good() };
            for asked in [
                base().without("authorization"),
                base().set("authorization", token.clone()),
                base().set("authorization", format!("Basic {token}")),
                base().set("authorization", format!("Bearer {token}x")),
                base().set("authorization", format!("Bearer {}", world.token)),
                base().set("authorization", other.bearer.clone()),
                base().with("authorization", agent.bearer.clone()),
                base().set("authorization", "Bearer "),
            ] {
                let answer = asked.at(&world, &agent.path).await;
                assert_eq!(answer.status.as_u16(), 401, "{version} {method} {:?}", asked.headers);
                assert!(answer.header("www-authenticate").starts_with("Bearer"));
            }
            let queried = base().without("authorization");
            let path = format!("{}?token={token}&access_token={token}", agent.path);
            assert_eq!(queried.at(&world, &path).await.status.as_u16(), 401);
            let foreign = base().with("origin", "https://evil.example");
            assert_eq!(foreign.at(&world, &agent.path).await.status.as_u16(), 403);
            let misdirected = base().with("host", "evil.example");
            assert_eq!(misdirected.at(&world, &agent.path).await.status.as_u16(), 421);
        }
    }
    assert_eq!(heard(&upstream), [""; 0]);
    world.sluice.stop().await;
}

/// The control: what is only unusual passes, byte for byte, with nothing of the client's that is not listed.
#[tokio::test]
async fn what_is_only_unusual_passes_byte_for_byte_in_every_version() {
    let answer =
        r#" {"result" : {"content":[],"n":1E400,"b":0.10 },"id":"\u0031","jsonrpc":"2.0"}"#;
    let upstream = RawUpstream::start(RawUpstream::json(answer)).await;
    let world = World::start(setup()).await;
    let agent = world.unread("notes", json!({"upstream_url": upstream.url()})).await;
    for version in VERSIONS {
        let members = params(
            version,
            "\"arguments\":{ \"big\":123456789012345678901234567890,\"e\":-0.0E+7,\"s\":\"\\ud83d\\ude00\u{e9}\\/\"},\n\"name\":\"ec\\u0068o\",\"vendor\":[1.50,null]",
        );
        let body = format!(
            "\t{{\"params\":{{{members}}}, \"method\":\"tools/call\",\"id\":\"\\u0031\",\"jsonrpc\":\"2.0\",\"x\":{{}}}}\r\n"
        );
        let asked = Asked::new(&agent, version, body.clone())
            .with("cookie", "a=b")
            .with("x-forwarded-for", "1.2.3.4")
            .with("forwarded", "for=1.2.3.4")
            .with("x-api-key", "k")
            .with("proxy-authorization", "Basic eA==")
            .with("te", "trailers")
            .with("accept-encoding", "gzip, br")
            .with("origin", "http://localhost:3000")
            .with("mcp-param-vendor", "x")
            .with("traceparent", "00-1-2-01");
        let came = asked.at(&world, &agent.path).await;
        assert_eq!(came.status.as_u16(), 200, "{version}: {}", came.text());
        assert_eq!(came.text(), answer, "{version}");
        let sent = heard(&upstream).last().expect("it came").clone();
        let (head, sent) = sent.split_once("\r\n\r\n").expect("a head");
        assert_eq!(sent, body, "{version}");
        let head = head.to_ascii_lowercase();
        for never in [
            "authorization",
            "cookie",
            "forwarded",
            "x-api-key",
            "slg_",
            "origin",
            "te:",
            "gzip",
            "localhost",
        ] {
            assert!(!head.contains(never), "{version} {never}: {head}");
        }
        for there in [
            "accept-encoding: identity",
            "content-type: application/json",
            "traceparent: 00-1-2-01",
            &format!("mcp-protocol-version: {version}"),
        ] {
            assert!(head.contains(there), "{version} {there}: {head}");
        }
        let mirrored =
            head.contains("mcp-method: tools/call") && head.contains("mcp-param-vendor: x");
        assert_eq!(mirrored, version == MODERN, "{head}");
        assert_eq!(head.matches("content-length").count(), 1, "{head}");
    }
    world.sluice.stop().await;
}
