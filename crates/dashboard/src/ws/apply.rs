//! The button: a tool's recommended rule, shown as a sentence and a change before it is saved.

use askama::Template;
use axum::extract::{Path, Query};
use serde::Deserialize;
use sluice_control::{
    Apply, CallsOf, ControlError, GrantsOf, Page, PolicyManager, Preview, RestOf, ToolView,
    TrialsOf,
};
use sluice_domain::{PolicyId, ServerId};
use sluice_web::Form;

use super::policy::trials::OnLog;
use super::redirect;
use super::server::{ServerHead, find};
use super::tool::ToolPath;
use crate::catalogue::verb;
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::next::segment;
use crate::page;
use crate::ui::{Code, Diff, Select, Sentence, Sentences, Steps, text::ticks};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    rest: String,
    /// An id, `new`, or empty.
    #[serde(default)]
    policy: String,
}

impl Input {
    fn apply(&self) -> Result<Apply, Faults> {
        let policy = match self.policy.as_str() {
            "" => None,
            text => Some(
                text.parse::<PolicyId>()
                    .map_err(|_| Faults::one("/policy_id", "This server has no such policy."))?,
            ),
        };
        let rest = match self.rest.as_str() {
            "" | "deny" => RestOf::Deny,
            "recommended" => RestOf::Recommended,
            _ => return Err(Faults::one("/rest", "Choose what becomes of the other tools.")),
        };
        Ok(Apply { policy, rest })
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/apply.html")]
struct ApplyPage {
    frame: WsFrame,
    head: ServerHead,
    tool: ToolView,
    verb: &'static str,
    path: String,
    problem: Option<String>,
    preview: Option<Preview>,
    change: Option<Diff>,
    /// What the changed policy would have done to recent calls.
    trials: Option<OnLog>,
    sentences: Sentences,
    document: Option<Code>,
    recommended: bool,
    policy: String,
    policies: Option<Select>,
    next: String,
    steps: Option<Steps>,
}

impl ApplyPage {
    fn link(&self, rest: &str) -> String {
        format!("{}?rest={rest}&policy={}", self.path, self.policy)
    }
}

/// The server's policies, to choose from where there are several.
async fn choices(
    desk: &Desk<PolicyManager>,
    server: ServerId,
    chosen: &str,
) -> Result<Option<Select>, axum::response::Response> {
    let all = desk
        .control
        .policies(&desk.who, Some(server), Page::first(100))
        .await
        .map_err(refuse)?
        .items;
    if all.is_empty() {
        return Ok(None);
    }
    let mut options = vec![(String::new(), "Recommended rules (this button's policy)".to_owned())];
    options.extend(
        all.iter()
            .map(|one| (one.id.to_string(), format!("{}, version {}", one.name, one.version))),
    );
    Ok(Some(Select::new("policy", "Policy", options, chosen)))
}

/// Who has made no grant for a server is on the way to its first one.
pub(crate) async fn no_grant_yet<P: AsViewer>(
    desk: &Desk<P>,
    server: ServerId,
) -> Result<bool, axum::response::Response> {
    let of_server = GrantsOf { server: Some(server), ..GrantsOf::default() };
    let grants = desk.control.grants(desk.viewer(), of_server, Page::first(1)).await;
    Ok(grants.map_err(refuse)?.items.is_empty())
}

const EMPTY: &str = "{\n  \"version\": \"1\",\n  \"default\": \"deny\",\n  \"tools\": {}\n}";

/// What applying would change, or what is wrong with the choice.
async fn previewed(
    desk: &Desk<PolicyManager>,
    server: ServerId,
    tool: &str,
    input: &Input,
) -> Result<Result<Preview, Faults>, axum::response::Response> {
    let apply = match input.apply() {
        Ok(apply) => apply,
        Err(wrong) => return Ok(Err(wrong)),
    };
    match desk.control.preview_recommended(desk.viewer(), server, tool, apply).await {
        Ok(preview) => Ok(Ok(preview)),
        Err(error) => Faults::of(error).map(Err),
    }
}

/// Calls of the log that a change is tried on.
const TRIED: u32 = 200;

/// The policy as it would be, on the server's recent calls.
async fn tried(
    desk: &Desk<PolicyManager>,
    server: ServerId,
    preview: Option<&Preview>,
) -> Result<Option<OnLog>, axum::response::Response> {
    let Some(preview) = preview.filter(|preview| preview.changed) else { return Ok(None) };
    let filter = Box::new(CallsOf { server: Some(server), ..CallsOf::default() });
    let of = TrialsOf::Log { filter, limit: TRIED };
    match desk.control.simulate(desk.viewer(), server, &preview.after, of).await {
        Ok(trials) => Ok(Some(OnLog::new(&trials, &desk.path("/logs")))),
        Err(ControlError::Invalid(_)) => Ok(None),
        Err(other) => Err(refuse(other)),
    }
}

async fn show(
    desk: Desk<PolicyManager>,
    path: &ToolPath,
    input: &Input,
    mut faults: Faults,
) -> Answer {
    let found = find(&desk, &path.id).await?;
    let head = found.head(&desk, "Tools");
    let server = head.server.id;
    let tool = found
        .tools
        .into_iter()
        .find(|tool| tool.name == path.tool)
        .ok_or_else(|| absent("tool"))?;
    let preview = match previewed(&desk, server, &tool.name, input).await? {
        Ok(preview) => Some(preview),
        Err(wrong) => {
            faults = wrong;
            None
        }
    };
    let changed = preview.as_ref().filter(|preview| preview.changed);
    let rows = preview
        .iter()
        .flat_map(|preview| &preview.sentences)
        .map(|rule| Sentence { html: ticks(&rule.text), pointer: rule.pointer.clone() });
    let newcomer = no_grant_yet(&desk, server).await?;
    let trials = tried(&desk, server, preview.as_ref()).await?;
    let page = ApplyPage {
        trials,
        frame: desk.frame("servers").await?,
        steps: newcomer.then(|| Steps::path(3, &head.server.name, &tool.name)),
        verb: verb(tool.rating.category),
        path: format!("{}/tools/{}/apply", head.path, segment(&tool.name)),
        problem: faults.rest(&[]),
        change: changed.map(|preview| {
            let label = format!("Change to {}", preview.policy_name);
            Diff::new(&label, preview.before.as_deref().unwrap_or(EMPTY), &preview.after)
        }),
        sentences: Sentences { rows: rows.collect() },
        document: preview
            .as_ref()
            .map(|preview| Code::json("The whole policy afterwards", &preview.after)),
        recommended: input.rest == "recommended",
        policies: choices(&desk, server, &input.policy).await?,
        policy: input
            .policy
            .chars()
            .take(40)
            .filter(|c| c.is_ascii_hexdigit() || *c == '-')
            .collect(),
        next: match preview.as_ref().and_then(|preview| preview.policy) {
            Some(policy) => format!("{}/grants/new?policy={policy}", head.path),
            None => format!("{}/grants/new", head.path),
        },
        preview,
        tool,
        head,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn preview(
    desk: Desk<PolicyManager>,
    Path(path): Path<ToolPath>,
    Query(input): Query<Input>,
) -> Answer {
    show(desk, &path, &input, Faults::none()).await
}

pub(crate) async fn apply(
    desk: Desk<PolicyManager>,
    Path(path): Path<ToolPath>,
    Form(input): Form<Input>,
) -> Answer {
    let server = path.server()?;
    let apply = match input.apply() {
        Ok(apply) => apply,
        Err(faults) => return show(desk, &path, &input, faults).await,
    };
    let applied = match desk.control.apply_recommended(&desk.who, server, &path.tool, apply).await {
        Ok(applied) => applied,
        Err(error) => return show(desk, &path, &input, Faults::of(error)?).await,
    };
    let policy = &applied.policy;
    if !applied.preview.changed {
        return Ok(redirect(&desk.path(&format!("/policies/{}", policy.id))));
    }
    let said = format!(
        "Saved version {} of `{}`: {}",
        policy.version, policy.name, applied.preview.sentence
    );
    let in_use = desk
        .control
        .grants(
            desk.viewer(),
            GrantsOf { policy: Some(policy.id), ..GrantsOf::default() },
            Page::first(1),
        )
        .await
        .map_err(refuse)?;
    let admin = desk.may(sluice_domain::Role::Admin);
    let to = if in_use.items.is_empty() && admin {
        let policy = format!("policy={}&pressed={}", policy.id, policy.version);
        desk.path(&format!("/servers/{server}/grants/new?{policy}"))
    } else {
        desk.path(&format!("/policies/{}", policy.id))
    };
    Ok(flash::done(&to, &said))
}
