//! Writing a policy's JSON: checked, shown as a change and as sentences, then saved as a new version.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use sluice_control::{CallsOf, ControlError, PolicyForm, PolicyManager, Trials, TrialsOf};
use sluice_domain::{PolicyId, ServerId};
use sluice_policy::{Checked, ProblemSeverity, compile, sentences};
use sluice_web::Form;

use super::policy::{self, PolicyHead};
use super::server::{ServerHead, find};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Diff, Field, JsonText, LineMark, Sentence, Sentences};

const NEW: &str = "{\n  \"version\": \"1\",\n  \"default\": \"deny\",\n  \"tools\": {\n  }\n}\n";
/// Calls of the log that a changed document is tried on.
const TRIED: u32 = 200;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    name: String,
    #[serde(default)]
    document: String,
    #[serde(default)]
    note: String,
    /// The version that the editor was opened on.
    #[serde(default)]
    version: String,
    /// `check` or `save`.
    #[serde(default)]
    press: String,
}

/// What checking found, as the page shows it.
#[derive(Debug)]
struct Review {
    checked: Checked,
    marked: Option<JsonText>,
    change: Option<Diff>,
    sentences: Sentences,
    trials: Option<Trials>,
}

impl Review {
    fn headline(&self) -> String {
        let errors =
            self.checked.problems.iter().filter(|p| p.severity == ProblemSeverity::Error).count();
        let warnings = self.checked.problems.len() - errors;
        match (errors, warnings) {
            (0, 0) => "The document is valid.".to_owned(),
            (0, _) => format!("The document is valid, with {}.", count(warnings, "warning", None)),
            (_, 0) => format!("{} to mend before it can be saved.", count(errors, "error", None)),
            _ => format!(
                "{} to mend before it can be saved, and {}.",
                count(errors, "error", None),
                count(warnings, "warning", None)
            ),
        }
    }

    fn is_error(problem: &sluice_policy::Problem) -> bool {
        problem.severity == ProblemSeverity::Error
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_edit.html")]
struct EditPage {
    frame: WsFrame,
    head: Option<PolicyHead>,
    server: Option<ServerHead>,
    problem: Option<String>,
    stale: Option<Diff>,
    name: Field,
    document: Field,
    note: Field,
    version: i64,
    review: Option<Review>,
}

fn mark(severity: ProblemSeverity) -> LineMark {
    match severity {
        ProblemSeverity::Error => LineMark::Error,
        ProblemSeverity::Warning => LineMark::Warning,
    }
}

/// Browsers send line ends as CRLF; the document is kept with LF.
fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

async fn review(
    desk: &Desk<PolicyManager>,
    server: ServerId,
    before: Option<&str>,
    document: &str,
) -> Result<Review, Response> {
    let checked =
        desk.control.check_document(desk.viewer(), server, document).await.map_err(refuse)?;
    let marks: Vec<(u32, LineMark)> =
        checked.problems.iter().map(|p| (p.line, mark(p.severity))).collect();
    let told = compile(document).map(|compiled| sentences(compiled.document())).unwrap_or_default();
    let rows = told
        .into_iter()
        .map(|rule| Sentence { html: ticks(&rule.text), pointer: rule.pointer })
        .collect();
    let trials = match before {
        Some(_) if checked.ok => {
            let of = TrialsOf::Log { filter: Box::new(CallsOf::default()), limit: TRIED };
            match desk.control.simulate(desk.viewer(), server, document, of).await {
                Ok(trials) => Some(trials),
                Err(ControlError::Invalid(_)) => None,
                Err(other) => return Err(refuse(other)),
            }
        }
        _ => None,
    };
    Ok(Review {
        marked: (!marks.is_empty()).then(|| JsonText::new("Where", document, &marks)),
        change: before
            .map(|before| Diff::new("Change to the saved version", before, document))
            .filter(|diff| !diff.is_empty()),
        sentences: Sentences { rows },
        trials,
        checked,
    })
}

fn fields(input: &Input, faults: &Faults) -> (Field, Field, Field) {
    (
        Field::text("name", "Name")
            .value(input.name.clone())
            .required()
            .max(80)
            .error(faults.at("/name")),
        Field::area("document", "Document", 26)
            .value(input.document.clone())
            .hint(
                "JSON. The [language](/docs/policy) has a [schema](/docs/policy.schema.json)."
                    .replace("[language](/docs/policy)", "language")
                    .replace("[schema](/docs/policy.schema.json)", "JSON Schema under Docs"),
            )
            .code()
            .required(),
        Field::text("note", "Why")
            .value(input.note.clone())
            .hint("For the list of versions.")
            .max(500)
            .error(faults.at("/note")),
    )
}

async fn show_edit(
    desk: Desk<PolicyManager>,
    head: PolicyHead,
    input: Input,
    faults: Faults,
    stale: Option<Diff>,
    checks: bool,
) -> Answer {
    let (name, document, note) = fields(&input, &faults);
    let review = if checks {
        Some(
            review(&desk, head.policy.server_id, Some(&head.policy.document), &input.document)
                .await?,
        )
    } else {
        None
    };
    // The document's own problems are told by the review, line by line.
    let told = review.as_ref().is_some_and(|review| !review.checked.ok);
    let page = EditPage {
        frame: desk.frame("policies").await?,
        problem: faults.rest(&["/name", "/note"]).filter(|_| !told),
        stale,
        name,
        document,
        note,
        version: head.policy.version,
        review,
        head: Some(head),
        server: None,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn edit(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
) -> Answer {
    let head = policy::head(&desk, &id, "Edit").await?;
    let input = Input {
        name: head.policy.name.clone(),
        document: head.policy.document.clone(),
        ..Input::default()
    };
    show_edit(desk, head, input, Faults::none(), None, false).await
}

pub(crate) async fn save(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(mut input): Form<Input>,
) -> Answer {
    let head = policy::head(&desk, &id, "Edit").await?;
    input.document = unix(&input.document);
    if input.press != "save" {
        return show_edit(desk, head, input, Faults::none(), None, true).await;
    }
    // A form without its version was not made here; it must not overwrite what nobody saw.
    let expected: i64 = input.version.parse().unwrap_or(0);
    let form = PolicyForm {
        name: Some(input.name.clone()),
        document: input.document.clone(),
        note: input.note.clone(),
    };
    match desk.control.save_policy(&desk.who, head.policy.id, Some(expected), form).await {
        Ok(saved) => {
            let said = if saved.changed {
                format!(
                    "Saved version {} of `{}`. It holds from the next call on.",
                    saved.policy.version, saved.policy.name
                )
            } else {
                "Saved. The document already said exactly this.".to_owned()
            };
            Ok(flash::done(&head.path, &said))
        }
        Err(ControlError::Stale { current }) => {
            let theirs = theirs(&desk, head.policy.id, expected, &head.policy.document).await?;
            let faults = Faults {
                general: Some(format!(
                    "Nothing was saved: somebody saved version {current} while you were editing version {expected}. Their change is below; your text is kept. Save again to put yours on top of it."
                )),
                status: http::StatusCode::CONFLICT,
                ..Faults::default()
            };
            show_edit(desk, head, input, faults, theirs, true).await
        }
        Err(error) => show_edit(desk, head, input, Faults::of(error)?, None, true).await,
    }
}

/// What the other person changed.
async fn theirs(
    desk: &Desk<PolicyManager>,
    id: PolicyId,
    from: i64,
    now: &str,
) -> Result<Option<Diff>, Response> {
    match desk.control.policy_version(desk.viewer(), id, from).await {
        Ok(version) => Ok(Some(Diff::new("The other change", &version.document, now))),
        Err(ControlError::NotFound(_)) => Ok(None),
        Err(other) => Err(refuse(other)),
    }
}

async fn show_new(
    desk: Desk<PolicyManager>,
    id: &str,
    input: Input,
    faults: Faults,
    checks: bool,
) -> Answer {
    let server = find(&desk, id).await?.head(&desk, "Policies");
    let (name, document, note) = fields(&input, &faults);
    let review = if checks {
        Some(review(&desk, server.server.id, None, &input.document).await?)
    } else {
        None
    };
    let told = review.as_ref().is_some_and(|review| !review.checked.ok);
    let page = EditPage {
        frame: desk.frame("policies").await?,
        head: None,
        problem: faults.rest(&["/name", "/note"]).filter(|_| !told),
        stale: None,
        name,
        document,
        note,
        version: 0,
        review,
        server: Some(server),
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn new(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
) -> Answer {
    let input = Input { document: NEW.to_owned(), ..Input::default() };
    show_new(desk, &id, input, Faults::none(), false).await
}

pub(crate) async fn create(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(mut input): Form<Input>,
) -> Answer {
    let server: ServerId = id.parse().map_err(|_| absent("server"))?;
    input.document = unix(&input.document);
    if input.press != "save" {
        return show_new(desk, &id, input, Faults::none(), true).await;
    }
    let form = PolicyForm {
        name: Some(input.name.clone()),
        document: input.document.clone(),
        note: input.note.clone(),
    };
    match desk.control.create_policy(&desk.who, server, form).await {
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
        Err(error) => show_new(desk, &id, input, Faults::of(error)?, true).await,
    }
}
