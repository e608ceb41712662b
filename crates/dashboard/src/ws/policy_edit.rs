//! Writing a policy, rule by rule or as JSON: checked, shown in words and as a change, tried on
//! recent calls, then saved as a new version. What was typed is always kept.

mod act;
mod build;
mod builder;
mod fate;
mod form;
mod input;
mod limit;
mod offer;
mod review;
mod rule;
mod value;

use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use sluice_control::{CallsOf, ControlError, PolicyManager, ToolView};
use sluice_domain::{ServerId, ToolState};
use sluice_policy::edit::apply_rule;
use sluice_web::FormFields;

use self::act::Done;
use self::build::{Trouble, add, conflict};
use self::input::Input;
use self::review::{EditPage, Seen, review};
use self::rule::Wrong;
use super::policy::parts::told;
use super::policy::{self, PolicyHead};
use super::policy_try::{self, Shown, Wanted, replay};
use super::server::{ServerHead, find};
use crate::desk::{Answer, Desk, absent, refuse};
use crate::faults::{Faults, sentence};
use crate::flash;
use crate::page;
use crate::ui::{Diff, Flash, Tone};

/// What is being written: a new policy of a server, or the next version of one.
#[derive(Debug)]
struct Subject {
    head: Option<PolicyHead>,
    server: Option<ServerHead>,
    id: ServerId,
    tools: Vec<ToolView>,
}

impl Subject {
    /// Which calls of the log the document is tried on: those that the policy decided.
    fn calls(&self) -> CallsOf {
        CallsOf { policy: self.head.as_ref().map(|head| head.policy.id), ..CallsOf::default() }
    }

    fn saved(&self) -> Option<&str> {
        self.head.as_ref().map(|head| head.policy.document.as_str())
    }
}

/// What a press came to, besides the page itself.
#[derive(Debug, Default)]
struct Told {
    faults: Faults,
    notice: Option<Flash>,
    /// The document before the press can be had back.
    undo: bool,
    /// What is wrong in the builder's open form.
    wrong: Vec<Wrong>,
    /// The document is tried on recent calls.
    tried: bool,
    /// What came of a made-up call, of the log's calls, or of policy tests.
    shown: Shown,
}

impl Told {
    fn faults(faults: Faults) -> Self {
        Self { faults, tried: true, ..Self::default() }
    }

    fn notice(tone: Tone, words: &str) -> Self {
        Self { notice: Some(Flash::new(tone, words)), ..Self::default() }
    }
}

async fn existing(desk: &Desk<PolicyManager>, id: &str) -> Result<Subject, Response> {
    let head = policy::head(desk, id, "Edit").await?;
    let id = head.policy.server_id;
    let tools = desk.control.tools(desk.viewer(), id).await.map_err(refuse)?;
    Ok(Subject { head: Some(head), server: None, id, tools: live(tools) })
}

async fn fresh(desk: &Desk<PolicyManager>, id: &str) -> Result<Subject, Response> {
    let found = find(desk, id).await?;
    let server = found.head(desk, "Policies");
    Ok(Subject { id: server.server.id, tools: live(found.tools), head: None, server: Some(server) })
}

/// What the server still offers, the riskiest first.
fn live(tools: Vec<ToolView>) -> Vec<ToolView> {
    let mut live: Vec<_> = tools.into_iter().filter(|tool| tool.state != ToolState::Gone).collect();
    live.sort_by(|a, b| {
        b.rating.severity.cmp(&a.rating.severity).then_with(|| a.name.cmp(&b.name))
    });
    live
}

/// Tools that the first document's description names.
const DESCRIBED: usize = 12;

/// The document that a new policy starts from: nothing may be called. JSON has no comments, so its
/// description says what the server offers.
fn start(server: &str, tools: &[ToolView]) -> String {
    let described = |tool: &ToolView| {
        format!("{} ({}, {})", tool.name, tool.rating.category, tool.rating.severity)
    };
    let mut names: Vec<String> = tools.iter().take(DESCRIBED).map(described).collect();
    if tools.len() > DESCRIBED {
        names.push(format!("and {} more", tools.len() - DESCRIBED));
    }
    let offers = match names.as_slice() {
        [] => String::new(),
        names => format!(" It offers: {}.", names.join(", ")),
    };
    let description = format!("Refuses every tool of {server} that is not named below.{offers}");
    let document = serde_json::json!({
        "version": "1",
        "description": description,
        "default": "deny",
        "tools": {},
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// Everything but saving: changes the text, tries it, or only looks at it.
async fn press(
    desk: &Desk<PolicyManager>,
    subject: &Subject,
    input: &mut Input,
) -> Result<Told, Response> {
    let before = input.document.clone();
    if !input.recommend.is_empty() || input.press == "add" {
        return Ok(added(subject, input, before));
    }
    let trying = policy_try::Subject {
        server: subject.id,
        policy: subject.head.as_ref().map(|head| head.policy.id),
        document: &before,
        tools: &subject.tools,
    };
    let pressed = input.press.clone();
    if let Some((faults, shown)) =
        policy_try::tried(desk, &trying, &pressed, &mut input.tries).await?
    {
        // A document with errors has them told above, line by line.
        return Ok(Told { faults, shown, ..Told::default() });
    }
    let done = act::act(subject, input);
    Ok(match done {
        Done::Looked => {
            Told { tried: ["", "check"].contains(&pressed.as_str()), ..Told::default() }
        }
        Done::Changed if input.document == before => {
            Told::notice(Tone::Warn, "The document says so already; nothing was changed.")
        }
        Done::Changed => {
            let said = news(&before, &input.document);
            let words = format!("Changed in the document, not saved yet: {said}");
            Told { undo: true, ..Told::notice(Tone::Good, &words) }
        }
        Done::Refused(words) => Told::notice(Tone::Bad, &format!("Nothing was changed: {words}")),
        Done::Wrong(wrong) => Told { wrong, ..Told::default() },
    })
}

/// A recommended rule, or one of the short form beside the document.
fn added(subject: &Subject, input: &mut Input, before: String) -> Told {
    let added = if input.recommend.is_empty() {
        add(&before, &input.quick)
    } else {
        let tool = subject.tools.iter().find(|tool| tool.name == input.recommend);
        let Some(tool) = tool else {
            return Told::faults(Faults::one("/rule_tool", "The server has no such tool."));
        };
        apply_rule(&before, &tool.recommended.fragment).map_err(Trouble::from)
    };
    match added {
        Ok(after) if after == before => {
            Told::notice(Tone::Warn, "The document says so already; nothing was added.")
        }
        Ok(after) => {
            let said = news(&before, &after);
            (input.document, input.before) = (after, before);
            let words = format!("Added to the document, not saved yet: {said}");
            Told { undo: true, tried: true, ..Told::notice(Tone::Good, &words) }
        }
        Err(Trouble::Field(pointer, words)) => Told::faults(Faults::one(pointer, words)),
        Err(Trouble::Document) => {
            Told::notice(Tone::Bad, "The rule was not added: mend the document's errors first.")
        }
        Err(Trouble::Conflict(problems)) => {
            let words = format!("The rule was not added: {}", sentence(&conflict(&problems)));
            Told::notice(Tone::Bad, &words)
        }
    }
}

/// The document with ten calls of the tool a minute for each grant, if it can say so.
pub(crate) fn limited(document: &str, tool: &str) -> Option<String> {
    let word = str::to_owned;
    let rule = build::Rule {
        tool: word(tool),
        kind: word("limit"),
        max: word("10"),
        window: word("minute"),
        scope: word("grant"),
        replace: String::new(),
    };
    add(document, &rule).ok()
}

/// The first sentence that the document did not say before.
pub(crate) fn news(before: &str, after: &str) -> String {
    let old = told(before);
    let new = told(after).into_iter().find(|rule| old.iter().all(|known| known.text != rule.text));
    new.map_or_else(|| "see the change below.".to_owned(), |rule| rule.text)
}

/// What somebody else saved since the editor was opened.
#[derive(Debug)]
struct Stale {
    words: String,
    change: Option<Diff>,
}

async fn stale(
    desk: &Desk<PolicyManager>,
    head: &PolicyHead,
    opened: &str,
) -> Result<Option<Stale>, Response> {
    // A form without its version was not made here; it must not overwrite what nobody saw.
    let opened: i64 = opened.parse().unwrap_or(0);
    let current = head.policy.version;
    if opened == current {
        return Ok(None);
    }
    let change = match desk.control.policy_version(desk.viewer(), head.policy.id, opened).await {
        Ok(version) => Some(Diff::new(
            &format!("The other change, from version {opened} to version {current}"),
            &version.document,
            &head.policy.document,
        )),
        Err(ControlError::NotFound(_)) => None,
        Err(other) => return Err(refuse(other)),
    };
    let words = format!(
        "Nothing was saved: somebody saved version {current} while you were writing. Their change is below, and your text is kept. Saving now puts yours in its place, so take over what you want to keep of theirs."
    );
    Ok(Some(Stale { words, change }))
}

async fn show(desk: Desk<PolicyManager>, subject: Subject, mut input: Input, told: Told) -> Answer {
    let stale = match &subject.head {
        Some(head) => stale(&desk, head, &input.version).await?,
        None => None,
    };
    let looked = review(&desk, &subject, &input.document, told.tried).await?;
    // The panels below begin with a tool and its sample.
    let document = input.document.clone();
    let trying = policy_try::Subject {
        server: subject.id,
        policy: None,
        document: &document,
        tools: &subject.tools,
    };
    policy_try::begin(&trying, &mut input.tries);
    let status = told.faults.status;
    let seen = Seen { told, stale, review: looked };
    let page = EditPage::new(desk.frame("policies").await?, subject, input, seen);
    Ok(page::private(status, &page))
}

/// The form's fields, read.
fn typed(fields: &FormFields) -> Result<Input, Response> {
    Input::read(fields).map_err(IntoResponse::into_response)
}

pub(crate) async fn edit(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Answer {
    let subject = existing(&desk, &id).await?;
    let input = subject.head.as_ref().map(|head| Input {
        name: head.policy.name.clone(),
        document: head.policy.document.clone(),
        version: head.policy.version.to_string(),
        ..Input::default()
    });
    let mut input = input.unwrap_or_default();
    if wanted.call.is_empty() {
        return show(desk, subject, input, Told::default()).await;
    }
    let replayed = replay(&desk, subject.id, &wanted.call, &subject.tools).await?;
    (input.tries, input.press) = (replayed.typed, "call".to_owned());
    let mut told = press(&desk, &subject, &mut input).await?;
    told.notice = Some(Flash::new(Tone::Good, &replayed.words));
    show(desk, subject, input, told).await
}

pub(crate) async fn save(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let mut input = typed(&fields)?;
    let subject = existing(&desk, &id).await?;
    let Some(head) =
        subject.head.as_ref().filter(|_| input.press == "save" && input.recommend.is_empty())
    else {
        let told = press(&desk, &subject, &mut input).await?;
        return show(desk, subject, input, told).await;
    };
    let expected: i64 = input.version.parse().unwrap_or(0);
    let saved =
        desk.control.save_policy(&desk.who, head.policy.id, Some(expected), input.form()).await;
    match saved {
        Ok(saved) => {
            let said = match (saved.changed, saved.warnings.len()) {
                (false, _) => "Saved. The document already said exactly this.".to_owned(),
                (true, 0) => format!(
                    "Saved version {} of `{}`. It holds from the next call on.",
                    saved.policy.version, saved.policy.name
                ),
                (true, _) => format!(
                    "Saved version {} of `{}`, with warnings. It holds from the next call on.",
                    saved.policy.version, saved.policy.name
                ),
            };
            Ok(flash::done(&head.path, &said))
        }
        Err(error @ ControlError::Stale { .. }) => {
            let mut told = Told::faults(Faults::of(error)?);
            // The notice with the other change says it.
            told.faults.general = None;
            // Read again: what is newest now may be newer than what was read above.
            let subject = existing(&desk, &id).await?;
            show(desk, subject, input, told).await
        }
        Err(error) => {
            let told = Told::faults(Faults::of(error)?);
            show(desk, subject, input, told).await
        }
    }
}

pub(crate) async fn new(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
) -> Answer {
    let subject = fresh(&desk, &id).await?;
    let name = subject.server.as_ref().map(|head| head.server.name.clone()).unwrap_or_default();
    let input = Input { document: start(&name, &subject.tools), ..Input::default() };
    show(desk, subject, input, Told::default()).await
}

pub(crate) async fn create(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let mut input = typed(&fields)?;
    let server: ServerId = id.parse().map_err(|_| absent("server"))?;
    if input.press != "save" || !input.recommend.is_empty() {
        let subject = fresh(&desk, &id).await?;
        let told = press(&desk, &subject, &mut input).await?;
        return show(desk, subject, input, told).await;
    }
    match desk.control.create_policy(&desk.who, server, input.form()).await {
        Ok(saved) => {
            let to = desk.path(&format!("/policies/{}", saved.policy.id));
            Ok(flash::done(
                &to,
                &format!(
                    "Created `{}`. Attach it to a grant to put it in force.",
                    saved.policy.name
                ),
            ))
        }
        Err(error) => {
            let told = Told::faults(Faults::of(error)?);
            let subject = fresh(&desk, &id).await?;
            show(desk, subject, input, told).await
        }
    }
}
