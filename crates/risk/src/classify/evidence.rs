//! A cue for one category, with its weight and the words it comes from.

use crate::lexicon::Act;
use crate::rating::{Cue, Reason};
use crate::text::quote;

/// How much a cue counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// A noun, or a word that is only sometimes an act.
    Weak,
    /// A verb that depends on its object or is as often a noun.
    Fair,
    /// A plain verb where verbs stand.
    Strong,
}

/// One cue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) act: Act,
    pub(super) weight: Weight,
    /// The folded word that decided.
    pub(super) word: String,
    pub(super) cue: Cue,
    pub(super) place: String,
    pub(super) quote: String,
}

impl Evidence {
    pub(super) fn new(
        act: Act,
        weight: Weight,
        word: &str,
        cue: Cue,
        place: &str,
        text: &str,
    ) -> Self {
        Self {
            act,
            weight,
            word: word.to_owned(),
            cue,
            place: place.to_owned(),
            quote: quote(text),
        }
    }

    pub(super) fn reason(&self) -> Reason {
        Reason { cue: self.cue, place: self.place.clone(), quote: self.quote.clone() }
    }

    pub(super) fn is_strong(&self) -> bool {
        self.weight == Weight::Strong
    }
}
