//! Seeded mutations of sound texts: the parser and the argument reader never
//! panic, and agree with an independent JSON reader on what JSON is. The work
//! is bounded and the same on every run.

use serde_json::Value;
use sluice_policy::{
    Arguments, ArgumentsError, CallFile, CasesFile, check, check_bytes, compile, edit, recorded,
};

use crate::generate::{Random, call, document};
use crate::support::{decide, now};

const ROUNDS: usize = 6_000;
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\\u0000",
    "null",
    "true",
    "-",
    "0",
    "1e",
    "1e400",
    ".",
    "e9999999999999999999999",
    "é",
    "\u{feff}",
    "\u{1f600}",
    " ",
    "\n",
    "\t",
    "/",
    "\"version\":",
    "\"conditions\":[",
    "\"any\":[",
    "\"not\":{",
    "args.",
    "[*]",
    "[0]",
    "{\"$type\":\"string\"}",
    "99999999999999999999",
];

/// Removes, repeats, inserts or replaces a little of a text, on character borders.
fn mutate(random: &mut Random, text: &mut String) {
    let mut cut = |text: &str| {
        let mut at = random.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (a, b) = (cut(text), cut(text));
    let (from, to) = (a.min(b), a.max(b));
    let near =
        (from..=to.min(from + 12)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(from);
    match random.below(4) {
        0 => text.replace_range(from..near, ""),
        1 => {
            let piece = text[from..near].to_owned();
            text.insert_str(to, &piece);
        }
        2 => text.insert_str(from, random.pick(TOKENS)),
        _ => text.replace_range(from..near, random.pick(TOKENS)),
    }
}

#[test]
fn no_document_text_makes_the_checker_panic_or_contradict_itself() {
    let mut random = Random::new(3);
    let mut accepted = 0;
    for _ in 0..ROUNDS / 4 {
        let mut text = document(&mut random).to_string();
        for _ in 0..4 {
            let checked = check(&text, None);
            let compiled = compile(&text);
            assert_eq!(compiled.is_ok(), checked.ok, "{text}");
            for problem in &checked.problems {
                assert!(problem.line >= 1 && problem.column >= 1 && !problem.message.is_empty());
            }
            if let (Ok(policy), Some(long)) = (compiled, checked.normalised) {
                accepted += 1;
                let again = check(&long.to_string(), None);
                assert_eq!(again.normalised.map(|value| value.to_string()), Some(long.to_string()));
                let call = call(&mut random);
                decide(&policy, &call.tool, &call.arguments.to_string());
                let piece = serde_json::json!({"tools": {"new": {"limits": [{"counter": "new", "window": "day", "max": 1}]}}});
                let edited = edit::apply_rule(&text, &piece).expect("fits");
                assert_eq!(edit::apply_rule(&edited, &piece).as_ref(), Ok(&edited));
            }
            mutate(&mut random, &mut text);
        }
    }
    assert!(accepted > ROUNDS / 8, "{accepted}");
}

#[test]
fn broken_bytes_are_problems_too() {
    let mut random = Random::new(5);
    for _ in 0..500 {
        let mut bytes = document(&mut random).to_string().into_bytes();
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).expect("a byte");
        let checked = check_bytes(&bytes, None);
        assert!(checked.ok || !checked.problems.is_empty());
    }
}

/// Whether a text has the faults that `serde_json` overlooks: duplicate keys.
fn has_duplicates(text: &str) -> bool {
    struct Seen;
    impl<'de> serde::de::Visitor<'de> for Seen {
        type Value = bool;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("JSON")
        }
        fn visit_unit<E>(self) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_str<E>(self, _: &str) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
            let mut any = false;
            while let Some(inner) = seq.next_element::<Wrapped>()? {
                any |= inner.0;
            }
            Ok(any)
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut keys = std::collections::HashSet::new();
            let mut any = false;
            while let Some(key) = map.next_key::<String>()? {
                any |= !keys.insert(key);
                any |= map.next_value::<Wrapped>()?.0;
            }
            Ok(any)
        }
    }
    struct Wrapped(bool);
    impl<'de> serde::Deserialize<'de> for Wrapped {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Seen).map(Wrapped)
        }
    }
    serde_json::from_str::<Wrapped>(text).is_ok_and(|wrapped| wrapped.0)
}

#[test]
fn arguments_are_exactly_json_without_duplicates() {
    let mut random = Random::new(7);
    let policy = {
        let mut seed = Random::new(11);
        let all = document(&mut seed);
        compile(&all.to_string()).expect("a policy")
    };
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..ROUNDS / 4 {
        let mut text = call(&mut random).arguments.to_string();
        for _ in 0..6 {
            let ours = Arguments::parse(&text);
            let theirs: Result<Value, _> = serde_json::from_str(&text);
            match (&ours, &theirs) {
                (Ok(_), Ok(value)) => {
                    accepted += 1;
                    assert!(value.is_object() && !has_duplicates(&text), "{text}");
                    decide(&policy, "a", &text);
                    let kept = recorded::redacted(&text, &|key| key.len() % 2 == 0);
                    assert!(Arguments::recorded(&kept).is_ok(), "{kept}");
                    let types = recorded::types_only(&text);
                    assert!(Arguments::recorded(&types).is_ok(), "{types}");
                }
                (Err(ArgumentsError::NotAnObject), Ok(value)) => {
                    assert!(!value.is_object(), "{text}");
                }
                (Err(_), Ok(_)) => assert!(has_duplicates(&text), "refused for nothing: {text}"),
                (Err(_), Err(_)) => refused += 1,
                (Ok(_), Err(error)) => panic!("accepted what is not JSON: {text}: {error}"),
            }
            let _ = CallFile::parse(&format!(r#"{{"tool":"a","arguments":{text}}}"#))
                .map(|call| call.decide(&policy, now()));
            let _ = CasesFile::parse(&text);
            mutate(&mut random, &mut text);
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}
