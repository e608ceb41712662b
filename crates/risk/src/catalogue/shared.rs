//! What a workspace may give to the public catalogue: which addresses are public, which definitions hold nothing
//! private, and the record that is made of them. Whatever is in doubt stays at home.

use std::net::Ipv4Addr;

use serde_json::Value;
use sluice_domain::{ToolDefinition, looks_secret};

use super::registry::{MOST_TOOLS, Record};
use super::{AuthNeeded, EntryTransport, Identity, ServerEntry};
use crate::words::words;

words!(
    /// Why an address is not published.
    NotPublic {
        Scheme = "only an address that begins with https: is published",
        Parts = "an address with a user, a port, a query or a fragment is not published",
        Host = "the host is not a name of the public internet",
        HostKey = "the host's name may hold a key or the number of an account",
        Path = "the path may hold a key or the number of an account; only short paths of plain words are published",
    }
);

words!(
    /// Why a definition stays at home.
    Withheld {
        Credential = "it repeats a header that the server is sent",
        Name = "it names the workspace or the server",
        Key = "it holds something in the form of a key",
        Mail = "it holds an e-mail address",
        Inside = "it names an address inside a network",
        Long = "it is too long",
    }
);

/// What must not be told: words of the workspace.
#[derive(Clone, Default)]
pub struct Private {
    /// Values of upstream headers.
    pub values: Vec<String>,
    /// What the workspace and the server are called.
    pub names: Vec<String>,
}

impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Private")
    }
}

const MOST_SEGMENTS: usize = 4;
const MOST_WORD: usize = 20;
/// Endings of names that lead to nowhere public.
const INSIDE: &[&str] = &[
    "local",
    "localhost",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "test",
    "invalid",
    "onion",
    "arpa",
    "alt",
    "example",
];
/// One definition, and all of one server, as JSON.
const MOST_DEFINITION: usize = 64 * 1024;
const MOST_ALL: usize = 4 * 1024 * 1024;

/// The place in URLs of the record of a public address. It begins with `~`, as that of no registry's record does.
pub fn slug(address: &str) -> Result<String, NotPublic> {
    let rest = address.strip_prefix("https://").ok_or(NotPublic::Scheme)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if rest.contains(['?', '#', '@', '%', '\\']) || host.contains(':') {
        return Err(NotPublic::Parts);
    }
    check_host(host)?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut slug = format!("~{host}");
    if path.is_empty() {
        return Ok(slug);
    }
    for (at, segment) in path.split('/').enumerate() {
        if at == MOST_SEGMENTS || !is_plain(segment) {
            return Err(NotPublic::Path);
        }
        slug.push('~');
        slug.push_str(segment);
    }
    Ok(slug)
}

fn check_host(host: &str) -> Result<(), NotPublic> {
    let labels: Vec<&str> = host.split('.').collect();
    let fits = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let top = labels.last().copied().unwrap_or_default();
    let named = top.bytes().all(|b| b.is_ascii_lowercase()) || top.starts_with("xn--");
    if labels.len() < 2
        || host.len() > 200
        || !labels.iter().all(fits)
        || !named
        || INSIDE.contains(&top)
    {
        return Err(NotPublic::Host);
    }
    let digits = |label: &str| label.bytes().filter(u8::is_ascii_digit).count();
    let keyed = |label: &&str| {
        !label.starts_with("xn--")
            && (digits(label) > 3 || label.split('-').any(|word| word.len() > 24))
    };
    if labels.iter().any(keyed) { Err(NotPublic::HostKey) } else { Ok(()) }
}

/// Words of small letters, or a version such as `v2`.
fn is_plain(segment: &str) -> bool {
    let is_word = |word: &str| {
        let letters = word.trim_start_matches('v');
        let version = !letters.is_empty()
            && letters.len() <= 2
            && letters.bytes().all(|b| b.is_ascii_digit());
        let plain = !word.is_empty()
            && word.len() <= MOST_WORD
            && word.bytes().all(|b| b.is_ascii_lowercase());
        plain || version
    };
    segment.len() <= 2 * MOST_WORD && segment.split(['-', '_', '.']).all(is_word)
}

/// What can be published of a server's definitions, and how many stay at home.
pub fn published(
    definitions: &[ToolDefinition],
    host: &str,
    private: &Private,
) -> (Vec<ToolDefinition>, usize) {
    within(definitions, host, private, MOST_ALL)
}

fn within(
    definitions: &[ToolDefinition],
    host: &str,
    private: &Private,
    mut left: usize,
) -> (Vec<ToolDefinition>, usize) {
    let mut kept = Vec::new();
    for definition in definitions {
        let length = serde_json::to_string(definition).map_or(usize::MAX, |text| text.len());
        if kept.len() < MOST_TOOLS
            && length <= left
            && withheld(definition, host, private).is_none()
        {
            left -= length;
            kept.push(definition.clone());
        }
    }
    let withheld = definitions.len() - kept.len();
    (kept, withheld)
}

/// Why a definition stays at home; `None`: it can be published.
pub fn withheld(definition: &ToolDefinition, host: &str, private: &Private) -> Option<Withheld> {
    let whole = serde_json::to_value(definition).unwrap_or_default();
    if whole.to_string().len() > MOST_DEFINITION {
        return Some(Withheld::Long);
    }
    let mut texts = Vec::new();
    gather(&whole, &mut texts);
    let host = squeezed(host);
    let hidden = |text: &str| {
        let tight = squeezed(text);
        let holds = |secret: &str| tells(text, &tight, secret);
        if private.values.iter().any(|value| parts(value).any(&holds)) {
            return Some(Withheld::Credential);
        }
        // Whoever is called as the host is told by the host.
        let mut names = private.names.iter().filter(|name| !host.contains(&squeezed(name)));
        names.any(|name| holds(name)).then_some(Withheld::Name)
    };
    texts.iter().find_map(|text| hidden(text).or_else(|| looks_private(text)))
}

/// A header's value, and what stands behind `Bearer` or the like in it.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    let more = value.split([' ', ';', ',', '=', ':']).filter(|part| part.len() >= 6);
    std::iter::once(value.trim()).chain(more.map(str::trim))
}

/// Letters and digits alone, small: however a word is cut or spelt, it stays the same.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a text holds a word, or a short one as a word of its own.
fn tells(text: &str, tight: &str, secret: &str) -> bool {
    let wanted = squeezed(secret);
    match wanted.chars().count() {
        0 => false,
        1..=5 => words_of(text).any(|word| squeezed(&word) == wanted),
        _ => tight.contains(&wanted),
    }
}

/// Words as names of tools are made of them: cut at what is no letter or digit, and before a capital.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len());
    let mut small = false;
    for c in text.chars() {
        if small && c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        small = c.is_lowercase() || c.is_numeric();
    }
    spaced
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

fn looks_private(text: &str) -> Option<Withheld> {
    let edge = |c: char| c.is_whitespace() || "\"'`<>()[]{},;|".contains(c);
    for word in text.split(edge).filter(|word| !word.is_empty()) {
        let word = word.trim_end_matches(['.', ':', '!', '?']);
        if is_key(word) {
            return Some(Withheld::Key);
        }
        if is_mail(word) {
            return Some(Withheld::Mail);
        }
        if is_inside(word) {
            return Some(Withheld::Inside);
        }
    }
    None
}

/// A known form of token, a long run of letters and digits mixed, or a UUID.
fn is_key(word: &str) -> bool {
    let digit = word.bytes().any(|b| b.is_ascii_digit());
    let mixed = |run: &str| {
        run.len() >= 20
            && run.bytes().any(|b| b.is_ascii_digit())
            && run.bytes().any(|b| b.is_ascii_alphabetic())
    };
    let known = || {
        let words = word.split(|c: char| !c.is_ascii_alphanumeric()).all(|part| part.len() <= 8);
        // Its form is in how it begins; long names of tools have no such form.
        let start = word.get(..31).unwrap_or(word);
        digit && word.len() >= 12 && !words && looks_secret(start)
    };
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    word.starts_with("-----BEGIN") || runs.any(mixed) || is_uuid(word) || known()
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    groups.windows(5).any(|five| {
        let hex = |group: &str| group.bytes().all(|b| b.is_ascii_hexdigit());
        let inner = five[1..4].iter().all(|group| group.len() == 4 && hex(group));
        let (first, last) = (five[0], five[4]);
        inner
            && first.len() >= 8
            && last.len() >= 12
            && first.get(first.len() - 8..).is_some_and(hex)
            && last.get(..12).is_some_and(hex)
    })
}

fn is_mail(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else { return false };
    let name = name.trim_start_matches("mailto:");
    let made_up = ["example.com", "example.org", "example.net"];
    let host = host.to_lowercase();
    let free = made_up.contains(&host.as_str()) || host.ends_with(".example");
    !name.is_empty() && host.contains('.') && !free
}

/// A private address, or a host whose name ends as those inside do.
fn is_inside(word: &str) -> bool {
    let number = |part: &str| {
        part.trim_matches('.')
            .parse::<Ipv4Addr>()
            .is_ok_and(|ip| ip.is_private() || ip.is_link_local())
    };
    if word.split(|c: char| !(c.is_ascii_digit() || c == '.')).any(number) {
        return true;
    }
    let Some((_, rest)) = word.split_once("://") else { return false };
    let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let top = host.rsplit('.').next().unwrap_or_default();
    host != "localhost"
        && !["example", "test", "invalid"].contains(&top)
        && (INSIDE.contains(&top) || !host.contains('.'))
}

/// Every string, the names of members too, and every number.
fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                texts.push(name.clone());
                gather(member, texts);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The place of what workspaces gave at a record's address, where the record may speak for that address: it is one
/// of the starter set, or a registry proved the domain of its name, and the address lies under that domain.
pub fn joins(entry: &ServerEntry) -> Option<String> {
    let address = entry.upstream_url.as_deref()?;
    let slug = slug(address).ok()?;
    let host = address.trim_start_matches("https://").split('/').next().unwrap_or_default();
    let speaks = super::find(&entry.slug).is_some()
        || entry.identity == Identity::DomainProven && is_under(host, &entry.owner_name);
    speaks.then_some(slug)
}

/// `mcp.example.com` is under the domain of `com.example/notes`.
fn is_under(host: &str, owner_name: &str) -> bool {
    let Some((space, _)) = owner_name.split_once('/') else { return false };
    let labels: Vec<&str> = space.split('.').rev().collect();
    let domain = labels.join(".");
    let above = host.strip_suffix(domain.as_str());
    labels.len() > 1 && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// The record of a public address. It names nobody and nothing but the address and the tools.
pub fn record(address: &str, tools: Vec<ToolDefinition>, today: &str) -> Result<Record, NotPublic> {
    let slug = slug(address)?;
    let shown = address.trim_start_matches("https://").trim_end_matches('/');
    let host = shown.split('/').next().unwrap_or_default();
    let entry = ServerEntry {
        owner_name: shown.to_owned(),
        slug,
        title: host.to_owned(),
        summary: format!(
            "What the server at {shown} tells of its tools, given by a workspace that connected it."
        ),
        homepage: String::new(),
        repository: None,
        transport: EntryTransport::Http,
        upstream_url: Some(address.to_owned()),
        stdio_install: None,
        stdio_command: None,
        stdio_env: Vec::new(),
        auth_needed: AuthNeeded::Unknown,
        note: None,
        identity: Identity::Unverified,
        source: address.to_owned(),
        as_of: today.to_owned(),
        version: None,
        lifecycle: None,
        lifecycle_note: None,
        popular: false,
        tools_complete: false,
        tools,
    };
    Ok(Record { entry, updated_at: None, superseded: false, tells_tools: true })
}

#[cfg(test)]
mod tests;
