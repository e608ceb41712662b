//! `/w/{ws}/logs/{id}/rule`: rules that would have met this call, each of which opens in the editor.

use askama::Template;
use axum::extract::Path;
use http::StatusCode;
use serde_json::{Value, json};
use sluice_control::{Page, PolicyManager, PolicyView};
use sluice_domain::{CallId, CallRecord, Code};
use sluice_policy::edit::apply_rule;

use super::{Row, name_of};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::filters;
use crate::page;
use crate::ws::policy_edit::{limited, news};

/// Arguments that a rule is offered for.
const OFFERED: usize = 6;
/// A longer value is nothing that a rule is made of.
const LONGEST: usize = 200;
/// Policies of a server that are looked through for the one to change.
const POLICIES: u32 = 2;

/// One rule.
#[derive(Debug)]
struct Offer {
    title: String,
    /// What the document then says.
    sentence: String,
    document: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/call_rule.html")]
struct RulePage {
    frame: WsFrame,
    row: Row,
    policy: Option<PolicyView>,
    policy_path: String,
    policies_path: String,
    offers: Vec<Offer>,
    /// The log keeps no values, so no rule can ask for one.
    no_values: bool,
}

/// The path of an argument, as a policy writes it.
fn path(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { format!("args.{name}") } else { format!("args[{}]", Value::from(name)) }
}

/// The arguments whose value the log kept and a rule can compare.
fn values(call: &CallRecord) -> Vec<(String, Value)> {
    let kept = call.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let Some(Value::Object(kept)) = kept else { return Vec::new() };
    let fits = |value: &Value| match value {
        Value::String(text) => text.len() <= LONGEST,
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    };
    kept.into_iter().filter(|(_, value)| fits(value)).take(OFFERED).collect()
}

/// What may be added for a call, before it is known what the document says already; without words
/// about a limit, which depends on the document's counters.
fn pieces(call: &CallRecord, tool: &str) -> Vec<(String, Value)> {
    let entry = |entry: Value| json!({"tools": {tool: entry}});
    let mut pieces = Vec::new();
    if call.code == Code::DefaultDeny {
        pieces.push(("Allow the tool".to_owned(), entry(json!({}))));
    }
    for (name, value) in values(call) {
        let rule = json!([{"conditions": [{"path": path(&name), "op": "eq", "value": value}]}]);
        let about = format!("Ask a person about this `{name}`");
        pieces.push((format!("Refuse this `{name}`"), entry(json!({"deny_if": rule}))));
        pieces.push((about, entry(json!({"approve_if": rule}))));
    }
    let asked = entry(json!({"action": "require_approval"}));
    pieces.push(("Ask a person about every call".to_owned(), asked));
    pieces.push(("Hide the tool".to_owned(), json!({"hide": [tool]})));
    pieces
}

/// The rules that the document can take and does not have already.
fn offers(document: &str, call: &CallRecord, tool: &str) -> Vec<Offer> {
    let offer = |(title, changed): (String, Option<String>)| {
        let changed = changed.filter(|changed| changed != document)?;
        let sentence = news(document, &changed);
        Some(Offer { title, sentence, document: changed })
    };
    let limit = ("Limit the tool".to_owned(), limited(document, tool));
    let pieces = pieces(call, tool).into_iter();
    let pieces = pieces.map(|(title, piece)| (title, apply_rule(document, &piece).ok()));
    pieces.chain([limit]).filter_map(offer).collect()
}

/// The policy that decided the call, or else the only one that its server has.
async fn policy_of(
    desk: &Desk<PolicyManager>,
    call: &CallRecord,
) -> Result<Option<PolicyView>, axum::response::Response> {
    if let Some(id) = call.policy
        && let Ok(policy) = desk.control.policy(desk.viewer(), id).await
    {
        return Ok(Some(policy));
    }
    let page = Page { after: None, limit: POLICIES };
    let found = desk.control.policies(desk.viewer(), Some(call.server), page).await;
    let mut found = found.map_err(refuse)?.items;
    Ok(if found.len() == 1 { found.pop() } else { None })
}

pub(crate) async fn show(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
) -> Answer {
    let id: CallId = id.parse().map_err(|_| absent("call"))?;
    let call = desk.control.call(desk.viewer(), id).await.map_err(refuse)?;
    let tool = call.tool.clone().ok_or_else(|| absent("tool"))?;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    if !names.iter().any(|one| one.id == call.server && !one.deleted) {
        return Err(absent("server"));
    }
    let policy = policy_of(&desk, &call).await?;
    let page = RulePage {
        frame: desk.frame("logs").await?,
        offers: policy
            .as_ref()
            .map(|policy| offers(&policy.document, &call, &tool))
            .unwrap_or_default(),
        no_values: values(&call).is_empty(),
        policy_path: policy
            .as_ref()
            .map(|policy| desk.path(&format!("/policies/{}", policy.id)))
            .unwrap_or_default(),
        policies_path: desk.path(&format!("/servers/{}/policies", call.server)),
        policy,
        row: Row { server: name_of(&names, &call), call },
    };
    Ok(page::private(StatusCode::OK, &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_has_a_path_that_a_policy_reads_as_that_name() {
        for (name, expected) in [
            ("path", "args.path"),
            ("a b", "args[\"a b\"]"),
            ("x\"y", "args[\"x\\\"y\"]"),
            ("1", "args[\"1\"]"),
        ] {
            assert_eq!(path(name), expected);
            let read = sluice_policy::Path::parse(&path(name)).expect("a path");
            assert_eq!(sluice_policy::Path::parse(&read.to_string()).expect("a path"), read);
        }
    }
}
