//! Turns an option and its values into a policy fragment.

use serde_json::{Map, Number, Value, json};
use sluice_domain::Amount;

use super::{OptionError, OptionKind, RuleOption};
use crate::entry::EntryKey;
use crate::recommend::counter_name;

const MOST_VALUES: usize = 50;
const LONGEST_VALUE: usize = 300;

/// Words that a query which only reads has no use for.
const CHANGES: &str = "insert|update|delete|merge|replace|upsert|drop|alter|create|truncate|grant|revoke|into|call|exec|execute|copy|attach|detach|pragma|vacuum|set|lock|load_extension|pg_sleep|pg_read_file|lo_import|lo_export|load_file|outfile|dumpfile|dblink|nextval|setval";

pub(super) fn fragment(
    option: &RuleOption,
    given: &[(String, Vec<String>)],
) -> Result<Value, OptionError> {
    let values = values(option, given)?;
    let rules = match option.kind {
        OptionKind::UrlAllowList => require(option, &begins(option, &addresses(&values)?)),
        OptionKind::PathPrefix => below(option, &folders(&values)?),
        OptionKind::AmountCap => {
            let most = amount(values.first())?;
            let path = &option.path;
            let conditions = json!([{"path": path, "op": "gte", "value": 0}, {"path": path, "op": "lte", "value": most}]);
            require(option, &conditions)
        }
        OptionKind::AmountBudget => budget(option, &amount(values.first())?),
        OptionKind::SelectOnly => select(option),
        OptionKind::Recipients => require(option, &recipients(option, &values)),
        OptionKind::Commands | OptionKind::Choices => {
            require(option, &json!([{"path": option.path, "op": "in", "value": values}]))
        }
        OptionKind::ListLength => {
            let most = count(values.first())?;
            require(option, &json!([{"path": option.path, "op": "length_lte", "value": most}]))
        }
    };
    Ok(EntryKey::of(&option.tool).fragment(rules))
}

fn problem(problem: impl Into<String>) -> OptionError {
    OptionError { field: "values".to_owned(), problem: problem.into() }
}

/// The values that were given, without blanks and repetitions.
fn values(
    option: &RuleOption,
    given: &[(String, Vec<String>)],
) -> Result<Vec<String>, OptionError> {
    let mut values: Vec<String> = Vec::new();
    let texts = given.iter().filter(|(name, _)| name == "values").flat_map(|(_, texts)| texts);
    for value in texts.flat_map(|text| text.lines()).map(str::trim).filter(|it| !it.is_empty()) {
        if value.len() > LONGEST_VALUE {
            return Err(problem(format!("a value may have at most {LONGEST_VALUE} characters")));
        }
        if !values.iter().any(|it| it == value) {
            values.push(value.to_owned());
        }
    }
    let many = option.fields.first().is_some_and(|field| field.many);
    match values.len() {
        0 if !option.fields.is_empty() => Err(problem("give at least one value")),
        count if count > MOST_VALUES => Err(problem(format!("give at most {MOST_VALUES} values"))),
        count if count > 1 && !many => Err(problem("give one value")),
        _ => Ok(values),
    }
}

fn require(option: &RuleOption, conditions: &Value) -> Map<String, Value> {
    let name = option.kind.as_str().replace('_', "-");
    let rule =
        json!({"name": name, "conditions": conditions, "on_deny": option.sentence_for_agents()});
    Map::from_iter([("require".to_owned(), json!([rule]))])
}

impl RuleOption {
    /// Tells the agent what is wrong without telling the list.
    fn sentence_for_agents(&self) -> String {
        let argument = self.path.strip_prefix("args.").unwrap_or(&self.path);
        let said = match self.kind {
            OptionKind::UrlAllowList => "is not an address that is allowed here",
            OptionKind::PathPrefix => "is outside the folders that are allowed here",
            OptionKind::AmountCap => "is more than a call may move",
            OptionKind::AmountBudget => "is more than is left for today",
            OptionKind::SelectOnly => "must be one SELECT statement",
            OptionKind::Recipients => "is not a recipient that is allowed here",
            OptionKind::Commands => "is not a command that is allowed here",
            OptionKind::ListLength => "holds too many elements for one call",
            OptionKind::Choices => "is not a value that is allowed here",
        };
        format!("`{argument}` {said}.")
    }
}

/// One condition that holds where the text begins with one of these, for lists as for single values.
fn begins(option: &RuleOption, starts: &[String]) -> Value {
    if !option.path.contains("[*]") {
        let each: Vec<Value> = starts
            .iter()
            .map(|start| json!({"path": option.path, "op": "starts_with", "value": start}))
            .collect();
        return if each.len() == 1 { Value::Array(each) } else { json!([{"any": each}]) };
    }
    // Every element by itself: one pattern, as alternatives over `[*]` would each ask it of all.
    let starts: Vec<String> = starts.iter().map(|it| escape(it)).collect();
    json!([{"path": option.path, "op": "regex", "value": format!("^(?:{})", starts.join("|"))}])
}

fn below(option: &RuleOption, folders: &[String]) -> Map<String, Value> {
    let mut rules = require(option, &begins(option, folders));
    let climbs = json!([{"path": option.path, "op": "regex", "value": r"(?:^|[/\\])\.\.(?:[/\\]|$)|%2[eEfF]|\x00"}]);
    let rule = json!({"name": "path-climbs", "conditions": climbs, "on_deny": option.sentence_for_agents()});
    rules.insert("deny_if".to_owned(), json!([rule]));
    rules
}

fn select(option: &RuleOption) -> Map<String, Value> {
    let path = &option.path;
    let mut rules =
        require(option, &json!([{"path": path, "op": "regex", "value": r"(?i)^\s*select\b"}]));
    let more = json!([{"path": path, "op": "regex", "value": format!(r"(?i)\b(?:{CHANGES})\b|;\s*\S|--|/\*|#")}]);
    let rule =
        json!({"name": "sql-changes", "conditions": more, "on_deny": option.sentence_for_agents()});
    rules.insert("deny_if".to_owned(), json!([rule]));
    rules
}

fn budget(option: &RuleOption, most: &Value) -> Map<String, Value> {
    let argument = option.path.rsplit('.').next().unwrap_or("amount");
    let counter: String =
        counter_name(&format!("{}_{argument}", option.tool)).replace("_rate", "_a_day");
    let limit = json!({
        "counter": counter, "window": "day", "max": most, "scope": "grant", "increment_from": option.path,
    });
    Map::from_iter([("limits".to_owned(), json!([limit]))])
}

fn recipients(option: &RuleOption, values: &[String]) -> Value {
    let pattern: Vec<String> = values
        .iter()
        .map(|value| match value.strip_prefix('@') {
            // One address and nothing beside it.
            Some(domain) => format!(r"[^\s,;<>@]+@{}", escape(domain)),
            None => escape(value),
        })
        .collect();
    let exact = values.iter().all(|value| !value.starts_with('@'));
    if exact {
        return json!([{"path": option.path, "op": "in", "value": values}]);
    }
    json!([{"path": option.path, "op": "regex", "value": format!("(?i)^(?:{})$", pattern.join("|"))}])
}

/// `https://host/…`; a bare host is taken as `https://host/`.
fn addresses(values: &[String]) -> Result<Vec<String>, OptionError> {
    values
        .iter()
        .map(|value| {
            let full =
                if value.contains("://") { value.clone() } else { format!("https://{value}") };
            let rest = full.strip_prefix("https://").or_else(|| full.strip_prefix("http://"));
            let rest =
                rest.ok_or_else(|| problem(format!("`{value}` is not an http or https address")))?;
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if host.is_empty() || host.contains(['@', '*', ' ', '\\']) {
                return Err(problem(format!("`{value}` does not name one host")));
            }
            // Without a slash, `https://example.com` would let `https://example.com.evil.net` pass.
            Ok(if rest.contains('/') { full } else { format!("{full}/") })
        })
        .collect()
}

fn folders(values: &[String]) -> Result<Vec<String>, OptionError> {
    values
        .iter()
        .map(|value| {
            if value.split(['/', '\\']).any(|step| step == "..") {
                return Err(problem(format!("`{value}` climbs out with `..`")));
            }
            let separator = if value.contains('\\') && !value.contains('/') { '\\' } else { '/' };
            Ok(if value.ends_with(separator) {
                value.clone()
            } else {
                format!("{value}{separator}")
            })
        })
        .collect()
}

fn amount(value: Option<&String>) -> Result<Value, OptionError> {
    let text = value.map(String::as_str).unwrap_or_default();
    let amount: Amount = text.parse().map_err(|error| problem(format!("`{text}` is {error}")))?;
    if amount.is_negative() {
        return Err(problem("the amount must not be below 0"));
    }
    text.parse::<Number>()
        .map(Value::Number)
        .map_err(|_| problem(format!("`{text}` is not a number")))
}

fn count(value: Option<&String>) -> Result<Value, OptionError> {
    let text = value.map(String::as_str).unwrap_or_default();
    text.parse::<u32>()
        .map(Value::from)
        .map_err(|_| problem(format!("`{text}` is not a whole number from 0")))
}

/// For a pattern, letter by letter.
fn escape(text: &str) -> String {
    regex::escape(text)
}
