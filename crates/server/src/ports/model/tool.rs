//! The upstream of a play: its calls wait until they are told how to end.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// How a call at the upstream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Answer,
    /// What comes back is no answer: nobody knows whether it ran.
    Nonsense,
}

#[derive(Debug)]
struct Arrival {
    /// The client's own id of the call.
    id: u64,
    end: Option<oneshot::Sender<End>>,
}

/// An MCP server whose calls wait until they are told how to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Tool(Arc<Mutex<Vec<Arrival>>>);

impl Tool {
    pub(super) async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let app = axum::Router::new().route("/mcp", post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.ok() });
        format!("http://{address}/mcp")
    }

    /// The ids of the calls that came, in order.
    pub(super) fn arrived(&self) -> Vec<u64> {
        self.0.lock().iter().map(|arrival| arrival.id).collect()
    }

    /// How many wait for their end.
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().iter().filter(|arrival| arrival.end.is_some()).count()
    }

    /// Forgets what came.
    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }

    /// Ends the call that has waited longest.
    pub(super) fn end_one(&self, how: End) -> bool {
        let end = self.0.lock().iter_mut().find_map(|arrival| arrival.end.take());
        end.is_some_and(|end| {
            // Its gateway may be gone.
            let _ = end.send(how);
            true
        })
    }
}

async fn answer(State(tool): State<Tool>, Json(message): Json<Value>) -> Response {
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "pay", "version": "1"},
        }),
        "tools/list" => json!({"tools": (["pay", "wire"]).map(|name| {
            json!({"name": name, "description": "Moves money", "inputSchema": {"type": "object"}})
        })}),
        "tools/call" => {
            let (end, told) = oneshot::channel();
            let id = id.as_u64().expect("the clients' ids are numbers");
            tool.0.lock().push(Arrival { id, end: Some(end) });
            match told.await {
                Ok(End::Answer) => json!({"content": [{"type": "text", "text": "ran"}]}),
                Ok(End::Nonsense) | Err(_) => {
                    return (StatusCode::INTERNAL_SERVER_ERROR, "no").into_response();
                }
            }
        }
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}
