//! Decisions. The bytes choose a document and calls; the engine decides them as the slow evaluator
//! does that was written from the language's page alone, and a spoilt document is only told of.

use sluice_policy::{Arguments, compile};

use crate::generate::{call, document, spoil};
use crate::policy_document;
use crate::random::Random;
use crate::reference;
use crate::run::{decide, outcome};

/// Calls of one document.
const CALLS: usize = 8;

/// Panics where something does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let spoilt = random.one_in(4);
    let mut value = document(&mut random);
    if spoilt {
        spoil(&mut random, &mut value);
        policy_document::holds(value.to_string().as_bytes());
        return;
    }
    let text = value.to_string();
    let policy = compile(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
    for _ in 0..CALLS {
        let call = call(&mut random);
        let arguments = call.arguments.to_string();
        Arguments::parse(&arguments).expect("arguments");
        let decision = decide(&policy, &call, &arguments);
        assert_eq!(outcome(&decision), reference::decide(&value, &call), "{text} {call:?}");
    }
}
