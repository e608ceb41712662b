//! A scripted MCP server over Streamable HTTP: tools, JSON or SSE answers, delays and failures.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// How a fake server frames its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Json,
    Sse,
}

/// What one tool does when it is called.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Answers with one text.
    Text(String),
    /// Answers with the arguments it was given, as text.
    EchoArguments,
    /// Answers with one text after a while.
    Delayed(Duration, String),
    /// Answers with one text once [`FakeServer::release`] was called.
    Held(String),
    /// Takes the call and closes the connection in the middle of the answer.
    Cut,
    /// Answers with this status, content type and body.
    Raw(u16, &'static str, String),
    /// Sends the client elsewhere.
    Redirect(String),
}

/// A request that reached the fake server.
#[derive(Debug, Clone)]
pub struct Seen {
    pub http_method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    /// The JSON-RPC method, empty when there is none.
    pub fn method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// The body as JSON, `null` when it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

#[derive(Debug)]
struct Script {
    framing: Framing,
    sessions: bool,
    tools: Vec<Value>,
    page: usize,
    behaviours: HashMap<String, Behaviour>,
    seen: Vec<Seen>,
    instead: Option<Behaviour>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    held: Semaphore,
    arrivals: tokio::sync::watch::Sender<usize>,
}

/// A scripted MCP server on a loopback port; ends with the value.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl FakeServer {
    /// A server with one tool, `echo`, that answers in JSON and hands out no sessions.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let script = Script {
            framing: Framing::Json,
            sessions: false,
            tools: vec![tool("echo", "Repeats a message")],
            page: usize::MAX,
            behaviours: HashMap::new(),
            seen: Vec::new(),
            instead: None,
        };
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            held: Semaphore::new(0),
            arrivals: tokio::sync::watch::channel(0).0,
        });
        let app = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.ok();
        });
        Self { address, shared, task }
    }

    /// The MCP endpoint's URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Frames answers like this from now on.
    pub fn framing(&self, framing: Framing) -> &Self {
        self.shared.script.lock().framing = framing;
        self
    }

    /// Hands out `Mcp-Session-Id`s and refuses requests without one.
    pub fn with_sessions(&self) -> &Self {
        self.shared.script.lock().sessions = true;
        self
    }

    /// Replaces the tools: whole entries of `tools/list`.
    pub fn tools(&self, tools: Vec<Value>) -> &Self {
        self.shared.script.lock().tools = tools;
        self
    }

    /// Lists the tools in pages of this many.
    pub fn page(&self, size: usize) -> &Self {
        self.shared.script.lock().page = size;
        self
    }

    /// Says what a tool does; a tool without a word echoes its arguments.
    pub fn on_call(&self, name: &str, behaviour: Behaviour) -> &Self {
        self.shared.script.lock().behaviours.insert(name.to_owned(), behaviour);
        self
    }

    /// Answers every request of any method like this, or as usual again.
    pub fn instead(&self, behaviour: Option<Behaviour>) -> &Self {
        self.shared.script.lock().instead = behaviour;
        self
    }

    /// Lets `count` held calls go on.
    pub fn release(&self, count: usize) {
        self.shared.held.add_permits(count);
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.script.lock().seen.clone()
    }

    /// How many calls of `tool` arrived.
    pub fn calls_of(&self, tool: &str) -> usize {
        let of = |seen: &&Seen| {
            seen.method() == "tools/call" && seen.json()["params"]["name"] == json!(tool)
        };
        self.shared.script.lock().seen.iter().filter(of).count()
    }

    /// Waits until `count` requests have arrived in all.
    pub async fn arrived(&self, count: usize) {
        let mut arrivals = self.shared.arrivals.subscribe();
        arrivals.wait_for(|seen| *seen >= count).await.expect("the server outlives its watcher");
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An entry of `tools/list` that takes any object.
pub fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    http_method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let seen = Seen { http_method: http_method.clone(), headers, body };
    let (request, session) = (seen.json(), seen.headers.contains_key("mcp-session-id"));
    let (framing, sessions, instead) = {
        let mut script = shared.script.lock();
        script.seen.push(seen);
        shared.arrivals.send_replace(script.seen.len());
        (script.framing, script.sessions, script.instead.clone())
    };
    if let Some(behaviour) = instead {
        return behave(&shared, behaviour, &request, framing).await;
    }
    match http_method {
        Method::DELETE => return StatusCode::NO_CONTENT.into_response(),
        Method::POST => {}
        _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
    let method = request["method"].as_str().unwrap_or_default();
    if sessions && !session && method != "initialize" {
        return (StatusCode::BAD_REQUEST, "session required").into_response();
    }
    if request.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    rpc(&shared, method, &request, framing, sessions).await
}

async fn rpc(
    shared: &Shared,
    method: &str,
    request: &Value,
    framing: Framing,
    sessions: bool,
) -> Response {
    match method {
        "initialize" => {
            let mut response = framed(&result(request, &initialized(request)), framing);
            if sessions {
                let id = uuid::Uuid::new_v4().to_string();
                response.headers_mut().insert("mcp-session-id", id.parse().expect("ASCII"));
            }
            response
        }
        "ping" => framed(&result(request, &json!({})), framing),
        "tools/list" => framed(&result(request, &list(&shared.script.lock(), request)), framing),
        "tools/call" => {
            let name = request["params"]["name"].as_str().unwrap_or_default().to_owned();
            let behaviour = shared.script.lock().behaviours.get(&name).cloned();
            behave(shared, behaviour.unwrap_or(Behaviour::EchoArguments), request, framing).await
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            framed(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}), framing)
        }
    }
}

fn initialized(request: &Value) -> Value {
    json!({
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "fake", "version": "1.0.0"},
    })
}

fn list(script: &Script, request: &Value) -> Value {
    let cursor = request["params"]["cursor"].as_str().and_then(|text| text.parse().ok());
    let start: usize = cursor.unwrap_or(0).min(script.tools.len());
    let end = start.saturating_add(script.page).min(script.tools.len());
    let mut page = json!({"tools": script.tools[start..end]});
    if end < script.tools.len() {
        page["nextCursor"] = json!(end.to_string());
    }
    page
}

async fn behave(
    shared: &Shared,
    behaviour: Behaviour,
    request: &Value,
    framing: Framing,
) -> Response {
    let say = |text: &str| {
        let content = json!({"content": [{"type": "text", "text": text}], "isError": false});
        framed(&result(request, &content), framing)
    };
    match behaviour {
        Behaviour::Text(text) => say(&text),
        Behaviour::EchoArguments => say(&request["params"]["arguments"].to_string()),
        Behaviour::Delayed(wait, text) => {
            tokio::time::sleep(wait).await;
            say(&text)
        }
        Behaviour::Held(text) => {
            shared.held.acquire().await.expect("the semaphore stays open").forget();
            say(&text)
        }
        Behaviour::Cut => cut(),
        Behaviour::Raw(status, content_type, body) => (
            StatusCode::from_u16(status).expect("the test names a status"),
            [(header::CONTENT_TYPE, content_type)],
            body,
        )
            .into_response(),
        Behaviour::Redirect(to) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
    }
}

/// A body that promises more than it sends: hyper closes the connection when the stream fails.
fn cut() -> Response {
    let parts = [Ok(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",")), Err("cut")];
    let body = Body::from_stream(futures_util::stream::iter(parts));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn result(request: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

fn framed(message: &Value, framing: Framing) -> Response {
    match framing {
        Framing::Json => {
            ([(header::CONTENT_TYPE, "application/json")], message.to_string()).into_response()
        }
        Framing::Sse => {
            let event = Bytes::from(format!("event: message\ndata: {message}\n\n"));
            let stream = futures_util::stream::iter([Ok::<_, Infallible>(event)]);
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream))
                .into_response()
        }
    }
}
