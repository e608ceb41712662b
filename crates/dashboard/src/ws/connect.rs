//! `/w/{ws}/servers/new`: connecting a server by its address, from the catalogue, or the example.

use askama::Template;
use axum::extract::Query;
use secrecy::SecretString;
use serde::Deserialize;
use sluice_control::{Admin, AuthForm, ServerForm, SettingsPatch};
use sluice_risk::catalogue::{AuthNeeded, bridge_command};
use sluice_web::Form;

use super::redirect;
use crate::catalogue::{self, CatalogueServer};
use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::next::{encode, segment};
use crate::page;
use crate::ui::text::count;
use crate::ui::{Bridge, Field, Steps};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) upstream_url: String,
    #[serde(default)]
    pub(crate) header_name: String,
    #[serde(default)]
    pub(crate) header_value: String,
    /// Slug of a catalogue server.
    #[serde(default)]
    pub(crate) server: String,
    /// The tool that is wanted of it.
    #[serde(default)]
    pub(crate) tool: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/connect.html")]
struct ConnectPage<'a> {
    frame: WsFrame,
    problem: Option<String>,
    fields: [Field; 4],
    more_open: bool,
    chosen: Option<&'a CatalogueServer>,
    bridge: Option<Bridge>,
    example: bool,
    popular: Vec<(&'static CatalogueServer, String)>,
    server: String,
    tool: String,
    steps: Option<Steps>,
}

impl ConnectPage<'_> {
    /// What to know before connecting.
    fn note(&self) -> Option<&str> {
        self.chosen.and_then(|server| server.entry.note.as_deref())
    }

    fn needs_key(&self) -> bool {
        self.chosen.is_some_and(|server| server.entry.auth_needed != AuthNeeded::None)
    }
}

/// The choice as a query, for links between pages of the path.
fn carried(input: &Input, slug: &str) -> String {
    let mut query = format!("?server={}", encode(slug));
    if !input.tool.is_empty() {
        query.push_str("&tool=");
        query.push_str(&encode(&input.tool));
    }
    query
}

fn steps(input: &Input, chosen: Option<&CatalogueServer>) -> Option<Steps> {
    if input.tool.is_empty() {
        return None;
    }
    let name = chosen.map_or("your server", |server| server.entry.owner_name.as_str());
    Some(Steps::path(2, name, &input.tool))
}

fn fields(input: &Input, faults: &Faults, chosen: Option<&CatalogueServer>) -> [Field; 4] {
    let hint = "Where the server speaks MCP over HTTP, such as `https://mcp.example.com/mcp`. It is tested as soon as you press Connect.";
    let key_fault = faults.at("/auth");
    let note = if chosen.is_some_and(|server| server.entry.auth_needed != AuthNeeded::None) {
        "This server wants one. It is stored encrypted and never shown again."
    } else {
        "It is stored encrypted and never shown again."
    };
    [
        Field::new("url", "upstream_url", "Upstream URL")
            .value(input.upstream_url.clone())
            .hint(hint)
            .placeholder("https://")
            .required()
            .max(2_000)
            .error(faults.at("/upstream_url")),
        Field::text("name", "Name")
            .value(input.name.clone())
            .hint("What you and the log call it.")
            .required()
            .max(80)
            .error(faults.at("/name")),
        Field::text("header_name", "Header")
            .value(input.header_name.clone())
            .hint("Such as `Authorization` or `X-Api-Key`.")
            .max(128),
        Field::new("password", "header_value", "Value")
            .hint(note)
            .complete("off")
            .max(8_192)
            .error(key_fault),
    ]
}

async fn show(desk: Desk<Admin>, mut input: Input, faults: Faults) -> Answer {
    let found = match input.server.as_str() {
        "" => None,
        slug => catalogue::find(&desk.control, slug).await.map_err(refuse)?,
    };
    let chosen = found.as_deref();
    let bridge = chosen.and_then(|server| bridge_command(&server.entry));
    if let Some(server) = chosen {
        let entry = &server.entry;
        let url =
            entry.upstream_url.as_ref().or(bridge.as_ref().map(|bridge| &bridge.upstream_url));
        if input.upstream_url.is_empty() {
            input.upstream_url = url.cloned().unwrap_or_default();
        }
        if input.name.is_empty() {
            input.name.clone_from(&entry.title);
        }
    }
    let shown = ["/name", "/upstream_url", "/auth"];
    let popular = catalogue::servers()
        .iter()
        .filter(|server| chosen.is_none_or(|chosen| chosen.entry.slug != server.entry.slug))
        .take(8)
        .map(|server| {
            (server, desk.path(&format!("/servers/new{}", carried(&input, &server.entry.slug))))
        })
        .collect();
    let page = ConnectPage {
        frame: desk.frame("servers").await?,
        problem: faults.rest(&shown),
        fields: fields(&input, &faults, chosen),
        more_open: !input.header_name.is_empty()
            || chosen.is_some_and(|server| server.entry.auth_needed != AuthNeeded::None),
        chosen,
        bridge: bridge.map(Bridge::from),
        example: desk.control.settings().example_url.is_some(),
        popular,
        steps: steps(&input, chosen),
        server: input.server,
        tool: input.tool,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn form(desk: Desk<Admin>, Query(input): Query<Input>) -> Answer {
    let input = Input { header_value: String::new(), ..input };
    show(desk, input, Faults::none()).await
}

/// The address `example` stands for the built-in server, whose port only the program knows.
fn address(desk: &Desk<Admin>, typed: &str) -> String {
    match (&desk.control.settings().example_url, typed.trim()) {
        (Some(example), "example") => example.to_string(),
        (_, typed) => typed.to_owned(),
    }
}

pub(crate) fn auth(name: &str, value: &str) -> AuthForm {
    if name.trim().is_empty() && value.is_empty() {
        return AuthForm::None;
    }
    AuthForm::Headers(vec![(name.trim().to_owned(), SecretString::from(value.to_owned()))])
}

pub(crate) async fn connect(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let server_form = ServerForm {
        name: input.name.clone(),
        upstream_url: address(&desk, &input.upstream_url),
        auth: auth(&input.header_name, &input.header_value),
        settings: SettingsPatch::default(),
    };
    let connected = match desk.control.connect(&desk.who, server_form).await {
        Ok(connected) => connected,
        Err(error) => return show(desk, input, Faults::of(error)?).await,
    };
    let path = desk.path(&format!("/servers/{}", connected.server.id));
    let name = &connected.server.name;
    match connected.read {
        Err(_) => {
            let to = format!("{path}/settings?tool={}", encode(&input.tool));
            Ok(redirect(&to))
        }
        Ok(report) => {
            let said = format!(
                "Connected `{name}`: {} read and rated.",
                count(report.added.len(), "tool", None)
            );
            Ok(after_read(&path, &input.tool, &report.added, &said))
        }
    }
}

/// On to the rule of the wanted tool, or to the tools, saying whether it is there.
pub(crate) fn after_read(
    path: &str,
    wanted: &str,
    tools: &[String],
    said: &str,
) -> axum::response::Response {
    if wanted.is_empty() {
        return flash::done(path, said);
    }
    if tools.iter().any(|name| name == wanted) {
        return flash::done(&format!("{path}/tools/{}/apply", segment(wanted)), said);
    }
    flash::done(&format!("{path}?wanted={}", encode(wanted)), said)
}
