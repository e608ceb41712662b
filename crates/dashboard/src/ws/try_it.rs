//! `/w/{ws}/servers/{id}/try`: real calls through the proxy URL, sent by the reader's browser.

use askama::Template;
use axum::extract::Path;
use http::StatusCode;
use serde_json::{Map, Value, json};
use sluice_control::{ServerView, ToolView, Viewer};
use sluice_domain::ToolState;

use super::server::{ServerHead, find};
use crate::clients::curl_call;
use crate::desk::{Answer, Desk, WsFrame};
use crate::filters;
use crate::page;
use crate::ui::Code;
use crate::ui::code::pretty;

/// The panel: on the server's page, and beside a new grant's token.
#[derive(Debug, Template)]
#[template(path = "ws/try_panel.html")]
pub(crate) struct TryPanel {
    pub(crate) proxy_url: String,
    /// The proxy answers under the page's own origin, so that the browser may call it.
    pub(crate) reachable: bool,
    /// Filled in where the token was made just now.
    pub(crate) token: String,
    pub(crate) tools: Vec<(String, String, bool)>,
    pub(crate) first: String,
    pub(crate) curl: Code,
}

impl askama::filters::HtmlSafe for TryPanel {}

/// The smallest arguments that fit a schema's required properties.
pub(crate) fn sample(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return json!({}) };
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let mut names: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        // Nothing is required: the first property shows what the tool is about.
        names.extend(properties.into_iter().flat_map(|all| all.keys()).next().map(String::as_str));
    }
    let pair = |name: &str| {
        let property = properties.and_then(|all| all.get(name));
        (name.to_owned(), property.map_or(json!("example"), |property| value(name, property, 0)))
    };
    Value::Object(names.into_iter().map(pair).collect::<Map<_, _>>())
}

fn value(name: &str, schema: &Value, depth: u8) -> Value {
    for key in ["default", "const"] {
        if let Some(given) = schema.get(key) {
            return given.clone();
        }
    }
    for key in ["enum", "examples"] {
        if let Some(first) = schema.get(key).and_then(|list| list.get(0)) {
            return first.clone();
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") if depth < 4 => sample(Some(schema)),
        Some("object") => json!({}),
        _ if name.contains("code") => json!("print(1)"),
        _ if name.contains("path") => json!("/tmp/example.txt"),
        _ if name.contains("url") => json!("https://example.com/"),
        _ => json!("example"),
    }
}

impl TryPanel {
    /// The panel of a server with these tools; `chosen` comes first.
    pub(crate) fn new(
        server: &ServerView,
        tools: &[ToolView],
        chosen: Option<&str>,
        token: &str,
        base: &str,
    ) -> Self {
        let mut live: Vec<&ToolView> =
            tools.iter().filter(|tool| tool.state != ToolState::Gone).collect();
        // The tool with a limit is the one worth trying.
        live.sort_by_key(|tool| {
            (
                Some(tool.name.as_str()) != chosen,
                std::cmp::Reverse(tool.recommended.counter.is_some()),
            )
        });
        let text = |tool: &ToolView| pretty(&sample(tool.definition.input_schema.as_ref()));
        let first = live.first().map(|tool| text(tool)).unwrap_or_default();
        let name = live.first().map_or("tool", |tool| tool.name.as_str());
        let shown = if token.is_empty() { "slg_…" } else { token };
        Self {
            reachable: server.proxy_url.starts_with(&format!("{base}/")),
            curl: Code::wrapped("curl", &curl_call(&server.proxy_url, shown, name, &first)),
            proxy_url: server.proxy_url.clone(),
            token: token.to_owned(),
            tools: live
                .iter()
                .enumerate()
                .map(|(at, tool)| (tool.name.clone(), text(tool), at == 0))
                .collect(),
            first,
        }
    }

    /// The proxy's path: the page's own origin is the one the browser used, whatever its name.
    fn address(&self) -> &str {
        self.proxy_url.find("/mcp/").map_or(self.proxy_url.as_str(), |at| &self.proxy_url[at..])
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/try.html")]
struct TryPage {
    frame: WsFrame,
    head: ServerHead,
    panel: TryPanel,
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let found = find(&desk, &id).await?;
    let head = found.head(&desk, "Try it");
    let page = TryPage {
        frame: desk.frame("servers").await?,
        panel: TryPanel::new(&head.server, &found.tools, None, "", &desk.base),
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fit_what_a_schema_requires() {
        let schema = json!({"type": "object", "required": ["code", "n", "mode", "deep", "list", "gone", 3],
            "properties": {"code": {"type": "string"}, "n": {"type": "integer", "minimum": 5}, "mode": {"enum": ["fast"]},
                "deep": {"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}},
                "list": {"type": "array"}, "optional": {"type": "string"}}});
        assert_eq!(
            sample(Some(&schema)),
            json!({"code": "print(1)", "n": 5, "mode": "fast", "deep": {"a": false}, "list": [], "gone": "example"})
        );
        assert_eq!(sample(None), json!({}));
        assert_eq!(sample(Some(&json!("odd"))), json!({}));
    }
}
