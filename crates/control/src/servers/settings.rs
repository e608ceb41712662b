//! A server's settings as they are edited: what is not named stays.

use sluice_domain::{
    Access, Methods, OnDrift, ServerSettings, Transport, UnknownTools, ValidateArguments,
};

use crate::Fault;
use crate::codes;
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
    pub publish_tools: Option<bool>,
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
    /// What a patch may name.
    pub const NAMES: [&str; 13] = [
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

    /// The edit after which the settings are exactly these.
    pub(crate) fn all(settings: &ServerSettings) -> Self {
        Self {
            transport: Some(settings.transport),
            unknown_tools: Some(settings.unknown_tools),
            on_drift: Some(settings.on_drift),
            validate_arguments: Some(settings.validate_arguments),
            methods: Some(settings.methods),
            resources: Some(settings.resources),
            prompts: Some(settings.prompts),
            hold_poisoned: Some(settings.hold_poisoned),
            publish_tools: Some(settings.publish_tools),
            log_argument_values: Some(settings.log_argument_values),
            connect_timeout_s: Some(settings.connect_timeout_s),
            idle_timeout_s: Some(settings.idle_timeout_s),
            total_timeout_s: Some(settings.total_timeout_s),
        }
    }

    /// Writes what is named, noting what is out of range.
    pub(crate) fn apply(self, settings: &mut ServerSettings, faults: &mut Faults) {
        for (name, value, least, most) in [
            ("connect_timeout_s", self.connect_timeout_s, 1, 60),
            ("idle_timeout_s", self.idle_timeout_s, 1, 3_600),
            ("total_timeout_s", self.total_timeout_s, 0, 86_400),
        ] {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                let detail = format!("this is from {least} to {most} seconds");
                faults.push(Fault::new(format!("/{name}"), codes::OUT_OF_RANGE, detail));
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
        set(&mut settings.publish_tools, self.publish_tools);
        set(&mut settings.log_argument_values, self.log_argument_values);
        set(&mut settings.connect_timeout_s, self.connect_timeout_s);
        set(&mut settings.idle_timeout_s, self.idle_timeout_s);
        set(&mut settings.total_timeout_s, self.total_timeout_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_can_name_every_setting() {
        let settings = serde_json::to_value(ServerSettings::default()).expect("writes");
        let names: Vec<_> = settings.as_object().expect("an object").keys().collect();
        assert_eq!(names, SettingsPatch::NAMES);
        let odd = ServerSettings { hold_poisoned: false, idle_timeout_s: 7, ..Default::default() };
        let mut changed = ServerSettings::default();
        SettingsPatch::all(&odd).apply(&mut changed, &mut Faults::default());
        assert_eq!(changed, odd);
    }
}
