//! What the fuzz targets hold to, on their checked-in inputs and on seeded mutations of sound texts:
//! bounded, and the same on every run.

use std::path::Path;

use sluice_policy::{Arguments, check};

use crate::generate::{call, document};
use crate::policy_document;
use crate::random::Random;

#[path = "../../../../fuzz/oracles/policy_arguments.rs"]
mod policy_arguments;
#[path = "../../../../fuzz/oracles/policy_decisions.rs"]
mod policy_decisions;

const ROUNDS: usize = 1_500;
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

/// Every file of a target's folders through its oracle; how many there were.
fn every_file(target: &str, holds: fn(&[u8])) -> usize {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut count = 0;
    for folder in ["seeds", "regressions"] {
        // There may be no regressions yet.
        let Ok(files) = std::fs::read_dir(fuzz.join(folder).join(target)) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            let bytes = std::fs::read(&path).expect("its bytes");
            let held = std::panic::catch_unwind(|| holds(&bytes));
            assert!(held.is_ok(), "{}", path.display());
            count += 1;
        }
    }
    count
}

#[test]
fn the_inputs_of_the_fuzz_targets_hold() {
    assert!(every_file("policy_document", policy_document::holds) >= 20);
    assert!(every_file("policy_arguments", policy_arguments::holds) >= 40);
    assert!(every_file("policy_decisions", policy_decisions::holds) >= 8);
}

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
    for _ in 0..ROUNDS / 5 {
        let mut text = document(&mut random).to_string();
        for _ in 0..4 {
            policy_document::holds(text.as_bytes());
            accepted += usize::from(check(&text, None).ok);
            mutate(&mut random, &mut text);
        }
    }
    assert!(accepted > ROUNDS / 10, "{accepted}");
}

#[test]
fn broken_bytes_are_problems_too() {
    let mut random = Random::new(5);
    for _ in 0..500 {
        let mut bytes = document(&mut random).to_string().into_bytes();
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).expect("a byte");
        policy_document::holds(&bytes);
    }
}

#[test]
fn arguments_are_exactly_json_without_duplicates() {
    let mut random = Random::new(7);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let mut text = call(&mut random).arguments.to_string();
        for _ in 0..6 {
            policy_arguments::holds(text.as_bytes());
            match Arguments::parse(&text) {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
            mutate(&mut random, &mut text);
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}
