//! The way to the upstream and back fails: who is told what, and is anything run twice.

use serde_json::json;
use sluice_proxy::ProxyOptions;

use crate::gateway::{ALLOW_ALL, Gateway, Setup, call, initialize};
use crate::stage::{Received, Stage, Wire};

/// Plays by tool name.
async fn play(received: Received, mut wire: Wire) {
    let json = [("content-type", "application/json")];
    match received.tool().as_str() {
        "html" => {
            wire.answer("200 OK", &[("content-type", "text/html")], "<h1>secret-detail</h1>").await;
        }
        "boom" => {
            wire.answer("500 Oops", &[("content-type", "text/html")], "<h1>secret-detail</h1>")
                .await;
        }
        "redirect" => wire.answer("307 Away", &[("location", "http://169.254.169.254/")], "").await,
        "unauthorized" => {
            wire.answer("401 No", &[("www-authenticate", "Bearer")], "secret-detail").await;
        }
        "forbidden" => wire.answer("403 No", &json, "{}").await,
        "cut" => {
            wire.raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"jsonrpc\":").await;
            wire.cut();
        }
        "cut_events" => {
            wire.events().await;
            wire.raw("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: {\"jso").await;
            wire.cut();
        }
        "end_events" => wire.events().await,
        "silent" => wire.gone().await,
        "not_http" => wire.raw("SSH-2.0-OpenSSH\r\n").await,
        "closed" => wire.cut(),
        "not_json" => wire.json("hello").await,
        "no_message" => wire.json("{\"ok\":true}").await,
        "error" => {
            wire.answer(
                "500 Oops",
                &json,
                &format!(
                    r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32603,"message":"own"}}}}"#,
                    received.id()
                ),
            )
            .await;
        }
        _ => wire.text(&received.id(), "done").await,
    }
}

async fn gateway() -> (Stage, Gateway) {
    (Stage::start(play).await, Gateway::start().await)
}

const ANY: fn(&mut sluice_domain::RouteRecord) = |record| {
    record.server.settings.unknown_tools = sluice_domain::UnknownTools::ByPolicy;
};
/// Only for what never answers: a machine may be busy.
const HASTY: fn(&mut sluice_domain::RouteRecord) = |record| {
    ANY(record);
    record.server.settings.idle_timeout_s = 1;
};

#[tokio::test]
async fn every_failure_is_a_json_rpc_error_for_the_same_id() {
    let (stage, mut gateway) = gateway().await;
    let patient = gateway.grant_with(&stage.url(), ALLOW_ALL, ANY);
    let hasty = gateway.grant_with(&stage.url(), ALLOW_ALL, HASTY);
    let table = [
        ("html", "upstream_not_mcp", true),
        ("boom", "upstream_not_mcp", true),
        ("redirect", "upstream_not_mcp", false),
        ("unauthorized", "upstream_unauthorized", false),
        ("forbidden", "upstream_unauthorized", false),
        ("cut", "upstream_cut", true),
        ("cut_events", "upstream_cut", true),
        ("end_events", "upstream_cut", true),
        ("silent", "upstream_timeout", true),
        ("not_http", "upstream_not_mcp", true),
        ("closed", "upstream_cut", true),
        ("not_json", "upstream_not_mcp", true),
        ("no_message", "upstream_not_mcp", true),
    ];
    for (tool, code, may_have_run) in table {
        let grant = if tool == "silent" { &hasty } else { &patient };
        let answer = grant.call(&gateway, r#""x7""#, tool, "{}").await;
        let json = answer.json();
        assert_eq!(answer.status, 200, "{tool}");
        assert_eq!(json["id"], json!("x7"), "{tool}: {}", answer.text());
        assert_eq!(json["error"]["data"]["code"], code, "{tool}");
        assert_eq!(json["error"]["data"]["may_have_run"], json!(may_have_run), "{tool}");
        assert!(!answer.text().contains("secret-detail") && answer.header("location").is_empty());
        let record = gateway.record().await;
        assert_eq!((record.outcome.as_str(), record.code.as_str()), ("failed", code), "{tool}");
    }
    // Nothing was tried twice.
    assert_eq!(stage.count(), table.len());
    let passed = patient.call(&gateway, "1", "error", "{}").await;
    assert_eq!(
        (passed.status.as_u16(), passed.json()["error"]["message"].as_str()),
        (500, Some("own"))
    );
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told_as_not_run() {
    let mut gateway = Gateway::start().await;
    let grant = gateway.grant("http://127.0.0.1:9/mcp", ALLOW_ALL);
    let answer = grant.call(&gateway, "7", "echo", "{}").await;
    let error = answer.json()["error"].clone();
    assert_eq!(error["data"]["code"], "upstream_unreachable");
    assert_eq!(error["data"]["may_have_run"], json!(false));
    assert_eq!(error["data"]["request_id"], answer.header("x-request-id"));
    assert_eq!(gateway.record().await.code.as_str(), "upstream_unreachable");
}

#[tokio::test]
async fn what_the_era_is_decided_from_passes_unchanged() {
    let table = [
        (
            "400 Bad Request",
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
        ),
        ("404 Not Found", "text/plain", "Not Found"),
        ("405 Method Not Allowed", "application/json", r#"{"error":1}"#),
        ("406 Not Acceptable", "application/json", "{}"),
        (
            "404 Not Found",
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x","data":[1.0]}}"#,
        ),
    ];
    for (status, media, body) in table {
        let stage = Stage::start(move |_, mut wire: Wire| async move {
            wire.answer(status, &[("content-type", media), ("allow", "POST")], body).await;
        })
        .await;
        let gateway = Gateway::start().await;
        let grant = gateway.grant(&stage.url(), ALLOW_ALL);
        let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
        for answer in [
            grant.post(&gateway, &headers, discover).await,
            grant.post(&gateway, &[], &initialize()).await,
        ] {
            assert!(status.starts_with(answer.status.as_str()), "{status}");
            assert_eq!((answer.text().as_str(), answer.header("content-type")), (body, media));
        }
    }
}

#[tokio::test]
async fn a_message_over_the_bound_is_an_error_and_one_under_it_passes_whole() {
    let big = |id: &str, size: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{}"}}]}}}}"#,
            "x".repeat(size)
        )
    };
    let stage = Stage::start(move |received: Received, mut wire: Wire| async move {
        let size = received.json()["params"]["arguments"]["size"].as_u64().unwrap_or(0);
        let body = big(&received.id(), usize::try_from(size).unwrap_or(0));
        match received.tool().as_str() {
            "json" => wire.json(&body).await,
            "chunked" => {
                wire.raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n").await;
                wire.raw(body).await;
            }
            _ => {
                wire.events().await;
                wire.raw(format!("data: {body}\n\n")).await;
            }
        }
    })
    .await;
    let options = ProxyOptions { max_message_bytes: 4 << 20, ..ProxyOptions::default() };
    let gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, ANY);
    for tool in ["json", "chunked", "events"] {
        let fits = grant.call(&gateway, "5", tool, r#"{"size":3000000}"#).await;
        assert_eq!(
            fits.json()["result"]["content"][0]["text"].as_str().map(str::len),
            Some(3_000_000),
            "{tool}"
        );
        let over = grant.call(&gateway, "5", tool, r#"{"size":5000000}"#).await;
        assert_eq!(
            (&over.json()["id"], &over.json()["error"]["data"]["code"]),
            (&json!(5), &json!("upstream_too_large")),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn with_nothing_left_to_hold_messages_in_they_stream_by() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        let body = crate::stage::text_result(&received.id(), &"x".repeat(2_000_000));
        if received.tool() == "echo" {
            wire.raw(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n",
            )
            .await;
            wire.raw(body).await;
        } else {
            wire.events().await;
            wire.raw(format!("id: 1\ndata: {body}\n\n")).await;
        }
    })
    .await;
    let options = ProxyOptions { max_held_bytes: 0, ..ProxyOptions::default() };
    let mut gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for tool in ["echo", "other"] {
        let answer = grant.call(&gateway, "1", tool, "{}").await;
        assert_eq!(
            answer.json()["result"]["content"][0]["text"].as_str().map(str::len),
            Some(2_000_000)
        );
        assert_eq!(gateway.record().await.code.as_str(), "allowed");
    }
}

#[tokio::test]
async fn notifications_get_202_or_say_that_they_did_not_get_through() {
    let stage =
        Stage::start(|_, mut wire: Wire| async move { wire.answer("202 Accepted", &[], "").await })
            .await;
    let gateway = Gateway::start().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = gateway.grant(&stage.url(), ALLOW_ALL).post(&gateway, &[], note).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0));
    let answer = gateway.grant("http://127.0.0.1:9/mcp", ALLOW_ALL).post(&gateway, &[], note).await;
    assert_eq!(answer.status, 502);
    let odd = call("1", "echo", "{}").replace("\"id\":1,", "");
    assert_eq!(gateway.grant(&stage.url(), ALLOW_ALL).post(&gateway, &[], &odd).await.status, 400);
    assert_eq!(stage.count(), 1);
}

#[tokio::test]
async fn what_was_never_sent_is_told_apart_and_gives_its_charge_back() {
    // A TLS server whose certificate nobody vouches for, one that never shakes hands, and nobody.
    let certified =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a key");
    let config = tls::config(&certified);
    let tls = tls::serve(Some(config)).await;
    let silent = tls::serve(None).await;
    let mut gateway = Gateway::start().await;
    for (url, code, reason) in [
        (format!("https://localhost:{tls}/mcp"), "upstream_tls", "certificate"),
        (format!("https://localhost:{silent}/mcp"), "upstream_connect_timeout", ""),
        ("http://127.0.0.1:9/mcp".to_owned(), "upstream_unreachable", ""),
        ("http://sluice.invalid/mcp".to_owned(), "upstream_unreachable", "name cannot be resolved"),
        ("http://169.254.169.254/mcp".to_owned(), "upstream_unreachable", "metadata"),
    ] {
        let once = r#"{"version":"1","default":"allow","all_tools":{"limits":[{"counter":"c","window":"hour","max":1}]}}"#;
        let grant = gateway.grant_with(&url, once, |record| {
            record.server.settings.connect_timeout_s =
                if code == "upstream_connect_timeout" { 1 } else { 60 };
        });
        for _ in 0..2 {
            let answer = grant.call(&gateway, "7", "echo", "{}").await;
            let data = answer.json()["error"]["data"].clone();
            assert_eq!(
                (&data["code"], &data["may_have_run"]),
                (&json!(code), &json!(false)),
                "{url}"
            );
            let record = gateway.record().await;
            assert_eq!(record.code.as_str(), code, "{url}");
            assert!(record.message.contains(reason), "{url}: {}", record.message);
            assert!(!answer.text().contains("127.0.0.1") && !answer.text().contains("metadata"));
        }
    }
}

/// TLS servers for the test above.
mod tls {
    use std::sync::Arc;

    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    pub(super) fn config(own: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .expect("fits");
        Arc::new(config)
    }

    /// Without a configuration it accepts, and says nothing.
    pub(super) async fn serve(config: Option<Arc<ServerConfig>>) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let config = config.clone();
                tokio::spawn(async move {
                    match config {
                        Some(config) => drop(TlsAcceptor::from(config).accept(stream).await),
                        None => drop(stream.read_to_end(&mut Vec::new()).await),
                    }
                });
            }
        });
        port
    }
}

#[tokio::test]
async fn a_kept_connection_that_breaks_after_the_request_costs_no_second_run() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&runs);
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = std::sync::Arc::clone(&count);
            tokio::spawn(async move {
                let mut chunk = vec![0; 16 * 1024];
                // The first call on a connection is answered; the second is read, and the connection ends.
                for call in 0.. {
                    let Ok(read @ 1..) = stream.read(&mut chunk).await else { return };
                    assert!(chunk[..read].ends_with(b"}"), "a whole request");
                    count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if call > 0 {
                        return;
                    }
                    let body = crate::stage::text_result("1", "done");
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    stream.write_all(format!("{head}{body}").as_bytes()).await.ok();
                }
            });
        }
    });
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&url, ALLOW_ALL);
    assert!(grant.call(&gateway, "1", "echo", "{}").await.text().contains("done"));
    let lost = grant.call(&gateway, "1", "echo", "{}").await.json();
    assert_eq!(lost["error"]["data"]["code"], "upstream_cut", "{lost}");
    assert_eq!(lost["error"]["data"]["may_have_run"], json!(true));
    assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 2, "each call ran once");
}
