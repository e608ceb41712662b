//! The versions of a policy: who saved what and why, what changed, and going back.

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{
    CallsOf, ControlError, MemberView, Page, PolicyManager, PolicyView, VersionView, Viewer,
};
use sluice_domain::{PolicyId, UserId};
use sluice_web::FormFields;

use super::policy::compared::OutcomesChanged;
use super::policy::parts::{Numbered, Rules, SaidChange};
use super::policy::{self, PolicyHead};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::count;
use crate::ui::{Diff, Pager, Tone};

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<String>,
}

/// `{id}` and `{version}` of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct VersionPath {
    id: String,
    version: String,
}

impl VersionPath {
    fn read(&self) -> Option<(PolicyId, i64)> {
        self.id.parse().ok().zip(self.version.parse().ok())
    }
}

/// One version of the list.
#[derive(Debug)]
struct Row {
    version: VersionView,
    author: String,
    /// What it says that the one before did not, and the other way round.
    change: Option<SaidChange>,
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_versions.html")]
struct VersionsPage {
    frame: WsFrame,
    head: PolicyHead,
    now: DateTime<Utc>,
    rows: Vec<Row>,
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
    /// The version in force; none of a deleted policy.
    current: Option<i64>,
    rules: Rules,
    change: Option<(SaidChange, Diff)>,
    /// What it does to recent calls that the version before did not, if that is asked for.
    outcomes: Option<OutcomesChanged>,
    document: Numbered,
}

impl VersionPage {
    fn may_restore(&self) -> bool {
        self.frame.is_manager()
            && self.current.is_some_and(|current| current != self.version.version)
    }
}

const ON_PAGE: u32 = 20;
/// Sentences of a change that the list shows.
const SAID: usize = 4;

async fn members(desk: &Desk<Viewer>) -> Result<Vec<MemberView>, Response> {
    let most = u32::try_from(desk.control.settings().bounds.members).unwrap_or(u32::MAX);
    Ok(desk.control.members(desk.viewer(), Page::first(most)).await.map_err(refuse)?.items)
}

fn author(members: &[MemberView], id: Option<UserId>) -> String {
    let found = members.iter().find(|member| Some(member.user_id) == id);
    found.map_or_else(|| "somebody who is no member now".to_owned(), |member| member.email.clone())
}

/// A version, where there is one.
async fn version(
    desk: &Desk<Viewer>,
    id: PolicyId,
    number: i64,
) -> Result<Option<VersionView>, Response> {
    match desk.control.policy_version(desk.viewer(), id, number).await {
        Ok(version) => Ok(Some(version)),
        Err(ControlError::NotFound(_)) => Ok(None),
        Err(other) => Err(refuse(other)),
    }
}

pub(crate) async fn list(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    let head = policy::head(&desk, &id, "Versions").await?;
    let after = input.after.and_then(|text| text.parse::<i64>().ok());
    let wanted = Page { after, limit: ON_PAGE };
    let found = desk
        .control
        .policy_versions(desk.viewer(), head.policy.id, wanted)
        .await
        .map_err(refuse)?;
    let members = members(&desk).await?;
    // The last one of the page is compared with the first of the next.
    let below = match (found.next, found.items.last()) {
        (Some(_), Some(last)) => version(&desk, head.policy.id, last.version - 1).await?,
        _ => None,
    };
    let older = found.items.iter().skip(1).cloned().map(Some).chain([below]);
    let rows = found.items.iter().cloned().zip(older).map(|(version, before)| Row {
        author: author(&members, version.author),
        change: before.map(|before| SaidChange::new(&before.document, &version.document, SAID)),
        version,
    });
    let path = format!("{}/versions", head.path);
    let page = VersionsPage {
        frame: desk.frame("policies").await?,
        now: desk.now,
        rows: rows.collect(),
        pager: Pager {
            words: count(found.items.len(), "version", None),
            previous: after.map(|_| path.clone()),
            next: found.next.map(|next| format!("{path}?after={next}")),
        },
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

/// On how many calls of the log versions are compared.
const COMPARED: u32 = 500;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Asked {
    /// `outcomes`: compare what the two versions do to recent calls.
    #[serde(default)]
    compare: String,
}

async fn outcomes(
    desk: &Desk<Viewer>,
    policy: &PolicyView,
    before: &VersionView,
    shown: &VersionView,
) -> Result<OutcomesChanged, Response> {
    let sides = (before.document.as_str(), shown.document.as_str());
    let (server, of) = (policy.server_id, CallsOf::default());
    let compared = desk.control.compare(desk.viewer(), server, sides, of, COMPARED).await;
    Ok(OutcomesChanged::new(compared.map_err(refuse)?, &desk.path("/logs")))
}

/// One version, also of a deleted policy: the log leads here.
pub(crate) async fn show(
    desk: Desk<Viewer>,
    Path(path): Path<VersionPath>,
    Query(asked): Query<Asked>,
) -> Answer {
    let (id, number) = path.read().ok_or_else(|| absent("version"))?;
    let shown = desk.control.policy_version(desk.viewer(), id, number).await.map_err(refuse)?;
    let policy = match desk.control.policy(desk.viewer(), id).await {
        Ok(policy) => Some(policy),
        Err(ControlError::NotFound(_)) => None,
        Err(other) => return Err(refuse(other)),
    };
    let before = if number > 1 { version(&desk, id, number - 1).await? } else { None };
    let outcomes = match (&policy, &before) {
        (Some(policy), Some(before)) if asked.compare == "outcomes" => {
            Some(outcomes(&desk, policy, before, &shown).await?)
        }
        _ => None,
    };
    let change = before.map(|before| {
        let label = format!("Change from version {}", before.version);
        let said = SaidChange::new(&before.document, &shown.document, usize::MAX);
        (said, Diff::new(&label, &before.document, &shown.document))
    });
    let logs = desk.path(&format!("/logs?policy={id}"));
    let page = VersionPage {
        frame: desk.frame("policies").await?,
        path: desk.path(&format!("/policies/{id}")),
        name: policy
            .as_ref()
            .map_or_else(|| "Deleted policy".to_owned(), |policy| policy.name.clone()),
        current: policy.map(|policy| policy.version),
        author: author(&members(&desk).await?, shown.author),
        rules: Rules::new(&shown.document, Some(&logs)),
        change,
        outcomes,
        document: Numbered::new("The document, as saved", &shown.document, &[]),
        version: shown,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn restore(
    desk: Desk<PolicyManager>,
    Path(path): Path<VersionPath>,
    fields: FormFields,
) -> Answer {
    let (id, number) = path.read().ok_or_else(|| absent("version"))?;
    let to = desk.path(&format!("/policies/{id}"));
    // A form without the version in force was not made here, and undoes nothing that nobody saw.
    let expected = fields.get("current").parse().unwrap_or(0);
    match desk.control.roll_back(&desk.who, id, Some(expected), number).await {
        Ok(saved) if saved.changed => {
            let said =
                format!("Version {number} holds again, as version {}.", saved.policy.version);
            Ok(flash::done(&to, &said))
        }
        Ok(_) => Ok(flash::done(
            &to,
            &format!("The policy already says exactly what version {number} says."),
        )),
        Err(ControlError::Stale { current }) => {
            let said = format!(
                "Nothing was restored: somebody saved version {current} in the meantime. Look at it first."
            );
            Ok(flash::redirect(&format!("{to}/versions"), Tone::Bad, &said))
        }
        Err(error) => {
            let said = sentence(&error.to_string());
            Faults::of(error)?;
            Ok(flash::redirect(
                &format!("{to}/versions/{number}"),
                Tone::Bad,
                &format!("Nothing was restored: {said}"),
            ))
        }
    }
}
