//! An OpenTelemetry collector that keeps what it is sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use http::StatusCode;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use opentelemetry_proto::tonic::logs::v1::LogRecord;
pub use opentelemetry_proto::tonic::trace::v1::Span;

/// What came.
#[derive(Debug, Clone, Default)]
pub struct Received {
    pub spans: Vec<Span>,
    pub lines: Vec<LogRecord>,
    /// What the sender says of itself.
    pub resource: Vec<KeyValue>,
    /// `Authorization` of each request.
    pub credentials: Vec<String>,
    /// Requests, also those that were refused.
    pub requests: usize,
}

impl Received {
    /// The span with this name and kind.
    pub fn span(&self, name: &str, kind: i32) -> Option<&Span> {
        self.spans.iter().find(|span| span.name == name && span.kind == kind)
    }
}

/// The text of an attribute; empty where there is none.
pub fn said(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|one| one.key == key).and_then(|one| one.value.clone());
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[derive(Debug)]
struct Kept {
    received: watch::Sender<Received>,
    answer: Mutex<StatusCode>,
}

/// The collector; it ends with the value.
#[derive(Debug)]
pub struct FakeCollector {
    address: SocketAddr,
    kept: Arc<Kept>,
    task: JoinHandle<()>,
}

impl FakeCollector {
    /// Listens on a free port of loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let received = watch::channel(Received::default()).0;
        let kept = Arc::new(Kept { received, answer: Mutex::new(StatusCode::OK) });
        let app = Router::new().fallback(take).with_state(Arc::clone(&kept));
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("serves");
        });
        Self { address, kept, task }
    }

    /// What Sluice is told as its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it answers so; what it does not take it does not keep.
    pub fn answer(&self, status: u16) {
        *self.kept.answer.lock() = StatusCode::from_u16(status).expect("a status");
    }

    /// What came so far.
    pub fn received(&self) -> Received {
        self.kept.received.borrow().clone()
    }

    /// Waits until what came is enough.
    pub async fn until(&self, enough: impl FnMut(&Received) -> bool) -> Received {
        let mut receiver = self.kept.received.subscribe();
        let waiting = tokio::time::timeout(Duration::from_secs(30), receiver.wait_for(enough));
        let found = waiting.await.map(|found| found.expect("it is there").clone());
        found.unwrap_or_else(|_| panic!("too little came: {:?}", self.received()))
    }
}

impl Drop for FakeCollector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(kept): State<Arc<Kept>>, request: Request) -> StatusCode {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 16 << 20).await.expect("a whole body");
    let answer = *kept.answer.lock();
    let header = |name| parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    assert_eq!(header("content-type"), "application/x-protobuf");
    let credential = header("authorization").to_owned();
    kept.received.send_modify(|received| {
        received.requests += 1;
        if !answer.is_success() {
            return;
        }
        received.credentials.push(credential);
        match parts.uri.path() {
            "/v1/traces" => {
                let all = ExportTraceServiceRequest::decode(body).expect("spans");
                for resource in all.resource_spans {
                    received.resource = resource.resource.unwrap_or_default().attributes;
                    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                    received.spans.extend(spans);
                }
            }
            "/v1/logs" => {
                let all = ExportLogsServiceRequest::decode(body).expect("log lines");
                let scopes = all.resource_logs.into_iter().flat_map(|one| one.scope_logs);
                received.lines.extend(scopes.flat_map(|scope| scope.log_records));
            }
            other => panic!("no collector has {other}"),
        }
    });
    answer
}
