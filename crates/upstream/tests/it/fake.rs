//! A fake upstream that a test scripts with a function, and targets that lead to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use secrecy::SecretString;
use serde_json::{Value, json};
use sluice_domain::{ServerId, Transport};
use sluice_upstream::{Prepared, Target, Upstream, UpstreamOptions};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A secret that must show up nowhere but at the upstream.
pub(crate) const SECRET: &str = "UP-s3cret-1234";

/// A request that reached the fake.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) from: SocketAddr,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The JSON-RPC method, or the HTTP method of a request without one.
    pub(crate) fn what(&self) -> String {
        self.json()["method"].as_str().map_or_else(|| self.method.to_string(), str::to_owned)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }
}

/// An HTTP server on a loopback port; ends with the value.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Answers each request with what `script` makes of it.
    pub(crate) async fn start<F>(script: impl Fn(Seen) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response> + Send,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let handler = move |ConnectInfo(from): ConnectInfo<SocketAddr>, request: Request| {
            let (script, log) = (script.clone(), Arc::clone(&log));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
                let (method, headers) = (parts.method, parts.headers);
                let seen = Seen { method, path, headers, body: body.unwrap_or_default(), from };
                log.lock().expect("not poisoned").push(seen.clone());
                script(seen).await
            }
        };
        let app =
            Router::new().fallback(handler).into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("serves");
        });
        Self { address, seen, task }
    }

    /// Answers every request alike.
    pub(crate) async fn always(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::start(move |_| std::future::ready(plain(status, kind, body.clone()))).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("not poisoned").clone()
    }

    pub(crate) fn whats(&self) -> Vec<String> {
        self.seen().iter().map(Seen::what).collect()
    }

    pub(crate) fn target(&self, path: &str) -> Target {
        target(&format!("http://{}{path}", self.address))
    }
}

/// An answer with a status, a content type and a body.
pub(crate) fn plain(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", kind.to_owned())], body.into()).into_response()
}

/// A JSON-RPC result as JSON.
pub(crate) fn result(request: &Value, result: &Value) -> Response {
    let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    plain(200, "application/json", message.to_string())
}

/// The answer to `initialize`.
pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fake", "version": "1"},
    })
}

/// A target with a secret credential, in a hurry.
pub(crate) fn target(url: &str) -> Target {
    let name = "authorization".parse().expect("a header name");
    Target {
        server: ServerId::new(),
        url: url.parse().expect("a URL"),
        headers: vec![(name, SecretString::from(format!("Bearer {SECRET}")))],
        transport: Transport::Auto,
        connect_timeout: Duration::from_millis(700),
        idle_timeout: Duration::from_millis(700),
        revision: 1,
        prepared: Prepared::default(),
    }
}

/// Upstreams of this machine, for tests.
pub(crate) fn private() -> Upstream {
    Upstream::new(UpstreamOptions { allow_private: true, ..UpstreamOptions::default() })
}

/// Names that stand for the given addresses, and nothing private allowed.
pub(crate) fn resolving(addresses: &[&str]) -> Upstream {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().expect(text)).collect();
    let resolve = Arc::new(move |_: &str| Ok(addresses.clone()));
    Upstream::new(UpstreamOptions { resolve: Some(resolve), ..UpstreamOptions::default() })
}

pub(crate) fn post(body: &str) -> http::Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    http::Request::post("/").body(body).expect("a request")
}
