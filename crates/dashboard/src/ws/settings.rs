//! `/w/{ws}/settings`: the workspace's name and address.

use askama::Template;
use serde::Deserialize;
use sluice_control::Admin;
use sluice_web::Form;

use crate::desk::{Answer, Desk, WsFrame, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::Field;

#[derive(Debug, Template)]
#[template(path = "ws/settings.html")]
struct SettingsPage {
    frame: WsFrame,
    problem: Option<String>,
    name: Field,
    slug: Field,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    name: Option<String>,
    slug: Option<String>,
}

async fn page(desk: Desk<Admin>, input: Input, faults: &Faults) -> Answer {
    let (name, slug) = (desk.access().workspace_name.clone(), desk.access().slug.clone());
    let page = SettingsPage {
        problem: faults.rest(&["/name", "/slug"]),
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
