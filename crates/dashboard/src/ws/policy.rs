//! One policy: its rules as sentences, each with the calls it decided; the grants that follow it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use sluice_control::{GrantView, GrantsOf, Page, PolicyManager, PolicyView, Viewer};
use sluice_domain::PolicyId;
use sluice_policy::{compile, sentences};
use sluice_web::Form;

use super::Nothing;
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::next::encode;
use crate::page;
use crate::ui::text::ticks;
use crate::ui::{Code, Html, Tab, Tabs, Tone};

/// What every page of a policy begins with.
#[derive(Debug)]
pub(crate) struct PolicyHead {
    pub(crate) policy: PolicyView,
    pub(crate) server_name: String,
    /// `/w/{ws}/policies/{id}`
    pub(crate) path: String,
    pub(crate) server_path: String,
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
    if desk.access().role.at_least(sluice_domain::Role::PolicyManager) {
        tabs.push(tab("/edit", "Edit"));
    }
    tabs.extend([tab("/try", "Try a call"), tab("/versions", "Versions")]);
    Ok(PolicyHead {
        server_name: server.map(|server| server.name).unwrap_or_default(),
        server_path: desk.path(&format!("/servers/{}", policy.server_id)),
        tabs: Tabs { label: "Policy".to_owned(), tabs },
        path,
        policy,
    })
}

/// A rule as a sentence, with its calls.
#[derive(Debug)]
struct RuleRow {
    html: Html,
    pointer: String,
    calls: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/policy.html")]
struct PolicyPage {
    frame: WsFrame,
    head: PolicyHead,
    now: DateTime<Utc>,
    rules: Vec<RuleRow>,
    grants: Vec<GrantView>,
    document: Code,
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let head = head(&desk, &id, "Rules").await?;
    let policy = &head.policy;
    let of = GrantsOf { policy: Some(policy.id), ..GrantsOf::default() };
    let grants =
        desk.control.grants(desk.viewer(), of, Page::first(100)).await.map_err(refuse)?.items;
    let told = compile(&policy.document)
        .map(|compiled| sentences(compiled.document()))
        .unwrap_or_default();
    let row = |rule: sluice_policy::RuleSentence| RuleRow {
        html: ticks(&rule.text),
        calls: desk.path(&format!("/logs?policy={}&rule={}", policy.id, encode(&rule.pointer))),
        pointer: rule.pointer,
    };
    let page = PolicyPage {
        frame: desk.frame("policies").await?,
        now: desk.now,
        rules: told.into_iter().map(row).collect(),
        document: Code::json("The document, as saved", &policy.document),
        grants,
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn delete(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let head = head(&desk, &id, "Rules").await?;
    match desk.control.delete_policy(&desk.who, head.policy.id, None).await {
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
        Err(error) => {
            let said = sentence(&error.to_string());
            Faults::of(error)?;
            Ok(flash::redirect(&head.path, Tone::Bad, &said))
        }
    }
}
