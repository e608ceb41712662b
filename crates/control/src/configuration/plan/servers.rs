//! Servers: references looked up, addresses checked, what differs.

use secrecy::{ExposeSecret, SecretString};
use sluice_domain::{ObjectKind, ServerSettings};
use sluice_vault::UpstreamHeaders;
use url::Url;

use super::super::current::{CurrentServer, named_settings, server_state};
use super::super::step::Step;
use super::super::template::{Filled, Reference, Template};
use super::super::walk::At;
use super::super::wanted::{Wanted, WantedServer, key};
use super::{Action, FieldChange, Item, PlannedChange, Planner, field};
use crate::codes;
use crate::servers::{headers, masked};
use crate::{AuthForm, ControlError, MASK, ServerForm, ServerPatch, SettingsPatch};

/// A wanted server with its secrets in place.
struct Filling {
    url: String,
    headers: Vec<(String, SecretString)>,
    /// Some value is the stored one, because its reference is not set here.
    kept_header: bool,
    notes: Vec<String>,
}

impl<'a> Planner<'a> {
    pub(super) async fn server(
        &mut self,
        wanted: &WantedServer,
        all: &Wanted,
    ) -> Result<(), ControlError> {
        let found = self.find_server(wanted, all);
        if let Some(found) = found {
            self.named.insert(found.row.id.uuid());
        }
        if let Some(filling) = self.fill(wanted, found).await {
            let item = match found {
                None => self.new_server(wanted, filling),
                Some(found) => self.known_server(wanted, found, filling),
            };
            self.items.push(item);
        }
        self.policies(wanted, found).await?;
        self.grants(wanted, found);
        Ok(())
    }

    /// By its name; else the one that was applied under this name and renamed since.
    fn find_server(&self, wanted: &WantedServer, all: &Wanted) -> Option<&'a CurrentServer> {
        let (name, current) = (&wanted.name.value, self.current);
        current.server(name).or_else(|| {
            let left = current.applied(ObjectKind::Server, &key(name))?;
            let found = current.servers.iter().find(|one| one.row.id.uuid() == left.object_id)?;
            let taken = all.servers.iter().any(|one| key(&one.name.value) == key(&found.row.name));
            (!taken).then_some(found)
        })
    }

    async fn fill(
        &mut self,
        wanted: &WantedServer,
        found: Option<&CurrentServer>,
    ) -> Option<Filling> {
        let mut notes = Vec::new();
        let stored = found.map(|found| found.row.upstream_url.as_str());
        let url = self.value(&wanted.url, stored, &mut notes).map(|(url, _)| url);
        let url = match url {
            Some(url) => self.address(&wanted.url, url.expose_secret(), stored).await,
            None => None,
        };
        let (mut pairs, mut kept, mut whole) = (Vec::new(), None, true);
        for header in &wanted.headers {
            let stored = found.and_then(|found| behind(&found.headers, &header.name));
            let Some((value, was_kept)) = self.value(&header.value, stored, &mut notes) else {
                whole = false;
                continue;
            };
            pairs.push((header.name.clone(), value));
            if was_kept {
                kept = kept.or(Some(&header.value));
            }
            if let Err(fault) = headers::new(&AuthForm::Headers(pairs.clone())) {
                self.faults.push(header.value.place.adopt(fault));
                pairs.pop();
                whole = false;
            }
        }
        let url = url?;
        if let (Some(kept), Some(stored)) = (kept, stored)
            && origin(stored) != origin(&url)
        {
            let detail = "the address leads to another server, which must not get the stored \
                          credentials: give this reference its value";
            self.faults.push(kept.place.fault(codes::CREDENTIALS_WOULD_MOVE, detail));
            whole = false;
        }
        whole.then(|| Filling { url, headers: pairs, kept_header: kept.is_some(), notes })
    }

    /// The value of a template; the stored one where a reference is not set here.
    fn value(
        &mut self,
        wanted: &At<Template>,
        stored: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Option<(SecretString, bool)> {
        let missing = match wanted.value.fill(self.secrets) {
            Filled::Value(value) => return Some((value, false)),
            Filled::Missing(missing) => missing,
        };
        let names: Vec<_> = missing.iter().map(Reference::to_string).collect();
        let names = names.join(", ");
        match stored {
            Some(stored) if wanted.value.fits(stored) => {
                notes.push(format!("{names} has no value here; the stored value is kept"));
                Some((stored.into(), true))
            }
            Some(_) => {
                let detail =
                    format!("{names} has no value, and the stored value is of another form");
                self.faults.push(wanted.place.fault(codes::UNSET_REFERENCE, detail));
                None
            }
            None => {
                let detail = format!("{names} has no value, and none is stored yet");
                self.faults.push(wanted.place.fault(codes::UNSET_REFERENCE, detail));
                None
            }
        }
    }

    /// The address in its plain form; one that is stored was checked before.
    async fn address(
        &mut self,
        wanted: &At<Template>,
        text: &str,
        stored: Option<&str>,
    ) -> Option<String> {
        let plain = Url::parse(text.trim()).map(String::from).ok();
        if plain.is_some() && plain.as_deref() == stored {
            return plain;
        }
        match self.control.check_url("", text).await {
            Ok(url) => Some(url.into()),
            Err(fault) => {
                self.faults.push(wanted.place.adopt(fault));
                None
            }
        }
    }

    fn new_server(&self, wanted: &WantedServer, filling: Filling) -> Item {
        let name = &wanted.name.value;
        let mut shown = PlannedChange::new(Action::Create, ObjectKind::Server, None, name);
        let nothing = UpstreamHeaders::default();
        shown.fields = vec![field("upstream_url", None::<&str>, Some(masked(&filling.url)))];
        shown.fields.extend(header_fields(&nothing, &filling.headers));
        shown.fields.extend(setting_fields(&ServerSettings::default(), &wanted.settings));
        shown.notes = filling.notes;
        shown.drift = self.deleted(ObjectKind::Server, &key(name));
        let state = server_state(name, &filling.url, &filling.headers, &wanted.settings);
        let form = ServerForm {
            name: name.clone(),
            upstream_url: filling.url,
            auth: auth(filling.headers),
            settings: SettingsPatch::all(&wanted.settings),
        };
        let remember = Some((key(name), state));
        Item { shown, step: Step::Connect(Box::new(form)), object: None, remember }
    }

    fn known_server(&self, wanted: &WantedServer, found: &CurrentServer, filling: Filling) -> Item {
        let (name, row) = (&wanted.name.value, &found.row);
        let mut shown = PlannedChange::new(Action::Unchanged, ObjectKind::Server, None, name);
        shown.notes.clone_from(&filling.notes);
        let state = server_state(name, &filling.url, &filling.headers, &wanted.settings);
        let mut step = Step::Nothing;
        if state != found.state() {
            shown.action = Action::Update;
            shown.fields = differences(wanted, found, &filling);
            shown.drift = self.drift(ObjectKind::Server, row.id.uuid(), &found.state());
            let moves = origin(&row.upstream_url) != origin(&filling.url);
            let same = header_fields(&found.headers, &filling.headers).is_empty();
            let typed = !same || (moves && !filling.kept_header);
            let patch = ServerPatch {
                name: (*name != row.name).then(|| name.clone()),
                upstream_url: (filling.url != row.upstream_url).then_some(filling.url),
                auth: typed.then(|| auth(filling.headers)),
                settings: SettingsPatch::all(&wanted.settings),
            };
            step = Step::EditServer(row.id, row.revision, Box::new(patch));
        }
        let remember = Some((key(name), state));
        Item { shown, step, object: Some(row.id.uuid()), remember }
    }
}

fn auth(pairs: Vec<(String, SecretString)>) -> AuthForm {
    if pairs.is_empty() { AuthForm::None } else { AuthForm::Headers(pairs) }
}

fn behind<'a>(stored: &'a UpstreamHeaders, name: &str) -> Option<&'a str> {
    let pair = stored.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(pair.1.expose_secret())
}

fn origin(url: &str) -> Option<url::Origin> {
    Url::parse(url).map(|url| url.origin()).ok()
}

fn differences(
    wanted: &WantedServer,
    found: &CurrentServer,
    filling: &Filling,
) -> Vec<FieldChange> {
    let (name, row) = (&wanted.name.value, &found.row);
    let mut fields = Vec::new();
    if *name != row.name {
        fields.push(field("name", Some(row.name.as_str()), Some(name.as_str())));
    }
    if filling.url != row.upstream_url {
        fields.push(field(
            "upstream_url",
            Some(masked(&row.upstream_url)),
            Some(masked(&filling.url)),
        ));
    }
    fields.extend(header_fields(&found.headers, &filling.headers));
    fields.extend(setting_fields(&row.settings, &wanted.settings));
    fields
}

/// Headers that come, go or change; of a value only that it does.
fn header_fields(before: &UpstreamHeaders, after: &[(String, SecretString)]) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    for (name, value) in after {
        let was = behind(before, name);
        if was != Some(value.expose_secret()) {
            fields.push(field(format!("headers.{name}"), was.map(|_| MASK), Some(MASK)));
        }
    }
    let stays = |name: &str| after.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    for name in before.names().filter(|name| !stays(name)) {
        fields.push(field(format!("headers.{name}"), Some(MASK), None::<&str>));
    }
    fields
}

fn setting_fields(before: &ServerSettings, after: &ServerSettings) -> Vec<FieldChange> {
    let value = |settings: &ServerSettings| serde_json::to_value(settings).unwrap_or_default();
    let (was, is) = (value(before), value(after));
    let names = named_settings(before).into_iter().chain(named_settings(after));
    let mut names: Vec<String> = names.map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| was[name.as_str()] != is[name.as_str()])
        .map(|name| {
            let (before, after) = (was[&name].clone(), is[&name].clone());
            field(format!("settings.{name}"), Some(before), Some(after))
        })
        .collect()
}
