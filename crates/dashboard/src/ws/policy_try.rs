//! Trying a policy before it matters: on a made-up call, with every step of the decision, on recent
//! calls of the log, or with policy tests. Nothing is charged or sent.

mod panels;
mod replay;
mod typed;

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{CallsOf, MAX_TRIALS, ToolView, TrialCall, TrialsOf, Viewer};
use sluice_domain::{PolicyId, ServerId, ToolState};
use sluice_policy::{CasesFile, CasesReport, compile, run_tests};
use sluice_web::FormFields;

pub(crate) use self::panels::{CallForm, LogForm, Shown, Tried, tests_field};
use self::panels::{Decided, MOST_TESTS};
pub(crate) use self::replay::replay;
pub(crate) use self::typed::Typed;
use super::policy::parts::Numbered;
use super::policy::trials::OnLog;
use super::policy::{self, PolicyHead};
use crate::desk::{Answer, AsViewer, Desk, WsFrame, refuse, status};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::page;
use crate::ui::Field;

/// What is tried, and where.
pub(crate) struct Subject<'s> {
    pub(crate) server: ServerId,
    pub(crate) policy: Option<PolicyId>,
    pub(crate) document: &'s str,
    pub(crate) tools: &'s [ToolView],
}

/// Does what was pressed: `call`, `log`, `tests`, `sample`, `as:form` or `as:json`. None: something else.
pub(crate) async fn tried<P: AsViewer>(
    desk: &Desk<P>,
    subject: &Subject<'_>,
    press: &str,
    typed: &mut Typed,
) -> Result<Option<(Faults, Shown)>, Response> {
    let other = prepare(subject, typed);
    let tool = subject.tools.iter().find(|tool| tool.name == typed.tool);
    let schema = tool.and_then(|tool| tool.definition.input_schema.as_ref());
    let arguments = typed::arguments(schema);
    let wrong = |(field, words): (String, String)| Faults::one(&format!("/{field}"), &words);
    let nothing = |faults| Ok(Some((faults, Shown::Nothing)));
    if other && press == "call" {
        // Another tool was named: its own fields come first.
        return nothing(Faults::none());
    }
    match press {
        "sample" | "fields" => {
            typed.fill(schema);
            typed.as_form |= press == "fields" && !arguments.is_empty();
        }
        "as:form" => {
            typed.take(&serde_json::from_str(&typed.arguments).unwrap_or_default());
            typed.as_form = true;
        }
        "as:json" | "call" => match typed.json(&arguments) {
            Ok(text) => typed.arguments = text,
            Err(field) => return nothing(wrong(field)),
        },
        "tests" => {
            return Ok(Some(match tested(subject.document, &typed.cases, desk.now) {
                Ok(report) => (Faults::none(), Shown::Tests(report)),
                Err(faults) => (faults, Shown::Nothing),
            }));
        }
        "log" => {}
        _ => return Ok(None),
    }
    if press == "as:json" {
        typed.as_form = false;
    }
    if !["call", "log"].contains(&press) {
        return nothing(Faults::none());
    }
    let of = of(press, typed, subject.policy);
    match desk.control.simulate(desk.viewer(), subject.server, subject.document, of).await {
        Ok(trials) if press == "log" => {
            let shown = Shown::Log(OnLog::new(&trials, &desk.path("/logs")));
            Ok(Some((Faults::none(), shown)))
        }
        Ok(trials) => {
            let first = trials.trials.into_iter().next();
            let shown = first.map(|trial| Shown::Call(Box::new(Decided::new(trial))));
            Ok(Some((Faults::none(), shown.unwrap_or_default())))
        }
        Err(error) => nothing(Faults::of(error)?),
    }
}

/// Fills in what a page that opens needs: see [`tried`].
pub(crate) fn begin(subject: &Subject<'_>, typed: &mut Typed) {
    prepare(subject, typed);
}

/// A tool to begin with, and its sample; whether the fields were of another tool.
fn prepare(subject: &Subject<'_>, typed: &mut Typed) -> bool {
    if std::mem::replace(&mut typed.ready, true) {
        return false;
    }
    if typed.tool.is_empty() {
        let named = subject.tools.iter().find(|tool| subject.document.contains(&tool.name));
        let first = named.or(subject.tools.first());
        typed.tool = first.map(|tool| tool.name.clone()).unwrap_or_default();
    }
    let tool = subject.tools.iter().find(|tool| tool.name == typed.tool);
    let schema = tool.and_then(|tool| tool.definition.input_schema.as_ref());
    let arguments = typed::arguments(schema);
    let other = typed.as_form && typed.fields_of != typed.tool;
    if other || typed.arguments.trim().is_empty() && !typed.as_form {
        typed.fill(schema);
        typed.as_form = !arguments.is_empty();
    } else {
        typed.named(&arguments);
    }
    other
}

/// Which calls the document is tried on.
fn of(press: &str, typed: &Typed, policy: Option<PolicyId>) -> TrialsOf {
    if press == "log" {
        let limit = typed.calls.parse().unwrap_or(500).clamp(1, MAX_TRIALS);
        let policy = policy.filter(|_| typed.whose != "server");
        return TrialsOf::Log { filter: Box::new(CallsOf { policy, ..CallsOf::default() }), limit };
    }
    TrialsOf::These(vec![TrialCall {
        tool: typed.tool.clone(),
        arguments: Some(typed.arguments.clone()).filter(|text| !text.trim().is_empty()),
        grant_label: typed.grant_label.clone(),
        client_name: Some(typed.client_name.clone()).filter(|name| !name.is_empty()),
        at: None,
    }])
}

/// Runs typed tests on a document.
fn tested(document: &str, cases: &str, now: DateTime<Utc>) -> Result<CasesReport, Faults> {
    let file = CasesFile::parse(cases)
        .map_err(|error| Faults::one("/cases", &sentence(&error.to_string())))?;
    if file.cases.len() > MOST_TESTS {
        return Err(Faults::one("/cases", &format!("At most {MOST_TESTS} tests run at once.")));
    }
    let policy = compile(document).map_err(|_| {
        let words = "The document has errors; mend them first.".to_owned();
        Faults::general(StatusCode::UNPROCESSABLE_ENTITY, words)
    })?;
    Ok(run_tests(&policy, &file, now))
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_try.html")]
struct TryPage {
    frame: WsFrame,
    head: PolicyHead,
    problem: Option<String>,
    notice: Option<String>,
    call: CallForm,
    log: LogForm,
    cases: Field,
    tried: Tried,
    document: Numbered,
}

/// What no field tells: neither one of the panels nor one of `others`.
pub(crate) fn untold(faults: &Faults, others: &[&str]) -> Option<String> {
    let beside = faults.list.iter().map(|fault| fault.pointer.as_str());
    let arguments = beside.filter(|pointer| pointer.starts_with("/a."));
    let panels = ["/calls/0/arguments", "/cases"].into_iter();
    let shown: Vec<&str> = panels.chain(arguments).chain(others.iter().copied()).collect();
    faults.rest(&shown)
}

async fn show(
    desk: Desk<Viewer>,
    head: PolicyHead,
    press: &str,
    mut typed: Typed,
    notice: Option<String>,
) -> Answer {
    let mut tools =
        desk.control.tools(desk.viewer(), head.policy.server_id).await.map_err(refuse)?;
    tools.retain(|tool| tool.state != ToolState::Gone);
    let trying = Subject {
        server: head.policy.server_id,
        policy: Some(head.policy.id),
        document: &head.policy.document,
        tools: &tools,
    };
    let found = tried(&desk, &trying, press, &mut typed).await?;
    let (faults, shown) = found.unwrap_or_default();
    let page = TryPage {
        frame: desk.frame("policies").await?,
        problem: untold(&faults, &[]),
        notice,
        call: CallForm::new(&tools, &typed, &faults).primary(),
        log: LogForm::new(&typed),
        cases: tests_field(&typed, &faults),
        tried: Tried { path: head.path.clone(), shown },
        document: Numbered::new("The document, as saved", &head.policy.document, &[]),
        head,
    };
    Ok(page::private(status(&faults), &page))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    tool: String,
    /// A call of the log to begin with.
    #[serde(default)]
    pub(crate) call: String,
}

pub(crate) async fn form(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Answer {
    let head = policy::head(&desk, &id, "Try").await?;
    if !wanted.call.is_empty() {
        let tools = desk.control.tools(desk.viewer(), head.policy.server_id).await;
        let tools = tools.map_err(refuse)?;
        let replayed = replay(&desk, head.policy.server_id, &wanted.call, &tools).await?;
        return show(desk, head, "call", replayed.typed, Some(replayed.words)).await;
    }
    let typed = Typed { tool: wanted.tool.chars().take(256).collect(), ..Typed::default() };
    show(desk, head, "", typed, None).await
}

/// Fields that the page's forms always have.
const FIXED: [&str; 10] = [
    "press",
    "tool",
    "arguments",
    "as_form",
    "fields_of",
    "grant_label",
    "client_name",
    "calls",
    "whose",
    "cases",
];

pub(crate) async fn run(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let named: Vec<&str> = fields
        .0
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with("a."))
        .collect();
    let once: Vec<&str> = FIXED.iter().copied().chain(named).collect();
    fields.only(&once, &[]).map_err(IntoResponse::into_response)?;
    let head = policy::head(&desk, &id, "Try").await?;
    let press = fields.get("press").to_owned();
    show(desk, head, &press, Typed::read(&fields), None).await
}
