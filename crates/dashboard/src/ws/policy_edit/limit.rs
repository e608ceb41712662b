//! A limit and an approval block as forms, and back. Pure.

use serde_json::{Map, Number, Value, json};
use sluice_web::FormFields;

use super::rule::Wrong;

/// The form of a limit, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LimitForm {
    /// The limit's pointer; empty: a new one.
    pub(super) place: String,
    pub(super) counter: String,
    pub(super) max: String,
    pub(super) window: String,
    pub(super) scope: String,
    pub(super) increment_from: String,
    pub(super) reset: String,
    pub(super) on_unavailable: String,
}

const LIMIT_FIELDS: [&str; 7] =
    ["counter", "window", "max", "scope", "increment_from", "reset", "on_unavailable"];

/// What is meant where the document says nothing.
fn implied(key: &str) -> &'static str {
    match key {
        "scope" => "grant",
        "reset" => "sliding",
        "on_unavailable" => "deny",
        _ => "",
    }
}

impl LimitForm {
    /// A limit of a document.
    pub(super) fn of(place: &str, limit: &Value) -> Self {
        let text = |key: &str| match limit.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => implied(key).to_owned(),
        };
        Self {
            place: place.to_owned(),
            counter: text("counter"),
            max: text("max"),
            window: text("window"),
            scope: text("scope"),
            increment_from: text("increment_from"),
            reset: text("reset"),
            on_unavailable: text("on_unavailable"),
        }
    }

    /// A limit that is to be written.
    pub(super) fn fresh(counter: String) -> Self {
        let [max, window] = ["10", "minute"].map(str::to_owned);
        let new = Self::of("", &json!({}));
        Self { counter, max, window, ..new }
    }

    /// What was typed; none where the form was not on the page.
    pub(super) fn typed(fields: &FormFields) -> Option<Self> {
        fields.0.iter().find(|(name, _)| name == "l_counter")?;
        let get = |name: &str| fields.get(&format!("l_{name}")).trim().to_owned();
        let or = |name: &str, other: &str| match get(name) {
            chosen if chosen == "other" => get(other),
            chosen => chosen,
        };
        Some(Self {
            place: get("place"),
            counter: get("counter"),
            max: get("max"),
            window: or("window", "window_text"),
            scope: get("scope"),
            increment_from: or("increment_from", "increment_text"),
            reset: get("reset"),
            on_unavailable: get("on_unavailable"),
        })
    }

    fn get(&self, key: &str) -> &str {
        match key {
            "counter" => &self.counter,
            "window" => &self.window,
            "max" => &self.max,
            "scope" => &self.scope,
            "increment_from" => &self.increment_from,
            "reset" => &self.reset,
            _ => &self.on_unavailable,
        }
    }

    /// The limit in the document's words; what `before` said plainly is said again.
    pub(super) fn limit(&self, before: Option<&Value>) -> Result<Value, Vec<Wrong>> {
        let mut out = Map::new();
        for key in LIMIT_FIELDS {
            let text = self.get(key);
            let said = before.is_some_and(|before| before.get(key).is_some());
            if key == "max" {
                let max = serde_json::from_str::<Number>(text).map_err(|_| {
                    vec![(
                        "l_max".to_owned(),
                        "Give the most in a window, a number from 0.".to_owned(),
                    )]
                })?;
                out.insert(key.to_owned(), Value::Number(max));
                continue;
            }
            let nothing = text.is_empty() && key == "increment_from";
            let needed = ["counter", "window"].contains(&key);
            if !nothing && (needed || said || text != implied(key)) {
                out.insert(key.to_owned(), json!(text));
            }
        }
        // The scope is worth saying: it is what people ask first.
        if !out.contains_key("scope") {
            out.insert("scope".to_owned(), json!(self.scope));
        }
        Ok(Value::Object(out))
    }
}

/// The form of an approval block, as it was typed. Empty fields are left to the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ApprovalForm {
    pub(super) hold: String,
    pub(super) expires: String,
    /// Between commas or blanks.
    pub(super) approvers: String,
    pub(super) quorum: String,
    /// `""`, `true` or `false`.
    pub(super) self_allowed: String,
}

impl ApprovalForm {
    /// The block of a document.
    pub(super) fn of(block: Option<&Value>) -> Self {
        let get = |key: &str| block.and_then(|block| block.get(key));
        let text = |key: &str| get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = get("approvers").and_then(Value::as_array);
        let names: Vec<&str> = list.into_iter().flatten().filter_map(Value::as_str).collect();
        Self {
            hold: text("hold"),
            expires: text("expires"),
            approvers: names.join(", "),
            quorum: get("quorum").map(ToString::to_string).unwrap_or_default(),
            self_allowed: get("self").map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// What was typed; none where the form was not on the page.
    pub(super) fn typed(fields: &FormFields) -> Option<Self> {
        fields.0.iter().find(|(name, _)| name == "p_hold")?;
        let get = |name: &str| fields.get(&format!("p_{name}")).trim().to_owned();
        Some(Self {
            hold: get("hold"),
            expires: get("expires"),
            approvers: get("approvers"),
            quorum: get("quorum"),
            self_allowed: get("self"),
        })
    }

    /// The block in the document's words; none: nothing is said.
    pub(super) fn block(&self) -> Result<Option<Value>, Vec<Wrong>> {
        let mut out = Map::new();
        for (key, text) in [("hold", &self.hold), ("expires", &self.expires)] {
            if !text.is_empty() {
                out.insert(key.to_owned(), json!(text));
            }
        }
        let apart = |c: char| c == ',' || c.is_whitespace();
        let names: Vec<&str> =
            self.approvers.split(apart).filter(|name| !name.is_empty()).collect();
        if !names.is_empty() {
            out.insert("approvers".to_owned(), json!(names));
        }
        if !self.quorum.is_empty() {
            let quorum: u8 = self.quorum.parse().map_err(|_| {
                vec![("p_quorum".to_owned(), "Give how many must approve, 1 to 5.".to_owned())]
            })?;
            out.insert("quorum".to_owned(), json!(quorum));
        }
        if let Ok(allowed) = self.self_allowed.parse::<bool>() {
            out.insert("self".to_owned(), json!(allowed));
        }
        Ok((!out.is_empty()).then_some(Value::Object(out)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_back_as_they_were() {
        for text in [
            r#"{"counter":"c","window":"minute","max":10,"scope":"grant"}"#,
            r#"{"counter":"c","window":"90s","max":1.50,"scope":"workspace","increment_from":"args.n","reset":"calendar","on_unavailable":"allow"}"#,
            r#"{"counter":"c","window":"day","max":0,"scope":"grant","reset":"sliding","on_unavailable":"deny"}"#,
        ] {
            let limit: Value = serde_json::from_str(text).expect("JSON");
            let form = LimitForm::of("/all_tools/limits/0", &limit);
            assert_eq!(form.limit(Some(&limit)), Ok(limit));
        }
        let fresh = LimitForm::fresh("t_rate".to_owned());
        let wanted = json!({"counter": "t_rate", "window": "minute", "max": 10, "scope": "grant"});
        assert_eq!(fresh.limit(None), Ok(wanted));
        let bad = LimitForm { max: "ten".to_owned(), ..fresh };
        assert_eq!(bad.limit(None).expect_err("no number")[0].0, "l_max");
    }

    #[test]
    fn approval_blocks_are_read_and_written_back_as_they_were() {
        let block = json!({"hold": "2m", "expires": "1d", "approvers": ["role:admin", "member:a@b.c"], "quorum": 2, "self": false});
        let form = ApprovalForm::of(Some(&block));
        assert_eq!(form.block(), Ok(Some(block)));
        assert_eq!(ApprovalForm::of(None).block(), Ok(None));
        let bad = ApprovalForm { quorum: "two".to_owned(), ..ApprovalForm::default() };
        assert!(bad.block().is_err());
    }
}
