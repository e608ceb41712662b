//! A server of the main file.

use std::collections::BTreeMap;

use sluice_domain::{ServerSettings, looks_secret, names_secret};

use super::super::template::Template;
use super::super::walk::{At, Fields, Here, unknown};
use super::{WantedHeader, WantedServer, grant, named, once, policy, template};
use crate::codes;
use crate::error::Faults;
use crate::servers::SettingsPatch;

const FIELDS: [&str; 6] = ["name", "upstream_url", "headers", "settings", "policies", "grants"];

pub(super) fn read(
    here: &Here<'_>,
    files: &BTreeMap<String, String>,
    faults: &mut Faults,
) -> Option<WantedServer> {
    let fields = here.fields(&FIELDS, faults);
    let name = named(&fields, "name", faults);
    let url = fields.need("upstream_url", faults).and_then(|url| address(&url, faults));
    let headers = headers(&fields, faults);
    let settings = settings(&fields, faults);
    let policies = fields.list("policies", faults);
    let policies: Vec<_> =
        policies.iter().filter_map(|one| policy::read(one, files, faults)).collect();
    once("policy", policies.iter().map(|policy| &policy.name), faults);
    let grants = fields.list("grants", faults);
    let grants: Vec<_> = grants.iter().filter_map(|one| grant::read(one, faults)).collect();
    once("grant", grants.iter().map(|grant| &grant.label), faults);
    Some(WantedServer { name: name?, url: url?, headers, settings, policies, grants })
}

/// Which server it is must be plain to see; a key in the path or query may be a reference.
fn address(url: &At<String>, faults: &mut Faults) -> Option<At<Template>> {
    let url = template(url, faults)?;
    let host =
        url.value.start().split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
    if !url.value.is_literal() && !host {
        let detail = "a reference may stand in the address's path or query, not in its host";
        faults.push(url.place.fault(codes::BAD_REFERENCE, detail));
        return None;
    }
    Some(url)
}

fn headers(fields: &Fields<'_>, faults: &mut Faults) -> Vec<WantedHeader> {
    let Some(here) = fields.get("headers") else { return Vec::new() };
    let entries = here.entries(faults);
    let mut headers = Vec::new();
    for (name, value) in entries {
        let value = value.text(faults).and_then(|value| template(&value, faults));
        let Some(value) = value else { continue };
        let literal = value.value.is_literal();
        if literal && (names_secret(name) || looks_secret(value.value.start())) {
            let detail = format!(
                "the value of `{name}` stands here in plain text; write `${{env:NAME}}` and give \
                 the value when you apply"
            );
            faults.push(value.place.fault(codes::SECRET_IN_FILE, detail));
            continue;
        }
        headers.push(WantedHeader { name: name.to_owned(), value });
    }
    headers
}

/// What is not named has its default: the file says all of it.
fn settings(fields: &Fields<'_>, faults: &mut Faults) -> ServerSettings {
    let mut settings = ServerSettings::default();
    let Some(here) = fields.get("settings") else { return settings };
    for (name, value) in here.entries(faults) {
        if !SettingsPatch::NAMES.contains(&name) {
            faults.push(unknown(&value.place, name, &SettingsPatch::NAMES));
            continue;
        }
        let Some(json) = value.json(faults) else { continue };
        match serde_json::from_value::<SettingsPatch>(serde_json::json!({ name: json })) {
            Ok(patch) => {
                let mut found = Faults::default();
                patch.apply(&mut settings, &mut found);
                for fault in found.into_list() {
                    faults.push(value.place.adopt(fault));
                }
            }
            Err(error) => faults.push(value.place.fault(codes::INVALID, error.to_string())),
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_never_says_which_server_it_is() {
        for (url, good) in [
            ("https://a.test/${env:K}/mcp", true),
            ("https://a.test?${env:K}", true),
            ("https://a.test:${env:PORT}/mcp", false),
            ("https://${env:HOST}/mcp", false),
            ("${env:URL}", false),
            ("https://a.test/mcp", true),
            ("nonsense", true),
        ] {
            let url = At { value: url.to_owned(), place: super::super::Place::top() };
            assert_eq!(address(&url, &mut Faults::default()).is_some(), good, "{}", url.value);
        }
    }
}
