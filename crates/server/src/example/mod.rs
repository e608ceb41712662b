//! The built-in example server: a real MCP endpoint (Streamable HTTP, no sessions) with one harmless
//! tool of each category. It keeps a few notes in memory and touches nothing else.

mod tools;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tracing::warn;

use tools::Notes;

/// The versions that the example speaks, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const MAX_BODY: usize = 256 * 1024;

/// The example's routes.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/mcp", post(answer))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(Mutex::new(Notes::default())))
}

/// Listens on loopback. The port is kept in `port_file`, so that the address which a workspace has
/// connected is still right after a restart.
pub(crate) async fn listen(port_file: &Path) -> std::io::Result<(TcpListener, SocketAddr)> {
    let kept = std::fs::read_to_string(port_file).ok().and_then(|text| text.trim().parse().ok());
    let listener = match kept {
        Some(port) => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => listener,
            Err(error) => {
                warn!(port, %error, "The example server's port is taken; it moves to another one, \
                     and workspaces that connected it must connect it again");
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?
            }
        },
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
    };
    let address = listener.local_addr()?;
    if kept != Some(address.port())
        && let Err(error) = std::fs::write(port_file, format!("{}\n", address.port()))
    {
        warn!(%error, "The example server's port cannot be kept and will be another one next time");
    }
    Ok((listener, address))
}

async fn answer(
    State(notes): State<Arc<Mutex<Notes>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return error(StatusCode::BAD_REQUEST, &Value::Null, -32700, "Parse error");
    };
    let id = &request["id"];
    let Some(method) = request["method"].as_str().filter(|_| request["jsonrpc"] == "2.0") else {
        return error(StatusCode::BAD_REQUEST, id, -32600, "Invalid request");
    };
    let version = headers.get("mcp-protocol-version").map(|value| value.to_str().unwrap_or(""));
    if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
        let known = VERSIONS.join(", ");
        let text =
            format!("Bad Request: Unsupported protocol version {version} (supported: {known})");
        return error(StatusCode::BAD_REQUEST, id, -32000, &text);
    }
    if request.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let params = &request["params"];
    match method {
        "initialize" => result(id, &initialized(params)),
        "ping" => result(id, &json!({})),
        "tools/list" => result(id, &json!({"tools": tools::list()})),
        "tools/call" => match tools::call(&mut notes.lock(), params) {
            Some(outcome) => result(id, &outcome),
            None => error(StatusCode::OK, id, -32602, "Unknown tool"),
        },
        _ => error(StatusCode::OK, id, -32601, "Method not found"),
    }
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.iter().find(|version| **version == asked).unwrap_or(&VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "sluice-example", "title": "Sluice example server",
            "version": env!("CARGO_PKG_VERSION")},
        "instructions": "Harmless tools to try limits and rules on. Notes live in memory; nothing is executed or paid.",
    })
}

fn result(id: &Value, result: &Value) -> Response {
    json_body(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(status: StatusCode, id: &Value, code: i32, message: &str) -> Response {
    let error = json!({"code": code, "message": message});
    json_body(status, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn json_body(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;

    async fn post(app: &Router, body: &str) -> (StatusCode, Value) {
        let request = Request::post("/mcp").body(Body::from(body.to_owned())).expect("a request");
        let response = app.clone().oneshot(request).await.expect("infallible");
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    #[tokio::test]
    async fn a_client_can_initialize_list_and_call_every_tool() {
        let app = router();
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(post(&app, ask).await.1["result"]["protocolVersion"], "2025-06-18");
        let list = r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
        let (_, listed) = post(&app, list).await;
        let tools = listed["result"]["tools"].as_array().expect("a list").clone();
        assert_eq!((tools.len(), listed["id"].as_str()), (5, Some("x")));
        for tool in tools {
            let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": {"name": tool["name"], "arguments": {}}});
            let (status, answer) = post(&app, &call.to_string()).await;
            assert_eq!(status, StatusCode::OK);
            assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
        }
    }

    #[tokio::test]
    async fn what_is_not_mcp_is_refused() {
        let app = router();
        let cases = [
            ("{", StatusCode::BAD_REQUEST, -32700),
            (r#"{"id":1}"#, StatusCode::BAD_REQUEST, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, StatusCode::OK, -32601),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}"#,
                StatusCode::OK,
                -32602,
            ),
        ];
        for (body, status, code) in cases {
            let (found, answer) = post(&app, body).await;
            assert_eq!((found, answer["error"]["code"].as_i64()), (status, Some(code)), "{body}");
        }
    }

    #[tokio::test]
    async fn the_port_is_kept_over_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("example.port");
        let (listener, first) = listen(&file).await.expect("listens");
        drop(listener);
        let (_held, second) = listen(&file).await.expect("listens again");
        assert_eq!(first, second);
        let (_, third) = listen(&file).await.expect("moves when the port is taken");
        assert_ne!(second, third);
    }
}
