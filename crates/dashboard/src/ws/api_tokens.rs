//! `/w/{ws}/api-tokens`: REST tokens.

use askama::Template;
use axum::extract::Path;
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::ExposeSecret;
use serde::Deserialize;
use sluice_control::{Admin, ApiTokenForm, ApiTokenView, Page};
use sluice_domain::{ApiTokenId, Role};
use sluice_web::Form;

use super::Nothing;
use crate::desk::{Answer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::ticks;
use crate::ui::{Empty, Field, Select, TokenBox};

const ALL: u32 = 1_000;

#[derive(Debug, Template)]
#[template(path = "ws/api_tokens.html")]
struct ApiTokensPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    rows: Vec<ApiTokenView>,
    empty: Empty,
    problem: Option<String>,
    label: Field,
    selects: [Select; 2],
    made: Option<TokenBox>,
}

impl ApiTokensPage {
    fn state(&self, token: &ApiTokenView) -> &'static str {
        if token.revoked_at.is_some() {
            "Revoked"
        } else if token.expires_at.is_some_and(|at| at <= self.now) {
            "Expired"
        } else {
            "Live"
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    label: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    days: String,
}

fn chosen<'a>(typed: &'a str, or: &'a str) -> &'a str {
    if typed.is_empty() { or } else { typed }
}

async fn show(desk: Desk<Admin>, input: &Input, faults: &Faults, made: Option<TokenBox>) -> Answer {
    let rows = desk.control.api_tokens(&desk.who, Page::first(ALL)).await.map_err(refuse)?.items;
    let roles = [
        (Role::Viewer.as_str(), "Viewer"),
        (Role::PolicyManager.as_str(), "Policy manager"),
        (Role::Admin.as_str(), "Admin"),
    ];
    let days = [("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("0", "Never")];
    let mut expires = Select::new("days", "Expires after", days, chosen(&input.days, "90"));
    expires.error = faults.at("/expires_at");
    let mut role = Select::new("role", "Role", roles, chosen(&input.role, "viewer"))
        .hint("It never does more than you may.");
    role.error = faults.at("/role");
    let page = ApiTokensPage {
        frame: desk.frame("api-tokens").await?,
        now: desk.now,
        rows,
        empty: Empty {
            title: "No API token yet".to_owned(),
            text: ticks(
                "A token lets a script do over REST what its role may do here. `/docs/api` shows every call.",
            ),
            action: None,
        },
        problem: faults.rest(&["/label", "/role", "/expires_at"]),
        label: Field::text("label", "Label")
            .value(input.label.clone())
            .hint("What uses it, such as `terraform`.")
            .required()
            .max(80)
            .error(faults.at("/label")),
        selects: [role, expires],
        made,
    };
    Ok(page::private(status(faults), &page))
}

pub(crate) async fn list(desk: Desk<Admin>) -> Answer {
    show(desk, &Input::default(), &Faults::none(), None).await
}

pub(crate) async fn create(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let Ok(role) = input.role.parse::<Role>() else {
        return show(desk, &input, &Faults::one("/role", "Choose a role."), None).await;
    };
    let expires_at = match input.days.parse::<i64>() {
        Ok(0) => None,
        Ok(days @ 1..=3_650) => desk.now.checked_add_signed(TimeDelta::days(days)),
        _ => {
            let faults = Faults::one("/expires_at", "Choose when the token expires.");
            return show(desk, &input, &faults, None).await;
        }
    };
    let form = ApiTokenForm { label: input.label.clone(), role, expires_at };
    match desk.control.create_api_token(&desk.who, form).await {
        Ok(made) => {
            let made = TokenBox {
                title: format!("Token `{}`", made.view.label),
                token: made.token.expose_secret().to_owned(),
                done: desk.path("/api-tokens"),
            };
            show(desk, &Input::default(), &Faults::none(), Some(made)).await
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            show(desk, &input, &faults, None).await
        }
    }
}

pub(crate) async fn revoke(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: ApiTokenId = id.parse().map_err(|_| absent("API token"))?;
    desk.control.revoke_api_token(&desk.who, id).await.map_err(refuse)?;
    Ok(flash::done(&desk.path("/api-tokens"), "Revoked the token. It is refused from now on."))
}
