//! The versions of a policy: who saved what and why, what changed, and going back.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{ControlError, Page, PolicyManager, VersionView, Viewer};
use sluice_domain::PolicyId;
use sluice_policy::{compile, sentences};
use sluice_web::Form;

use super::Nothing;
use super::policy::{self, PolicyHead};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Code, Diff, Pager, Sentence, Sentences, Tone};

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<i64>,
}

/// `{id}` and `{version}` of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct VersionPath {
    id: String,
    version: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_versions.html")]
struct VersionsPage {
    frame: WsFrame,
    head: PolicyHead,
    now: DateTime<Utc>,
    rows: Vec<(VersionView, String)>,
    pager: Pager,
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_version.html")]
struct VersionPage {
    frame: WsFrame,
    path: String,
    name: String,
    version: VersionView,
    author: String,
    current: Option<i64>,
    sentences: Sentences,
    change: Option<Diff>,
    document: Code,
}

async fn author(
    desk: &Desk<Viewer>,
    id: Option<sluice_domain::UserId>,
) -> Result<String, axum::response::Response> {
    let members =
        desk.control.members(desk.viewer(), Page::first(500)).await.map_err(refuse)?.items;
    let found = members.into_iter().find(|member| Some(member.user_id) == id);
    Ok(found.map_or_else(|| "somebody who is no member now".to_owned(), |member| member.email))
}

pub(crate) async fn list(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    let head = policy::head(&desk, &id, "Versions").await?;
    let wanted = Page { after: input.after, limit: 50 };
    let page = desk
        .control
        .policy_versions(desk.viewer(), head.policy.id, wanted)
        .await
        .map_err(refuse)?;
    let members =
        desk.control.members(desk.viewer(), Page::first(500)).await.map_err(refuse)?.items;
    let name = |version: &VersionView| {
        let member = members.iter().find(|member| Some(member.user_id) == version.author);
        member.map_or_else(|| "no member now".to_owned(), |member| member.email.clone())
    };
    let path = format!("{}/versions", head.path);
    let page = VersionsPage {
        frame: desk.frame("policies").await?,
        now: desk.now,
        pager: Pager {
            words: count(page.items.len(), "version", None),
            previous: input.after.map(|_| path.clone()),
            next: page.next.map(|next| format!("{path}?after={next}")),
        },
        rows: page.items.into_iter().map(|version| (version.clone(), name(&version))).collect(),
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

/// One version, also of a deleted policy: the log leads here.
pub(crate) async fn show(desk: Desk<Viewer>, Path(path): Path<VersionPath>) -> Answer {
    let id: PolicyId = path.id.parse().map_err(|_| absent("policy"))?;
    let number: i64 = path.version.parse().map_err(|_| absent("version"))?;
    let (control, viewer) = (&desk.control, desk.viewer());
    let version = control.policy_version(viewer, id, number).await.map_err(refuse)?;
    let policy = match control.policy(viewer, id).await {
        Ok(policy) => Some(policy),
        Err(ControlError::NotFound(_)) => None,
        Err(other) => return Err(refuse(other)),
    };
    let before = match number {
        ..=1 => None,
        _ => control.policy_version(viewer, id, number - 1).await.ok(),
    };
    let told = compile(&version.document)
        .map(|compiled| sentences(compiled.document()))
        .unwrap_or_default();
    let rows =
        told.into_iter().map(|rule| Sentence { html: ticks(&rule.text), pointer: rule.pointer });
    let page = VersionPage {
        frame: desk.frame("policies").await?,
        path: desk.path(&format!("/policies/{id}")),
        name: policy
            .as_ref()
            .map_or_else(|| "Deleted policy".to_owned(), |policy| policy.name.clone()),
        current: policy.map(|policy| policy.version),
        author: author(&desk, version.author).await?,
        sentences: Sentences { rows: rows.collect() },
        change: before.map(|before| {
            Diff::new(
                &format!("Change from version {}", number - 1),
                &before.document,
                &version.document,
            )
        }),
        document: Code::json("The document, as saved", &version.document),
        version,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn restore(
    desk: Desk<PolicyManager>,
    Path(path): Path<VersionPath>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: PolicyId = path.id.parse().map_err(|_| absent("policy"))?;
    let number: i64 = path.version.parse().map_err(|_| absent("version"))?;
    let to = desk.path(&format!("/policies/{id}"));
    match desk.control.roll_back(&desk.who, id, None, number).await {
        Ok(saved) => {
            let said =
                format!("Version {number} is in force again, as version {}.", saved.policy.version);
            Ok(flash::done(&to, &said))
        }
        Err(error) => {
            let said = sentence(&error.to_string());
            Faults::of(error)?;
            Ok(flash::redirect(&to, Tone::Bad, &said))
        }
    }
}
