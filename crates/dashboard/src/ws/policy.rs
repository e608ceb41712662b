//! One policy: its rules as sentences, each with its line and the calls it decided; the grants that
//! follow it.

pub(super) mod compared;
pub(super) mod parts;
pub(super) mod places;
pub(super) mod trials;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use sluice_control::{
    ControlError, GrantView, GrantsOf, Page, PolicyManager, PolicyView, Undone, Viewer,
};
use sluice_domain::{PolicyId, Role};
use sluice_policy::{Mode, compile};
use sluice_web::FormFields;

use self::parts::{Numbered, Rules};
use super::policies::kind;
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::{Tab, Tabs};

/// What every page of a policy begins with.
#[derive(Debug)]
pub(crate) struct PolicyHead {
    pub(crate) policy: PolicyView,
    pub(crate) server_name: String,
    /// `/w/{ws}/policies/{id}`
    pub(crate) path: String,
    pub(crate) server_path: String,
    /// The log with the policy as its filter.
    pub(crate) logs: String,
    pub(crate) tabs: Tabs,
}

/// The policy of the path, with `current` as the open tab.
pub(crate) async fn head<P: AsViewer>(
    desk: &Desk<P>,
    id: &str,
    current: &str,
) -> Result<PolicyHead, Response> {
    let id: PolicyId = id.parse().map_err(|_| absent("policy"))?;
    let policy = desk.control.policy(desk.viewer(), id).await.map_err(refuse)?;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let server = names.into_iter().find(|one| one.id == policy.server_id);
    let path = desk.path(&format!("/policies/{id}"));
    let tab = |rest: &str, label: &str| Tab {
        href: format!("{path}{rest}"),
        label: label.to_owned(),
        current: current == label,
        count: None,
    };
    let mut tabs = vec![tab("", "Rules")];
    if desk.may(Role::PolicyManager) {
        tabs.push(tab("/edit", "Edit"));
    }
    tabs.extend([tab("/try", "Try"), tab("/versions", "Versions")]);
    Ok(PolicyHead {
        server_name: server.map(|server| server.name).unwrap_or_default(),
        server_path: desk.path(&format!("/servers/{}", policy.server_id)),
        logs: desk.path(&format!("/logs?policy={id}")),
        tabs: Tabs { label: "Policy".to_owned(), tabs },
        path,
        policy,
    })
}

#[derive(Debug, Template)]
#[template(path = "ws/policy.html")]
struct PolicyPage {
    frame: WsFrame,
    head: PolicyHead,
    now: DateTime<Utc>,
    problem: Option<String>,
    rules: Rules,
    observes: bool,
    /// The document's own word on what it is for.
    about: Option<String>,
    kind: &'static str,
    grants: Vec<GrantView>,
    document: Numbered,
    /// The newest version is a press of the button.
    can_undo: bool,
    /// What was typed to confirm the deletion.
    confirm: String,
}

async fn page<P: AsViewer>(
    desk: Desk<P>,
    head: PolicyHead,
    confirm: String,
    faults: Faults,
) -> Answer {
    let policy = &head.policy;
    let of = GrantsOf { policy: Some(policy.id), ..GrantsOf::default() };
    let grants =
        desk.control.grants(desk.viewer(), of, Page::first(100)).await.map_err(refuse)?.items;
    let compiled = compile(&policy.document).ok();
    let can_undo = desk.control.can_undo(desk.viewer(), policy).await.map_err(refuse)?;
    let page = PolicyPage {
        frame: desk.frame("policies").await?,
        now: desk.now,
        problem: faults.rest(&[]),
        rules: Rules::new(&policy.document, Some(&head.logs)),
        observes: compiled.as_ref().is_some_and(|compiled| compiled.mode() == Mode::Observe),
        about: compiled.and_then(|compiled| compiled.document().description.clone()),
        kind: kind(policy.kind),
        document: Numbered::new("The document, as saved", &policy.document, &[]),
        grants,
        can_undo,
        confirm,
        head,
    };
    Ok(page::private(faults.status, &page))
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let head = head(&desk, &id, "Rules").await?;
    page(desk, head, String::new(), Faults::none()).await
}

/// Takes back the press of the button that saved this version.
pub(crate) async fn undo(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let policy: PolicyId = id.parse().map_err(|_| absent("policy"))?;
    // A form without its version was not made here.
    let version = fields.get("version").parse().unwrap_or(0);
    match desk.control.undo_recommended(&desk.who, policy, version).await {
        Ok(Undone::Deleted) => {
            let said = "Undone: the policy that the press had made is gone.";
            Ok(flash::done(&desk.path("/policies"), said))
        }
        Ok(Undone::Back(policy) | Undone::Already(policy)) => {
            let to = desk.path(&format!("/policies/{}", policy.id));
            let said = format!("Undone: version {} says what it said before.", policy.version);
            Ok(flash::done(&to, &said))
        }
        Err(error) => {
            let head = head(&desk, &id, "Rules").await?;
            page(desk, head, String::new(), Faults::of(error)?).await
        }
    }
}

fn not_deleted(words: &str, status: StatusCode) -> Faults {
    Faults { general: Some(format!("Nothing was deleted: {words}")), status, ..Faults::default() }
}

pub(crate) async fn delete(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let head = head(&desk, &id, "Rules").await?;
    let confirm: String = fields.get("confirm").chars().take(200).collect();
    if confirm.trim() != head.policy.name {
        let words = "type the policy's name exactly to delete it.";
        return page(desk, head, confirm, not_deleted(words, StatusCode::UNPROCESSABLE_ENTITY))
            .await;
    }
    // A form without its version was not made here, and deletes nothing that nobody saw.
    let expected = fields.get("version").parse().unwrap_or(0);
    match desk.control.delete_policy(&desk.who, head.policy.id, Some(expected)).await {
        Ok(()) => {
            let to = format!("{}/policies", head.server_path);
            Ok(flash::done(
                &to,
                &format!(
                    "Deleted `{}`. Its versions stay readable from the log.",
                    head.policy.name
                ),
            ))
        }
        Err(ControlError::Stale { current }) => {
            let words =
                format!("somebody saved version {current} in the meantime. Look at it first.");
            page(desk, head, String::new(), not_deleted(&words, StatusCode::CONFLICT)).await
        }
        Err(error) => {
            let said = sentence(&error.to_string());
            let status = Faults::of(error)?.status;
            page(desk, head, confirm, not_deleted(&said, status)).await
        }
    }
}
