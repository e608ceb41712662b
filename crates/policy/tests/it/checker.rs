//! Errors: all at once, each with its place and a suggestion.

use sluice_policy::{ProblemSeverity, check, check_bytes, compile};

/// Code, pointer, line, column, suggestion of every error.
fn errors(text: &str) -> Vec<(&'static str, String, u32, u32, Option<String>)> {
    let checked = check(text, None);
    let errors = checked.problems.iter().filter(|p| p.severity == ProblemSeverity::Error);
    let errors: Vec<_> = errors
        .map(|p| (p.code, p.pointer.clone(), p.line, p.column, p.suggestion.clone()))
        .collect();
    assert_eq!(checked.ok, errors.is_empty(), "{text}");
    assert_eq!(checked.normalised.is_some(), checked.ok);
    assert_eq!(compile(text).is_ok(), checked.ok, "check and compile agree on {text}");
    errors
}

fn codes(text: &str) -> Vec<&'static str> {
    errors(text).into_iter().map(|(code, ..)| code).collect()
}

#[test]
fn everything_is_told_at_once_with_its_place() {
    let text = r#"{
  "version": "2",
  "defalt": "deny",
  "tools": {
    "päy": { "limts": [], "limits": [
      { "counter": "Pay", "window": "minutes", "max": -1, "scope": "grnt" } ] },
    "x": { "requre": [], "deny_if": [
      { "conditions": [ { "path": "amount", "op": "ltee", "value": 1 },
                        { "path": "args.a", "op": "lt", "value": "1" } ] } ] }
  },
  "default": "alow"
}"#;
    let some = |text: &str| Some(text.to_owned());
    let expected = [
        ("unknown_word", "/version", 2, 14, None),
        ("unknown_key", "/defalt", 3, 3, some("default")),
        ("unknown_key", "/tools/päy/limts", 5, 14, some("limits")),
        ("bad_counter", "/tools/päy/limits/0/counter", 6, 20, some("pay")),
        ("bad_window", "/tools/päy/limits/0/window", 6, 37, some("minute")),
        ("out_of_range", "/tools/päy/limits/0/max", 6, 55, None),
        ("unknown_word", "/tools/päy/limits/0/scope", 6, 68, some("grant")),
        ("unknown_key", "/tools/x/requre", 7, 12, some("require")),
        ("bad_path", "/tools/x/deny_if/0/conditions/0/path", 8, 35, some("args.amount")),
        ("unknown_word", "/tools/x/deny_if/0/conditions/0/op", 8, 51, some("lte")),
        ("wrong_type", "/tools/x/deny_if/0/conditions/1/value", 9, 66, None),
        ("unknown_word", "/default", 11, 14, some("allow")),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(c, p, l, k, s)| (c, p.to_owned(), l, k, s)).collect();
    assert_eq!(errors(text), expected);
}

#[test]
fn syntax_errors_are_problems_like_any_other() {
    let table = [
        ("", 1, 1, ""),
        ("{", 1, 2, ""),
        ("{\"version\":\"1\",}", 1, 16, ""),
        ("{\"version\":\"1\"\n\"default\":1}", 2, 1, ""),
        ("{\"tools\":{\"a\":{\"limits\":[1,]}}}", 1, 28, "/tools/a/limits/1"),
        ("{\"version\":\"1\"} x", 1, 17, ""),
        ("{\"version\":01}", 1, 13, "/version"),
        ("{\"a\":\"\\ud800\"}", 1, 7, "/a"),
        ("{\"a\":\"\u{1}\"}", 1, 7, "/a"),
        ("\u{feff}{}", 1, 1, ""),
        ("{'a':1}", 1, 2, ""),
        ("nul", 1, 1, ""),
    ];
    for (text, line, column, pointer) in table {
        let found = errors(text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert_eq!(found[0], ("syntax", pointer.to_owned(), line, column, None), "{text:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(codes(&deep), ["syntax"]);
    let bytes = check_bytes(b"{\"version\":\n \"\xff\"}", None);
    assert_eq!((bytes.ok, bytes.problems[0].line, bytes.problems[0].column), (false, 2, 3));
}

#[test]
fn duplicate_keys_are_errors_at_any_depth_however_they_are_escaped() {
    let text = r#"{"version":"1","default":"deny","tools":{"a":{},"b":{"deny_if":[{"conditions":[],"conditions":[]}]},"\u0061":{}},
"default":"allow"}"#;
    let expected = [
        ("duplicate_key", "/tools/b/deny_if/0/conditions", 1, 82),
        ("duplicate_key", "/tools/a", 1, 101),
        ("duplicate_key", "/default", 2, 1),
    ];
    let found = errors(text);
    let found: Vec<_> = found.iter().map(|(c, p, l, k, _)| (*c, p.as_str(), *l, *k)).collect();
    assert_eq!(found, expected);
}

/// A document with these members besides `version` and `default`.
fn with(members: &str) -> String {
    format!(r#"{{"version":"1","default":"deny",{members}}}"#)
}

fn rule(condition: &str) -> String {
    with(&format!(r#""tools":{{"t":{{"require":[{{"conditions":[{condition}]}}]}}}}"#))
}

/// Documents, and the code of their error.
const WHOLE: &[(&str, &str)] = &[
    (r#"{"default":"deny"}"#, "missing_key"),
    (r#"{"version":"1"}"#, "missing_key"),
    (r#"{"version":1,"default":"deny"}"#, "wrong_type"),
    ("[]", "wrong_type"),
];

/// Members of a sound document.
const MEMBERS: &[(&str, &str)] = &[
    (r#""mode":"watch""#, "unknown_word"),
    (r#""hide":["a",""]"#, "bad_name"),
    (r#""tools":{"":{}}"#, "bad_name"),
    (r#""tools":[]"#, "wrong_type"),
    (r#""all_tools":{"rate_limit":"1/day"}"#, "unknown_key"),
    (r#""tools":{"t":{"action":"deny","limits":[]}}"#, "action_conflict"),
    (r#""tools":{"t":{"action":"hide","require":[]}}"#, "action_conflict"),
    (r#""tools":{"t":{"action":"hide","reason":"x"}}"#, "action_conflict"),
    (r#""tools":{"t":{"action":"allow","reason":"x"}}"#, "misplaced_key"),
    (r#""tools":{"t":{"reason":"x"}}"#, "misplaced_key"),
    (r#""tools":{"t":{"action":"block"}}"#, "unknown_word"),
    (r#""tools":{"t":{"rate_limit":"10/fortnight"}}"#, "bad_rate"),
    (r#""tools":{"t":{"rate_limit":{"max":1,"window":0}}}"#, "out_of_range"),
    (r#""tools":{"t":{"rate_limit":{"max":1,"window":2678401}}}"#, "out_of_range"),
    (r#""tools":{"t":{"rate_limit":{"max":1}}}"#, "missing_key"),
    (r#""tools":{"t":{"rate_limit":10}}"#, "wrong_type"),
    (r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":1.5}]}}"#, "out_of_range"),
    (
        r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":1.0000000001,"increment_from":"args.n"}]}}"#,
        "out_of_range",
    ),
    (r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":"1"}]}}"#, "wrong_type"),
    (
        r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":1,"increment_from":"args.n[*]"}]}}"#,
        "bad_path",
    ),
    (
        r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":1,"increment_from":"call.hour_utc"}]}}"#,
        "bad_path",
    ),
    (r#""tools":{"t":{"limits":[{"counter":"c","window":"32d","max":1}]}}"#, "bad_window"),
    (
        r#""tools":{"t":{"limits":[{"counter":"c","window":"day","max":1},{"counter":"c","window":"hour","max":1}]}}"#,
        "counter_windows",
    ),
    (
        r#""tools":{"a":{"rate_limit":"1/day"},"b":{"limits":[{"counter":"a_rate","window":"hour","max":1,"scope":"session"}]}}"#,
        "counter_windows",
    ),
    (r#""tools":{"t":{"approval":{"hold":"11m"}}}"#, "bad_duration"),
    (r#""tools":{"t":{"approval":{"expires":"59s"}}}"#, "bad_duration"),
    (r#""tools":{"t":{"approval":{"expires":"8d"}}}"#, "bad_duration"),
    (r#""tools":{"t":{"approval":{"approvers":["admin"]}}}"#, "bad_approver"),
    (r#""tools":{"t":{"approval":{"approvers":["role:viewer"]}}}"#, "bad_approver"),
    (r#""tools":{"t":{"approval":{"approvers":[]}}}"#, "too_few"),
    (r#""tools":{"t":{"approval":{"quorum":0}}}"#, "out_of_range"),
    (r#""tools":{"t":{"approval":{"quorum":6}}}"#, "out_of_range"),
    (r#""tools":{"t":{"approval":{"self":"no"}}}"#, "wrong_type"),
    (r#""tools":{"t":{"require":[{}]}}"#, "missing_key"),
    (r#""tools":{"t":{"require":[{"name":"Not a slug","conditions":[]}]}}"#, "bad_name"),
    (r#""tools":{"a?":{},"?b":{}}"#, "ambiguous_pattern"),
    (r#""tools":{"get_*":{},"*_get":{}}"#, "ambiguous_pattern"),
];

/// Conditions of a `require`.
const CONDITIONS: &[(&str, &str)] = &[
    ("1", "wrong_type"),
    (r#"{"path":"args.a","op":"eq"}"#, "missing_key"),
    (r#"{"path":"args.a","op":"in","value":"a"}"#, "wrong_type"),
    (r#"{"path":"args.a","op":"exists","value":1}"#, "wrong_type"),
    (r#"{"path":"args.a","op":"length_lte","value":1.5}"#, "out_of_range"),
    (r#"{"path":"args.a","op":"length_lte","value":-1}"#, "out_of_range"),
    (r#"{"path":"args.a","op":"regex","value":"("}"#, "bad_regex"),
    (r#"{"path":"args.a","op":"regex","value":"(a)\\1"}"#, "bad_regex"),
    (r#"{"path":"args.a","op":"regex","value":"(\\w{1000}){50}"}"#, "regex_too_large"),
    (r#"{"any":[]}"#, "too_few"),
    (r#"{"any":{}}"#, "wrong_type"),
    (r#"{"not":{"path":"args.a","op":"exists"},"op":"eq"}"#, "condition_conflict"),
    (r#"{"not":{"not":{"not":{"not":{"not":{"path":"args.a","op":"exists"}}}}}}"#, "too_deep"),
];

#[test]
fn what_the_language_refuses() {
    let whole = WHOLE.iter().map(|(text, code)| ((*text).to_owned(), code));
    let members = MEMBERS.iter().map(|(text, code)| (with(text), code));
    let conditions = CONDITIONS.iter().map(|(text, code)| (rule(text), code));
    for (text, code) in whole.chain(members).chain(conditions) {
        assert_eq!(codes(&text), [*code], "{text}");
    }
}

#[test]
fn the_bounds_hold_to_the_last_one() {
    let many = |count: usize, part: &str| vec![part; count].join(",");
    let rules = |count| {
        with(&format!(
            r#""tools":{{"t":{{"deny_if":[{}],"require":[{}]}}}}"#,
            many(count, r#"{"conditions":[]}"#),
            many(1, r#"{"conditions":[]}"#)
        ))
    };
    assert_eq!(codes(&rules(63)), [""; 0]);
    assert_eq!(codes(&rules(64)), ["too_many"]);
    let conditions = |count| rule(&many(count, r#"{"path":"args.a","op":"exists"}"#));
    assert_eq!(codes(&conditions(32)), [""; 0]);
    assert_eq!(codes(&conditions(33)), ["too_many"]);
    let nested = |count| {
        rule(&format!(
            r#"{{"any":[{}]}},{{"path":"args.b","op":"exists"}}"#,
            many(count, r#"{"path":"args.a","op":"exists"}"#)
        ))
    };
    assert_eq!(codes(&nested(31)), [""; 0]);
    assert_eq!(codes(&nested(32)), ["too_many"]);
    let limits = |count: usize| {
        let limits: Vec<String> =
            (0..count).map(|i| format!(r#"{{"counter":"c{i}","window":"day","max":1}}"#)).collect();
        with(&format!(
            r#""tools":{{"t":{{"limits":[{}],"rate_limit":"1/day"}}}}"#,
            limits.join(",")
        ))
    };
    assert_eq!(codes(&limits(15)), [""; 0]);
    assert_eq!(codes(&limits(16)), ["too_many"]);
    let tools = |count: usize| {
        let tools: Vec<String> = (0..count).map(|i| format!(r#""t{i}":{{}}"#)).collect();
        with(&format!(r#""tools":{{{}}}"#, tools.join(",")))
    };
    assert_eq!(codes(&tools(2_000)), [""; 0]);
    assert_eq!(codes(&tools(2_001)), ["too_many"]);
    let sized = |bytes: usize| {
        let empty = with(r#""description":"""#).len();
        with(&format!(r#""description":"{}""#, "x".repeat(bytes - empty)))
    };
    assert_eq!(codes(&sized(256 * 1024)), [""; 0]);
    assert_eq!(codes(&sized(256 * 1024 + 1)), ["too_large"]);
    let deep = rule(r#"{"not":{"any":[{"not":{"any":[{"path":"args.a","op":"exists"}]}}]}}"#);
    assert_eq!(codes(&deep), [""; 0]);
    let counter = |length: usize| {
        with(&format!(
            r#""tools":{{"t":{{"limits":[{{"counter":"{}","window":"day","max":0}}]}}}}"#,
            "c".repeat(length)
        ))
    };
    assert_eq!(codes(&counter(64)), [""; 0]);
    assert_eq!(codes(&counter(65)), ["bad_counter"]);
    let regex = |length: usize| {
        rule(&format!(r#"{{"path":"args.a","op":"regex","value":"{}"}}"#, "é".repeat(length)))
    };
    assert_eq!(codes(&regex(1_000)), [""; 0]);
    assert_eq!(codes(&regex(1_001)), ["regex_too_large"]);
}

#[test]
fn warnings_never_crowd_an_error_out_and_the_compiler_tells_errors_only() {
    let limit = |scope: &str, window: &str| {
        format!(r#"{{"limits":[{{"counter":"c","scope":"{scope}","window":"{window}","max":1}}]}}"#)
    };
    // One counter in two scopes with two windows is a warning at each place; two in one scope an error.
    let document = |warnings: usize, last: &str| {
        let warned = (0..warnings).map(|i| format!(r#""t{i}":{},"#, limit("grant", "hour")));
        let tools: String = warned.collect();
        with(&format!(
            r#""tools":{{"first":{},{tools}"last":{}}}"#,
            limit("workspace", "day"),
            limit("grant", last)
        ))
    };
    for warnings in [1, 999, 1_000, 1_500] {
        assert_eq!(codes(&document(warnings, "hour")), [""; 0]);
        let text = document(warnings, "week");
        assert_eq!(codes(&text), ["counter_windows"]);
        let told = compile(&text).expect_err("two windows in one scope");
        assert!(told.iter().all(|p| p.severity == ProblemSeverity::Error), "{told:?}");
        assert_eq!(told.len(), 1);
    }
}

#[test]
fn hostile_patterns_and_expressions_are_bounded() {
    let patterns: Vec<String> =
        (0..950).map(|i| format!(r#""????x{i:04}????":{{}},"*y{i:04}*":{{}}"#)).collect();
    let text = with(&format!(r#""tools":{{{}}}"#, patterns.join(",")));
    assert!(codes(&text).contains(&"ambiguous_pattern"));
    let regexes: Vec<String> = (0..66)
        .map(|i| {
            format!(r#"{{"conditions":[{{"path":"args.a","op":"regex","value":"\\w{{50}}{i}"}}]}}"#)
        })
        .collect();
    let lists: Vec<String> = regexes
        .chunks(33)
        .enumerate()
        .map(|(i, chunk)| format!(r#""t{i}":{{"require":[{}]}}"#, chunk.join(",")))
        .collect();
    let text = with(&format!(r#""tools":{{{}}}"#, lists.join(",")));
    assert!(codes(&text).iter().all(|code| *code == "regex_too_large"));
}

#[test]
fn short_forms_are_written_out_and_the_long_form_is_itself() {
    let text = r#"{"tools":{"executePython":{"rate_limit":{"max":10,"window":60}},
        "b":{"limits":[{"max":1.50,"counter":"c","window":"day","increment_from":"args.n"}],"rate_limit":"5/6h"},
        "c":{"action":"deny","reason":"r"},"d":{"action":"allow"},
        "e":{"require":[],"action":"require_approval"},"f*":{"action":"hide"}},
        "default":"allow","version":"1"}"#;
    let normalised = check(text, None).normalised.expect("a long form");
    let expected = r#"{"hide":["f*"],"tools":{"executePython":{"limits":[{"counter":"executepython_rate","window":"60s","max":10,"scope":"session"}]},"b":{"limits":[{"max":1.50,"counter":"c","window":"day","increment_from":"args.n"},{"counter":"b_rate","window":"6h","max":5,"scope":"session"}]},"c":{"deny_if":[{"conditions":[],"on_deny":"r"}]},"d":{},"e":{"require":[],"approve_if":[{"conditions":[]}]},"f*":{}},"default":"allow","version":"1"}"#;
    assert_eq!(normalised.to_string(), expected);
    let again = check(expected, None).normalised.expect("a long form");
    assert_eq!(again.to_string(), expected);
    assert_eq!(
        compile(text).expect("a policy").document(),
        compile(expected).expect("a policy").document()
    );
}
