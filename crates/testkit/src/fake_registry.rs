//! A scripted MCP registry: pages by cursor, answers that are cut or wrong, and what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What it answers.
#[derive(Debug, Clone)]
pub enum RegistryAnswer {
    /// A page as JSON text.
    Page(String),
    /// A page whose connection closes in the middle.
    Cut(String),
    Status(u16),
    /// Sends the caller elsewhere.
    Redirect(String),
}

#[derive(Debug, Default)]
struct Script {
    answers: HashMap<String, RegistryAnswer>,
    asked: Vec<String>,
}

/// A scripted registry on a loopback port; ends with the value.
#[derive(Debug)]
pub struct FakeRegistry {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl FakeRegistry {
    /// Answers 404 until it is told otherwise.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let script = Arc::new(Mutex::new(Script::default()));
        let app = Router::new().route("/v0.1/servers", get(answer)).with_state(Arc::clone(&script));
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.ok();
        });
        Self { address, script, task }
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers like this to the cursor; the first page's is empty.
    pub fn on(&self, cursor: &str, answer: RegistryAnswer) -> &Self {
        self.script.lock().answers.insert(cursor.to_owned(), answer);
        self
    }

    /// Every query so far.
    pub fn asked(&self) -> Vec<String> {
        self.script.lock().asked.clone()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let cursor = query.split('&').find_map(|pair| pair.strip_prefix("cursor=")).unwrap_or_default();
    let found = {
        let mut script = script.lock();
        script.asked.push(query.clone());
        script.answers.get(cursor).cloned()
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    match found {
        Some(RegistryAnswer::Page(body)) => (json, body).into_response(),
        Some(RegistryAnswer::Cut(body)) => {
            let half = Bytes::from(body).slice(..10);
            let parts = [Ok(half), Err("cut")];
            (json, Body::from_stream(futures_util::stream::iter(parts))).into_response()
        }
        Some(RegistryAnswer::Status(status)) => {
            StatusCode::from_u16(status).expect("the test names a status").into_response()
        }
        Some(RegistryAnswer::Redirect(to)) => {
            (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
