//! Finds the acts in a description's first sentence: `Creates or updates …`, `Use this tool to delete …`.

use super::evidence::{Evidence, Weight};
use super::objects;
use crate::lexicon::{self, Act, Form, Verb};
use crate::rating::Cue;
use crate::text::{Gap, Word, cut, sentence_words};

/// A description's opening.
#[derive(Debug)]
pub(super) struct Opening {
    /// The graver of the acts at the head of the sentence.
    pub(super) evidence: Option<Evidence>,
    /// A graver act later in the sentence: `… and deletes it`.
    pub(super) second: Option<Evidence>,
    /// The acts stand in a later sentence, behind one that names none.
    pub(super) belated: bool,
    /// Words of the first sentence.
    pub(super) words: Vec<Word>,
}

impl Opening {
    pub(super) fn any(&self, test: impl Fn(&str) -> bool) -> Option<&Word> {
        self.words.iter().find(|word| test(&word.text))
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.any(|word| words.contains(&word)).is_some()
    }
}

/// Words before the verb that say nothing of it.
const FILLERS: &str = "this the a an tool tools that which it mcp command function method endpoint api action operation lets let \
    allow allows allowing enable enables enabling help helps helping used use using useful can will would may you user \
    users agent agents ai llm models model client to for when want need needs your is are be been and or then easily simply just \
    please optionally safely first always primary main alternative ability way capability designed supports support \
    interface utility wrapper helper convenience deprecated beta experimental preview premium pro admin only internal legacy \
    new v1 v2 note important warning required start here discovery workflow step one two readonly stateful advanced \
    perform performs performing";

fn is_filler(word: &str) -> bool {
    use std::collections::HashSet;
    use std::sync::LazyLock;
    static SET: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| FILLERS.split_whitespace().collect());
    SET.contains(word)
        || (word.ends_with("ly") && word.len() > 4 && word != "reply" && word != "apply")
}

/// Reads the first sentence of a description.
pub(super) fn read(description: &str) -> Opening {
    let text = skip_labels(cut(description, 700));
    let offset = text.as_ptr() as usize - description.as_ptr() as usize;
    let mut words = sentence_words(text, 60);
    for word in &mut words {
        word.range = word.range.start + offset..word.range.end + offset;
    }
    let mut from = 0;
    // A heading without a verb is not the sentence.
    while from < words.len() {
        let end = words[from..]
            .iter()
            .position(|word| word.gap == Gap::Stop)
            .map_or(words.len(), |at| from + at + 1);
        let sentence = &words[from..end];
        if let Some(mut opening) = acts(description, sentence) {
            opening.belated = from > 0;
            if let Some(evidence) = opening.evidence.as_mut().filter(|_| from > 0) {
                evidence.weight = evidence.weight.min(Weight::Fair);
            }
            return opening;
        }
        if from > 0 || end - from > 12 {
            break;
        }
        from = end;
    }
    let end = words.iter().position(|word| word.gap == Gap::Stop).map_or(words.len(), |at| at + 1);
    words.truncate(end);
    Opening { evidence: None, second: None, belated: false, words }
}

/// Leaves out `[READ]`, `START HERE:` and bullets before the sentence.
fn skip_labels(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[' && c != '(');
    for _ in 0..3 {
        let tagged = rest.strip_prefix('[').and_then(|it| it.split_once(']'));
        if let Some((_, after)) =
            tagged.filter(|(tag, after)| tag.len() < 60 && !after.trim().is_empty())
        {
            rest = after.trim_start_matches(|c: char| !c.is_alphanumeric());
            continue;
        }
        let Some((label, after)) = rest.split_once(':') else { break };
        let shouted = label.len() < 50
            && !label.contains(['.', '\n'])
            && label.chars().filter(|c| c.is_lowercase()).count() * 2
                < label.chars().count().max(1);
        if !shouted || after.trim().is_empty() {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

fn acts(description: &str, words: &[Word]) -> Option<Opening> {
    let (at, verb, sure) = head(words)?;
    let mut best = (at, verb);
    let mut last = at;
    // `List, create, or delete`
    for (index, word) in words.iter().enumerate().skip(at + 1).take(9) {
        let joint = matches!(word.text.as_str(), "and" | "or" | "then" | "to" | "from");
        let near = words[last].gap == Gap::List || index == last + 1 || joint;
        if joint || !near {
            if !near {
                break;
            }
            continue;
        }
        let linked = words[last].gap == Gap::List
            || words[last + 1..index]
                .iter()
                .any(|it| matches!(it.text.as_str(), "and" | "or" | "then"));
        match lexicon::verb(&word.text).filter(|it| linked && it.form == verb.form && !it.vague) {
            Some(next) => {
                if next.act > best.1.act || best.1.vague {
                    best = (index, next);
                }
                last = index;
            }
            None => break,
        }
    }
    let mut evidence = evidence(description, words, best.0, best.1);
    if !sure {
        evidence.weight = Weight::Weak;
    }
    let second = later(description, words, last + 1, verb);
    Some(Opening { evidence: Some(evidence), second, belated: false, words: words.to_vec() })
}

fn evidence(description: &str, words: &[Word], at: usize, verb: Verb) -> Evidence {
    let word = &words[at];
    let others: Vec<&str> = words.iter().skip(at + 1).take(6).map(|it| it.text.as_str()).collect();
    let weight = match verb {
        Verb { form: Form::Noun, .. } | Verb { form: Form::Past, .. } => Weight::Weak,
        Verb { weak: true, .. } => Weight::Fair,
        // In a sentence the first word is a verb even if it can be a noun.
        _ => Weight::Strong,
    };
    let base = stem(&word.text);
    let (act, weight) = objects::refine(verb.act, weight, base, &others, false);
    let text = description.get(word.range.clone()).unwrap_or_default();
    Evidence::new(act, weight, base, Cue::DescriptionVerb, "description", text)
}

fn stem(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| lexicon::verb(rest).is_some()).unwrap_or(word)
}

/// The verb at the head: the first word that is neither filler nor adverb, or a later `to VERB`.
fn head(words: &[Word]) -> Option<(usize, Verb, bool)> {
    let mut skipped = 0;
    for (at, word) in words.iter().enumerate().take(14) {
        if let Some((verb, _)) = lexicon::unspaced_verb(&word.text) {
            return Some((at, verb, true));
        }
        let next = words.get(at + 1).map(|it| it.text.as_str());
        // `read-only` is a claim, not an act.
        let claim = next == Some("only") && matches!(word.text.as_str(), "read" | "view" | "query");
        // `Runs in a sandbox` tells where the tool itself runs.
        let itself = matches!(word.text.as_str(), "run" | "runs" | "executes" | "operates")
            && matches!(next, Some("in" | "inside" | "within" | "under" | "locally"));
        let found = lexicon::verb(&word.text).filter(|_| !claim && !itself);
        // `Security audit of …`: a noun of reading at the head of a phrase.
        let of = matches!(next, Some("of" | "for"));
        if let Some(verb) = found
            .filter(|it| of && at <= 3 && it.noun && it.act == Act::Read && it.form == Form::Base)
        {
            return Some((at, verb, true));
        }
        if let Some(verb) = found.filter(|it| !it.vague && !matches!(it.form, Form::Past)) {
            let sure = !is_filler(&word.text) && (skipped == 0 || introduced(words, at));
            let third = skipped <= 2 && verb.form == Form::Third && !verb.noun;
            if sure || third {
                return Some((at, verb, skipped == 0 || third));
            }
        }
        if !is_filler(&word.text) {
            skipped += 1;
        }
    }
    None
}

/// Stands after `to`, `and` or a break, as verbs do.
fn introduced(words: &[Word], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| {
        matches!(before.text.as_str(), "to" | "can" | "will" | "that" | "which" | "lets" | "you")
            || before.gap == Gap::Break
    })
}

/// A graver plain verb after `and` or `then`, in the head's form.
fn later(description: &str, words: &[Word], from: usize, head: Verb) -> Option<Evidence> {
    (from..words.len())
        .filter(|at| {
            let before = at.checked_sub(1).map(|before| &words[before]);
            before.is_some_and(|it| {
                matches!(it.text.as_str(), "and" | "then" | "or") || it.gap == Gap::List
            })
        })
        .filter_map(|at| lexicon::verb(&words[at].text).map(|verb| (at, verb)))
        .filter(|(_, verb)| verb.form == head.form && verb.is_strong() && verb.act.mutates())
        .max_by_key(|(_, verb)| verb.act)
        .map(|(at, verb)| evidence(description, words, at, verb))
        .filter(|it| it.act != Act::Send || head.act.mutates())
}
