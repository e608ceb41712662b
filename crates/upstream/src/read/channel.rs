//! One conversation with a server: sends requests, finds their answers.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use sluice_domain::Transport;

use super::answer::{self, Kind, by_status, short, whole};
use super::events::Events;
use super::{MODERN, ReadError};
use crate::send::{SendError, Upstream};
use crate::target::Target;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";

/// An answer of JSON-RPC.
pub(super) enum Rpc {
    Result(Value),
    Error { code: i64, message: String },
}

impl Rpc {
    pub(super) fn into_result(self) -> Result<Value, ReadError> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error { code, message } => Err(ReadError::Rpc { code, message }),
        }
    }
}

enum Way {
    /// Streamable HTTP with a session, if the server gave one.
    Http { session: Option<HeaderValue>, version: Option<HeaderValue> },
    /// Streamable HTTP of the era without sessions.
    Modern,
    /// HTTP+SSE: answers come on one stream.
    Sse { events: Box<Events>, endpoint: Box<Target> },
}

/// See the module's head.
pub(super) struct Channel<'a> {
    upstream: &'a Upstream,
    target: &'a Target,
    way: Way,
    last_id: u64,
}

impl<'a> Channel<'a> {
    pub(super) const fn http(upstream: &'a Upstream, target: &'a Target) -> Self {
        let way = Way::Http { session: None, version: None };
        Self { upstream, target, way, last_id: 0 }
    }

    pub(super) const fn modern(upstream: &'a Upstream, target: &'a Target) -> Self {
        Self { upstream, target, way: Way::Modern, last_id: 0 }
    }

    /// Opens the stream of HTTP+SSE and waits for its endpoint.
    pub(super) async fn sse(upstream: &'a Upstream, target: &'a Target) -> Result<Self, ReadError> {
        let mut request = Request::new(Full::new(Bytes::new()));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = sent(upstream.send(target, request).await)?;
        if let Some(error) = by_status(target, response.status(), response.headers()) {
            return Err(error);
        }
        let Ok(Kind::Events) = answer::kind(target, response.status(), response.headers()) else {
            return Err(ReadError::NoEventStream);
        };
        let mut events = Events::new(target, response.into_body());
        loop {
            let (name, data) = events.next().await?;
            if name == "endpoint" {
                let reference = std::str::from_utf8(&data).map_err(|_| ReadError::NotMcp)?;
                let endpoint =
                    target.with_path(reference.trim()).map_err(|_| ReadError::ForeignEndpoint)?;
                let way = Way::Sse { events: Box::new(events), endpoint: Box::new(endpoint) };
                return Ok(Self { upstream, target, way, last_id: 0 });
            }
        }
    }

    pub(super) const fn transport(&self) -> Transport {
        match self.way {
            Way::Sse { .. } => Transport::Sse,
            Way::Http { .. } | Way::Modern => Transport::StreamableHttp,
        }
    }

    /// Takes the version that the server chose.
    pub(super) fn agree(&mut self, agreed: &str) {
        if let Way::Http { version, .. } = &mut self.way {
            *version = HeaderValue::from_str(agreed).ok();
        }
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Rpc, ReadError> {
        self.last_id += 1;
        let id = self.last_id;
        let params = self.with_meta(params);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.post(method, &message).await?;
        if let Way::Sse { events, .. } = &mut self.way {
            if let Some(error) = by_status(self.target, response.status(), response.headers()) {
                return Err(error);
            }
            return answer_among(events, id).await;
        }
        if let Way::Http { session, .. } = &mut self.way
            && method == "initialize"
            && response.status().is_success()
        {
            *session = response.headers().get(SESSION).cloned();
        }
        match answer::kind(self.target, response.status(), response.headers())? {
            Kind::Events => {
                answer_among(&mut Events::new(self.target, response.into_body()), id).await
            }
            Kind::Empty => Err(ReadError::NotMcp),
            Kind::Json => {
                let error = by_status(self.target, response.status(), response.headers());
                match answer_in(&whole(self.target, response).await?, id) {
                    Some(answer) => Ok(answer),
                    None => Err(error.unwrap_or(ReadError::NotMcp)),
                }
            }
        }
    }

    pub(super) async fn notify(&mut self, method: &str) -> Result<(), ReadError> {
        let message = json!({ "jsonrpc": "2.0", "method": method });
        let response = self.post(method, &message).await?;
        by_status(self.target, response.status(), response.headers()).map_or(Ok(()), Err)
    }

    /// Ends the session, if there is one. How the server takes it does not matter.
    pub(super) async fn close(&self) {
        if let Way::Http { session: Some(session), version } = &self.way {
            let mut request = Request::new(Full::new(Bytes::new()));
            *request.method_mut() = Method::DELETE;
            request.headers_mut().insert(SESSION, session.clone());
            if let Some(version) = version {
                request.headers_mut().insert(VERSION, version.clone());
            }
            let _ended = self.upstream.send(self.target, request).await;
        }
    }

    async fn post(&self, method: &str, message: &Value) -> Result<Response<Incoming>, ReadError> {
        let mut request = Request::new(Full::new(Bytes::from(message.to_string())));
        *request.method_mut() = Method::POST;
        self.add_headers(request.headers_mut(), method);
        let target = match &self.way {
            Way::Sse { endpoint, .. } => endpoint,
            Way::Http { .. } | Way::Modern => self.target,
        };
        sent(self.upstream.send(target, request).await)
    }

    fn add_headers(&self, headers: &mut HeaderMap, method: &str) {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match &self.way {
            Way::Http { session, version } => {
                for (name, value) in [(SESSION, session), (VERSION, version)] {
                    if let Some(value) = value {
                        headers.insert(name, value.clone());
                    }
                }
            }
            Way::Modern => {
                headers.insert(VERSION, HeaderValue::from_static(MODERN));
                if let Ok(method) = HeaderValue::from_str(method) {
                    headers.insert(METHOD, method);
                }
            }
            Way::Sse { .. } => {}
        }
    }

    /// The newer era tells version and client with each request.
    fn with_meta(&self, mut params: Value) -> Value {
        if matches!(self.way, Way::Modern) {
            let mut meta = Map::new();
            let client = json!({ "name": "sluice", "version": env!("CARGO_PKG_VERSION") });
            for (name, value) in [
                ("protocolVersion", json!(MODERN)),
                ("clientCapabilities", json!({})),
                ("clientInfo", client),
            ] {
                meta.insert(format!("io.modelcontextprotocol/{name}"), value);
            }
            params["_meta"] = Value::Object(meta);
        }
        params
    }
}

fn sent(outcome: Result<Response<Incoming>, SendError>) -> Result<Response<Incoming>, ReadError> {
    outcome.map_err(ReadError::Send)
}

/// The answer to `id` in a body that is one message.
fn answer_in(body: &[u8], id: u64) -> Option<Rpc> {
    let message: Value = serde_json::from_slice(body).ok()?;
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    if let Some(error) = message.get("error") {
        // An error that could not be matched to a request has no id, or null.
        let ours = message.get("id").is_none_or(|other| other.is_null() || other == &json!(id));
        return ours.then(|| Rpc::Error {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: short(error.get("message").and_then(Value::as_str).unwrap_or("")),
        });
    }
    let ours = message.get("id") == Some(&json!(id));
    message.get("result").filter(|_| ours).cloned().map(Rpc::Result)
}

/// The answer to `id` among other messages of a stream.
async fn answer_among(events: &mut Events, id: u64) -> Result<Rpc, ReadError> {
    loop {
        let (_, data) = events.next().await?;
        if let Some(answer) = answer_in(&data, id) {
            return Ok(answer);
        }
    }
}
