//! A server's settings as they are edited: what is not named stays.

use sluice_domain::{
    Access, Methods, OnDrift, ServerSettings, Transport, UnknownTools, ValidateArguments,
};

use crate::Fault;
use crate::error::Faults;

/// What of a server's settings an edit names.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsPatch {
    pub transport: Option<Transport>,
    pub unknown_tools: Option<UnknownTools>,
    pub on_drift: Option<OnDrift>,
    pub validate_arguments: Option<ValidateArguments>,
    pub methods: Option<Methods>,
    pub resources: Option<Access>,
    pub prompts: Option<Access>,
    pub hold_poisoned: Option<bool>,
    pub log_argument_values: Option<bool>,
    /// 1 to 60.
    pub connect_timeout_s: Option<u32>,
    /// 1 to 3,600.
    pub idle_timeout_s: Option<u32>,
    /// 0 (no bound) to 86,400.
    pub total_timeout_s: Option<u32>,
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl SettingsPatch {
    /// Writes what is named, noting what is out of range.
    pub(super) fn apply(self, settings: &mut ServerSettings, faults: &mut Faults) {
        for (name, value, least, most) in [
            ("connect_timeout_s", self.connect_timeout_s, 1, 60),
            ("idle_timeout_s", self.idle_timeout_s, 1, 3_600),
            ("total_timeout_s", self.total_timeout_s, 0, 86_400),
        ] {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                let detail = format!("this is from {least} to {most} seconds");
                faults.push(Fault::new(format!("/{name}"), "out_of_range", detail));
            }
        }
        set(&mut settings.transport, self.transport);
        set(&mut settings.unknown_tools, self.unknown_tools);
        set(&mut settings.on_drift, self.on_drift);
        set(&mut settings.validate_arguments, self.validate_arguments);
        set(&mut settings.methods, self.methods);
        set(&mut settings.resources, self.resources);
        set(&mut settings.prompts, self.prompts);
        set(&mut settings.hold_poisoned, self.hold_poisoned);
        set(&mut settings.log_argument_values, self.log_argument_values);
        set(&mut settings.connect_timeout_s, self.connect_timeout_s);
        set(&mut settings.idle_timeout_s, self.idle_timeout_s);
        set(&mut settings.total_timeout_s, self.total_timeout_s);
    }
}
