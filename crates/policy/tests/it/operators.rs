//! Every operator on every type, absent, null, in lists and nested, under
//! `require`, `deny_if` and `approve_if`.

use sluice_policy::Verdict;

use crate::support::{decide, tools};

/// The truth that the language's page gives: true, false, unknown by wrong type, unknown by missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    T,
    F,
    W,
    M,
}
use Truth::{F, M, T, W};

/// The values that every operator is tried on, in the order of the tables below.
const VALUES: [&str; 12] = [
    r#""abc""#,
    r#""5""#,
    "5",
    "5.0",
    "true",
    "false",
    "[5]",
    r#"["abc"]"#,
    "[]",
    r#"{"a":1}"#,
    "null",
    "",
];

/// `op`, `value`, and the truth for each of [`VALUES`] (the last is an absent argument).
const TABLE: &[(&str, &str, [Truth; 12])] = &[
    ("eq", r#""abc""#, [T, F, F, F, F, F, F, F, F, F, M, M]),
    ("eq", "5", [F, F, T, T, F, F, F, F, F, F, M, M]),
    ("eq", "5e0", [F, F, T, T, F, F, F, F, F, F, M, M]),
    ("eq", "true", [F, F, F, F, T, F, F, F, F, F, M, M]),
    ("eq", "[5.00]", [F, F, F, F, F, F, T, F, F, F, M, M]),
    ("eq", r#"{"a":1.0}"#, [F, F, F, F, F, F, F, F, F, T, M, M]),
    ("eq", "null", [F, F, F, F, F, F, F, F, F, F, M, M]),
    ("neq", r#""abc""#, [F, T, T, T, T, T, T, T, T, T, M, M]),
    ("neq", "5", [T, T, F, F, T, T, T, T, T, T, M, M]),
    ("lt", "6", [W, W, T, T, W, W, W, W, W, W, M, M]),
    ("lt", "5", [W, W, F, F, W, W, W, W, W, W, M, M]),
    ("lte", "5", [W, W, T, T, W, W, W, W, W, W, M, M]),
    ("lte", "4.999999999999999999999", [W, W, F, F, W, W, W, W, W, W, M, M]),
    ("gt", "4", [W, W, T, T, W, W, W, W, W, W, M, M]),
    ("gt", "5", [W, W, F, F, W, W, W, W, W, W, M, M]),
    ("gte", "5", [W, W, T, T, W, W, W, W, W, W, M, M]),
    ("gte", "6", [W, W, F, F, W, W, W, W, W, W, M, M]),
    ("in", r#"["abc",5,true]"#, [T, F, T, T, T, F, F, F, F, F, M, M]),
    ("in", r#"[[5],{"a":1},[]]"#, [F, F, F, F, F, F, T, F, T, T, M, M]),
    ("not_in", r#"["abc",5,true]"#, [F, T, F, F, F, T, T, T, T, T, M, M]),
    ("not_in", "[]", [T, T, T, T, T, T, T, T, T, T, M, M]),
    ("exists", "true", [T, T, T, T, T, T, T, T, T, T, F, F]),
    ("exists", "false", [F, F, F, F, F, F, F, F, F, F, T, T]),
    ("regex", r#""^[a-c]+$""#, [T, F, W, W, W, W, W, W, W, W, M, M]),
    ("regex", r#""b""#, [T, F, W, W, W, W, W, W, W, W, M, M]),
    ("contains", r#""b""#, [T, F, W, W, W, W, F, F, F, W, M, M]),
    ("contains", r#""abc""#, [T, F, W, W, W, W, F, T, F, W, M, M]),
    ("contains", "5.00", [W, W, W, W, W, W, T, F, F, W, M, M]),
    ("starts_with", r#""ab""#, [T, F, W, W, W, W, W, W, W, W, M, M]),
    ("ends_with", r#""bc""#, [T, F, W, W, W, W, W, W, W, W, M, M]),
    ("length_lte", "1", [F, T, W, W, W, W, T, T, T, W, M, M]),
    ("length_lte", "0", [F, F, W, W, W, W, F, F, T, W, M, M]),
];

/// What each list of rules does with a truth.
fn expected(list: &str, truth: Truth) -> Verdict {
    match (list, truth) {
        ("require", T) | ("deny_if" | "approve_if", F | M) => Verdict::Forward,
        ("require", _) | ("deny_if", T | W) => Verdict::Deny,
        _ => Verdict::Approve,
    }
}

fn negated(truth: Truth) -> Truth {
    match truth {
        T => F,
        F => T,
        other => other,
    }
}

/// The arguments with a value at `args.x`, and its path there.
fn places(value: &str) -> Vec<(&'static str, String)> {
    let absent = value.is_empty();
    let wrap = |before: &str, after: &str| format!("{before}{value}{after}");
    vec![
        ("args.x", if absent { "{}".to_owned() } else { wrap(r#"{"x":"#, "}") }),
        ("args.o.x", if absent { r#"{"o":{}}"#.to_owned() } else { wrap(r#"{"o":{"x":"#, "}}") }),
        ("args.l[1]", if absent { r#"{"l":[0]}"#.to_owned() } else { wrap(r#"{"l":[0,"#, "]}") }),
        (
            r#"args["odd.key"][0].x"#,
            if absent {
                r#"{"odd.key":[{}]}"#.to_owned()
            } else {
                wrap(r#"{"odd\u002ekey":[{"x":"#, "}]}")
            },
        ),
        (
            "args.e[*].x",
            if absent { r#"{"e":[{}]}"#.to_owned() } else { wrap(r#"{"e":[{"x":"#, "}]}") },
        ),
    ]
}

#[test]
fn every_operator_on_every_value_in_every_place_under_every_list() {
    let mut cases = 0;
    for (op, literal, truths) in TABLE {
        for (value, truth) in VALUES.iter().zip(truths) {
            for (path, arguments) in places(value) {
                for list in ["require", "deny_if", "approve_if"] {
                    for not in [false, true] {
                        let path = path.replace('"', "\\\"");
                        let plain = format!(r#"{{"path":"{path}","op":"{op}","value":{literal}}}"#);
                        let condition = if not { format!(r#"{{"not":{plain}}}"#) } else { plain };
                        let policy = tools(&format!(
                            r#"{{"t":{{"{list}":[{{"conditions":[{condition}]}}]}}}}"#
                        ));
                        let truth = if not { negated(*truth) } else { *truth };
                        let found = decide(&policy, "t", &arguments).verdict;
                        assert_eq!(
                            found,
                            expected(list, truth),
                            "{list} {condition} on {arguments}"
                        );
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, TABLE.len() * VALUES.len() * 5 * 3 * 2);
}

/// `rule`, arguments, and whether `require`, `deny_if` and `approve_if` of it let the call through.
const ELEMENTS: &[(&str, &str, [bool; 2])] = &[
    // every element / one element
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[1,2]}"#, [true, false]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[1,20]}"#, [false, false]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[30,20]}"#, [false, true]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[]}"#, [false, true]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[1,"2"]}"#, [false, false]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":["2"]}"#, [false, false]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":[null]}"#, [false, true]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":null}"#, [false, true]),
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, "{}", [false, true]),
    // something that is no list is told by its type, so it does not slip past a deny
    (r#"{"path":"args.i[*]","op":"lte","value":10}"#, r#"{"i":5}"#, [false, false]),
    (r#"{"path":"args.i[*].id","op":"eq","value":1}"#, r#"{"i":{"id":1}}"#, [false, false]),
    (r#"{"path":"args.i[*].id","op":"eq","value":1}"#, r#"{"i":[{"id":1},{}]}"#, [false, false]),
    (r#"{"path":"args.i[*].id","op":"eq","value":1}"#, r#"{"i":[{}]}"#, [false, true]),
    (r#"{"path":"args.i[*].id","op":"eq","value":1}"#, r#"{"i":["x"]}"#, [false, false]),
    (r#"{"path":"args.i[*][*]","op":"eq","value":1}"#, r#"{"i":[[1],[1,1]]}"#, [true, false]),
    (r#"{"path":"args.i[*][*]","op":"eq","value":1}"#, r#"{"i":[[1],[]]}"#, [false, false]),
    (r#"{"path":"args.i[*][*]","op":"eq","value":1}"#, r#"{"i":[[],[]]}"#, [false, true]),
    (r#"{"path":"args.i[*].id","op":"exists"}"#, r#"{"i":[{"id":0}]}"#, [true, false]),
    (r#"{"path":"args.i[*].id","op":"exists"}"#, r#"{"i":[]}"#, [false, true]),
    (r#"{"path":"args.i[*].id","op":"exists","value":false}"#, r#"{"i":[]}"#, [false, true]),
    // `not` swaps every and any
    (r#"{"not":{"path":"args.i[*]","op":"eq","value":1}}"#, r#"{"i":[2,3]}"#, [true, false]),
    (r#"{"not":{"path":"args.i[*]","op":"eq","value":1}}"#, r#"{"i":[1,3]}"#, [false, false]),
    (r#"{"not":{"path":"args.i[*]","op":"eq","value":1}}"#, r#"{"i":[1,1]}"#, [false, true]),
    (r#"{"not":{"path":"args.i[*]","op":"eq","value":1}}"#, r#"{"i":[]}"#, [true, false]),
    (
        r#"{"not":{"not":{"path":"args.i[*]","op":"eq","value":1}}}"#,
        r#"{"i":[1,2]}"#,
        [false, false],
    ),
    (r#"{"not":{"not":{"path":"args.i[*]","op":"eq","value":1}}}"#, r#"{"i":[]}"#, [false, true]),
    // `any` and AND over unknowns
    (
        r#"{"any":[{"path":"args.a","op":"eq","value":1},{"path":"args.b","op":"lt","value":1}]}"#,
        r#"{"a":1}"#,
        [true, false],
    ),
    (
        r#"{"any":[{"path":"args.a","op":"eq","value":1},{"path":"args.b","op":"lt","value":1}]}"#,
        r#"{"b":"x"}"#,
        [false, false],
    ),
    (
        r#"{"any":[{"path":"args.a","op":"eq","value":1},{"path":"args.b","op":"lt","value":1}]}"#,
        r#"{"a":2}"#,
        [false, true],
    ),
    (
        r#"{"path":"args.a","op":"gt","value":1},{"path":"args.b","op":"eq","value":1}"#,
        r#"{"a":"5"}"#,
        [false, false],
    ),
    (
        r#"{"path":"args.a","op":"gt","value":1},{"path":"args.b","op":"eq","value":1}"#,
        r#"{"a":"5","b":2}"#,
        [false, true],
    ),
    (
        r#"{"path":"args.a","op":"gt","value":1},{"path":"args.b","op":"eq","value":1}"#,
        r#"{"a":5}"#,
        [false, true],
    ),
    // a way that leads through another type
    (r#"{"path":"args.a.b","op":"eq","value":1}"#, r#"{"a":"x"}"#, [false, false]),
    (r#"{"path":"args.a.b","op":"eq","value":1}"#, r#"{"a":[{"b":1}]}"#, [false, false]),
    (r#"{"path":"args.a.b","op":"eq","value":1}"#, r#"{"a":null}"#, [false, true]),
    (r#"{"path":"args.a[0]","op":"eq","value":1}"#, r#"{"a":{"0":1}}"#, [false, false]),
    (r#"{"path":"args.a[1]","op":"eq","value":1}"#, r#"{"a":[1]}"#, [false, true]),
    (r#"{"path":"args.a.b","op":"exists"}"#, r#"{"a":"x"}"#, [false, true]),
];

#[test]
fn elements_quantifiers_and_combinations() {
    for (conditions, arguments, [required, not_denied]) in ELEMENTS {
        let verdict = |list: &str| {
            let policy =
                tools(&format!(r#"{{"t":{{"{list}":[{{"conditions":[{conditions}]}}]}}}}"#));
            decide(&policy, "t", arguments).verdict
        };
        let forward = |list: &str| verdict(list) == Verdict::Forward;
        assert_eq!(forward("require"), *required, "require {conditions} on {arguments}");
        assert_eq!(forward("deny_if"), *not_denied, "deny_if {conditions} on {arguments}");
        assert_eq!(forward("approve_if"), *not_denied, "approve_if {conditions} on {arguments}");
    }
}

#[test]
fn numbers_are_compared_exactly() {
    let table = [
        ("eq", "100", "1e2", true),
        ("eq", "100.0", "100", true),
        ("eq", "18446744073709551617", "18446744073709551616", false),
        ("eq", "0.1", "0.10", true),
        ("eq", "0.1", "0.1000000000000000055511151231257827", false),
        ("lt", "1e400", "1e399", true),
        ("gt", "1e400", "1e401", true),
        ("lte", "1e400", "10e399", true),
        ("lt", "1e-400", "0", true),
        ("gt", "-1e999999999999999999999", "0", true),
        ("lt", "1e999999999999999999999999", "9e999999999999999999999998", true),
        ("eq", "0", "-0.0e5", true),
    ];
    for (op, literal, found, forward) in table {
        let policy = tools(&format!(
            r#"{{"t":{{"require":[{{"conditions":[{{"path":"args.n","op":"{op}","value":{literal}}}]}}]}}}}"#
        ));
        let verdict = decide(&policy, "t", &format!(r#"{{"n":{found}}}"#)).verdict;
        assert_eq!(verdict == Verdict::Forward, forward, "{found} {op} {literal}");
    }
}

#[test]
fn facts_of_the_call_can_be_asked() {
    use sluice_domain::{Category, Severity};
    use sluice_policy::{CallInput, ToolFacts};
    let table = [
        (r#"{"path":"tool.name","op":"eq","value":"t"}"#, true),
        (r#"{"path":"tool.category","op":"in","value":["Execute","Write"]}"#, true),
        (r#"{"path":"tool.severity","op":"eq","value":"High"}"#, true),
        (r#"{"path":"grant.label","op":"starts_with","value":"ci-"}"#, true),
        (r#"{"path":"session.client_name","op":"eq","value":"agent"}"#, true),
        (r#"{"path":"call.hour_utc","op":"gte","value":12}"#, true),
        (r#"{"path":"call.hour_utc","op":"lt","value":12}"#, false),
        (r#"{"path":"call.hour_utc","op":"in","value":[12.0]}"#, true),
        (r#"{"path":"call.weekday_utc","op":"eq","value":"mon"}"#, true),
        (r#"{"path":"call.weekday_utc","op":"lt","value":3}"#, false),
        (r#"{"path":"call.hour_utc","op":"exists"}"#, true),
    ];
    for (condition, forward) in table {
        let policy = tools(&format!(r#"{{"t":{{"require":[{{"conditions":[{condition}]}}]}}}}"#));
        let facts = ToolFacts {
            category: Some(Category::Execute),
            severity: Some(Severity::High),
            ..ToolFacts::KNOWN
        };
        let decision = policy.decide(&CallInput {
            facts,
            grant_label: "ci-build",
            client_name: Some("agent"),
            ..crate::support::call("t", "{}")
        });
        assert_eq!(decision.verdict == Verdict::Forward, forward, "{condition}");
    }
    let policy = tools(
        r#"{"t":{"deny_if":[{"conditions":[{"path":"tool.category","op":"neq","value":"Read"}]}]}}"#,
    );
    assert_eq!(
        decide(&policy, "t", "{}").verdict,
        Verdict::Forward,
        "an unrated tool has no category"
    );
}
