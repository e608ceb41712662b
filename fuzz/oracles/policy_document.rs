//! The reader of policy documents. No bytes make it panic, and its parts tell the same: the checker
//! and the compiler, a document and its long form, an edit and the same edit once more.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_policy::edit::apply_rule;
use sluice_policy::{
    Arguments, CallInput, Checked, CompiledPolicy, Condition, DefaultAction, KnownTool, Mode, Path,
    ProblemSeverity, Verdict, check, check_bytes, compile, diff, sentences,
};

/// Tools that the server has, so that the warnings about them run as well.
static KNOWN: LazyLock<Vec<KnownTool>> = LazyLock::new(|| {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"items": {}}}});
    vec![
        KnownTool { name: "t".to_owned(), input_schema: Some(schema) },
        KnownTool { name: "create_charge".to_owned(), input_schema: None },
    ]
});

const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"a":1,"b":[{"a":"x"},2],"amount":100.5,"o":{"a":null}}"#,
    r#"{"a":"x","b":{},"amount":-1e400}"#,
];

/// Panics where something does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let checked = check_bytes(bytes, None);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(!checked.ok && !checked.problems.is_empty());
        return;
    };
    places(&checked, text);
    let with_tools = check(text, Some(&KNOWN));
    assert_eq!(checked.ok, with_tools.ok, "warnings are no errors");
    places(&with_tools, text);
    match (compile(text), &checked.normalised) {
        (Ok(policy), Some(long)) => {
            assert!(checked.ok);
            sound(text, &policy, long);
        }
        (Err(problems), None) => {
            assert!(!checked.ok);
            assert!(problems.iter().all(|problem| problem.severity == ProblemSeverity::Error));
            assert!(!problems.is_empty());
        }
        _ => panic!("the checker and the compiler disagree"),
    }
}

/// Every problem stands somewhere in the text.
fn places(checked: &Checked, text: &str) {
    let lines: Vec<&str> = text.split('\n').collect();
    let errors = checked.problems.iter().any(|p| p.severity == ProblemSeverity::Error);
    assert_eq!(checked.ok, !errors);
    for problem in &checked.problems {
        assert!(!problem.message.is_empty() && !problem.code.is_empty());
        let line = usize::try_from(problem.line).expect("a line");
        let column = usize::try_from(problem.column).expect("a column");
        let found =
            line.checked_sub(1).and_then(|line| lines.get(line)).expect("a line that is there");
        assert!((1..=found.chars().count() + 1).contains(&column), "{problem:?}");
    }
}

/// What holds for a document without errors.
fn sound(text: &str, policy: &CompiledPolicy, long: &Value) {
    let long = long.to_string();
    let again = check(&long, None);
    // Writing the short forms out may make a document longer than a document may be.
    if long.len() <= 256 * 1024 {
        assert_eq!(again.normalised.map(|value| value.to_string()).as_deref(), Some(long.as_str()));
        let written_out = compile(&long).expect("the long form");
        assert_eq!(policy.document(), written_out.document());
        assert_eq!(diff(text, &long), Ok(Vec::new()));
    }
    written_as_read(policy);
    assert!(sentences(policy.document()).iter().all(|sentence| sentence.text.ends_with('.')));
    let names = policy.document().tools.iter().map(|(name, _)| name.as_str());
    for tool in names.chain(["t", "create_charge", ""]).take(8) {
        for arguments in ARGUMENTS {
            let arguments = Arguments::parse(arguments).expect("arguments");
            never_against_its_word(
                policy,
                &CallInput::new(tool, arguments, DateTime::<Utc>::MIN_UTC),
            );
        }
    }
    let piece =
        json!({"tools": {"new": {"limits": [{"counter": "new", "window": "day", "max": 1}]}}});
    if let Ok(edited) = apply_rule(text, &piece) {
        assert_eq!(apply_rule(&edited, &piece).as_ref(), Ok(&edited));
    }
}

fn never_against_its_word(policy: &CompiledPolicy, call: &CallInput<'_>) {
    let decision = policy.decide(call);
    let enforced = policy.mode() == Mode::Enforce;
    let unnamed =
        policy.document().default == DefaultAction::Deny && policy.entry(call.tool).is_none();
    if enforced && (policy.hides(call.tool) || unnamed) {
        assert!(matches!(decision.verdict, Verdict::Hide | Verdict::Deny));
    }
    assert_eq!(decision.observed, decision.would_be.is_some());
    assert!(!decision.trace.is_empty());
    serde_json::to_string(&decision.trace).expect("a trace");
}

/// Every path, written out, is read as the same path.
fn written_as_read(policy: &CompiledPolicy) {
    let document = policy.document();
    let entries = document.tools.iter().map(|(_, entry)| entry).chain([&document.all_tools]);
    for entry in entries {
        let rules = entry.require.iter().chain(&entry.deny_if).chain(&entry.approve_if);
        rules.flat_map(|rule| &rule.conditions).for_each(condition);
        entry.limits.iter().filter_map(|limit| limit.increment_from.as_ref()).for_each(path);
    }
}

fn condition(one: &Condition) {
    match one {
        Condition::Compare(comparison) => path(&comparison.path),
        Condition::Any(inner) => inner.iter().for_each(condition),
        Condition::Not(inner) => condition(inner),
    }
}

fn path(path: &Path) {
    assert_eq!(Path::parse(&path.to_string()).as_ref(), Ok(path));
}
