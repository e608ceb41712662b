//! Trying a policy before it matters: on a made-up call, with every step of the decision, or on
//! recent calls of the log. Nothing is charged or sent.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use sluice_control::{CallsOf, MAX_TRIALS, ToolView, Trial, TrialCall, TrialsOf, Viewer};
use sluice_domain::{Outcome, ToolState};
use sluice_policy::{CasesFile, CasesReport, compile, run_tests};
use sluice_web::Form;

use super::policy::parts::Numbered;
use super::policy::trials::{OnLog, outcome};
use super::policy::{self, PolicyHead};
use super::try_it::sample;
use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::page;
use crate::trace;
use crate::ui::code::pretty;
use crate::ui::text::count;
use crate::ui::{Field, Select, Trace};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    tool: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    grant_label: String,
    #[serde(default)]
    client_name: String,
    /// Policy tests, as JSON.
    #[serde(default)]
    cases: String,
    /// `call`, `sample`, `log` or `tests`.
    #[serde(default)]
    press: String,
    /// How many calls of the log.
    #[serde(default)]
    calls: String,
    /// `server`: all calls of the server instead of the policy's own.
    #[serde(default)]
    whose: String,
}

/// What would become of the call.
#[derive(Debug)]
struct Decided {
    outcome: Outcome,
    trial: Trial,
    trace: Trace,
    /// What becomes of it, in words.
    words: String,
    approval: Option<String>,
}

impl Decided {
    fn new(trial: Trial) -> Self {
        let decision = &trial.decision;
        let outcome = outcome(decision.verdict, decision.code);
        let words = match outcome {
            Outcome::Allowed if decision.observed => {
                "It would be forwarded, since the policy only observes; otherwise it would not."
                    .to_owned()
            }
            Outcome::Allowed if decision.charges.is_empty() => "It would be forwarded.".to_owned(),
            Outcome::Allowed => "It would be forwarded, once its limits are charged.".to_owned(),
            Outcome::Waiting => "It would wait until a person decides.".to_owned(),
            Outcome::Hidden => "It would be refused as if the tool did not exist.".to_owned(),
            _ => "It would be refused.".to_owned(),
        };
        let approval = decision.approval.as_ref().map(|plan| {
            format!(
                "Held open {} s, void after {}, {} to decide{}.",
                plan.hold,
                count((plan.expires / 60) as usize, "minute", None),
                count(usize::from(plan.quorum), "person", Some("people")),
                if plan.self_allowed { "" } else { ", not the one who made the grant" },
            )
        });
        let trace = trace::of_steps(&decision.trace);
        Self { outcome, trial, trace, words, approval }
    }
}

/// What the page shows as the result.
#[derive(Debug)]
enum Shown {
    Nothing,
    Call(Box<Decided>),
    Log(OnLog),
    Tests(CasesReport),
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_try.html")]
struct TryPage {
    frame: WsFrame,
    head: PolicyHead,
    problem: Option<String>,
    tool: Field,
    tools: Vec<String>,
    arguments: Field,
    grant_label: Field,
    client_name: Field,
    calls: Select,
    whose: Select,
    cases: Field,
    shown: Shown,
    document: Numbered,
}

/// One test to begin with.
fn example_cases(tool: &str) -> String {
    pretty(&json!({"cases": [{"tool": tool, "arguments": {}, "expect": "allow"}]}))
}

/// Runs typed tests on the saved document.
fn tested(document: &str, cases: &str, now: DateTime<Utc>) -> Result<CasesReport, Faults> {
    let file = CasesFile::parse(cases)
        .map_err(|error| Faults::one("/cases", &sentence(&error.to_string())))?;
    if file.cases.len() > MAX_TRIALS as usize {
        return Err(Faults::one("/cases", &format!("At most {MAX_TRIALS} tests run at once.")));
    }
    let policy = compile(document).map_err(|_| {
        Faults::general(
            StatusCode::UNPROCESSABLE_ENTITY,
            "The saved document has errors; edit it first.".to_owned(),
        )
    })?;
    Ok(run_tests(&policy, &file, now))
}

/// Tools that the suggestions of the field hold.
const SUGGESTED: usize = 500;

fn arguments_of(tool: Option<&ToolView>) -> String {
    pretty(&sample(tool.and_then(|tool| tool.definition.input_schema.as_ref())))
}

async fn show(
    desk: Desk<Viewer>,
    head: PolicyHead,
    mut input: Input,
    faults: Faults,
    shown: Shown,
) -> Answer {
    let mut tools =
        desk.control.tools(desk.viewer(), head.policy.server_id).await.map_err(refuse)?;
    tools.retain(|tool| tool.state != ToolState::Gone);
    if input.tool.is_empty()
        && let Some(first) =
            tools.iter().find(|tool| head.policy.document.contains(&tool.name)).or(tools.first())
    {
        input.tool.clone_from(&first.name);
    }
    if input.arguments.trim().is_empty() || input.press == "sample" {
        input.arguments = arguments_of(tools.iter().find(|tool| tool.name == input.tool));
    }
    let counts = ["100", "500", "1000"].map(|number| (number, format!("the last {number} calls")));
    let whose = [
        ("policy", "that this policy decided"),
        ("server", "of the server, whatever decided them"),
    ];
    let chosen = |text: &str, other: &'static str| {
        if text.is_empty() { other.to_owned() } else { text.to_owned() }
    };
    let first = input.tool.clone();
    let page = TryPage {
        frame: desk.frame("policies").await?,
        problem: faults.rest(&["/calls/0/arguments", "/cases"]),
        tool: Field::text("tool", "Tool").value(input.tool).required().max(256).code(),
        tools: tools.into_iter().take(SUGGESTED).map(|tool| tool.name).collect(),
        arguments: Field::area("arguments", "Arguments", 10)
            .value(input.arguments)
            .hint("A JSON object.")
            .code()
            .error(faults.at("/calls/0/arguments")),
        grant_label: Field::text("grant_label", "Grant label")
            .value(input.grant_label)
            .hint("For rules that ask for `grant.label`.")
            .max(80),
        client_name: Field::text("client_name", "Client name")
            .value(input.client_name)
            .hint("What the client calls itself: its own claim.")
            .max(80),
        calls: Select::new("calls", "On", counts, &chosen(&input.calls, "500")),
        whose: Select::new("whose", "Which", whose, &chosen(&input.whose, "policy")),
        cases: Field::area("cases", "Tests", 10)
            .hint("The form that `sluice policy test` reads; see the policy docs.")
            .value(if input.cases.is_empty() { example_cases(&first) } else { input.cases })
            .code()
            .error(faults.at("/cases")),
        shown,
        document: Numbered::new("The document, as saved", &head.policy.document, &[]),
        head,
    };
    Ok(page::private(status(&faults), &page))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    tool: String,
}

pub(crate) async fn form(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Answer {
    let head = policy::head(&desk, &id, "Try").await?;
    let input = Input { tool: wanted.tool.chars().take(256).collect(), ..Input::default() };
    show(desk, head, input, Faults::none(), Shown::Nothing).await
}

/// Which calls the document is tried on.
fn of(input: &Input, head: &PolicyHead) -> TrialsOf {
    if input.press == "log" {
        let limit = input.calls.parse().unwrap_or(500).clamp(1, MAX_TRIALS);
        let policy = (input.whose != "server").then_some(head.policy.id);
        return TrialsOf::Log { filter: Box::new(CallsOf { policy, ..CallsOf::default() }), limit };
    }
    TrialsOf::These(vec![TrialCall {
        tool: input.tool.clone(),
        arguments: Some(input.arguments.clone()).filter(|text| !text.trim().is_empty()),
        grant_label: input.grant_label.clone(),
        client_name: Some(input.client_name.clone()).filter(|name| !name.is_empty()),
        at: None,
    }])
}

pub(crate) async fn run(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<Input>,
) -> Answer {
    let head = policy::head(&desk, &id, "Try").await?;
    if input.press == "sample" {
        return show(desk, head, input, Faults::none(), Shown::Nothing).await;
    }
    if input.press == "tests" {
        return match tested(&head.policy.document, &input.cases, desk.now) {
            Ok(report) => show(desk, head, input, Faults::none(), Shown::Tests(report)).await,
            Err(faults) => show(desk, head, input, faults, Shown::Nothing).await,
        };
    }
    let (server, document) = (head.policy.server_id, &head.policy.document);
    let trials =
        match desk.control.simulate(desk.viewer(), server, document, of(&input, &head)).await {
            Ok(trials) => trials,
            Err(error) => return show(desk, head, input, Faults::of(error)?, Shown::Nothing).await,
        };
    let shown = if input.press == "log" {
        Shown::Log(OnLog::new(&trials, &desk.path("/logs")))
    } else {
        let first = trials.trials.into_iter().next();
        first.map_or(Shown::Nothing, |trial| Shown::Call(Box::new(Decided::new(trial))))
    };
    show(desk, head, input, Faults::none(), shown).await
}
