//! The form of a server's settings, read field by field.

use secrecy::SecretString;
use sluice_control::codes;
use sluice_control::{AuthForm, Fault, MASK, ServerPatch, SettingsPatch};
use sluice_domain::{Access, Methods, OnDrift, Transport, UnknownTools, ValidateArguments};
use sluice_web::FormFields;

use crate::faults::Faults;

/// What is typed, read field by field; every field that cannot be read is noted.
struct Reader<'a> {
    fields: &'a FormFields,
    wrong: Vec<Fault>,
}

impl Reader<'_> {
    fn read<T: std::str::FromStr>(&mut self, name: &str, otherwise: &str) -> Option<T> {
        let read = self.fields.get(name).trim().parse().ok();
        if read.is_none() {
            self.wrong.push(Fault::new(format!("/{name}"), codes::INVALID, otherwise));
        }
        read
    }

    /// One of a select's words.
    fn word<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        self.read(name, "Choose one of these.")
    }

    fn number(&mut self, name: &str) -> Option<u32> {
        self.read(name, "Give a whole number of seconds.")
    }
}

/// The fields of the form; the last three come once for each header.
pub(super) const FIELDS: [&str; 17] = [
    "tool",
    "revision",
    "name",
    "upstream_url",
    "transport",
    "unknown_tools",
    "on_drift",
    "validate_arguments",
    "methods",
    "resources",
    "prompts",
    "hold_poisoned",
    "publish_tools",
    "log_argument_values",
    "connect_timeout_s",
    "idle_timeout_s",
    "total_timeout_s",
];
pub(super) const HEADER_FIELDS: [&str; 3] = ["header_name", "header_value", "header_remove"];

/// The change that the form asks for, and the revision that it was made from.
pub(super) fn patch(fields: &FormFields) -> Result<(Option<i64>, ServerPatch), Faults> {
    let mut typed = Reader { fields, wrong: Vec::new() };
    let (names, values) = (fields.all("header_name"), fields.all("header_value"));
    let pairs: Vec<(String, SecretString)> = names
        .zip(values)
        .filter(|(name, value)| !name.trim().is_empty() || !value.is_empty())
        .filter(|(name, _)| !fields.all("header_remove").any(|gone| gone == *name))
        .map(|(name, value)| {
            // An untouched field of a stored header comes back empty.
            let kept = if value.is_empty() { MASK } else { value };
            (name.trim().to_owned(), SecretString::from(kept.to_owned()))
        })
        .collect();
    let revision = typed.read("revision", "Reload the page: the form is incomplete.");
    let patch = ServerPatch {
        name: Some(fields.get("name").to_owned()),
        upstream_url: Some(fields.get("upstream_url").to_owned()),
        auth: Some(if pairs.is_empty() { AuthForm::None } else { AuthForm::Headers(pairs) }),
        settings: SettingsPatch {
            transport: typed.word::<Transport>("transport"),
            unknown_tools: typed.word::<UnknownTools>("unknown_tools"),
            on_drift: typed.word::<OnDrift>("on_drift"),
            validate_arguments: typed.word::<ValidateArguments>("validate_arguments"),
            methods: typed.word::<Methods>("methods"),
            resources: typed.word::<Access>("resources"),
            prompts: typed.word::<Access>("prompts"),
            hold_poisoned: Some(!fields.get("hold_poisoned").is_empty()),
            publish_tools: Some(!fields.get("publish_tools").is_empty()),
            log_argument_values: Some(!fields.get("log_argument_values").is_empty()),
            connect_timeout_s: typed.number("connect_timeout_s"),
            idle_timeout_s: typed.number("idle_timeout_s"),
            total_timeout_s: typed.number("total_timeout_s"),
        },
    };
    if typed.wrong.is_empty() { Ok((revision, patch)) } else { Err(Faults::several(typed.wrong)) }
}
