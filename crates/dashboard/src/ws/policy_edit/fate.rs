//! What becomes of a tool's calls in one word, and the change that makes it so. Pure.

use serde_json::{Value, json};
use sluice_policy::edit::{get, put, remove};
use sluice_policy::{CompiledPolicy, DefaultAction};

use crate::ws::policy::places::segment;

/// What becomes of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Allow,
    Deny,
    Hide,
    Approve,
    /// Rules and limits decide.
    Custom,
}

impl Fate {
    pub(super) const ALL: [Self; 5] =
        [Self::Allow, Self::Deny, Self::Hide, Self::Approve, Self::Custom];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hide => "hide",
            Self::Approve => "approve",
            Self::Custom => "custom",
        }
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
            Self::Hide => "Hide",
            Self::Approve => "Approve",
            Self::Custom => "Custom",
        }
    }

    pub(super) fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.word() == word)
    }
}

/// The fate of a name, and what decides it where that is not an entry of its own.
pub(super) fn of(policy: &CompiledPolicy, name: &str) -> (Fate, Option<String>) {
    let document = policy.document();
    if policy.hides(name) {
        let own = document.hide.iter().any(|hidden| hidden == name);
        let by = document.hide.iter().find(|hidden| hides(hidden, name));
        return (Fate::Hide, by.filter(|_| !own).map(|by| format!("by `{by}`")));
    }
    let Some((by, entry)) = policy.entry(name) else {
        let fate = match document.default {
            DefaultAction::Allow => Fate::Allow,
            DefaultAction::Deny => Fate::Deny,
        };
        return (fate, Some("by default".to_owned()));
    };
    let always = |rules: &[sluice_policy::Rule]| {
        rules.len() == 1 && rules.iter().all(|rule| rule.conditions.is_empty())
    };
    let limits = entry.limits.is_empty() && entry.require.is_empty();
    let fate = match (limits, entry.deny_if.is_empty(), entry.approve_if.is_empty()) {
        (true, true, true) => Fate::Allow,
        (true, false, true) if always(&entry.deny_if) => Fate::Deny,
        (true, true, false) if always(&entry.approve_if) => Fate::Approve,
        _ => Fate::Custom,
    };
    (fate, (by != name).then(|| format!("by `{by}`")))
}

fn hides(hidden: &str, name: &str) -> bool {
    let alone = json!({"version": "1", "default": "deny", "hide": [hidden]}).to_string();
    sluice_policy::compile(&alone).is_ok_and(|policy| policy.hides(name))
}

/// The text in which the name has this fate; an error says why it cannot.
pub(super) fn set(
    text: &str,
    policy: &CompiledPolicy,
    name: &str,
    fate: Fate,
) -> Result<String, String> {
    if of(policy, name).0 == fate {
        return Ok(text.to_owned());
    }
    let pointer = format!("/tools/{}", segment(name));
    let own = get(text, &pointer).is_some();
    if fate == Fate::Hide {
        let shown = if own { remove(text, &pointer) } else { None };
        let shown = shown.unwrap_or_else(|| text.to_owned());
        // At the end of the list, or the first of a new one.
        let hidden = get(&shown, "/hide").and_then(|list| list.as_array().map(Vec::len));
        return put(&shown, &format!("/hide/{}", hidden.unwrap_or(0)), &json!(name))
            .ok_or_else(|| "The document cannot be read.".to_owned());
    }
    let text = unhide(text, name);
    let Ok(now) = sluice_policy::compile(&text) else { return Ok(text) };
    if now.hides(name) {
        let by = now.document().hide.iter().find(|hidden| hides(hidden, name));
        let by = by.map(String::as_str).unwrap_or_default();
        return Err(format!("`{name}` stays hidden by `{by}`; change that name in `hide` first."));
    }
    let by_pattern = now.entry(name).is_some_and(|(by, _)| by != name);
    let entry = match fate {
        // Without an entry the default decides.
        Fate::Deny if !by_pattern && now.document().default == DefaultAction::Deny => {
            return Ok(if own { remove(&text, &pointer).unwrap_or(text) } else { text });
        }
        Fate::Deny => json!({"deny_if": [{"conditions": []}]}),
        Fate::Approve => json!({"approve_if": [{"conditions": []}]}),
        _ => json!({}),
    };
    Ok(put(&text, &pointer, &entry).unwrap_or(text))
}

/// Takes the name out of `hide`, and out of an entry that hides it.
pub(super) fn unhide(text: &str, name: &str) -> String {
    let mut out = text.to_owned();
    let hidden = get(text, "/hide").and_then(|list| list.as_array().map(Vec::len)).unwrap_or(0);
    for index in (0..hidden).rev() {
        let pointer = format!("/hide/{index}");
        if get(&out, &pointer) == Some(Value::from(name)) {
            out = remove(&out, &pointer).unwrap_or(out);
        }
    }
    let pointer = format!("/tools/{}", segment(name));
    if get(&out, &format!("{pointer}/action")) == Some(json!("hide")) {
        out = remove(&out, &pointer).unwrap_or(out);
    }
    out
}

#[cfg(test)]
mod tests {
    use sluice_policy::{check, compile};

    use super::*;

    const DOCUMENT: &str = r#"{"version":"1","default":"deny","hide":["wipe","admin_*"],"tools":{
        "read":{},"pay":{"limits":[{"counter":"pay","window":"day","max":1.50,"increment_from":"args.n"}]},
        "ask":{"action":"require_approval"},"never":{"action":"deny","reason":"r"},"gone":{"action":"hide"},
        "get_*":{},"get_x*":{"deny_if":[{"conditions":[]}]}}}"#;

    fn now(text: &str, name: &str) -> (Fate, Option<String>) {
        of(&compile(text).expect("a policy"), name)
    }

    #[test]
    fn a_fate_is_read_from_any_document() {
        for (name, fate, by) in [
            ("read", Fate::Allow, None),
            ("pay", Fate::Custom, None),
            ("ask", Fate::Approve, None),
            ("never", Fate::Deny, None),
            ("gone", Fate::Hide, None),
            ("wipe", Fate::Hide, None),
            ("admin_x", Fate::Hide, Some("by `admin_*`")),
            ("get_user", Fate::Allow, Some("by `get_*`")),
            ("get_xy", Fate::Deny, Some("by `get_x*`")),
            ("other", Fate::Deny, Some("by default")),
        ] {
            assert_eq!(now(DOCUMENT, name), (fate, by.map(str::to_owned)), "{name}");
        }
    }

    #[test]
    fn every_fate_can_be_given_to_every_tool_and_all_else_stays() {
        let open = DOCUMENT.replace("\"deny\",\"hide\":", "\"allow\",\"hide\":");
        for text in [DOCUMENT, &open, r#"{"version":"1","default":"deny"}"#] {
            for name in [
                "read",
                "pay",
                "ask",
                "never",
                "gone",
                "wipe",
                "get_user",
                "get_xy",
                "other",
                "a/b \"c\"",
            ] {
                for fate in [Fate::Allow, Fate::Deny, Fate::Hide, Fate::Approve] {
                    let policy = compile(text).expect("a policy");
                    let after = set(text, &policy, name, fate).expect("it can be given");
                    assert!(check(&after, None).ok, "{after}");
                    assert_eq!(now(&after, name).0, fate, "{name}: {after}");
                    let other = if name == "pay" { "read" } else { "pay" };
                    assert_eq!(now(&after, other), now(text, other), "{after}");
                    assert!(name == "pay" || !text.contains("1.50") || after.contains("1.50"));
                    let again = set(&after, &compile(&after).expect("a policy"), name, fate);
                    assert_eq!(again.as_ref(), Ok(&after), "twice is once");
                }
            }
        }
        let policy = compile(DOCUMENT).expect("a policy");
        let kept = set(DOCUMENT, &policy, "admin_x", Fate::Allow).expect_err("a pattern hides it");
        assert!(kept.contains("`admin_*`"), "{kept}");
    }
}
