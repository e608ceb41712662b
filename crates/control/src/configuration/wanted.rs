//! What the files ask for: the main file read into servers, policies and grants. Everything that can
//! be said of the files alone is checked here, all faults at once.

mod grant;
mod policy;
mod server;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{PolicyKind, Role, ServerSettings};

use super::MAIN;
use super::node;
use super::template::{Reference, Template};
use super::walk::{At, Fields, Here, Place};
use crate::codes;
use crate::error::Faults;
use crate::notices::checked_escalation;
use crate::{Fault, text};

/// What one main file and the files it names ask for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The workspace's shown name; `None`: it stays.
    pub(super) name: Option<At<String>>,
    /// The e-mail domains whose people may join; `None`: they stay.
    pub(super) join_domains: Option<Vec<(At<String>, Role)>>,
    /// The identity provider that members come by, or none; `None`: it stays.
    pub(super) provider: Option<At<Option<String>>>,
    /// When others are told of a call that nobody decided, or never; `None`: it stays.
    pub(super) escalate_after: Option<At<Option<TimeDelta>>>,
    pub(super) servers: Vec<WantedServer>,
}

#[derive(Debug)]
pub(super) struct WantedServer {
    pub(super) name: At<String>,
    pub(super) url: At<Template>,
    pub(super) headers: Vec<WantedHeader>,
    pub(super) settings: ServerSettings,
    pub(super) policies: Vec<WantedPolicy>,
    pub(super) grants: Vec<WantedGrant>,
}

#[derive(Debug)]
pub(super) struct WantedHeader {
    pub(super) name: String,
    pub(super) value: At<Template>,
}

#[derive(Debug)]
pub(super) struct WantedPolicy {
    pub(super) name: At<String>,
    pub(super) kind: PolicyKind,
    pub(super) document: Document,
}

/// A policy's text, and where it came from.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) text: String,
    pub(super) place: Place,
    /// The file of its own, if it has one.
    pub(super) file: Option<String>,
}

#[derive(Debug)]
pub(super) struct WantedGrant {
    pub(super) label: At<String>,
    pub(super) policy: Option<At<String>>,
    pub(super) expires_at: Option<At<DateTime<Utc>>>,
    pub(super) observe: bool,
    pub(super) networks: Vec<String>,
}

/// What a main file needs besides itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files of policies, relative to the main file.
    pub files: Vec<String>,
    /// Secrets that it names.
    pub references: Vec<Reference>,
}

/// The form in which names are the same.
pub(super) fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Reads the main file, with the texts of the files that it names.
pub(super) fn read(files: &BTreeMap<String, String>, faults: &mut Faults) -> Wanted {
    let Some(main) = files.get(MAIN) else {
        let detail = format!("there is no `{MAIN}` among the files");
        faults.push(Place::top().fault(codes::MISSING_FILE, detail));
        return Wanted::default();
    };
    match node::parse(main) {
        Ok(tree) => top(&Here::top(&tree), files, faults),
        Err(fault) => {
            faults.push(fault);
            Wanted::default()
        }
    }
}

/// What the main file names besides itself; empty where it cannot be read.
pub fn needs(main: &str) -> Needs {
    let mut faults = Faults::default();
    let Ok(tree) = node::parse(main) else { return Needs::default() };
    let wanted = top(&Here::top(&tree), &BTreeMap::new(), &mut faults);
    let mut needs = Needs::default();
    for server in &wanted.servers {
        let values = server.headers.iter().map(|header| &header.value);
        for template in values.chain([&server.url]) {
            needs.references.extend(template.value.references().cloned());
        }
        needs
            .files
            .extend(server.policies.iter().filter_map(|policy| policy.document.file.clone()));
    }
    needs.files.sort();
    needs.files.dedup();
    needs.references.sort();
    needs.references.dedup();
    needs
}

/// What the file may say of the workspace itself.
const WORKSPACE: [&str; 4] = ["name", "join_domains", "required_provider", "escalate_after"];

fn top(here: &Here<'_>, files: &BTreeMap<String, String>, faults: &mut Faults) -> Wanted {
    let fields = here.fields(&["sluice", "workspace", "servers"], faults);
    version(&fields, faults);
    let workspace = fields.get("workspace").map(|here| here.fields(&WORKSPACE, faults));
    let name = workspace
        .as_ref()
        .and_then(|fields| fields.text("name", faults)?.read(faults, |name| text::name("", name)));
    let join_domains = workspace.as_ref().and_then(|fields| join_domains(fields, faults));
    let provider = workspace.as_ref().and_then(|fields| {
        let text = fields.text("required_provider", faults)?;
        text.read(faults, |text| Ok((text != "none").then(|| text.to_owned())))
    });
    let escalate_after = workspace.as_ref().and_then(|fields| {
        let text = fields.text("escalate_after", faults)?;
        text.read(faults, |text| match text.as_str() {
            "never" => Ok(None),
            text => checked_escalation("", text::span("", text)?).map(Some),
        })
    });
    let servers = fields.list("servers", faults);
    let servers: Vec<_> =
        servers.iter().filter_map(|one| server::read(one, files, faults)).collect();
    once("server", servers.iter().map(|server| &server.name), faults);
    Wanted { name, join_domains, provider, escalate_after, servers }
}

fn join_domains(fields: &Fields<'_>, faults: &mut Faults) -> Option<Vec<(At<String>, Role)>> {
    let list = fields.get("join_domains")?.list(faults);
    let mut all = Vec::new();
    for here in list {
        let one = here.fields(&["domain", "role"], faults);
        let domain = one
            .need("domain", faults)
            .and_then(|domain| domain.read(faults, |domain| crate::join_domains::read("", domain)));
        let role = match one.text("role", faults) {
            None => Some(Role::Viewer),
            Some(word) => word
                .read(faults, |word| match word.parse::<Role>() {
                    Ok(role) => crate::join_domains::read_role("", role),
                    Err(_) => Err(Fault::new(
                        "",
                        codes::UNKNOWN_ROLE,
                        "the role is `viewer` or `policy_manager`",
                    )),
                })
                .map(|role| role.value),
        };
        if let (Some(domain), Some(role)) = (domain, role) {
            all.push((domain, role));
        }
    }
    once("domain", all.iter().map(|(domain, _)| domain), faults);
    if all.len() > crate::MAX_JOIN_DOMAINS {
        let detail = format!("there can be {} domains", crate::MAX_JOIN_DOMAINS);
        faults.push(fields.place.fault(codes::TOO_MANY, detail));
    }
    all.sort_by(|(a, _), (b, _)| a.value.cmp(&b.value));
    Some(all)
}

/// `sluice: 1` says which form the file has, so that a later form is not misread.
fn version(fields: &Fields<'_>, faults: &mut Faults) {
    let Some(here) = fields.get("sluice") else {
        let detail = "the first line is missing: `sluice: 1` says which form this file has";
        faults.push(fields.place.fault(codes::MISSING_FIELD, detail));
        return;
    };
    if here.json(faults).is_some_and(|version| version != 1) {
        let detail = "this version of Sluice reads files of the form 1: `sluice: 1`";
        faults.push(here.place.fault(codes::UNKNOWN_VERSION, detail));
    }
}

/// Notes names that stand twice, in whatever case.
fn once<'a>(what: &str, names: impl Iterator<Item = &'a At<String>>, faults: &mut Faults) {
    let mut seen: BTreeMap<String, &Place> = BTreeMap::new();
    for name in names {
        if let Some(first) = seen.get(&key(&name.value)) {
            let detail = format!(
                "there is a second {what} `{}`; the first is {}",
                name.value,
                first.words()
            );
            faults.push(name.place.fault(codes::DUPLICATE, detail));
            continue;
        }
        seen.insert(key(&name.value), &name.place);
    }
}

/// A name, as every name in Sluice may be.
fn named(fields: &Fields<'_>, field: &str, faults: &mut Faults) -> Option<At<String>> {
    fields.need(field, faults)?.read(faults, |name| text::name("", name))
}

/// A text with references.
fn template(text: &At<String>, faults: &mut Faults) -> Option<At<Template>> {
    text.read(faults, |text| {
        Template::parse(text).map_err(|words| Fault::new("", codes::BAD_REFERENCE, words))
    })
}
