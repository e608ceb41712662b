//! What a decision allocates depends on the call and on the tool's own rules, never on the size of
//! the policy. A test program of its own, as it counts for the whole program.

use std::fmt::Write as _;

use allocation_counter::{AllocationInfo, measure};
use chrono::DateTime;
use sluice_policy::{Arguments, CallInput, CompiledPolicy, ToolFacts, compile};

/// Ten rules of every kind, and a limit.
const RULES: &str = r#"{"require":[
    {"conditions":[{"path":"args.amount","op":"lte","value":1000}]},
    {"conditions":[{"path":"args.currency","op":"in","value":["eur","usd"]}]},
    {"conditions":[{"path":"args.items[*].id","op":"starts_with","value":"item_"}]},
    {"conditions":[{"path":"args.account.region","op":"neq","value":"test"}]}],
  "deny_if":[
    {"conditions":[{"path":"args.note","op":"regex","value":"(?i)drop"}]},
    {"conditions":[{"path":"args.account.id","op":"eq","value":7}]},
    {"conditions":[{"path":"args.tags","op":"contains","value":"forbidden"}]}],
  "approve_if":[
    {"conditions":[{"path":"args.amount","op":"gt","value":900}]},
    {"conditions":[{"any":[{"path":"args.urgent","op":"eq","value":true},{"path":"args.force","op":"eq","value":true}]}]},
    {"conditions":[{"not":{"path":"args.currency","op":"exists"}}]}],
  "limits":[{"counter":"rate","window":"minute","max":10}]}"#;

/// A policy of so many entries, of which one, last of all, has the ten rules.
fn policy(entries: usize, named: &str, last: &str) -> CompiledPolicy {
    let mut text = r#"{"version":"1","default":"deny","hide":["purge"],"tools":{"#.to_owned();
    for entry in 1..entries {
        write!(text, r#""{named}{entry:04}":{{"deny_if":[{{"conditions":[{{"path":"args.a","op":"gt","value":{entry}}}]}}]}},"#)
            .expect("a string takes it");
    }
    write!(text, r#""{last}":{RULES}}}}}"#).expect("a string takes it");
    compile(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn decide(policy: &CompiledPolicy, tool: &str, arguments: &str, facts: ToolFacts) {
    let arguments = Arguments::parse(arguments).expect("arguments");
    let now = DateTime::UNIX_EPOCH;
    std::hint::black_box(
        policy.decide(&CallInput { facts, ..CallInput::new(tool, arguments, now) }),
    );
}

fn counted(
    policy: &CompiledPolicy,
    tool: &str,
    arguments: &str,
    facts: ToolFacts,
) -> AllocationInfo {
    // The first time regular expressions build their caches, and messages their words.
    decide(policy, tool, arguments, facts);
    measure(|| decide(policy, tool, arguments, facts))
}

const FINE: &str = r#"{"amount":12.5,"currency":"eur","note":"n","account":{"id":1,"region":"eu"},"tags":["a"],"items":[{"id":"item_1"},{"id":"item_2"}]}"#;

#[test]
fn a_decision_allocates_the_same_under_a_policy_of_any_size() {
    let parked = FINE.replace("12.5", "950");
    let refused = FINE.replace("eur", "chf");
    let calls = [
        ("t_last", FINE, ToolFacts::KNOWN),
        ("t_last", &parked, ToolFacts::KNOWN),
        ("t_last", &refused, ToolFacts::KNOWN),
        ("purge", FINE, ToolFacts::KNOWN),
        ("nobody", FINE, ToolFacts::KNOWN),
        ("t_last", FINE, ToolFacts::UNKNOWN),
    ];
    // Names of tools, and patterns of names.
    for (named, last) in [("t_", "t_last"), ("t_*", "t_la?t")] {
        let policies = [10, 200, 2_000].map(|entries| policy(entries, named, last));
        for (tool, arguments, facts) in &calls {
            let [ten, hundreds, thousands] =
                policies.each_ref().map(|policy| counted(policy, tool, arguments, *facts));
            assert_eq!(ten, hundreds, "{named} {tool} {arguments}");
            assert_eq!(ten, thousands, "{named} {tool} {arguments}");
            assert!(ten.count_total <= 24 && ten.bytes_total <= 8 * 1024, "{ten:?}");
        }
    }
}
