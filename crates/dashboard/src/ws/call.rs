//! One call: what became of it, why, and where its time went.

use askama::Template;
use axum::extract::Path;
use http::StatusCode;
use sluice_control::Viewer;
use sluice_domain::{CallId, CallRecord, Code as Why, Outcome, Role};

use super::logs::{Row, name_of};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::filters;
use crate::next::{encode, segment};
use crate::page;
use crate::trace;
use crate::ui::code::pretty;
use crate::ui::text::{bytes, micros};
use crate::ui::{Code, Trace};

#[derive(Debug, Template)]
#[template(path = "ws/call.html")]
struct CallPage {
    frame: WsFrame,
    row: Row,
    why: &'static str,
    trace: Option<Trace>,
    arguments: Option<Code>,
    timing: Vec<(&'static str, String)>,
    rule_link: Option<String>,
    tool_link: Option<String>,
    grant_link: String,
    same: String,
    /// Where its rules can be changed, for who may.
    rule_from: Option<String>,
    /// Where it can be decided again.
    replay: Option<String>,
}

impl CallPage {
    fn sizes(&self) -> String {
        let call = &self.row.call;
        format!("{} in, {} out", bytes(call.request_bytes), bytes(call.response_bytes))
    }
}

/// A code in a sentence.
pub(crate) fn why(code: Why) -> &'static str {
    use Why as C;
    match code {
        C::Allowed => "Every rule let it pass, and it was forwarded.",
        C::NoPolicy => "Its grant has no policy, so every call is refused.",
        C::UnknownTool => "The tool is hidden by the policy, or the server does not list it.",
        C::ToolChanged => {
            "The tool's definition changed since it was reviewed, or is held for review."
        }
        C::DefaultDeny => "The policy refuses tools that it does not name.",
        C::RequireFailed => "A requirement did not hold.",
        C::DenyIfMatched => "A denial held.",
        C::ArgumentsInvalid => "The arguments do not fit the tool's input schema.",
        C::AmountInvalid => "The amount to charge was missing, negative, not a number or too long.",
        C::RateLimited => "A limit was used up.",
        C::LimitsUnavailable => "The counters could not be asked, and the limit refuses then.",
        C::ApprovalPending => "It waits for a person.",
        C::ApprovalDenied => "A person refused it.",
        C::ApprovalExpired => "Nobody decided in time.",
        C::TooManyPending => "Too many calls were waiting already.",
        C::LogUnavailable => "The log could not take another row, so nothing was forwarded.",
        C::NetworkNotAllowed => "The grant is not for the network that the call came from.",
        C::MethodNotAllowed => {
            "The method is switched off for the server, or not of the specification."
        }
        C::Malformed => "It was not a request that MCP knows; nothing was forwarded.",
        C::UpstreamUnreachable => "The server could not be reached; the tool did not run.",
        C::UpstreamTls => {
            "No secure connection to the server could be made; the tool did not run. Check its certificate."
        }
        C::UpstreamConnectTimeout => {
            "Connecting to the server took too long; the tool did not run."
        }
        C::UpstreamTimeout => "The server did not answer in time; the tool may have run.",
        C::UpstreamCut => "The server's answer broke off; the tool may have run.",
        C::UpstreamNotMcp => "What the server answered was not MCP.",
        C::UpstreamUnauthorized => {
            "The server refused Sluice's credentials; check them in the server's settings."
        }
        C::UpstreamTooLarge => "The server's answer was over the bound.",
        C::Cancelled => "The client went away or cancelled.",
    }
}

fn timing(call: &CallRecord) -> Vec<(&'static str, String)> {
    let time = call.timing;
    let gateway = time.total_us - time.limits_us - time.approval_us - time.upstream_us;
    [
        ("In all", time.total_us),
        ("Gateway", gateway.max(0)),
        ("Limits", time.limits_us),
        ("Approval", time.approval_us),
        ("Server", time.upstream_us),
    ]
    .into_iter()
    .filter(|(name, value)| *value > 0 || *name == "In all")
    .map(|(name, value)| (name, micros(value)))
    .collect()
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let id: CallId = id.parse().map_err(|_| absent("call"))?;
    let call = desk.control.call(desk.viewer(), id).await.map_err(refuse)?;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let alive = names.iter().any(|one| one.id == call.server && !one.deleted);
    let version = call.policy.zip(call.policy_version);
    let tool_path =
        |tool: &String| desk.path(&format!("/servers/{}/tools/{}", call.server, segment(tool)));
    let arguments = call.arguments.as_deref().map(|text| {
        let value = serde_json::from_str(text).map(|value: serde_json::Value| pretty(&value));
        Code::json("Arguments, as the log keeps them", &value.unwrap_or_else(|_| text.to_owned()))
    });
    let manages = desk.may(Role::PolicyManager);
    let on_tool = call.tool.is_some() && alive;
    let used_up = (call.outcome == Outcome::Limited).then_some(call.rule.as_str());
    let trace = call.trace.as_deref().map(|text| trace::of_log(text, used_up));
    let page = CallPage {
        frame: desk.frame("logs").await?,
        why: why(call.code),
        trace: trace.filter(|trace| !trace.rows.is_empty()),
        arguments,
        timing: timing(&call),
        rule_link: version.map(|(policy, version)| {
            let rule = if call.rule.starts_with('/') {
                format!("#{}", encode(&call.rule))
            } else {
                String::new()
            };
            desk.path(&format!("/policies/{policy}/versions/{version}{rule}"))
        }),
        tool_link: call.tool.as_ref().filter(|_| alive).map(tool_path),
        rule_from: (manages && on_tool).then(|| desk.path(&format!("/logs/{id}/rule"))),
        replay: call.policy.filter(|_| on_tool).map(|policy| {
            let page = if manages { "edit" } else { "try" };
            desk.path(&format!("/policies/{policy}/{page}?call={id}"))
        }),
        grant_link: desk.path(&format!("/grants/{}", call.grant)),
        same: desk.path(&format!(
            "/logs?server={}&tool={}&outcome={}",
            call.server,
            encode(call.tool.as_deref().unwrap_or_default()),
            call.outcome
        )),
        row: Row { server: name_of(&names, &call), call },
    };
    Ok(page::private(StatusCode::OK, &page))
}
