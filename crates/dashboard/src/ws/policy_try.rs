//! A made-up call against a policy: what would become of it, and why. Nothing is charged or sent.

use askama::Template;
use axum::extract::Path;
use serde::Deserialize;
use sluice_control::{Trial, TrialCall, TrialsOf, Viewer};
use sluice_domain::{Outcome, ToolState};
use sluice_policy::Verdict;
use sluice_web::Form;

use super::policy::{self, PolicyHead};
use super::try_it::sample;
use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::page;
use crate::trace;
use crate::ui::code::pretty;
use crate::ui::{Field, Trace};

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
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_try.html")]
struct TryPage {
    frame: WsFrame,
    head: PolicyHead,
    problem: Option<String>,
    tools: Vec<String>,
    fields: [Field; 4],
    result: Option<Outcomes>,
}

/// What would become of the call.
#[derive(Debug)]
struct Outcomes {
    outcome: Outcome,
    trial: Trial,
    trace: Trace,
}

impl Outcomes {
    fn new(trial: Trial) -> Self {
        let outcome = match trial.decision.verdict {
            Verdict::Forward => Outcome::Allowed,
            Verdict::Deny => Outcome::Denied,
            Verdict::Hide => Outcome::Hidden,
            Verdict::Approve => Outcome::Waiting,
        };
        let trace = trace::of_steps(&trial.decision.trace);
        Self { outcome, trial, trace }
    }
}

async fn show(
    desk: Desk<Viewer>,
    id: &str,
    mut input: Input,
    faults: Faults,
    trial: Option<Trial>,
) -> Answer {
    let head = policy::head(&desk, id, "Try a call").await?;
    let tools = desk.control.tools(desk.viewer(), head.policy.server_id).await.map_err(refuse)?;
    if input.tool.is_empty()
        && let Some(first) =
            tools.iter().find(|tool| head.policy.document.contains(&tool.name)).or(tools.first())
    {
        input.tool.clone_from(&first.name);
        input.arguments = pretty(&sample(first.definition.input_schema.as_ref()));
    }
    let page = TryPage {
        frame: desk.frame("policies").await?,
        problem: faults.rest(&["/calls/0/arguments"]),
        tools: tools
            .into_iter()
            .filter(|tool| tool.state != ToolState::Gone)
            .map(|tool| tool.name)
            .collect(),
        fields: [
            Field::text("tool", "Tool").value(input.tool).required().max(256),
            Field::area("arguments", "Arguments", 8)
                .value(input.arguments)
                .hint("A JSON object.")
                .code()
                .error(faults.at("/calls/0/arguments")),
            Field::text("grant_label", "Grant label").value(input.grant_label).max(80),
            Field::text("client_name", "Client name").value(input.client_name).max(80),
        ],
        result: trial.map(Outcomes::new),
        head,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn form(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    show(desk, &id, Input::default(), Faults::none(), None).await
}

pub(crate) async fn run(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<Input>,
) -> Answer {
    let head = policy::head(&desk, &id, "Try a call").await?;
    let call = TrialCall {
        tool: input.tool.clone(),
        arguments: Some(input.arguments.clone()).filter(|text| !text.trim().is_empty()),
        grant_label: input.grant_label.clone(),
        client_name: Some(input.client_name.clone()).filter(|name| !name.is_empty()),
        at: None,
    };
    let (server, document) = (head.policy.server_id, &head.policy.document);
    match desk.control.simulate(desk.viewer(), server, document, TrialsOf::These(vec![call])).await
    {
        Ok(trials) => {
            show(desk, &id, input, Faults::none(), trials.trials.into_iter().next()).await
        }
        Err(error) => show(desk, &id, input, Faults::of(error)?, None).await,
    }
}
