//! Documents and calls made up from a seed: small names and values, so that
//! rules and calls meet often.

use serde_json::{Map, Value, json};

/// A small generator (splitmix64); the same seed gives the same documents everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("small")).expect("small")
    }

    pub(crate) fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

const NAMES: &[&str] = &["a", "b", "ab", "ba", "abc"];
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
const CONTEXT: &[&str] = &[
    "tool.name",
    "tool.category",
    "grant.label",
    "session.client_name",
    "call.hour_utc",
    "call.weekday_utc",
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
            let pairs = random.many(3, |random| {
                (random.pick(&["x", "y", "k.1", "id"]).to_owned(), value(random, depth + 1))
            });
            Value::Object(pairs.into_iter().collect())
        }
        _ => scalar(random),
    }
}

fn comparison(random: &mut Random) -> Value {
    let path = if random.one_in(5) { random.pick(CONTEXT) } else { random.pick(PATHS) };
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
    let mut limit = json!({
        "counter": random.pick(&["c1", "c2", "c3"]), "window": "hour", "max": random.below(4)
    });
    if random.one_in(2) {
        limit["scope"] = json!(random.pick(&["grant", "session", "server", "workspace"]));
    }
    if random.one_in(3) {
        limit["reset"] = json!("calendar");
    }
    if random.one_in(3) {
        limit["increment_from"] = json!(random.pick(&["args.x", "args.o.x", "args.l[0]"]));
        limit["max"] = serde_json::from_str(random.pick(&["1.5", "10", "0.1"])).expect("a number");
    }
    limit
}

fn rules(random: &mut Random, short_forms: bool) -> Value {
    let mut entry = Map::new();
    if short_forms && random.one_in(6) {
        entry.insert("action".to_owned(), json!(random.pick(&["deny", "hide"])));
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
        entry.insert("rate_limit".to_owned(), json!("2/minute"));
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
    /// `validate_arguments: deny`, and they do not fit.
    pub(crate) misfit: bool,
    pub(crate) label: &'static str,
    pub(crate) client: Option<&'static str>,
    pub(crate) rated: bool,
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
        misfit: random.one_in(12),
        label: random.pick(&["a", "ab", "abc"]),
        client: [None, Some("a"), Some("b")][random.below(3)],
        rated: random.one_in(2),
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

/// The same value with the keys of every object in another order.
pub(crate) fn shuffled(random: &mut Random, value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| shuffled(random, item)).collect())
        }
        Value::Object(pairs) => {
            let mut pairs: Vec<(String, Value)> =
                pairs.iter().map(|(key, item)| (key.clone(), shuffled(random, item))).collect();
            for at in (1..pairs.len()).rev() {
                pairs.swap(at, random.below(at + 1));
            }
            Value::Object(pairs.into_iter().collect())
        }
        other => other.clone(),
    }
}
