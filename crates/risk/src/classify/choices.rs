//! Tools with an `action` parameter, or with a list of `actions`, do whatever its choices say: the gravest counts.

use super::evidence::{Evidence, Weight};
use super::schema::{Kind, Parameter};
use crate::lexicon::{self, Act, list};
use crate::rating::Cue;
use crate::text::name_words;

/// The gravest act among the choices of a parameter that picks the operation.
pub(super) fn read(parameters: &[Parameter<'_>]) -> Option<Evidence> {
    parameters
        .iter()
        .filter(|it| it.kind == Kind::Text && !it.choices.is_empty())
        .filter(|it| it.depth == 0 && it.is(list!(OPERATIONS)) || is_step(it))
        .filter_map(gravest)
        .max_by_key(|it| it.act)
}

/// `actions[*].type`: what each step of a list does.
fn is_step(parameter: &Parameter<'_>) -> bool {
    let listed = ["args.actions[*].", "args.steps[*].", "args.operations[*].", "args.commands[*]."];
    (parameter.is(list!(OPERATIONS)) || parameter.is(list!("type kind name")))
        && listed.iter().any(|place| parameter.path.starts_with(place))
}

fn gravest(parameter: &Parameter<'_>) -> Option<Evidence> {
    let mut verbs = 0_usize;
    let mut best: Option<(Act, &str)> = None;
    for choice in &parameter.choices {
        let words = name_words(choice);
        let found = words.iter().find_map(|word| lexicon::verb(&word.text).filter(|it| !it.vague));
        let Some(verb) = found else { continue };
        verbs += 1;
        if best.is_none_or(|(act, _)| verb.act > act) {
            best = Some((verb.act, choice));
        }
    }
    let (act, choice) = best?;
    // One verb among many words is chance: `mode: [fast, full, clear]`.
    (verbs * 2 >= parameter.choices.len()).then(|| {
        Evidence::new(act, Weight::Strong, choice, Cue::ParameterChoice, &parameter.path, choice)
    })
}

const OPERATIONS: &str = "action operation op command mode subcommand actiontype operationtype task intent do verb event";
