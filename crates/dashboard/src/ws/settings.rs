//! `/w/{ws}/settings`: the workspace's name and address, how much it has, handing it over, its end.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sluice_control::{Admin, Page, RequiredProvider, WorkspaceCard};
use sluice_domain::{Role, UserId};
use sluice_web::Form;

use super::join_domains::{self, JoinPart};
use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::{Field, Select};

/// Bounds of a workspace are below this.
const ALL: u32 = 1_000;
/// What the one who hands a workspace over does then, as the form says it.
const LEAVE: &str = "leave";

#[derive(Debug, Template)]
#[template(path = "ws/settings.html")]
struct SettingsPage {
    frame: WsFrame,
    problem: Option<String>,
    name: Field,
    slug: Field,
    card: WorkspaceCard,
    /// Absent where nobody else is a member.
    member: Option<Select>,
    stay: Select,
    confirm: Field,
    /// Absent where no provider is set up and none is asked for.
    provider: Option<Select>,
    join: JoinPart,
}

impl SettingsPage {
    /// What there is of each, and how much there may be.
    fn amounts(&self) -> [(&'static str, (i64, i64)); 5] {
        let card = &self.card;
        [
            ("Servers", card.servers),
            ("Policies", card.policies),
            ("Live grants", card.grants),
            ("Members", card.members),
            ("Live API tokens", card.api_tokens),
        ]
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    name: Option<String>,
    slug: Option<String>,
    #[serde(default)]
    member: String,
    #[serde(default)]
    stay: String,
    #[serde(default)]
    confirm: String,
    provider: Option<String>,
    #[serde(default)]
    pub(super) domain: String,
    #[serde(default)]
    pub(super) role: String,
}

pub(super) async fn page(desk: Desk<Admin>, input: Input, faults: &Faults) -> Answer {
    let (name, slug) = (desk.access().workspace_name.clone(), desk.access().slug.clone());
    let control = &desk.control;
    let own = desk.access().actor.user;
    let members = control.members(desk.viewer(), Page::first(ALL)).await.map_err(refuse)?.items;
    let others: Vec<_> = members
        .into_iter()
        .filter(|member| member.user_id != own && !member.disabled)
        .map(|member| (member.user_id.to_string(), member.email))
        .collect();
    let member = (!others.is_empty()).then(|| {
        let mut select = Select::new("member", "New admin", others, &input.member);
        select.error = faults.at("/member");
        select
    });
    let stays = [
        (Role::Admin.as_str(), "Stay an admin"),
        (Role::PolicyManager.as_str(), "Become a policy manager"),
        (Role::Viewer.as_str(), "Become a viewer"),
        (LEAVE, "Leave the workspace"),
    ];
    let provider = provider(&desk, input.provider.as_deref(), faults).await?;
    let join = join_domains::part(&desk, &input, faults).await?;
    let told = ["/name", "/slug", "/member", "/confirm", "/provider", "/domain", "/role"];
    let page = SettingsPage {
        provider,
        join,
        problem: faults.rest(&told),
        card: control.workspace_card(desk.viewer()).await.map_err(refuse)?,
        member,
        stay: Select::new("stay", "And you", stays, &input.stay),
        confirm: Field::text("confirm", &format!("Type {slug} to confirm"))
            .value(input.confirm)
            .complete("off")
            .required()
            .max(48)
            .error(faults.at("/confirm")),
        name: Field::text("name", "Name")
            .value(input.name.unwrap_or(name))
            .required()
            .max(80)
            .error(faults.at("/name")),
        slug: Field::text("slug", "Address")
            .value(input.slug.unwrap_or(slug))
            .hint(format!(
                "Pages are at `{}/w/…`. The old address goes on leading here.",
                desk.base
            ))
            .required()
            .max(48)
            .error(faults.at("/slug")),
        frame: desk.frame("settings").await?,
    };
    Ok(page::private(status(faults), &page))
}

/// How members may sign in, if there is a choice.
async fn provider(
    desk: &Desk<Admin>,
    typed: Option<&str>,
    faults: &Faults,
) -> Result<Option<Select>, Response> {
    let required = desk.control.required_provider(desk.viewer()).await.map_err(refuse)?;
    let mut options = vec![(String::new(), "In any way".to_owned())];
    let providers = desk.control.providers().iter();
    options.extend(providers.map(|one| (one.name.clone(), format!("By {} alone", one.label))));
    let now = match required {
        Some(RequiredProvider { provider: Some((name, _)), .. }) => name,
        // What is set up no more is told, and is changed by choosing anew.
        Some(RequiredProvider { issuer, provider: None }) => {
            options.push((issuer.clone(), format!("By {issuer} alone")));
            issuer
        }
        None => String::new(),
    };
    if options.len() == 1 {
        return Ok(None);
    }
    let mut select = Select::new("provider", "Members sign in", options, typed.unwrap_or(&now));
    select.error = faults.at("/provider");
    Ok(Some(select))
}

pub(crate) async fn require_provider(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let name = input.provider.as_deref().filter(|name| !name.is_empty());
    match desk.control.require_provider(&desk.who, name).await {
        Ok(()) => Ok(flash::done(&desk.path("/settings"), "Saved how members sign in.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}

pub(crate) async fn show(desk: Desk<Admin>) -> Answer {
    page(desk, Input::default(), &Faults::none()).await
}

pub(crate) async fn rename(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let name = input.name.clone().unwrap_or_default();
    match desk.control.rename_workspace(&desk.who, &name).await {
        Ok(()) => Ok(flash::done(&desk.path("/settings"), "Saved the name.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}

pub(crate) async fn slug(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let slug = input.slug.clone().unwrap_or_default();
    match desk.control.change_slug(&desk.who, &slug).await {
        Ok(()) => Ok(flash::done(&format!("/w/{}/settings", slug.trim()), "Changed the address.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}

pub(crate) async fn hand_over(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let Ok(to) = input.member.parse::<UserId>() else {
        return page(desk, input, &Faults::one("/member", "Choose a member.")).await;
    };
    let stay = match (input.stay.as_str(), input.stay.parse::<Role>()) {
        (LEAVE, _) => None,
        (_, Ok(role)) => Some(role),
        (_, Err(_)) => {
            let text = "Choose what becomes of you.".to_owned();
            let faults = Faults::general(http::StatusCode::UNPROCESSABLE_ENTITY, text);
            return page(desk, input, &faults).await;
        }
    };
    match desk.control.hand_over_workspace(&desk.who, to, stay).await {
        Ok(()) => {
            let text = format!("Handed `{}` over.", desk.access().workspace_name);
            let to = if stay.is_none() { "/account".to_owned() } else { desk.path("/members") };
            Ok(flash::done(&to, &text))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}

pub(crate) async fn delete(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    match desk.control.delete_workspace(&desk.who, &input.confirm).await {
        Ok(erased_at) => {
            let text = format!(
                "Deleted `{}`. Its grants have stopped. You can restore it until {}.",
                desk.access().workspace_name,
                erased_at.format("%Y-%m-%d %H:%M UTC")
            );
            Ok(flash::done("/account", &text))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}
