//! A workspace's configuration as files: one YAML file, and a JSON file for each policy, whose text
//! is the stored text. Secrets are written as references, tokens not at all. The same configuration
//! gives the same bytes wherever it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use chrono::SecondsFormat;
use sluice_domain::PolicyKind;
use sluice_store::grants::Grant;

use super::MAIN;
use super::current::{Current, CurrentServer, named_settings};
use super::template::plain;
use super::wanted::key;
use crate::{Admin, Control, ControlError};

/// Files by their paths, relative to the main file.
pub type Files = BTreeMap<String, String>;

const HEAD: &str = "# A workspace of Sluice, for `sluice apply`. Secrets are references: set the variables \
                    they name,\n# or leave them unset to keep what is stored. Grant tokens are never written.\nsluice: 1\n";

impl Control {
    /// Writes the configuration down.
    pub async fn export_configuration(&self, admin: &Admin) -> Result<Files, ControlError> {
        let current = self.current(admin).await?;
        Ok(write(&current, self.now()))
    }
}

fn write(current: &Current, now: chrono::DateTime<chrono::Utc>) -> Files {
    let (mut files, mut names) = (Files::new(), Names::default());
    let mut out = HEAD.to_owned();
    let _ = write!(out, "workspace:\n  name: {}\n", scalar(&current.name));
    if !current.join_domains.is_empty() {
        out.push_str("  join_domains:\n");
    }
    for one in &current.join_domains {
        let (domain, role) = (scalar(&one.domain), one.role);
        let _ = writeln!(out, "    - domain: {domain}\n      role: {role}");
    }
    if let Some(issuer) = &current.provider {
        let _ = writeln!(out, "  required_provider: {}", scalar(issuer));
    }
    if let Some(after) = current.escalate_after {
        let _ = writeln!(out, "  escalate_after: {}", span(after));
    }
    if !current.servers.is_empty() {
        out.push_str("servers:\n");
    }
    for server in &current.servers {
        write_server(&mut out, server, &mut names);
        if !server.policies.is_empty() {
            out.push_str("    policies:\n");
        }
        let folder = names.file(&server.row.name, "policies", "");
        for policy in &server.policies {
            let file = names.file(&policy.name, &folder, ".json");
            let _ = writeln!(out, "      - name: {}", scalar(&policy.name));
            if policy.kind == PolicyKind::Button {
                out.push_str("        kind: button\n");
            }
            let _ = writeln!(out, "        file: {}", scalar(&file));
            files.insert(file, policy.document.clone());
        }
        // A grant whose time has passed opens nothing, and could not be made like that again.
        let live: Vec<_> = server
            .grants
            .iter()
            .filter(|grant| grant.expires_at.is_none_or(|at| at > now))
            .collect();
        if !live.is_empty() {
            out.push_str("    grants:\n");
        }
        for grant in live {
            write_grant(&mut out, server, grant);
        }
    }
    files.insert(MAIN.to_owned(), out);
    files
}

/// A length of time in the largest unit that it is whole in.
pub(super) fn span(seconds: i64) -> String {
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let whole = units.into_iter().find(|(unit, _)| seconds % unit == 0);
    let (unit, letter) = whole.unwrap_or((1, 's'));
    format!("{}{letter}", seconds / unit)
}

fn write_server(out: &mut String, server: &CurrentServer, names: &mut Names) {
    let row = &server.row;
    let _ = writeln!(out, "  - name: {}", scalar(&row.name));
    let url = match row.upstream_url.split_once('?') {
        Some((plain_part, _)) => {
            format!("{}?${{env:{}}}", plain(plain_part), names.variable(&row.name, "QUERY"))
        }
        None => plain(&row.upstream_url),
    };
    let _ = writeln!(out, "    upstream_url: {}", scalar(&url));
    let headers: BTreeMap<_, _> =
        row.header_names.iter().map(|name| (name.to_lowercase(), name)).collect();
    if !headers.is_empty() {
        out.push_str("    headers:\n");
    }
    for name in headers.values() {
        let value = format!("${{env:{}}}", names.variable(&row.name, name));
        let _ = writeln!(out, "      {}: {}", scalar(name), scalar(&value));
    }
    let settings = named_settings(&row.settings);
    if !settings.is_empty() {
        out.push_str("    settings:\n");
    }
    for (name, value) in settings {
        // Words, numbers and switches, which are the same in both languages.
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(out, "      {name}: {text}");
    }
}

fn write_grant(out: &mut String, server: &CurrentServer, grant: &Grant) {
    let _ = writeln!(out, "      - label: {}", scalar(&grant.label));
    if let Some(policy) = server.policy_name(grant.policy_id) {
        let _ = writeln!(out, "        policy: {}", scalar(policy));
    }
    if let Some(at) = grant.expires_at {
        let at = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let _ = writeln!(out, "        expires_at: {at}");
    }
    if grant.observe {
        out.push_str("        observe: true\n");
    }
    if !grant.networks.is_empty() {
        out.push_str("        networks:\n");
    }
    for network in &grant.networks {
        let _ = writeln!(out, "          - {}", scalar(network));
    }
}

/// A text as YAML: as it is where that cannot be read as anything else, else quoted as in JSON.
fn scalar(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(word)
        && !is_special(text);
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Words that some reader of YAML takes for something else than a text.
fn is_special(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"];
    words.contains(&text.to_lowercase().as_str())
}

/// Names made from names, each once.
#[derive(Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn take(&mut self, name: &str, ending: &str, joint: char) -> String {
        let mut free = format!("{name}{ending}");
        let mut number = 2;
        while !self.0.insert(key(&free)) {
            free = format!("{name}{joint}{number}{ending}");
            number += 1;
        }
        free
    }

    /// A path that every file system takes.
    fn file(&mut self, name: &str, folder: &str, ending: &str) -> String {
        let mut plain = String::new();
        for c in name.to_lowercase().chars() {
            match c {
                c if c.is_ascii_alphanumeric() || c == '_' => plain.push(c),
                _ if plain.is_empty() || plain.ends_with('-') => {}
                _ => plain.push('-'),
            }
        }
        let plain = plain.trim_end_matches('-');
        let plain = if plain.is_empty() { "unnamed" } else { plain };
        self.take(&format!("{folder}/{plain}"), ending, '-')
    }

    /// The variable that is to hold a secret of a server.
    fn variable(&mut self, server: &str, what: &str) -> String {
        let mut name = "SLUICE_SECRET".to_owned();
        for part in [server, what] {
            if !name.ends_with('_') {
                name.push('_');
            }
            for c in part.chars() {
                if c.is_ascii_alphanumeric() {
                    name.push(c.to_ascii_uppercase());
                } else if !name.ends_with('_') {
                    name.push('_');
                }
            }
        }
        self.take(&name, "", '_')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_they_could_be_something_else() {
        for (text, written) in [
            ("read only", "read only"),
            ("policies/a/b-2.json", "policies/a/b-2.json"),
            ("no", "\"no\""),
            ("1.10", "\"1.10\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("- a", "\"- a\""),
            ("${env:A}", "\"${env:A}\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("北京", "\"北京\""),
            ("", "\"\""),
        ] {
            assert_eq!(scalar(text), written);
            let read: String = serde_saphyr::from_str(&scalar(text)).expect(text);
            assert_eq!(read, text);
        }
    }

    #[test]
    fn names_are_safe_and_each_once() {
        let mut names = Names::default();
        let mut file = |name: &str| names.file(name, "policies/s", ".json");
        assert_eq!(file("Read only"), "policies/s/read-only.json");
        assert_eq!(file("read/only"), "policies/s/read-only-2.json");
        assert_eq!(file("../../etc"), "policies/s/etc.json");
        assert_eq!(file("北京"), "policies/s/unnamed.json");
        let mut variable = |what: &str| names.variable("my-server", what);
        assert_eq!(variable("Authorization"), "SLUICE_SECRET_MY_SERVER_AUTHORIZATION");
        assert_eq!(variable("authorization"), "SLUICE_SECRET_MY_SERVER_AUTHORIZATION_2");
    }
}
