//! Sound documents, and what becomes of them when one thing in them is spoilt: a key dropped,
//! misspelt or added, a value of another type, a number out of its range, a word with a slip in it.

use std::collections::BTreeSet;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};
use sluice_policy::{ProblemSeverity, check, json_schema};

/// Every part of the language, in its long and its short forms.
const SOUND: &[&str] = &[
    r#"{"version":"1","description":"d","mode":"enforce","default":"deny","hide":["a","b_*"],
    "all_tools":{"require":[{"name":"n","conditions":[{"path":"grant.label","op":"starts_with","value":"ci-"}],"on_deny":"w"}],
        "limits":[{"counter":"all","window":"day","max":500,"scope":"workspace"}],"approval":{"quorum":2}},
    "tools":{
        "pay":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100.5},{"path":"args[\"odd.key\"][0]","op":"exists"}]}],
            "deny_if":[{"conditions":[{"any":[{"path":"args.to","op":"in","value":["x",1,null]},{"not":{"any":[{"not":{"path":"args.l[*].id","op":"regex","value":"^a"}}]}}]}]}],
            "approve_if":[{"conditions":[{"path":"call.hour_utc","op":"gte","value":20},{"path":"args.t","op":"length_lte","value":3}]}],
            "limits":[{"counter":"money","window":"6h","max":10.25,"increment_from":"args.amount","reset":"calendar","on_unavailable":"allow","scope":"session"}],
            "approval":{"hold":"0s","expires":"7d","approvers":["role:admin","member:a@b.c"],"quorum":5,"self":false}},
        "read_*":{}}}"#,
    r#"{"version":"1","default":"allow","tools":{
        "a":{"rate_limit":{"max":10,"window":60}},"b":{"rate_limit":"10/minute","action":"allow"},
        "c":{"action":"deny","reason":"r"},"d":{"action":"require_approval"},"e":{"action":"hide"},
        "f":{"deny_if":[{"conditions":[{"path":"args.a","op":"exists","value":false}]}],
            "require":[{"conditions":[{"path":"args.a","op":"contains","value":{"k":[1]}}]}]}}}"#,
];

/// What no JSON Schema can say.
pub(crate) const CHECKER_ONLY: &[&str] = &[
    "syntax",
    "duplicate_key",
    "too_large",
    "ambiguous_pattern",
    "counter_windows",
    "bad_regex",
    "regex_too_large",
];

/// Texts that only the checker refuses, with the code of the problem.
const BEYOND_SCHEMA: &[(&str, &str)] = &[
    ("syntax", r#"{"version":"1","default":"deny",}"#),
    ("duplicate_key", r#"{"version":"1","default":"deny","default":"allow"}"#),
    ("duplicate_key", r#"{"version":"1","default":"deny","tools":{"a":{},"\u0061":{}}}"#),
    ("ambiguous_pattern", r#"{"version":"1","default":"deny","tools":{"a*":{},"*b":{}}}"#),
    (
        "counter_windows",
        r#"{"version":"1","default":"deny","tools":{"a":{"limits":[{"counter":"c","window":"day","max":1},{"counter":"c","window":"hour","max":1}]}}}"#,
    ),
    (
        "bad_regex",
        r#"{"version":"1","default":"deny","all_tools":{"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"("}]}]}}"#,
    ),
    (
        "bad_regex",
        r#"{"version":"1","default":"deny","all_tools":{"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"(a)\\1"}]}]}}"#,
    ),
];

fn codes(text: &str) -> BTreeSet<&'static str> {
    let errors = check(text, None).problems.into_iter();
    errors.filter(|p| p.severity == ProblemSeverity::Error).map(|problem| problem.code).collect()
}

/// Whether the checker finds nothing that the schema could find as well.
pub(crate) fn accepts(text: &str) -> bool {
    codes(text).iter().all(|code| CHECKER_ONLY.contains(code))
}

/// A pointer to every part.
fn parts(value: &Value, pointer: &str, out: &mut Vec<String>) {
    out.push(pointer.to_owned());
    let mut inner = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        parts(value, &format!("{pointer}/{key}"), out);
    };
    match value {
        Value::Object(pairs) => pairs.iter().for_each(|(key, value)| inner(key, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| inner(&at.to_string(), item));
        }
        _ => {}
    }
}

/// What may stand in a value's place: another type, an edge of a range, a slip.
fn instead(value: &Value) -> Vec<Value> {
    let mut out = vec![Value::Null, json!(true), json!(7), json!("words"), json!([]), json!({})];
    match value {
        Value::Number(_) => {
            let texts = [
                "-1",
                "0",
                "0.5",
                "1.0",
                "1e1",
                "6",
                "1000000000000000",
                "999999999999999",
                "2678401",
                "1e400",
                "-0",
            ];
            out.extend(texts.map(|text| serde_json::from_str(text).expect("a number")));
        }
        Value::String(text) => {
            let short: String = text.chars().skip(1).collect();
            let slips = [
                String::new(),
                short,
                format!("{text} "),
                format!("{text}s"),
                format!("{text}[0]"),
                format!("{text}.x"),
                text.to_uppercase(),
                text.repeat(100),
            ];
            out.extend(slips.map(Value::from));
        }
        Value::Array(items) => {
            out.push(Value::Array(items.iter().chain(items).cloned().collect()));
            let many = items.first().cloned().into_iter().cycle().take(65);
            out.push(Value::Array(many.collect()));
        }
        // A condition in one more `any` or `not`.
        Value::Object(_) => out.extend([json!({"not": value}), json!({"any": [value]})]),
        Value::Bool(_) => out.push(json!(false)),
        Value::Null => {}
    }
    out
}

/// The same object with one key gone, one misspelt, and one that does not belong there.
fn other_keys(value: &Value) -> Vec<Value> {
    let Value::Object(pairs) = value else { return Vec::new() };
    let mut out = Vec::new();
    for name in pairs.keys() {
        let mut fewer = pairs.clone();
        let old = fewer.shift_remove(name).expect("it is there");
        out.push(Value::Object(fewer.clone()));
        for slip in [format!("{name}s"), name.chars().skip(1).collect(), name.to_uppercase()] {
            let mut misspelt = fewer.clone();
            misspelt.insert(slip, old.clone());
            out.push(Value::Object(misspelt));
        }
    }
    for key in ["path", "any", "not", "value", "action", "reason", "limits", "max", "x", ""] {
        if !pairs.contains_key(key) {
            let mut more = pairs.clone();
            more.insert(key.to_owned(), json!("deny"));
            out.push(Value::Object(more));
        }
    }
    out
}

/// Every document that differs from `sound` in one place.
fn spoilt(sound: &Value) -> Vec<Value> {
    let mut pointers = Vec::new();
    parts(sound, "", &mut pointers);
    let mut out = Vec::new();
    for pointer in pointers {
        let part = sound.pointer(&pointer).expect("it is there");
        for other in instead(part).into_iter().chain(other_keys(part)) {
            let mut document = sound.clone();
            *document.pointer_mut(&pointer).expect("it is there") = other;
            out.push(document);
        }
    }
    out
}

/// The codes that the sources can give.
fn all_codes() -> BTreeSet<String> {
    fn read(folder: &Path, out: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                read(&path, out);
            } else {
                out.push_str(&std::fs::read_to_string(&path).expect("text"));
            }
        }
    }
    let mut source = String::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut source);
    let given = regex::Regex::new(
        r#"(?:\.error\(|ProblemSeverity::Error,|code: |fail\()\s*"([a-z]+_?[a-z_]+)","#,
    )
    .expect("a pattern");
    given.captures_iter(&source).map(|found| found[1].to_owned()).collect()
}

#[test]
fn the_schema_and_the_checker_agree_on_every_way_to_spoil_a_sound_document() {
    let validator: Validator = jsonschema::draft202012::new(&json_schema()).expect("a schema");
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let (mut count, mut refused) = (0, 0);
    for sound in SOUND {
        assert_eq!(check(sound, None).problems, [], "{sound}");
        let sound: Value = serde_json::from_str(sound).expect("JSON");
        assert!(validator.is_valid(&sound));
        for document in spoilt(&sound) {
            let text = document.to_string();
            let found = codes(&text);
            assert_eq!(validator.is_valid(&document), accepts(&text), "{text}: {found:?}");
            seen.extend(&found);
            refused += usize::from(!found.is_empty());
            count += 1;
        }
    }
    for (code, text) in BEYOND_SCHEMA {
        let found = codes(text);
        assert!(found.contains(code), "{text}: {found:?}");
        assert!(CHECKER_ONLY.contains(code) && accepts(text), "{text}: {found:?}");
        seen.extend(&found);
    }
    assert!(count >= 2_000 && refused >= 1_500, "{count} documents, {refused} refused");
    // Sizes have tests of their own.
    let all = all_codes();
    assert!(all.len() >= 20 && all.contains("bad_window"), "{all:?}");
    let sizes = ["too_large", "regex_too_large"];
    let missed: Vec<&String> =
        all.iter().filter(|c| !seen.contains(c.as_str()) && !sizes.contains(&c.as_str())).collect();
    assert!(missed.is_empty(), "no document has {missed:?}; all: {all:?}");
}
