//! What holds for every document and every call.

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_domain::{Category, OnDrift, UnknownTools, ValidateArguments};
use sluice_policy::{
    Arguments, CallInput, CompiledPolicy, Decision, Settings, ToolFacts, Verdict, check, compile,
};

use crate::generate::{Call, Random, call, document, rule, shuffled};
use crate::reference::{self, Outcome};
use crate::support::now;

/// Together more than 100,000 calls.
const POLICIES: u32 = 2_200;
const CALLS: usize = 50;

fn decide(policy: &CompiledPolicy, call: &Call, arguments: &str) -> Decision {
    let facts = ToolFacts {
        known: call.known,
        changed: call.changed,
        held: call.held,
        category: call.rated.then_some(Category::Execute),
        severity: None,
    };
    let settings = Settings {
        unknown_tools: if call.by_policy { UnknownTools::ByPolicy } else { UnknownTools::Deny },
        on_drift: if call.drift_denied { OnDrift::Deny } else { OnDrift::AllowAndFlag },
        validate_arguments: if call.misfit {
            ValidateArguments::Deny
        } else {
            ValidateArguments::Log
        },
    };
    let misfit = || call.misfit.then(|| "x".to_owned());
    let arguments = Arguments::parse(arguments).expect("arguments");
    policy.decide(&CallInput {
        facts,
        settings,
        schema_problem: &misfit,
        grant_label: call.label,
        client_name: call.client,
        observe: call.observe,
        ..CallInput::new(&call.tool, arguments, now())
    })
}

fn outcome(decision: &Decision) -> Outcome {
    let verdict = match decision.verdict {
        Verdict::Deny => "deny",
        Verdict::Hide => "hide",
        Verdict::Forward => "forward",
        Verdict::Approve => "approve",
    };
    let charges = decision.charges.iter().map(|charge| {
        format!(
            "{} {} {} {} {} {} {}",
            charge.counter,
            charge.window,
            charge.scope,
            charge.reset,
            charge.max.billionths() * 1_000,
            charge.rule,
            charge.amount.billionths() * 1_000
        )
    });
    Outcome {
        verdict,
        code: decision.code.as_str().to_owned(),
        rule: decision.rule.clone(),
        charges: charges.collect(),
        observed: decision.observed,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: POLICIES, max_shrink_iters: 0, ..ProptestConfig::default() })]
    #[test]
    fn the_engine_decides_as_the_reference_does(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let value = document(&mut random);
        let text = value.to_string();
        let policy = compile(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        for _ in 0..CALLS {
            let call = call(&mut random);
            let decision = decide(&policy, &call, &call.arguments.to_string());
            prop_assert_eq!(outcome(&decision), reference::decide(&value, &call), "{} {:?}", text, call);
            prop_assert!(!decision.cannot_tell);
            let json = serde_json::to_string(&decision.trace).expect("a trace");
            prop_assert_eq!(decision.trace.to_json(), json);
        }
    }
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

/// How far a call gets: refused, parked, forwarded.
fn reach(decision: &Decision) -> u8 {
    match decision.verdict {
        Verdict::Deny | Verdict::Hide => 0,
        Verdict::Approve => 1,
        Verdict::Forward => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn another_deny_if_or_require_never_allows_more(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let value = document(&mut random);
        let stricter = with_another_rule(&mut random, &value);
        let before = compile(&value.to_string()).expect("a policy");
        let after = compile(&stricter.to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(&mut random);
            let arguments = call.arguments.to_string();
            let (old, new) = (decide(&before, &call, &arguments), decide(&after, &call, &arguments));
            prop_assert!(reach(&new) <= reach(&old), "{value} and {stricter} on {call:?}");
        }
    }

    #[test]
    fn the_order_of_keys_changes_nothing(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let value = document(&mut random);
        let before = compile(&value.to_string()).expect("a policy");
        let after = compile(&shuffled(&mut random, &value).to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(&mut random);
            let other = shuffled(&mut random, &call.arguments).to_string();
            let old = decide(&before, &call, &call.arguments.to_string());
            let new = decide(&after, &call, &other);
            prop_assert_eq!(outcome(&old), outcome(&new), "{} {:?}", value, call);
        }
    }

    #[test]
    fn hidden_and_denied_tools_are_never_forwarded_whatever_else_stands_there(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut value = document(&mut random);
        value["mode"] = json!("enforce");
        let mut hiding = value.clone();
        hiding["hide"] = json!(["z", random.pick(&["abc", "*c", "a?c", "ab*"])]);
        let mut denying = value.clone();
        denying["tools"]["abc"] = json!({"deny_if": [{"conditions": []}], "approve_if": [rule(&mut random)]});
        let mut unnamed = value;
        unnamed["default"] = json!("deny");
        unnamed["tools"] = json!({"b": {}});
        for (value, hidden) in [(hiding, true), (denying, false), (unnamed, false)] {
            let policy = compile(&value.to_string()).expect("a policy");
            for _ in 0..8 {
                let call = Call { tool: "abc".to_owned(), observe: false, ..call(&mut random) };
                let decision = decide(&policy, &call, &call.arguments.to_string());
                prop_assert_eq!(reach(&decision), 0, "{} {:?}", value, call);
                prop_assert!(!hidden || decision.verdict == Verdict::Hide);
            }
        }
    }

    #[test]
    fn writing_the_long_form_twice_is_writing_it_once(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let text = document(&mut random).to_string();
        let once = check(&text, None).normalised.expect("a long form").to_string();
        let twice = check(&once, None).normalised.expect("a long form").to_string();
        prop_assert_eq!(&once, &twice);
        let (short, long) = (compile(&text).expect("a policy"), compile(&once).expect("a policy"));
        for _ in 0..10 {
            let call = call(&mut random);
            let arguments = call.arguments.to_string();
            prop_assert_eq!(decide(&short, &call, &arguments), decide(&long, &call, &arguments));
        }
    }

    #[test]
    fn the_list_shows_exactly_what_is_not_always_refused(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let policy = compile(&document(&mut random).to_string()).expect("a policy");
        for _ in 0..20 {
            let call = call(&mut random);
            let facts = ToolFacts { known: call.known, changed: call.changed, held: call.held, ..ToolFacts::KNOWN };
            let settings = Settings {
                unknown_tools: if call.by_policy { UnknownTools::ByPolicy } else { UnknownTools::Deny },
                on_drift: if call.drift_denied { OnDrift::Deny } else { OnDrift::AllowAndFlag },
                ..Settings::default()
            };
            let decision = decide(&policy, &call, &call.arguments.to_string());
            let always = ["unknown_tool", "tool_changed", "default_deny"].contains(&decision.code.as_str())
                && !decision.observed;
            let listed = policy.lists(&call.tool, facts, settings, call.observe);
            prop_assert_eq!(listed, !always, "{:?}", call);
        }
    }
}
