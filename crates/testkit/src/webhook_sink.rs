//! An HTTP server that keeps what is posted to it, and answers as it is told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// One message that came.
#[derive(Debug, Clone)]
pub struct Posted {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Posted {
    /// A header, empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

#[derive(Debug)]
struct Kept {
    posted: Vec<Posted>,
    answer: StatusCode,
    retry_after: Option<u64>,
}

type Shared = (Arc<Mutex<Kept>>, watch::Sender<usize>);

/// The server; it ends with the value.
#[derive(Debug)]
pub struct WebhookSink {
    address: SocketAddr,
    shared: Shared,
    task: JoinHandle<()>,
}

impl WebhookSink {
    /// Listens on a free port of loopback and answers 204.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let kept = Kept { posted: Vec::new(), answer: StatusCode::NO_CONTENT, retry_after: None };
        let shared: Shared = (Arc::new(Mutex::new(kept)), watch::channel(0).0);
        let app = Router::new().fallback(take).with_state(shared.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("serves");
        });
        Self { address, shared, task }
    }

    /// `http://127.0.0.1:…/{path}`
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// From now on it answers so.
    pub fn answer(&self, status: u16, retry_after: Option<u64>) {
        let mut kept = self.shared.0.lock();
        kept.answer = StatusCode::from_u16(status).expect("a status");
        kept.retry_after = retry_after;
    }

    /// What came so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.shared.0.lock().posted.clone()
    }

    /// Waits until so many messages came.
    pub async fn received(&self, count: usize) -> Vec<Posted> {
        let mut counted = self.shared.1.subscribe();
        let enough = counted.wait_for(|have| *have >= count);
        tokio::time::timeout(Duration::from_secs(20), enough)
            .await
            .expect("it comes")
            .expect("open");
        self.posted()
    }
}

impl Drop for WebhookSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State((kept, count)): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let mut kept = kept.lock();
    kept.posted.push(Posted {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    count.send_replace(kept.posted.len());
    let mut answer = kept.answer.into_response();
    if let Some(seconds) = kept.retry_after {
        answer.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    if kept.answer.is_redirection() {
        let elsewhere = http::HeaderValue::from_static("http://127.0.0.1:9/");
        answer.headers_mut().insert(http::header::LOCATION, elsewhere);
    }
    answer
}
