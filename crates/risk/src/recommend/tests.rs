use chrono::{DateTime, Utc};
use proptest::prelude::*;
use sluice_domain::Amount;
use sluice_policy::{Arguments, CallInput, Decision, Verdict, check, compile};

use super::*;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000, 0).expect("a time")
}

fn decide(document: &Value, tool: &str) -> Decision {
    let policy = compile(&document.to_string()).expect("a policy");
    let arguments = Arguments::parse("{}").expect("arguments");
    policy.decide(&CallInput::new(tool, arguments, now()))
}

/// A fragment made into a document that denies the rest.
fn alone(fragment: &Value) -> Value {
    let mut document = json!({"version": "1", "default": "deny", "tools": {}});
    for (key, value) in fragment.as_object().expect("an object") {
        document[key] = value.clone();
    }
    document
}

/// What a sentence promises of its tool.
fn promised(sentence: &str, decision: &Decision) -> bool {
    let charge = |max: u32| {
        decision.verdict == Verdict::Forward
            && decision.charges.len() == 1
            && decision.charges.iter().all(|it| {
                it.max == Amount::whole(max)
                    && it.amount == Amount::ONE
                    && it.window.seconds() == 60
            })
    };
    match sentence {
        it if it.ends_with("is allowed.") => {
            decision.verdict == Verdict::Forward && decision.charges.is_empty()
        }
        it if it.contains("may run 30 times a minute per grant") => charge(30),
        it if it.contains("may run 10 times a minute per grant") => charge(10),
        it if it.contains("hidden") => decision.verdict == Verdict::Hide,
        it if it.contains("waits until a person approves it") => {
            decision.verdict == Verdict::Approve
        }
        _ => false,
    }
}

#[test]
fn the_table_of_the_policy_language_is_kept() {
    let table = [
        (Category::Read, json!({"tools": {"t": {}}}), None),
        (
            Category::Write,
            json!({"tools": {"t": {"limits": [{"counter": "t_rate", "window": "minute", "max": 30, "scope": "grant"}]}}}),
            Some("t_rate"),
        ),
        (
            Category::Execute,
            json!({"tools": {"t": {"limits": [{"counter": "t_rate", "window": "minute", "max": 10, "scope": "grant"}]}}}),
            Some("t_rate"),
        ),
        (Category::Destructive, json!({"hide": ["t"]}), None),
        (Category::Financial, json!({"tools": {"t": {"approve_if": [{"conditions": []}]}}}), None),
    ];
    for (category, fragment, counter) in table {
        let rule = recommended("t", category);
        assert_eq!(rule.fragment, fragment, "{category}");
        assert_eq!(rule.counter.as_deref(), counter, "{category}");
    }
}

#[test]
fn counters_are_named_after_their_tools() {
    for (tool, counter) in [
        ("executePython", "executepython_rate"),
        ("execute_code", "execute_code_rate"),
        ("a b/c", "a_b_c_rate"),
    ] {
        assert_eq!(counter_name(tool), counter);
    }
    assert_eq!(counter_name(&"x".repeat(200)).len(), 64);
}

#[test]
fn a_tool_named_like_a_pattern_opens_nothing_else() {
    for name in ["*", "a*", "?", "get_*_by_?"] {
        for category in Category::ALL.iter().filter(|it| **it != Category::Destructive) {
            let rule = recommended(name, *category);
            let document = alone(&rule.fragment);
            assert!(promised(&rule.sentence, &decide(&document, name)), "{name} {category}");
            for other in ["b", "ab", "delete_everything", "get_x_by_y", "aa"] {
                assert_eq!(
                    decide(&document, other).verdict,
                    Verdict::Deny,
                    "{name} opened {other}"
                );
            }
        }
        let rule = recommended(name, Category::Destructive);
        assert_eq!(decide(&alone(&rule.fragment), name).verdict, Verdict::Hide);
    }
}

#[test]
fn tools_that_share_a_counter_are_said_to() {
    let tools = [
        RatedTool { name: "Run", category: Category::Execute },
        RatedTool { name: "run", category: Category::Execute },
    ];
    let policy = recommended_policy(&tools, Rest::Recommended);
    assert!(policy.sentences.contains(&"`Run` and `run` are counted together.".to_owned()));
}

#[test]
fn only_this_tool_means_only_this_tool() {
    let tools = [
        RatedTool { name: "execute_code", category: Category::Execute },
        RatedTool { name: "read_file", category: Category::Read },
    ];
    let policy = recommended_policy(&tools, Rest::Deny { only: "execute_code" });
    assert_eq!(
        policy.sentences,
        ["`execute_code` may run 10 times a minute per grant.", "Every other tool is denied.",]
    );
    assert_eq!(decide(&policy.document, "read_file").verdict, Verdict::Deny);
    assert_eq!(decide(&policy.document, "execute_code").verdict, Verdict::Forward);
    let none = recommended_policy(&tools, Rest::Deny { only: "other" });
    assert_eq!(none.sentences, ["Every tool is denied."]);
}

proptest! {
    #[test]
    fn sentences_are_true_of_the_document(
        tools in proptest::collection::vec(("[ -~]{1,12}|[a-z_]{1,12}|\\PC{1,6}", 0_usize..5), 1..12)
    ) {
        let rated: Vec<RatedTool<'_>> = tools
            .iter()
            .map(|(name, category)| RatedTool { name, category: Category::ALL[*category] })
            .filter(|tool| !tool.name.contains(['*', '?']))
            .collect();
        let policy = recommended_policy(&rated, Rest::Recommended);
        let text = policy.document.to_string();
        let checked = check(&text, None);
        prop_assert!(checked.ok, "{:?}", checked.problems);
        for (index, tool) in rated.iter().enumerate() {
            if rated[..index].iter().any(|it| it.name == tool.name) {
                continue;
            }
            let sentence = recommended(tool.name, tool.category).sentence;
            prop_assert!(policy.sentences.contains(&sentence));
            prop_assert!(promised(&sentence, &decide(&policy.document, tool.name)), "{}", sentence);
        }
        prop_assert_eq!(decide(&policy.document, "a tool that nobody named").verdict, Verdict::Deny);
    }
}
