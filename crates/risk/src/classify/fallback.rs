//! What is left when no verb was found anywhere: an interpreter's name runs, a noun of information
//! reads, anything else is not safe.

use sluice_domain::Category;

use super::evidence::{Evidence, Weight};
use super::{Sources, Verdict};
use crate::lexicon::{self, Act};
use crate::rating::{Confidence, Cue};

impl Sources<'_> {
    /// No verb anywhere: a noun of information reads; anything else is not safe.
    pub(super) fn last_resort(&self) -> Verdict {
        if let Some(evidence) = self.interpreter() {
            return Verdict {
                category: Category::Execute,
                confidence: Confidence::Low,
                reasons: vec![evidence],
            };
        }
        if let Some(evidence) = self.informs().filter(|_| self.facts.is_harmless()) {
            return Verdict {
                category: Category::Read,
                confidence: Confidence::Low,
                reasons: vec![evidence],
            };
        }
        if let Some(evidence) = self.answers() {
            return Verdict {
                category: evidence.act.category(),
                confidence: Confidence::Low,
                reasons: vec![evidence],
            };
        }
        Verdict { category: Category::Write, confidence: Confidence::Unknown, reasons: Vec::new() }
    }

    /// A name that is nothing but an interpreter's: `shell`, `python`.
    fn interpreter(&self) -> Option<Evidence> {
        let words = &self.name.words;
        let only =
            !words.is_empty() && words.iter().all(|word| lexicon::is_interpreter(&word.text));
        only.then(|| {
            Evidence::new(
                Act::Execute,
                Weight::Weak,
                &words[0].text,
                Cue::NameNoun,
                "name",
                &self.tool.name,
            )
        })
    }

    /// An answer that tells what was done: `deleted`, `sent`, `exit_code`. It never makes a reader.
    fn answers(&self) -> Option<Evidence> {
        const DONE: &[(Act, &str)] = &[
            (Act::Pay, "paid charged refunded transferred amountcharged amountpaid"),
            (
                Act::Delete,
                "deleted deletedcount deletedids removed removedcount erased purged purgedcount",
            ),
            (Act::Execute, "exitcode exitstatus stdout stderr returncode"),
            (Act::Send, "sent delivered published posted sentcount"),
            (Act::Write, "created updated saved inserted written modifiedcount updatedcount"),
        ];
        let plain = self.members.iter().filter(|it| it.depth == 0);
        plain
            .filter_map(|member| {
                let (act, _) =
                    DONE.iter().find(|(_, words)| lexicon::is_one_of(words, &member.joined))?;
                Some((*act, member))
            })
            .max_by_key(|(act, _)| *act)
            .map(|(act, member)| {
                let name = member.name;
                Evidence::new(act, Weight::Weak, name, Cue::Output, &member.path, name)
            })
    }

    /// A noun of information in the name, or at the head of the description.
    fn informs(&self) -> Option<Evidence> {
        let weak = |word: &crate::text::Word, cue: Cue, place: &str, text: &str| {
            let shown = text.get(word.range.clone()).unwrap_or_default();
            Evidence::new(Act::Read, Weight::Weak, &word.text, cue, place, shown)
        };
        if let Some(noun) = &self.name.read_noun {
            return Some(weak(noun, Cue::NameNoun, "name", &self.tool.name));
        }
        let changes = self
            .opening
            .any(|it| lexicon::verb(it).is_some_and(|verb| verb.act.mutates() && verb.is_strong()))
            .is_some();
        let noun = self
            .opening
            .words
            .iter()
            .take(6)
            .find(|it| lexicon::is_read_noun(&it.text))
            .filter(|_| !changes)?;
        Some(weak(
            noun,
            Cue::DescriptionPhrase,
            "description",
            self.tool.description.as_deref().unwrap_or_default(),
        ))
    }
}
