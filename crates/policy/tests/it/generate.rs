//! Documents and calls made up from a seed: small names and values, so that
//! rules and calls meet often.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The last two have pointers of their own spelling.
const NAMES: &[&str] = &["a", "b", "ab", "ba", "abc", "x/y", "x~1"];
/// No two of them are equally specific and overlap.
const PATTERNS: &[&str] = &["*", "a*", "ab*", "b?*"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "1.0",
    "1e0",
    "2",
    "-1",
    "1.5",
    "10",
    "1e1",
    "100e-2",
    "0.1",
    "0.10",
    "9007199254740993",
    "9007199254740992",
];
const TEXTS: &[&str] = &["", "a", "ab", "abc", "b", "1", "é", "line\nbreak"];
const PATHS: &[&str] = &[
    "args.x",
    "args.y",
    "args.o.x",
    "args.o.y",
    "args.l[0]",
    "args.l[1]",
    "args.l[*]",
    "args.m[*].x",
    "args.m[*][*]",
    "args.o[\"k.1\"]",
    "args.l[*].x[0]",
];
/// Names of members: some stand in a path as they are, some only in quotes.
const KEYS: &[&str] =
    &["x", "y", "o", "l", "m", "id", "k.1", "a b", "q\"t", "b\\s", "é", "]", "x[0]", "*", ""];
const CONTEXT: &[&str] = &[
    "tool.name",
    "tool.category",
    "tool.severity",
    "grant.label",
    "session.client_name",
    "call.hour_utc",
    "call.weekday_utc",
];
/// Values that the facts of a call take, and some that they never do.
const FACTS: &[(&str, &[&str])] = &[
    ("tool.name", &["a", "ab", "x/y", "A"]),
    ("tool.category", &["Read", "Write", "Execute", "Destructive", "Financial", "execute"]),
    ("tool.severity", &["Low", "Medium", "High", "Critical", "high"]),
    ("grant.label", &["a", "ab", "abc"]),
    ("session.client_name", &["a", "b", ""]),
    ("call.weekday_utc", &["mon", "tue", "wed", "thu", "fri", "sat", "sun", "Mon"]),
];
/// Counters, each with the one window that it may have.
const COUNTERS: &[(&str, &str)] = &[
    ("c1", "hour"),
    ("c2", "minute"),
    ("c3", "second"),
    ("c4", "day"),
    ("c5", "week"),
    ("c6", "month"),
    ("c7", "90s"),
    ("c8", "15m"),
    ("c9", "6h"),
    ("c10", "31d"),
];
const OPS: &[&str] = &[
    "eq",
    "neq",
    "lt",
    "lte",
    "gt",
    "gte",
    "in",
    "not_in",
    "exists",
    "regex",
    "contains",
    "starts_with",
    "ends_with",
    "length_lte",
];

/// A key as a step of a path: after a dot, in quotes, or in quotes with an escape.
fn key_step(random: &mut Random) -> String {
    // Mostly one of those that calls have.
    let known = if random.one_in(2) { 5 } else { KEYS.len() };
    let key = KEYS[random.below(known)];
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
    if plain && !random.one_in(4) {
        return format!(".{key}");
    }
    if random.one_in(3) {
        let escaped = key.chars().map(|c| format!("\\u{:04x}", u32::from(c)));
        return format!("[\"{}\"]", escaped.collect::<String>());
    }
    format!("[{}]", json!(key))
}

/// A way into the arguments.
fn path(random: &mut Random) -> String {
    if random.one_in(2) {
        return random.pick(PATHS).to_owned();
    }
    let mut out = format!("args{}", key_step(random));
    for _ in 0..random.below(4) {
        match random.below(4) {
            0 => out.push_str("[*]"),
            1 => out.push_str(random.pick(&["[0]", "[1]", "[2]"])),
            _ => out.push_str(&key_step(random)),
        }
    }
    out
}

fn number(random: &mut Random) -> Value {
    serde_json::from_str(random.pick(NUMBERS)).expect("a number")
}

fn scalar(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3..=5 => number(random),
        _ => json!(random.pick(TEXTS)),
    }
}

/// Any JSON value, not deep.
pub(crate) fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 2 { 6 } else { 9 }) {
        6 | 7 => Value::Array(random.many(3, |random| value(random, depth + 1))),
        8 => {
            let pairs =
                random.many(3, |random| (random.pick(KEYS).to_owned(), value(random, depth + 1)));
            Value::Object(pairs.into_iter().collect())
        }
        _ => scalar(random),
    }
}

/// A fact of the call compared with values of its kind.
fn fact(random: &mut Random) -> Value {
    let path = random.pick(CONTEXT);
    let Some((_, words)) = FACTS.iter().find(|(name, _)| *name == path) else {
        let op = random.pick(&["eq", "lt", "lte", "gt", "gte"]);
        return json!({"path": path, "op": op, "value": random.below(26)});
    };
    match random.below(4) {
        0 => json!({"path": path, "op": "eq", "value": random.pick(words)}),
        1 => json!({"path": path, "op": "neq", "value": random.pick(words)}),
        at => {
            let list = random.many(3, |random| json!(random.pick(words)));
            json!({"path": path, "op": if at == 2 { "in" } else { "not_in" }, "value": list})
        }
    }
}

fn comparison(random: &mut Random) -> Value {
    if random.one_in(6) {
        return fact(random);
    }
    let path = if random.one_in(9) { random.pick(CONTEXT).to_owned() } else { path(random) };
    let op = random.pick(OPS);
    let value = match op {
        "lt" | "lte" | "gt" | "gte" => number(random),
        "in" | "not_in" => Value::Array(random.many(4, |random| value(random, 1))),
        "exists" => json!(random.one_in(2)),
        "regex" => json!(random.pick(&["^a", "b$", "^[a-b]+$", ".", "x*", "é"])),
        "starts_with" | "ends_with" => json!(random.pick(TEXTS)),
        "length_lte" => json!(random.below(4)),
        _ => value(random, 1),
    };
    json!({"path": path, "op": op, "value": value})
}

fn condition(random: &mut Random, depth: usize) -> Value {
    if depth >= 4 || !random.one_in(4) {
        return comparison(random);
    }
    if random.one_in(2) {
        return json!({"not": condition(random, depth + 1)});
    }
    let count = random.below(3) + 1;
    let inner: Vec<Value> = (0..count).map(|_| condition(random, depth + 1)).collect();
    json!({"any": inner})
}

pub(crate) fn rule(random: &mut Random) -> Value {
    let mut rule = json!({"conditions": random.many(3, |random| condition(random, 0))});
    if random.one_in(6) {
        rule["on_deny"] = json!("own words");
    }
    rule
}

fn limit(random: &mut Random) -> Value {
    // Mostly few, so that limits meet on one counter.
    let many = if random.one_in(2) { 2 } else { COUNTERS.len() };
    let (counter, window) = COUNTERS[random.below(many)];
    let mut limit = json!({"counter": counter, "window": window, "max": random.below(4)});
    if random.one_in(2) {
        limit["scope"] = json!(random.pick(&["grant", "session", "server", "workspace"]));
    }
    if random.one_in(3) {
        limit["reset"] = json!(random.pick(&["calendar", "sliding"]));
    }
    if random.one_in(3) {
        limit["on_unavailable"] = json!(random.pick(&["allow", "deny"]));
    }
    if random.one_in(3) {
        let paths = ["args.x", "args.o.x", "args.l[0]", "args.o[\"k.1\"]", "args[\"x\"]"];
        limit["increment_from"] = json!(random.pick(&paths));
        let max = random.pick(&["1.5", "10", "0.1", "0", "99999999999999.999999999"]);
        limit["max"] = serde_json::from_str(max).expect("a number");
    }
    limit
}

/// One of the short forms of a limit.
fn rate_limit(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({"max": random.below(3), "window": random.pick_number(&[1, 60, 2_678_400])}),
        1 => json!("2/minute"),
        _ => json!(random.pick(&["0/second", "1/hour", "3/90s", "1/31d", "2/month"])),
    }
}

fn rules(random: &mut Random, short_forms: bool) -> Value {
    let mut entry = Map::new();
    if short_forms && random.one_in(6) {
        let action = random.pick(&["deny", "hide"]);
        entry.insert("action".to_owned(), json!(action));
        if action == "deny" && random.one_in(2) {
            entry.insert("reason".to_owned(), json!("own words"));
        }
        return Value::Object(entry);
    }
    for list in ["deny_if", "require", "approve_if"] {
        if random.one_in(2) {
            entry.insert(list.to_owned(), Value::Array(random.many(2, rule)));
        }
    }
    if random.one_in(2) {
        entry.insert("limits".to_owned(), Value::Array(random.many(3, limit)));
    }
    if short_forms && random.one_in(5) {
        entry.insert("rate_limit".to_owned(), rate_limit(random));
    }
    if short_forms && random.one_in(5) {
        entry.insert("action".to_owned(), json!(random.pick(&["allow", "require_approval"])));
    }
    if random.one_in(6) {
        entry.insert("approval".to_owned(), json!({"hold": "10s", "quorum": 2}));
    }
    Value::Object(entry)
}

/// A valid document.
pub(crate) fn document(random: &mut Random) -> Value {
    let mut out = json!({"version": "1", "default": random.pick(&["allow", "deny"])});
    if random.one_in(5) {
        out["mode"] = json!("observe");
    }
    if random.one_in(3) {
        let hide = random.many(2, |random| random.pick(&["a", "ba", "ab*", "?c", "z"]).to_owned());
        out["hide"] = json!(hide);
    }
    if random.one_in(3) {
        out["all_tools"] = rules(random, false);
    }
    let mut tools = Map::new();
    for name in NAMES.iter().chain(PATTERNS) {
        if random.one_in(3) {
            tools.insert((*name).to_owned(), rules(random, true));
        }
    }
    out["tools"] = Value::Object(tools);
    out
}

/// A call's parts.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) known: bool,
    pub(crate) changed: bool,
    pub(crate) held: bool,
    /// `unknown_tools: by_policy`.
    pub(crate) by_policy: bool,
    /// `on_drift: deny`.
    pub(crate) drift_denied: bool,
    /// `off`, `log` or `deny`.
    pub(crate) validate: &'static str,
    /// The arguments do not fit the tool's schema.
    pub(crate) misfit: bool,
    pub(crate) label: &'static str,
    pub(crate) client: Option<&'static str>,
    pub(crate) category: Option<&'static str>,
    pub(crate) severity: Option<&'static str>,
    /// From Monday at midnight.
    pub(crate) hours: i64,
    pub(crate) observe: bool,
}

pub(crate) fn call(random: &mut Random) -> Call {
    let mut arguments = Map::new();
    for key in ["x", "y"] {
        if !random.one_in(3) {
            arguments.insert(key.to_owned(), value(random, 2));
        }
    }
    for key in ["o", "l", "m"] {
        if !random.one_in(4) {
            arguments.insert(key.to_owned(), value(random, 0));
        }
    }
    if random.one_in(2) {
        let list = random.many(3, |random| value(random, 2));
        arguments.insert("l".to_owned(), Value::Array(list));
    }
    if random.one_in(2) {
        let list = random.many(3, |random| json!({"x": value(random, 2)}));
        arguments.insert("m".to_owned(), Value::Array(list));
    }
    Call {
        tool: random.pick(NAMES).to_owned(),
        arguments: Value::Object(arguments),
        known: !random.one_in(12),
        changed: random.one_in(12),
        held: random.one_in(20),
        by_policy: random.one_in(3),
        drift_denied: random.one_in(2),
        validate: random.pick(&["off", "log", "deny"]),
        misfit: random.one_in(6),
        label: random.pick(&["a", "ab", "abc"]),
        client: [None, Some("a"), Some("b")][random.below(3)],
        category: [None, Some("Read"), Some("Execute"), Some("Financial")][random.below(4)],
        severity: [None, Some("Low"), Some("Medium"), Some("High"), Some("Critical")]
            [random.below(5)],
        hours: i64::try_from(random.below(7 * 24)).expect("small"),
        observe: random.one_in(10),
    }
}

/// Changes something somewhere in a document, so that it is probably no longer valid.
pub(crate) fn spoil(random: &mut Random, value: &mut Value) {
    let go_deeper = !random.one_in(3);
    match value {
        Value::Object(pairs) if !pairs.is_empty() => {
            let at = random.below(pairs.len());
            let key = pairs.keys().nth(at).cloned().expect("a key");
            if go_deeper {
                spoil(random, &mut pairs[&key]);
            } else if random.one_in(2) {
                pairs.remove(&key);
            } else {
                let old = pairs.remove(&key).expect("the value");
                pairs.insert(format!("{key}_"), old);
            }
        }
        Value::Array(items) if !items.is_empty() && go_deeper => {
            let at = random.below(items.len());
            spoil(random, &mut items[at]);
        }
        Value::Array(items) => items.push(scalar(random)),
        other => {
            *other = if random.one_in(2) {
                scalar(random)
            } else {
                json!(random.pick(&["1m", "args.x", "eq", "deny", "c1"]))
            };
        }
    }
}
