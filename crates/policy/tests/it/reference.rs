//! The language again, slow and obvious, from its page alone: plain JSON
//! values, no compilation, nothing shared with the engine.

use serde_json::{Map, Value};

use crate::generate::Call;
use crate::reference_paths::{Found, resolve, steps};

/// What became of a call: verdict, code, rule, and each charge as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) verdict: &'static str,
    pub(crate) code: String,
    pub(crate) rule: String,
    pub(crate) charges: Vec<String>,
    pub(crate) observed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Wrong,
    Missing,
}

pub(crate) fn decide(document: &Value, call: &Call) -> Outcome {
    let observing = call.observe || document["mode"] == "observe";
    let policy = policy_part(document, call);
    let server = server_part(call);
    let stop = |verdict, code: &str, rule: &str| Outcome {
        verdict,
        code: code.to_owned(),
        rule: rule.to_owned(),
        charges: Vec::new(),
        observed: false,
    };
    // The server's own refusals stand at three places of the table.
    let hidden = policy.code == "unknown_tool";
    if let (Some((verdict, code, rule)), true) = (&server, observing || !hidden) {
        return stop(verdict, code, rule);
    }
    let before_schema = ["unknown_tool", "default_deny", "require_failed", "deny_if_matched"];
    if call.misfit
        && call.validate == "deny"
        && (observing || !before_schema.contains(&policy.code.as_str()))
    {
        return stop("deny", "arguments_invalid", "(schema)");
    }
    if observing && policy.verdict != "forward" {
        return Outcome { verdict: "forward", observed: true, ..policy };
    }
    policy
}

fn server_part(call: &Call) -> Option<(&'static str, &'static str, &'static str)> {
    if !call.known && !call.by_policy {
        return Some(("hide", "unknown_tool", "(unknown tool)"));
    }
    if call.changed && call.drift_denied {
        return Some(("deny", "tool_changed", "(drift)"));
    }
    call.held.then_some(("deny", "tool_changed", "(held)"))
}

/// Hidden names, those of the short form included.
fn hidden(document: &Value, tool: &str) -> bool {
    let list = document["hide"].as_array().cloned().unwrap_or_default();
    let listed = list.iter().filter_map(Value::as_str).any(|name| glob(name, tool));
    let tools = document["tools"].as_object().cloned().unwrap_or_default();
    let short = tools.iter().any(|(name, entry)| entry["action"] == "hide" && glob(name, tool));
    listed || short
}

fn glob(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '*' => (0..=name.len())
            .filter(|at| name.is_char_boundary(*at))
            .any(|at| glob(rest, &name[at..])),
        '?' => name.chars().next().is_some_and(|c| glob(rest, &name[c.len_utf8()..])),
        wanted => name.strip_prefix(wanted).is_some_and(|name| glob(rest, name)),
    }
}

fn entry<'d>(document: &'d Value, tool: &str) -> Option<(String, &'d Map<String, Value>)> {
    let tools = document["tools"].as_object()?;
    if let Some(entry) = tools.get(tool) {
        return Some((tool.to_owned(), entry.as_object()?));
    }
    let literals = |name: &str| name.chars().filter(|c| *c != '*' && *c != '?').count();
    let patterns = tools.iter().filter(|(name, _)| name.contains(['*', '?']) && glob(name, tool));
    let (name, entry) = patterns.max_by_key(|(name, _)| literals(name))?;
    Some((name.clone(), entry.as_object()?))
}

/// The rules of a list with their pointers; the short forms come last.
fn rules(base: &str, entry: &Map<String, Value>, list: &str) -> Vec<(String, Value)> {
    let mut out = entry.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    let action = entry.get("action").and_then(Value::as_str).unwrap_or_default();
    if (list, action) == ("deny_if", "deny") || (list, action) == ("approve_if", "require_approval")
    {
        out.push(serde_json::json!({"conditions": []}));
    }
    out.into_iter().enumerate().map(|(i, rule)| (format!("{base}/{list}/{i}"), rule)).collect()
}

fn policy_part(document: &Value, call: &Call) -> Outcome {
    let stop = |verdict, code: &str, rule: &str| Outcome {
        verdict,
        code: code.to_owned(),
        rule: rule.to_owned(),
        charges: Vec::new(),
        observed: false,
    };
    if hidden(document, &call.tool) {
        return stop("hide", "unknown_tool", "(hidden)");
    }
    let own = entry(document, &call.tool);
    if own.is_none() && document["default"] == "deny" {
        return stop("deny", "default_deny", "(default deny)");
    }
    let empty = Map::new();
    let mut sets =
        vec![("/all_tools".to_owned(), document["all_tools"].as_object().unwrap_or(&empty))];
    if let Some((name, entry)) = own {
        sets.push((format!("/tools/{}", name.replace('~', "~0").replace('/', "~1")), entry));
    }
    let all = |list: &str| -> Vec<(String, Value)> {
        sets.iter().flat_map(|(base, entry)| rules(base, entry, list)).collect()
    };
    for (pointer, rule) in all("require") {
        if conjunction(&rule["conditions"], call, true) != Truth::True {
            return stop("deny", "require_failed", &pointer);
        }
    }
    let fires = |rule: &Value| {
        matches!(conjunction(&rule["conditions"], call, false), Truth::True | Truth::Wrong)
    };
    for (pointer, rule) in all("deny_if") {
        if fires(&rule) {
            return stop("deny", "deny_if_matched", &pointer);
        }
    }
    let charges = match charges(&sets, call) {
        Ok(charges) => charges,
        Err((code, pointer)) => return stop("deny", code, &pointer),
    };
    let parked = all("approve_if").into_iter().find(|(_, rule)| fires(rule));
    let mut outcome = match parked {
        Some((pointer, _)) => stop("approve", "approval_pending", &pointer),
        None => stop("forward", "allowed", ""),
    };
    outcome.charges = charges;
    outcome
}

/// Billionths: enough for the generated amounts.
fn amount(value: &Value) -> Option<i128> {
    let number = value.as_number()?.to_string();
    let scaled = decimal(&number);
    (scaled >= 0 && scaled % 1_000 == 0 && scaled < 1_000_000_000_000_000 * ONE).then_some(scaled)
}

/// The limits of an entry, the short form last.
fn limits(base: &str, entry: &Map<String, Value>) -> Vec<Value> {
    let mut limits = entry.get("limits").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(rate) = entry.get("rate_limit") {
        let tool = base.trim_start_matches("/tools/").replace("~1", "/").replace("~0", "~");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
        let tool: String = tool.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        let (max, window) = match rate.as_str() {
            Some(rate) => {
                let (max, window) = rate.split_once('/').expect("a rate");
                (max.parse::<u64>().expect("a number"), window.to_owned())
            }
            None => (rate["max"].as_u64().expect("a number"), format!("{}s", rate["window"])),
        };
        limits.push(serde_json::json!({"counter": format!("{tool}_rate"), "window": window, "max": max, "scope": "session"}));
    }
    limits
}

type Failed = (&'static str, String);

fn charges(sets: &[(String, &Map<String, Value>)], call: &Call) -> Result<Vec<String>, Failed> {
    struct Sum {
        key: String,
        max: i128,
        rule: String,
        amount: i128,
        sources: Vec<Vec<String>>,
        /// One of its limits wants no calls while nobody counts.
        strict: bool,
    }
    let mut sums: Vec<Sum> = Vec::new();
    for (base, entry) in sets {
        let limits = limits(base, entry);
        for (index, limit) in limits.iter().enumerate() {
            let rule = format!("{base}/limits/{index}");
            let source = limit["increment_from"].as_str().unwrap_or_default().to_owned();
            let counted = if source.is_empty() {
                ONE
            } else {
                let found = resolve(&source, call);
                let value = match &found[..] {
                    [Found::Value(value)] => amount(value),
                    _ => None,
                };
                value.ok_or(("amount_invalid", rule.clone()))?
            };
            let word = |key: &str, default: &str| limit[key].as_str().unwrap_or(default).to_owned();
            let key = format!(
                "{} {} {} {}",
                word("counter", ""),
                word("window", ""),
                word("scope", "grant"),
                word("reset", "sliding")
            );
            let strict = word("on_unavailable", "deny") == "deny";
            let max = decimal(&limit["max"].as_number().expect("a number").to_string());
            if let Some(sum) = sums.iter_mut().find(|sum| sum.key == key) {
                if !sum.sources.contains(&steps(&source)) {
                    sum.amount += counted;
                    sum.sources.push(steps(&source));
                }
                sum.strict |= strict;
                if max < sum.max {
                    (sum.max, sum.rule) = (max, rule);
                }
            } else {
                let sources = vec![steps(&source)];
                sums.push(Sum { key, max, rule, amount: counted, sources, strict });
            }
        }
    }
    if let Some(never) = sums.iter().find(|sum| sum.amount > sum.max) {
        return Err(("rate_limited", never.rule.clone()));
    }
    Ok(sums
        .iter()
        .map(|sum| {
            let unavailable = if sum.strict { "deny" } else { "allow" };
            format!("{} {} {} {} {unavailable}", sum.key, sum.max, sum.rule, sum.amount)
        })
        .collect())
}

fn all_of(truths: &[Truth]) -> Truth {
    for first in [Truth::False, Truth::Wrong, Truth::Missing] {
        if truths.contains(&first) {
            return first;
        }
    }
    Truth::True
}

fn one_of(truths: &[Truth]) -> Truth {
    for first in [Truth::True, Truth::Wrong, Truth::Missing] {
        if truths.contains(&first) {
            return first;
        }
    }
    Truth::False
}

fn conjunction(conditions: &Value, call: &Call, every: bool) -> Truth {
    let list = conditions.as_array().expect("a list");
    all_of(&list.iter().map(|condition| truth(condition, call, every)).collect::<Vec<_>>())
}

fn truth(condition: &Value, call: &Call, every: bool) -> Truth {
    if let Some(inner) = condition.get("not") {
        return match truth(inner, call, !every) {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            unknown => unknown,
        };
    }
    if let Some(Value::Array(inner)) = condition.get("any") {
        return one_of(&inner.iter().map(|c| truth(c, call, every)).collect::<Vec<_>>());
    }
    let op = condition["op"].as_str().expect("an operator");
    let found = resolve(condition["path"].as_str().expect("a path"), call);
    let truths: Vec<Truth> =
        found.iter().map(|found| compare(op, &condition["value"], found)).collect();
    if every { all_of(&truths) } else { one_of(&truths) }
}

fn compare(op: &str, wanted: &Value, found: &Found) -> Truth {
    let of = |value: bool| if value { Truth::True } else { Truth::False };
    if matches!(found, Found::EmptyList) {
        return Truth::False;
    }
    let value = match found {
        Found::Value(value) if !value.is_null() => Some(value),
        _ => None,
    };
    if op == "exists" {
        return of(value.is_some() == (*wanted != Value::Bool(false)));
    }
    let Some(value) = value else {
        return if matches!(found, Found::Blocked) { Truth::Wrong } else { Truth::Missing };
    };
    let decided = match op {
        "eq" => Some(same(value, wanted)),
        "neq" => Some(!same(value, wanted)),
        "in" => Some(wanted.as_array().expect("a list").iter().any(|one| same(value, one))),
        "not_in" => Some(!wanted.as_array().expect("a list").iter().any(|one| same(value, one))),
        "lt" | "lte" | "gt" | "gte" => value.as_number().map(|number| {
            let (found, bound) = (decimal(&number.to_string()), decimal(&wanted.to_string()));
            match op {
                "lt" => found < bound,
                "lte" => found <= bound,
                "gt" => found > bound,
                _ => found >= bound,
            }
        }),
        "regex" => value.as_str().map(|text| {
            regex::Regex::new(wanted.as_str().expect("a pattern")).expect("valid").is_match(text)
        }),
        "starts_with" => {
            value.as_str().map(|text| text.starts_with(wanted.as_str().expect("a text")))
        }
        "ends_with" => value.as_str().map(|text| text.ends_with(wanted.as_str().expect("a text"))),
        "contains" => match (value, wanted) {
            (Value::String(text), Value::String(part)) => Some(text.contains(part.as_str())),
            (Value::Array(items), _) => Some(items.iter().any(|item| same(item, wanted))),
            _ => None,
        },
        "length_lte" => {
            let most = usize::try_from(wanted.as_u64().expect("a length")).expect("small");
            match value {
                Value::String(text) => Some(text.chars().count() <= most),
                Value::Array(items) => Some(items.len() <= most),
                _ => None,
            }
        }
        other => panic!("no operator {other}"),
    };
    decided.map_or(Truth::Wrong, of)
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => decimal(&x.to_string()) == decimal(&y.to_string()),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

const ONE: i128 = 1_000_000_000_000;

/// A small decimal in 10^-12.
fn decimal(text: &str) -> i128 {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().expect("a small exponent");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().expect("a small number");
    let shift = 12 + exponent - i32::try_from(fraction.len()).expect("short");
    digits * 10_i128.pow(u32::try_from(shift).expect("not too small"))
}
