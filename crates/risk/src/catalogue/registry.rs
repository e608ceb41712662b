//! Records as MCP registries publish them (`GET /v0.1/servers`), read into our own shape. What comes in is
//! anybody's text: it is bounded and cleaned here, and escaped by whoever shows it. Tools' definitions
//! are kept as they are, since what is wrong with them is what we look for.

use serde_json::{Map, Value};
use sluice_domain::ToolDefinition;

use super::{AuthNeeded, EntryTransport, Identity, Lifecycle, ServerEntry};
use crate::words::words;

/// The registry whose names are proven: by a sign-in at GitHub, or by a key of the domain.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

const OFFICIAL_META: &str = "io.modelcontextprotocol.registry/official";
const MOST_NAME: usize = 200;
const MOST_TITLE: usize = 100;
const MOST_SUMMARY: usize = 400;
const MOST_URL: usize = 2_048;
const MOST_VERSION: usize = 64;
/// Tools of one record.
pub const MOST_TOOLS: usize = 2_000;
const MOST_TOOL_NAME: usize = 256;
/// One definition as JSON.
const MOST_DEFINITION: usize = 256 * 1024;
/// The cursor of the next page.
const MOST_CURSOR: usize = 2_048;

/// Where records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// A registry's address without a slash at the end, or a word.
    pub base: &'a str,
    /// It lets only the owners of a name publish under it.
    pub proves_names: bool,
    /// The day on which it was read.
    pub today: &'a str,
}

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub entry: ServerEntry,
    /// When the registry last changed it, as the registry wrote it.
    pub updated_at: Option<String>,
    /// The registry has a newer version under this name.
    pub superseded: bool,
    /// The record tells the tools; otherwise they are not known.
    pub tells_tools: bool,
}

/// One page of a registry's list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RegistryPage {
    pub records: Vec<Record>,
    /// Why some were left out.
    pub skipped: Vec<Skipped>,
    /// `None`: this was the last page.
    pub next: Option<String>,
}

words!(
    /// Why a record is left out.
    Skipped {
        NotAnObject = "it is not an object",
        NoName = "it has no name of the form `owner/name`",
    }
);

/// Why a page cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    #[error("the answer has no list `servers`")]
    NoServers,
    #[error("the answer's cursor is no text, or longer than {MOST_CURSOR} bytes")]
    Cursor,
}

/// Reads one page.
pub fn page(body: &[u8], origin: Origin<'_>) -> Result<RegistryPage, PageError> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| PageError::NotJson(error.to_string()))?;
    let servers = value.get("servers").and_then(Value::as_array).ok_or(PageError::NoServers)?;
    let next = match value.pointer("/metadata/nextCursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) if cursor.is_empty() => None,
        Some(Value::String(cursor)) if cursor.len() <= MOST_CURSOR => Some(cursor.clone()),
        Some(_) => return Err(PageError::Cursor),
    };
    let mut page = RegistryPage { next, ..RegistryPage::default() };
    for item in servers {
        match record(item, origin) {
            Ok(record) => page.records.push(record),
            Err(skipped) => page.skipped.push(skipped),
        }
    }
    Ok(page)
}

/// Reads one record: `{"server": {…}, "_meta": {…}, "tools": […]}`, or the server alone. The tools are
/// ours; registries do not tell them.
pub fn record(value: &Value, origin: Origin<'_>) -> Result<Record, Skipped> {
    let outer = value.as_object().ok_or(Skipped::NotAnObject)?;
    let server = match outer.get("server") {
        Some(server) => server.as_object().ok_or(Skipped::NotAnObject)?,
        None => outer,
    };
    let name = server.get("name").and_then(Value::as_str).filter(|name| is_name(name));
    let name = name.ok_or(Skipped::NoName)?;
    let meta = outer.get("_meta").and_then(|meta| meta.get(OFFICIAL_META));
    let said = |key: &str| meta.and_then(|meta| meta.get(key)).and_then(Value::as_str);
    let tools = outer.get("tools").or_else(|| server.get("tools")).and_then(Value::as_array);
    let text = |key: &str, most| server.get(key).and_then(Value::as_str).map(|it| clean(it, most));
    let version = text("version", MOST_VERSION).filter(|version| !version.is_empty());
    let source = source(origin, name, version.as_deref());
    let repository = server.get("repository").and_then(|it| it.get("url")).and_then(web_address);
    let homepage = server.get("websiteUrl").and_then(web_address);
    let reached = reached(server);
    let title = text("title", MOST_TITLE).filter(|title| !title.is_empty());
    let short = name.split_once('/').map_or(name, |(_, short)| short);
    let updated_at = said("updatedAt").or_else(|| said("publishedAt")).map(|it| clean(it, 40));
    let entry = ServerEntry {
        owner_name: name.to_owned(),
        slug: slug(name),
        title: title.unwrap_or_else(|| short.to_owned()),
        summary: text("description", MOST_SUMMARY).unwrap_or_default(),
        homepage: homepage.or_else(|| repository.clone()).unwrap_or_default(),
        repository,
        transport: reached.transport,
        upstream_url: reached.upstream_url,
        stdio_install: None,
        stdio_command: reached.command,
        stdio_env: reached.env,
        auth_needed: reached.auth,
        note: None,
        identity: identity(name, origin),
        source,
        as_of: updated_at.as_deref().and_then(day).unwrap_or(origin.today).to_owned(),
        version,
        lifecycle: lifecycle(said("status"), meta.is_some()),
        lifecycle_note: said("statusMessage").map(|it| clean(it, MOST_SUMMARY)),
        popular: false,
        tools_complete: tools.is_some(),
        tools: tools.map(|tools| definitions(tools)).unwrap_or_default(),
    };
    let latest = meta.and_then(|meta| meta.get("isLatest")).and_then(Value::as_bool);
    Ok(Record {
        entry,
        updated_at,
        superseded: latest == Some(false),
        tells_tools: tools.is_some(),
    })
}

/// A record's place in URLs. Two names never share one: `/` becomes `~`, which no name holds.
pub fn slug(name: &str) -> String {
    name.to_lowercase().replace('/', "~")
}

/// `owner/name` as registries take it: reverse domain name, slash, name.
pub fn is_name(name: &str) -> bool {
    let Some((owner, short)) = name.split_once('/') else { return false };
    let fits = |text: &str, more: &[char]| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
            && text.contains(|c: char| c.is_ascii_alphanumeric())
    };
    name.len() <= MOST_NAME && fits(owner, &['.', '-', '_']) && fits(short, &['.', '-', '_'])
}

/// Text on one line, without what cannot be seen, cut to `most` characters.
pub fn clean(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let visible = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    for c in visible.filter(|c| !is_unseen(*c)).take(most * 4) {
        if c != ' ' || !(shown.is_empty() || shown.ends_with(' ')) {
            shown.push(c);
        }
    }
    match shown.char_indices().nth(most) {
        Some((at, _)) => {
            shown.truncate(at);
            format!("{}…", shown.trim_end())
        }
        None => shown.trim_end().to_owned(),
    }
}

/// Control, formatting, tag and direction characters, and those that mean nothing outside one font.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || crate::text::is_invisible(c)
        || matches!(c, '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

/// `https` and `http` only; nobody's `javascript:`, and no user in it.
fn web_address(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || is_unseen(c) || "<>\"'`\\^{}|".contains(c);
    let fits = !host.is_empty() && !host.contains('@') && text.len() <= MOST_URL;
    (fits && !text.contains(odd)).then(|| text.to_owned())
}

/// The day of an RFC 3339 time.
fn day(time: &str) -> Option<&str> {
    let day = time.get(..10)?;
    let fits = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    fits.then_some(day)
}

fn source(origin: Origin<'_>, name: &str, version: Option<&str>) -> String {
    if !origin.base.starts_with("http") {
        return origin.base.to_owned();
    }
    let version = version.unwrap_or("latest");
    let plain = |text: &str| {
        text.replace('%', "%25").replace('/', "%2F").replace('+', "%2B").replace(' ', "%20")
    };
    format!("{}/v0.1/servers/{}/versions/{}", origin.base, plain(name), plain(version))
}

fn identity(name: &str, origin: Origin<'_>) -> Identity {
    match origin.proves_names {
        false => Identity::Unverified,
        true if name.to_lowercase().starts_with("io.github.") => Identity::GithubProven,
        true => Identity::DomainProven,
    }
}

/// A registry that says nothing of it lists what is alive; what comes from no registry has no such record.
fn lifecycle(status: Option<&str>, has_record: bool) -> Option<Lifecycle> {
    match status {
        Some("deprecated") => Some(Lifecycle::Deprecated),
        Some("deleted") => Some(Lifecycle::Deleted),
        Some("active") => Some(Lifecycle::Active),
        _ => has_record.then_some(Lifecycle::Active),
    }
}

struct Reached {
    transport: EntryTransport,
    upstream_url: Option<String>,
    command: Option<String>,
    env: Vec<String>,
    auth: AuthNeeded,
}

/// The first remote that can be connected as it stands, else the first package.
fn reached(server: &Map<String, Value>) -> Reached {
    let list = |key: &str| server.get(key).and_then(Value::as_array).into_iter().flatten();
    for remote in list("remotes") {
        if let Some(url) = remote.get("url").and_then(web_address) {
            return Reached {
                transport: EntryTransport::Http,
                upstream_url: Some(url),
                command: None,
                env: Vec::new(),
                auth: auth(remote),
            };
        }
    }
    let package = list("packages").find_map(|package| Some((package, command(package)?)));
    let env = package.iter().flat_map(|(package, _)| variables(package)).collect();
    Reached {
        transport: EntryTransport::Stdio,
        upstream_url: None,
        command: package.map(|(_, command)| command),
        env,
        auth: AuthNeeded::Unknown,
    }
}

/// A secret header is a token; a record without one does not say whether there is a sign-in.
fn auth(remote: &Value) -> AuthNeeded {
    let headers = remote.get("headers").and_then(Value::as_array);
    let secret = |header: &Value| {
        header.get("isSecret").and_then(Value::as_bool) == Some(true)
            || header
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| name.eq_ignore_ascii_case("authorization"))
    };
    match headers {
        Some(headers) if headers.iter().any(secret) => AuthNeeded::Token,
        _ => AuthNeeded::Unknown,
    }
}

/// The package runner's command. Nothing in it can be read by a shell as more than words.
fn command(package: &Value) -> Option<String> {
    let text = |key: &str| package.get(key).and_then(Value::as_str);
    let identifier = text("identifier").filter(|it| is_word(it))?;
    let version = text("version").filter(|it| is_word(it) && *it != "latest");
    let joined = |mark: &str| match version {
        Some(version) => format!("{identifier}{mark}{version}"),
        None => identifier.to_owned(),
    };
    match text("registryType")? {
        "npm" => Some(format!("npx -y {}", joined("@"))),
        "pypi" => Some(format!("uvx {}", joined("=="))),
        "oci" if identifier.rsplit('/').next().is_some_and(|last| last.contains([':', '@'])) => {
            Some(format!("docker run -i --rm {identifier}"))
        }
        "oci" => Some(format!("docker run -i --rm {}", joined(":"))),
        _ => None,
    }
}

fn is_word(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "@/._:+-".contains(c);
    !text.is_empty() && text.len() <= 256 && !text.starts_with('-') && text.chars().all(fits)
}

fn variables(package: &Value) -> Vec<String> {
    let fits = |name: &&str| {
        !name.is_empty()
            && name.len() <= 100
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let list = package.get("environmentVariables").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|it| it.get("name").and_then(Value::as_str))
        .filter(fits)
        .take(50)
        .map(str::to_owned)
        .collect()
}

/// What can be read of the tools: an odd member counts as absent, a second tool of a name is left out.
fn definitions(tools: &[Value]) -> Vec<ToolDefinition> {
    let mut names = std::collections::HashSet::new();
    tools
        .iter()
        .filter_map(definition)
        .filter(|tool| names.insert(tool.name.clone()))
        .take(MOST_TOOLS)
        .collect()
}

fn definition(entry: &Value) -> Option<ToolDefinition> {
    let name = entry.get("name").and_then(Value::as_str)?;
    let odd = name.is_empty() || name.len() > MOST_TOOL_NAME || name.chars().any(char::is_control);
    if odd || entry.to_string().len() > MOST_DEFINITION {
        return None;
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let object = |key: &str| entry.get(key).filter(|member| member.is_object()).cloned();
    Some(ToolDefinition {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        input_schema: object("inputSchema"),
        output_schema: object("outputSchema"),
        annotations: object("annotations"),
    })
}

#[cfg(test)]
mod tests;
