//! What holds for every document and every call.

use std::ops::Range;

use serde_json::{Value, json};
use sluice_policy::{Decision, Verdict, check, compile};

use crate::generate::{Call, call, document, rule};
use crate::random::Random;
use crate::reference;
use crate::run::{decide, facts, outcome, settings};

/// Seeds of documents, the same on every run; widen them to look further.
const POLICIES: u64 = 2_400;
/// Calls of each: together 120,000.
const CALLS: usize = 50;
/// Seeds of the other properties.
const SEEDS: u64 = 300;

fn each(seeds: Range<u64>, holds: impl Fn(&mut Random)) {
    for seed in seeds {
        let mut random = Random::new(seed);
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| holds(&mut random)));
        assert!(held.is_ok(), "seed {seed}");
    }
}

/// One part of the seeds, so that parts run side by side.
fn the_engine_decides_as_the_reference_does(part: u64) {
    let share = POLICIES / 4;
    each(part * share..(part + 1) * share, |random| {
        let value = document(random);
        let text = value.to_string();
        let policy = compile(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        for _ in 0..CALLS {
            let call = call(random);
            let decision = decide(&policy, &call, &call.arguments.to_string());
            assert_eq!(outcome(&decision), reference::decide(&value, &call), "{text} {call:?}");
            assert!(!decision.cannot_tell);
            let json = serde_json::to_string(&decision.trace).expect("a trace");
            assert_eq!(decision.trace.to_json(), json);
        }
    });
}

#[test]
fn the_engine_decides_as_the_reference_does_in_the_first_part() {
    the_engine_decides_as_the_reference_does(0);
}

#[test]
fn the_engine_decides_as_the_reference_does_in_the_second_part() {
    the_engine_decides_as_the_reference_does(1);
}

#[test]
fn the_engine_decides_as_the_reference_does_in_the_third_part() {
    the_engine_decides_as_the_reference_does(2);
}

#[test]
fn the_engine_decides_as_the_reference_does_in_the_last_part() {
    the_engine_decides_as_the_reference_does(3);
}

/// Adds a rule to `all_tools` or to an entry that is there, never a new entry.
fn with_another_rule(random: &mut Random, value: &Value) -> Value {
    let mut stricter = value.clone();
    let list = random.pick(&["require", "deny_if"]).to_owned();
    let rule = rule(random);
    let names: Vec<String> = value["tools"].as_object().expect("tools").keys().cloned().collect();
    let open: Vec<&String> = names
        .iter()
        .filter(|name| !matches!(value["tools"][*name]["action"].as_str(), Some("deny" | "hide")))
        .collect();
    let entry = if open.is_empty() || random.one_in(3) {
        &mut stricter["all_tools"]
    } else {
        &mut stricter["tools"][open[random.below(open.len())].as_str()]
    };
    if entry.is_null() {
        *entry = json!({});
    }
    match entry.get_mut(&list) {
        Some(Value::Array(rules)) => rules.insert(random.below(rules.len() + 1), rule),
        _ => entry[&list] = json!([rule]),
    }
    stricter
}

/// The same value with the keys of every object in another order.
fn shuffled(random: &mut Random, value: &Value) -> Value {
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

/// How far a call gets: refused, parked, forwarded.
fn reach(decision: &Decision) -> u8 {
    match decision.verdict {
        Verdict::Deny | Verdict::Hide => 0,
        Verdict::Approve => 1,
        Verdict::Forward => 2,
    }
}

#[test]
fn another_deny_if_or_require_never_allows_more() {
    each(0..SEEDS, |random| {
        let value = document(random);
        let stricter = with_another_rule(random, &value);
        let before = compile(&value.to_string()).expect("a policy");
        let after = compile(&stricter.to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(random);
            let arguments = call.arguments.to_string();
            let (old, new) =
                (decide(&before, &call, &arguments), decide(&after, &call, &arguments));
            assert!(reach(&new) <= reach(&old), "{value} and {stricter} on {call:?}");
        }
    });
}

#[test]
fn the_order_of_keys_changes_nothing() {
    each(0..SEEDS, |random| {
        let value = document(random);
        let before = compile(&value.to_string()).expect("a policy");
        let after = compile(&shuffled(random, &value).to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(random);
            let other = shuffled(random, &call.arguments).to_string();
            let old = decide(&before, &call, &call.arguments.to_string());
            let new = decide(&after, &call, &other);
            assert_eq!(outcome(&old), outcome(&new), "{value} {call:?}");
        }
    });
}

#[test]
fn hidden_and_denied_tools_are_never_forwarded_whatever_else_stands_there() {
    each(0..SEEDS, |random| {
        let mut value = document(random);
        value["mode"] = json!("enforce");
        let mut hiding = value.clone();
        hiding["hide"] = json!(["z", random.pick(&["abc", "*c", "a?c", "ab*"])]);
        let mut denying = value.clone();
        denying["tools"]["abc"] =
            json!({"deny_if": [{"conditions": []}], "approve_if": [rule(random)]});
        let mut unnamed = value;
        unnamed["default"] = json!("deny");
        unnamed["tools"] = json!({"b": {}});
        for (value, hidden) in [(hiding, true), (denying, false), (unnamed, false)] {
            let policy = compile(&value.to_string()).expect("a policy");
            for _ in 0..8 {
                let call = Call { tool: "abc".to_owned(), observe: false, ..call(random) };
                let decision = decide(&policy, &call, &call.arguments.to_string());
                assert_eq!(reach(&decision), 0, "{value} {call:?}");
                assert!(!hidden || decision.verdict == Verdict::Hide);
            }
        }
    });
}

#[test]
fn writing_the_long_form_twice_is_writing_it_once() {
    each(0..SEEDS, |random| {
        let text = document(random).to_string();
        let once = check(&text, None).normalised.expect("a long form").to_string();
        let twice = check(&once, None).normalised.expect("a long form").to_string();
        assert_eq!(&once, &twice);
        let (short, long) = (compile(&text).expect("a policy"), compile(&once).expect("a policy"));
        for _ in 0..10 {
            let call = call(random);
            let arguments = call.arguments.to_string();
            assert_eq!(decide(&short, &call, &arguments), decide(&long, &call, &arguments));
        }
    });
}

#[test]
fn the_list_shows_exactly_what_is_not_always_refused() {
    each(0..SEEDS, |random| {
        let policy = compile(&document(random).to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(random);
            let decision = decide(&policy, &call, &call.arguments.to_string());
            let always = ["unknown_tool", "tool_changed", "default_deny"]
                .contains(&decision.code.as_str())
                && !decision.observed;
            let listed = policy.lists(&call.tool, facts(&call), settings(&call), call.observe);
            assert_eq!(listed, !always, "{call:?}");
        }
    });
}
