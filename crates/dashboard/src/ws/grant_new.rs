//! Making a grant: the token is shown once, with configurations to paste and calls to try.

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::Deserialize;
use sluice_control::{Admin, GrantForm, Granted, Page, PolicyView, ToolView};
use sluice_domain::PolicyId;
use sluice_web::Form;

use super::apply::no_grant_yet;
use super::server::{ServerHead, find};
use super::try_it::TryPanel;
use crate::clients::Clients;
use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::page;
use crate::ui::{Field, Select, Steps, TokenBox};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    label: String,
    #[serde(default)]
    policy: Option<String>,
    /// Days, or empty for never.
    #[serde(default)]
    expires: String,
    #[serde(default)]
    networks: String,
    #[serde(default)]
    observe: String,
    /// The version that a press of the button has just saved.
    #[serde(default)]
    pressed: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/grant_new.html")]
struct NewPage {
    frame: WsFrame,
    head: ServerHead,
    problem: Option<String>,
    label: Field,
    policy: Select,
    expires: Select,
    networks: Field,
    observe: bool,
    more_open: bool,
    steps: Option<Steps>,
    /// The policy's address and the version of the press that can be taken back.
    undo: Option<(String, i64)>,
}

#[derive(Debug, Template)]
#[template(path = "ws/grant_token.html")]
pub(crate) struct TokenPage {
    pub(crate) frame: WsFrame,
    pub(crate) head: ServerHead,
    pub(crate) label: String,
    pub(crate) grant_path: String,
    pub(crate) policy: Option<(String, String)>,
    pub(crate) token: TokenBox,
    pub(crate) clients: Clients,
    pub(crate) panel: TryPanel,
}

async fn policies(desk: &Desk<Admin>, head: &ServerHead) -> Result<Vec<PolicyView>, Response> {
    let page = desk.control.policies(desk.viewer(), Some(head.server.id), Page::first(200)).await;
    page.map(|page| page.items).map_err(refuse)
}

fn policy_select(policies: &[PolicyView], chosen: Option<&str>, faults: &Faults) -> Select {
    let first = policies.first().map(|policy| policy.id.to_string()).unwrap_or_default();
    let chosen = chosen.map_or(first, str::to_owned);
    let mut options: Vec<(String, String)> = policies
        .iter()
        .map(|one| (one.id.to_string(), format!("{}, version {}", one.name, one.version)))
        .collect();
    options.push((String::new(), "None: every call is refused".to_owned()));
    let mut select = Select::new("policy", "Policy", options, &chosen)
        .hint("What the agent may call, and how often.");
    select.error = faults.at("/policy_id");
    select
}

const EXPIRY: [(&str, &str); 5] = [
    ("", "Never"),
    ("1", "In one day"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
];

async fn show(desk: Desk<Admin>, id: &str, input: Input, faults: Faults) -> Answer {
    let head = find(&desk, id).await?.head(&desk, "Grants");
    let policies = policies(&desk, &head).await?;
    let networks_fault = faults.at("/networks");
    let mut expires = Select::new("expires", "Expires", EXPIRY, &input.expires);
    expires.error = faults.at("/expires_at");
    let newcomer = !policies.is_empty() && no_grant_yet(&desk, head.server.id).await?;
    let pressed = policies.iter().find(|policy| {
        input.policy.as_deref() == Some(policy.id.to_string().as_str())
            && input.pressed == policy.version.to_string()
    });
    let undo = match pressed {
        Some(policy) if desk.control.can_undo(desk.viewer(), policy).await.map_err(refuse)? => {
            Some((desk.path(&format!("/policies/{}", policy.id)), policy.version))
        }
        _ => None,
    };
    let page = NewPage {
        frame: desk.frame("servers").await?,
        problem: faults.rest(&["/label", "/policy_id", "/expires_at", "/networks"]),
        label: Field::text("label", "Label")
            .value(input.label)
            .hint("The agent's name, as the log will show it.")
            .placeholder("support-bot")
            .required()
            .max(80)
            .focus()
            .error(faults.at("/label")),
        policy: policy_select(&policies, input.policy.as_deref(), &faults),
        expires,
        more_open: !input.networks.is_empty() || !input.observe.is_empty() || networks_fault.is_some(),
        networks: Field::area("networks", "Networks", 2)
            .value(input.networks)
            .hint("Addresses or networks that may use it, such as `10.0.0.0/8`, one a line. Empty: any.")
            .error(networks_fault),
        observe: !input.observe.is_empty(),
        undo,
        steps: newcomer.then(|| Steps::path(4, &head.server.name, &policies[0].name)),
        head,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn form(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    show(desk, &id, input, Faults::none()).await
}

/// Days from now; nothing typed is never.
fn expires_at(days: &str, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Faults> {
    if days.is_empty() {
        return Ok(None);
    }
    let days = days.parse().ok().filter(|days| (1..=3_650).contains(days));
    let at = days.and_then(|days| now.checked_add_signed(TimeDelta::days(days)));
    at.map(Some).ok_or_else(|| Faults::one("/expires_at", "Choose when the grant expires."))
}

/// Lines, or values parted by commas.
pub(crate) fn networks(text: &str) -> Vec<String> {
    text.split([',', '\n', '\r', ' '])
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The page that shows a token once.
pub(crate) async fn token_page(
    desk: Desk<Admin>,
    found: super::server::ServerTools,
    granted: Granted,
    title: &str,
) -> Answer {
    let head = found.head(&desk, "Grants");
    let secret = granted.token.expose_secret().to_owned();
    let grant = granted.grant;
    let grant_path = desk.path(&format!("/grants/{}", grant.id));
    let policy = match grant.policy_id {
        Some(id) => Some(desk.control.policy(desk.viewer(), id).await.map_err(refuse)?),
        None => None,
    };
    // The tool that a limit was put on is the one to try.
    let named = |tool: &&ToolView| {
        let policy =
            policy.as_ref().and_then(|policy| sluice_policy::compile(&policy.document).ok());
        policy.is_some_and(|policy| {
            policy.entry(&tool.name).is_some_and(|(_, entry)| !entry.limits.is_empty())
        })
    };
    let limited = found.tools.iter().find(named).map(|tool| tool.name.clone());
    let page = TokenPage {
        frame: desk.frame("servers").await?,
        label: grant.label,
        policy: policy.map(|policy| (desk.path(&format!("/policies/{}", policy.id)), policy.name)),
        token: TokenBox {
            title: title.to_owned(),
            token: secret.clone(),
            done: grant_path.clone(),
        },
        clients: Clients::new(&head.server.name, &head.server.proxy_url, &secret),
        panel: TryPanel::new(&head.server, &found.tools, limited.as_deref(), &secret, &desk.base),
        grant_path,
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn create(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<Input>,
) -> Answer {
    let found = find(&desk, &id).await?;
    let policy = match input.policy.as_deref().unwrap_or_default() {
        "" => None,
        text => {
            let Ok(policy) = text.parse::<PolicyId>() else {
                let faults = Faults::one("/policy_id", "This server has no such policy.");
                return show(desk, &id, input, faults).await;
            };
            Some(policy)
        }
    };
    let expires_at = match expires_at(&input.expires, desk.now) {
        Ok(at) => at,
        Err(faults) => return show(desk, &id, input, faults).await,
    };
    let form = GrantForm {
        label: input.label.clone(),
        policy,
        expires_at,
        observe: !input.observe.is_empty(),
        networks: networks(&input.networks),
    };
    match desk.control.create_grant(&desk.who, found.server.id, form).await {
        Ok(granted) => token_page(desk, found, granted, "The grant's token").await,
        Err(error) => show(desk, &id, input, Faults::of(error)?).await,
    }
}
