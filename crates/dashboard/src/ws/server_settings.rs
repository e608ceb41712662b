//! A server's settings: address, credentials (which go in and never come out), and what is refused.

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use serde::Deserialize;
use sluice_control::catalogue::Publication;
use sluice_control::{Admin, ControlError, ServerView};
use sluice_domain::{ServerId, ServerSettings};
use sluice_web::FormFields;

use super::connect::after_read;
use super::server::{ServerHead, find};
use super::server_form::{FIELDS, HEADER_FIELDS, patch};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::{Field, Select};

/// Rows for headers that are not there yet.
const EMPTY_ROWS: usize = 2;

#[derive(Debug, Template)]
#[template(path = "ws/server_settings.html")]
struct SettingsPage {
    frame: WsFrame,
    head: ServerHead,
    problem: Option<String>,
    name: Field,
    url: Field,
    headers: Vec<HeaderRow>,
    headers_error: Option<String>,
    selects: Vec<Select>,
    checks: Vec<(&'static str, &'static str, &'static str, bool)>,
    publish: bool,
    publish_error: Option<String>,
    publication: Option<Publication>,
    numbers: Vec<Field>,
    tool: String,
    revision: i64,
}

/// One upstream header: its name, and whether a value is stored.
#[derive(Debug)]
struct HeaderRow {
    index: usize,
    name: String,
    stored: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    tool: String,
}

#[expect(clippy::too_many_lines, reason = "a table: one row a setting")]
fn selects(settings: &ServerSettings, typed: Option<&FormFields>, faults: &Faults) -> Vec<Select> {
    let value = |name: &str, stored: &'static str| {
        typed
            .map(|fields| fields.get(name))
            .filter(|text| !text.is_empty())
            .unwrap_or(stored)
            .to_owned()
    };
    let select =
        |name: &str, label: &str, options: Vec<(&str, &str)>, stored: &'static str, hint: &str| {
            let mut select = Select::new(name, label, options, &value(name, stored)).hint(hint);
            select.error = faults.at(&format!("/{name}"));
            select
        };
    vec![
        select(
            "transport",
            "Transport",
            vec![
                ("auto", "Automatic"),
                ("streamable_http", "Streamable HTTP"),
                ("sse", "HTTP+SSE (2024-11-05)"),
            ],
            settings.transport.as_str(),
            "How Sluice speaks to the server.",
        ),
        select(
            "unknown_tools",
            "Tools that its list does not name",
            vec![("deny", "Refuse"), ("by_policy", "Let the policy decide")],
            settings.unknown_tools.as_str(),
            "",
        ),
        select(
            "on_drift",
            "Tools whose definition changed",
            vec![
                ("allow_and_flag", "Allow and flag"),
                ("deny", "Refuse until somebody accepts the change"),
            ],
            settings.on_drift.as_str(),
            "",
        ),
        select(
            "validate_arguments",
            "Arguments that do not fit the input schema",
            vec![("off", "Not looked at"), ("log", "Noted in the log"), ("deny", "Refused")],
            settings.validate_arguments.as_str(),
            "",
        ),
        select(
            "methods",
            "Methods",
            vec![("spec", "Those of the MCP specification"), ("any", "Any")],
            settings.methods.as_str(),
            "",
        ),
        select(
            "resources",
            "Resources",
            vec![("allow", "Pass"), ("deny", "Refused")],
            settings.resources.as_str(),
            "",
        ),
        select(
            "prompts",
            "Prompts and completion",
            vec![("allow", "Pass"), ("deny", "Refused")],
            settings.prompts.as_str(),
            "",
        ),
    ]
}

fn checks(
    settings: &ServerSettings,
    typed: Option<&FormFields>,
) -> Vec<(&'static str, &'static str, &'static str, bool)> {
    [
        (
            "hold_poisoned",
            "Hold tools with signs of a poisoned definition",
            "They wait for review before agents see them.",
            settings.hold_poisoned,
        ),
        (
            "log_argument_values",
            "Keep argument values in the log",
            "Redacted by name and form. Otherwise only names and types are kept.",
            settings.log_argument_values,
        ),
    ]
    .map(|(name, label, hint, stored)| {
        let on = typed.map_or(stored, |fields| !fields.get(name).is_empty());
        (name, label, hint, on)
    })
    .to_vec()
}

fn numbers(settings: &ServerSettings, typed: Option<&FormFields>, faults: &Faults) -> Vec<Field> {
    [
        ("connect_timeout_s", "Seconds to connect", settings.connect_timeout_s, ""),
        (
            "idle_timeout_s",
            "Seconds of silence",
            settings.idle_timeout_s,
            "How long an answer may send nothing.",
        ),
        (
            "total_timeout_s",
            "Seconds in all",
            settings.total_timeout_s,
            "0: no bound, for streams.",
        ),
    ]
    .into_iter()
    .map(|(name, label, stored, hint)| {
        let value = typed.map_or_else(|| stored.to_string(), |fields| fields.get(name).to_owned());
        Field::new("number", name, label)
            .value(value)
            .hint(hint)
            .required()
            .error(faults.at(&format!("/{name}")))
    })
    .collect()
}

fn header_rows(server: &ServerView, typed: Option<&FormFields>) -> Vec<HeaderRow> {
    let names: Vec<String> = match typed {
        Some(fields) => {
            fields.all("header_name").map(str::to_owned).filter(|name| !name.is_empty()).collect()
        }
        None => server.header_names.clone(),
    };
    let stored =
        |name: &str| server.header_names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let empty = std::iter::repeat_n(String::new(), EMPTY_ROWS);
    names
        .into_iter()
        .chain(empty)
        .enumerate()
        .map(|(index, name)| HeaderRow { index, stored: stored(&name), name })
        .collect()
}

/// Faults that stand beside a field of the page.
const TOLD: [&str; 14] = [
    "/name",
    "/upstream_url",
    "/auth",
    "/transport",
    "/unknown_tools",
    "/on_drift",
    "/validate_arguments",
    "/methods",
    "/resources",
    "/prompts",
    "/publish_tools",
    "/connect_timeout_s",
    "/idle_timeout_s",
    "/total_timeout_s",
];

async fn page(
    desk: Desk<Admin>,
    id: &str,
    tool: &str,
    typed: Option<&FormFields>,
    faults: Faults,
) -> Answer {
    let found = find(&desk, id).await?;
    let head = found.head(&desk, "Settings");
    let (server, settings) = (&head.server, &head.server.settings);
    let text =
        |name: &str, stored: &str| typed.map_or(stored, |fields| fields.get(name)).to_owned();
    let check =
        |name: &str, stored: bool| typed.map_or(stored, |fields| !fields.get(name).is_empty());
    let headers_error = faults.at("/auth");
    let page = SettingsPage {
        frame: desk.frame("servers").await?,
        problem: faults.rest(&TOLD),
        name: Field::text("name", "Name")
            .value(text("name", &server.name))
            .required()
            .max(80)
            .error(faults.at("/name")),
        url: Field::new("url", "upstream_url", "Upstream URL")
            .value(text("upstream_url", &server.upstream_url))
            .required()
            .max(2_000)
            .error(faults.at("/upstream_url")),
        headers: header_rows(server, typed),
        headers_error,
        selects: selects(settings, typed, &faults),
        checks: checks(settings, typed),
        publish: check("publish_tools", settings.publish_tools),
        publish_error: faults.at("/publish_tools"),
        publication: desk.control.publication(desk.viewer(), server.id).await.map_err(refuse)?,
        numbers: numbers(settings, typed, &faults),
        tool: tool.to_owned(),
        revision: server.revision,
        head,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn show(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    page(desk, &id, &input.tool, None, Faults::none()).await
}

/// Saves, then reads the tools again: the address or the key is what most edits are about.
pub(crate) async fn save(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let server: ServerId = id.parse().map_err(|_| absent("server"))?;
    fields.only(&FIELDS, &HEADER_FIELDS).map_err(IntoResponse::into_response)?;
    let tool = fields.get("tool").to_owned();
    let (expected, patch) = match patch(&fields) {
        Ok(read) => read,
        Err(faults) => return page(desk, &id, &tool, Some(&fields), faults).await,
    };
    if let Err(error) = desk.control.edit_server(&desk.who, server, expected, patch).await {
        return page(desk, &id, &tool, Some(&fields), Faults::of(error)?).await;
    }
    match desk.control.refresh(&desk.who, server).await {
        Ok(_) => {
            let read = desk.control.tools(desk.viewer(), server).await.map_err(refuse)?;
            let listed: Vec<String> = read.into_iter().map(|one| one.name).collect();
            let back = desk.path(&format!("/servers/{server}"));
            Ok(after_read(
                &back,
                &tool,
                &listed,
                "Saved. The server answers and its tools were read.",
            ))
        }
        // The failure stands on the page, from the server's own record.
        Err(ControlError::Upstream { .. }) => {
            let to = desk
                .path(&format!("/servers/{server}/settings?tool={}", crate::next::encode(&tool)));
            Ok(flash::redirect(
                &to,
                crate::ui::Tone::Warn,
                "Saved, but the tools could not be read.",
            ))
        }
        Err(other) => Err(refuse(other)),
    }
}

pub(crate) async fn delete(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    fields: FormFields,
) -> Answer {
    let server: ServerId = id.parse().map_err(|_| absent("server"))?;
    let view = desk.control.server(desk.viewer(), server).await.map_err(refuse)?;
    if fields.get("confirm").trim() != view.name {
        let text = "Nothing was deleted: type the server's name exactly to delete it.";
        let faults = Faults::general(http::StatusCode::UNPROCESSABLE_ENTITY, text.to_owned());
        return page(desk, &id, "", None, faults).await;
    }
    desk.control.delete_server(&desk.who, server, None).await.map_err(refuse)?;
    Ok(flash::done(
        &desk.path("/servers"),
        &format!(
            "Deleted `{}`. Its credentials were wiped and its grants have stopped.",
            view.name
        ),
    ))
}
