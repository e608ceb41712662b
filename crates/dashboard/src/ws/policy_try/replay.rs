//! A call of the log, to be tried again.

use axum::response::Response;
use serde_json::{Map, Value};
use sluice_control::ToolView;
use sluice_domain::{CallId, ServerId};

use super::typed::Typed;
use crate::desk::{AsViewer, Desk, absent, refuse};
use crate::ui::code::pretty;
use crate::ws::try_it::sample;

/// A logged call in the form's fields, and words about it.
pub(crate) struct Replay {
    pub(crate) typed: Typed,
    pub(crate) words: String,
}

/// Reads the call; it must have gone to a tool of the server.
pub(crate) async fn replay<P: AsViewer>(
    desk: &Desk<P>,
    server: ServerId,
    call: &str,
    tools: &[ToolView],
) -> Result<Replay, Response> {
    let id: CallId = call.parse().map_err(|_| absent("call"))?;
    let call = desk.control.call(desk.viewer(), id).await.map_err(refuse)?;
    let tool = call.tool.clone().filter(|_| call.server == server).ok_or_else(|| absent("call"))?;
    let listed = tools.iter().find(|one| one.name == tool);
    let schema = listed.and_then(|tool| tool.definition.input_schema.as_ref());
    let kept = call.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let (arguments, missing) = filled(kept, &sample(schema));
    let words = match missing.as_slice() {
        [] => "This is a call of the log, with the arguments it had.".to_owned(),
        missing => format!(
            "This is a call of the log. The log does not keep the value of {}, so samples stand in for them: put the real values in their place.",
            missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    let typed = Typed {
        tool,
        arguments: pretty(&arguments),
        grant_label: call.grant_label,
        client_name: call.client_name.unwrap_or_default(),
        ..Typed::default()
    };
    Ok(Replay { typed, words })
}

/// Names that are told; a call may have any number.
const TOLD: usize = 6;

/// The arguments with samples where a mark says that nothing was kept, and the names of those.
fn filled(kept: Option<Value>, sample: &Value) -> (Value, Vec<String>) {
    let Some(Value::Object(kept)) = kept.filter(|kept| blank(kept).is_none()) else {
        return (sample.clone(), vec!["every argument".to_owned()]);
    };
    let mut missing = Vec::new();
    let arguments: Map<String, Value> = kept
        .into_iter()
        .map(|(name, value)| {
            let whole = without_marks(&value);
            if whole != value && missing.len() < TOLD {
                missing.push(name.clone());
            }
            let whole = match (blank(&value), sample.get(&name)) {
                (Some(_), Some(sample)) => sample.clone(),
                _ => whole,
            };
            (name, whole)
        })
        .collect();
    (Value::Object(arguments), missing)
}

/// What stands in for a mark: an empty value of its type.
fn blank(value: &Value) -> Option<Value> {
    let marked = value.as_object().filter(|pairs| pairs.len() == 1)?;
    Some(match marked.get("$type")?.as_str()? {
        "string" => Value::from(""),
        "number" => Value::from(0),
        "boolean" => Value::from(false),
        "list" => Value::from(Vec::<Value>::new()),
        "object" => Value::Object(Map::new()),
        "null" => Value::Null,
        _ => return None,
    })
}

fn without_marks(value: &Value) -> Value {
    if let Some(blank) = blank(value) {
        return blank;
    }
    match value {
        Value::Array(items) => items.iter().map(without_marks).collect(),
        Value::Object(pairs) => {
            pairs.iter().map(|(name, value)| (name.clone(), without_marks(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_kept_stays_and_the_rest_is_a_sample() {
        let sample = json!({"path": "/tmp/a", "count": 1});
        let kept = json!({"path": {"$type": "string"}, "n": 3, "o": {"key": {"$type": "boolean"}, "a": 1}});
        let (arguments, missing) = filled(Some(kept), &sample);
        assert_eq!(arguments, json!({"path": "/tmp/a", "n": 3, "o": {"key": false, "a": 1}}));
        assert_eq!(missing, ["path", "o"]);
        assert_eq!(filled(Some(json!({"n": 3})), &sample), (json!({"n": 3}), vec![]));
        for nothing in [None, Some(json!({"$type": "object"})), Some(json!(3))] {
            assert_eq!(
                filled(nothing, &sample),
                (sample.clone(), vec!["every argument".to_owned()])
            );
        }
    }
}
