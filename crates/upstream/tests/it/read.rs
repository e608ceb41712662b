//! Reading tools from servers of every era and transport.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::Transport;
use sluice_testkit::FakeServer;
use sluice_upstream::{ReadError, Target, ToolsRead};
use tokio::sync::mpsc;

use crate::fake::{Fake, Seen, hello, plain, private, result, target};

pub(crate) fn now() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().expect("a time")
}

pub(crate) async fn read(target: &Target) -> Result<ToolsRead, ReadError> {
    private().read_tools(target, now()).await
}

fn names(read: &ToolsRead) -> Vec<&str> {
    read.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// A server of 2025-06-18 with a session and three pages.
fn paged(seen: &Seen) -> Response {
    let request = seen.json();
    match seen.what().as_str() {
        "initialize" => {
            let mut response = result(&request, &hello());
            response.headers_mut().insert("mcp-session-id", "s-1".parse().expect("ASCII"));
            response
        }
        _ if seen.header("mcp-session-id") != "s-1" => plain(400, "text/plain", "no session"),
        _ if seen.header("mcp-protocol-version") != "2025-06-18" => {
            plain(400, "text/plain", "version")
        }
        "notifications/initialized" => plain(202, "text/plain", ""),
        "tools/list" => {
            let page = request["params"]["cursor"]
                .as_str()
                .map_or(0, |cursor| cursor.parse().expect("ours"));
            let tools = json!([{"name": format!("t{page}"), "inputSchema": {"type": "object"}}]);
            let mut list = json!({ "tools": tools });
            if page < 2 {
                list["nextCursor"] = json!((page + 1).to_string());
            }
            result(&request, &list)
        }
        "DELETE" => plain(200, "text/plain", ""),
        other => panic!("unexpected {other}"),
    }
}

#[tokio::test]
async fn all_pages_are_read_in_a_session_that_is_ended() {
    let fake = Fake::start(|seen| std::future::ready(paged(&seen))).await;
    let read = read(&fake.target("/mcp")).await.expect("reads");
    assert_eq!(names(&read), ["t0", "t1", "t2"]);
    assert_eq!(
        (read.protocol_version.as_str(), read.server_name.as_deref()),
        ("2025-06-18", Some("fake"))
    );
    assert_eq!((read.transport, read.read_at), (Transport::StreamableHttp, now()));
    assert_eq!(
        fake.whats(),
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/list",
            "tools/list",
            "DELETE"
        ]
    );
    let first = &fake.seen()[0];
    assert_eq!(first.header("accept"), "application/json, text/event-stream");
    assert_eq!(first.json()["params"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn answers_in_an_event_stream_are_found_among_other_events() {
    let fake = Fake::start(|seen| {
        let request = seen.json();
        let answer = |result: &Value| {
            let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            let stream = format!(
                ": hello\r\n\r\nid: 1\r\ndata:\r\n\r\nevent: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\r\n\r\n\
                 data: {{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{{}}}}\r\n\r\ndata: {message}\r\n\r\n"
            );
            // In small pieces, so that lines and characters are cut.
            let pieces: Vec<_> = stream.as_bytes().chunks(7).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
            plain(200, "text/event-stream; charset=utf-8", Body::from_stream(futures_util::stream::iter(pieces)))
        };
        std::future::ready(match seen.what().as_str() {
            "initialize" => answer(&hello()),
            "tools/list" => answer(&json!({"tools": [{"name": "ä", "description": "ü"}]})),
            _ => plain(202, "text/plain", ""),
        })
    })
    .await;
    let read = read(&fake.target("/mcp")).await.expect("reads");
    assert_eq!((names(&read), read.tools[0].description.as_deref()), (vec!["ä"], Some("ü")));
}

#[tokio::test]
async fn a_server_of_the_era_without_sessions_is_read() {
    let fake = Fake::start(|seen| {
        let request = seen.json();
        let modern = seen.header("mcp-protocol-version") == "2026-07-28"
            && seen.header("mcp-method") == seen.what()
            && request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            && request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object();
        std::future::ready(match seen.what().as_str() {
            _ if !modern => {
                let error = json!({"code": -32602, "message": "missing _meta"});
                plain(400, "application/json", json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string())
            }
            "server/discover" => result(&request, &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}},
            })),
            "tools/list" => {
                let again = request["params"]["cursor"].is_null();
                let mut list = json!({"resultType": "complete", "tools": [{"name": if again { "a" } else { "b" }}], "ttlMs": 0});
                if again {
                    list["nextCursor"] = json!("2");
                }
                result(&request, &list)
            }
            other => panic!("unexpected {other}"),
        })
    })
    .await;
    let read = read(&fake.target("/mcp")).await.expect("reads");
    assert_eq!(names(&read), ["a", "b"]);
    assert_eq!(
        (read.protocol_version.as_str(), read.server_name.as_deref()),
        ("2026-07-28", Some("modern"))
    );
    assert_eq!(fake.whats(), ["initialize", "server/discover", "tools/list", "tools/list"]);
}

/// A server of HTTP+SSE (2024-11-05): one stream for all answers.
async fn sse_server(endpoint: &'static str) -> Fake {
    let stream: Arc<Mutex<Option<mpsc::Sender<Bytes>>>> = Arc::default();
    Fake::start(move |seen| {
        let stream = Arc::clone(&stream);
        async move {
            match (seen.method.as_str(), seen.path.as_str()) {
                ("GET", "/sse") => {
                    let (sender, receiver) = mpsc::channel(10);
                    let hello = format!("event: endpoint\ndata: {endpoint}\n\n");
                    sender.send(Bytes::from(hello)).await.expect("room");
                    *stream.lock().expect("not poisoned") = Some(sender);
                    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
                        receiver
                            .recv()
                            .await
                            .map(|event| (Ok::<_, std::io::Error>(event), receiver))
                    });
                    plain(200, "text/event-stream", Body::from_stream(events))
                }
                ("POST", "/messages?sessionId=7") => {
                    let request = seen.json();
                    let result = match seen.what().as_str() {
                        "initialize" => hello(),
                        "tools/list" => json!({"tools": [{"name": "old"}]}),
                        _ => return plain(202, "text/plain", "Accepted"),
                    };
                    let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                    let sender = stream.lock().expect("not poisoned").clone().expect("a stream");
                    sender
                        .send(format!("event: message\ndata: {message}\n\n").into())
                        .await
                        .expect("room");
                    plain(202, "text/plain", "Accepted")
                }
                _ => plain(404, "text/html", "Cannot POST /sse"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_server_of_http_and_sse_is_read_when_told_and_when_found_out() {
    let fake = sse_server("/messages?sessionId=7").await;
    for transport in [Transport::Sse, Transport::Auto] {
        let read = read(&Target { transport, ..fake.target("/sse") }).await.expect("reads");
        assert_eq!((names(&read), read.transport), (vec!["old"], Transport::Sse));
    }
    let told = Target { transport: Transport::StreamableHttp, ..fake.target("/sse") };
    assert!(matches!(read(&told).await, Err(ReadError::NotFound)));
}

#[tokio::test]
async fn an_endpoint_on_another_server_gets_nothing() {
    let thief = Fake::always(200, "application/json", "{}").await;
    let endpoint: &'static str =
        Box::leak(format!("http://{}/messages", thief.address).into_boxed_str());
    let fake = sse_server(endpoint).await;
    let error = read(&fake.target("/sse")).await.expect_err("foreign");
    assert!(matches!(error, ReadError::ForeignEndpoint), "{error:?}");
    assert!(thief.seen().is_empty());
}

#[tokio::test]
async fn a_server_without_tools_has_none() {
    let fake = Fake::start(|seen| {
        let request = seen.json();
        std::future::ready(match seen.what().as_str() {
            "initialize" => {
                result(&request, &json!({"protocolVersion": "2025-11-25", "capabilities": {}}))
            }
            "tools/list" => {
                let error = json!({"code": -32601, "message": "Method not found"});
                plain(
                    200,
                    "application/json",
                    json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string(),
                )
            }
            _ => plain(202, "text/plain", ""),
        })
    })
    .await;
    let read = read(&fake.target("/mcp")).await.expect("reads");
    assert!(read.tools.is_empty() && read.server_name.is_none());
}

#[tokio::test]
async fn definitions_come_as_the_server_wrote_them() {
    let fake = FakeServer::start().await;
    let text = r#"{"name":"t","title":"T","description":"d","inputSchema":{"z":1.10,"a":{"maximum":18446744073709551616}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[]}"#;
    fake.tools(vec![serde_json::from_str(text).expect("json")]);
    let read = read(&target(&fake.url())).await.expect("reads");
    let schema = read.tools[0].input_schema.as_ref().expect("kept").to_string();
    assert_eq!(schema, r#"{"z":1.10,"a":{"maximum":18446744073709551616}}"#);
    assert_eq!(read.tools[0].annotations, Some(json!({"readOnlyHint": true})));
}
