//! An upstream of both transports whose streams and calls stay open.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::streams::SOON;

/// How every stream begins.
pub(crate) const HELLO: &str = ": hello\n\n";

/// A server of both transports whose streams and calls stay open.
#[derive(Clone)]
pub(crate) struct Upstream {
    /// The streams of the older transport.
    older: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>,
    /// How many calls have arrived.
    pub(crate) calls: watch::Sender<usize>,
    address: std::net::SocketAddr,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (older, calls) = (Arc::default(), watch::channel(0).0);
        let upstream = Self { older, calls, address };
        let app = Router::new().fallback(answer).with_state(upstream.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        upstream
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until so many calls have arrived.
    pub(crate) async fn called(&self, count: usize) {
        let mut calls = self.calls.subscribe();
        let there = timeout(SOON, calls.wait_for(|calls| *calls >= count)).await;
        there.expect("the call arrives").expect("the server stands");
    }

    /// The older transport: what is posted is answered over the stream.
    fn older(&self, method: &Method, number: Option<&str>, answer: Option<String>) -> Response {
        if *method == Method::GET {
            let (sender, receiver) = mpsc::unbounded_channel::<String>();
            let number = {
                let mut older = self.older.lock();
                older.push(sender);
                older.len() - 1
            };
            let hello = format!("event: endpoint\ndata: /old/messages?{number}\n\n");
            let events = stream::unfold(receiver, |mut receiver| async {
                let message = receiver.recv().await?;
                Some((format!("data: {message}\n\n"), receiver))
            });
            let events = stream::iter([hello]).chain(events).map(Ok::<_, std::io::Error>);
            return events_of(Body::from_stream(events));
        }
        let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        if let Some(answer) = answer {
            self.older.lock()[number].send(answer).ok();
        }
        StatusCode::ACCEPTED.into_response()
    }
}

fn events_of(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}

/// A stream that greets and goes on for ever.
fn endless() -> Response {
    let hello = stream::iter([Ok::<_, std::io::Error>(Bytes::from(HELLO))]);
    events_of(Body::from_stream(hello.chain(stream::pending())))
}

/// The answer to a request that has one.
fn result(asked: &Value) -> Option<String> {
    let result = match asked["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "wait", "inputSchema": {"type": "object"}},
            {"name": "stream", "inputSchema": {"type": "object"}}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
}

async fn answer(State(upstream): State<Upstream>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let call = asked["method"] == "tools/call";
    upstream.calls.send_modify(|calls| *calls += usize::from(call));
    if parts.uri.path().starts_with("/old") {
        return upstream.older(&parts.method, parts.uri.query(), result(&asked));
    }
    match (asked["method"].as_str(), asked["params"]["name"].as_str()) {
        (Some("subscriptions/listen"), _) | (_, Some("stream")) => return endless(),
        (_, Some("wait")) => std::future::pending().await,
        _ if parts.method == Method::GET => return endless(),
        _ => {}
    }
    let Some(message) = result(&asked) else { return StatusCode::ACCEPTED.into_response() };
    ([("mcp-session-id", "s-1"), ("content-type", "application/json")], message).into_response()
}
