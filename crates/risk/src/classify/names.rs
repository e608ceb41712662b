//! Finds the act in a tool's name: `create_task`, `firewall-rule_delete`, `createorupdate`, `删除文件`.

use std::ops::Range;

use super::evidence::{Evidence, Weight};
use super::objects;
use crate::lexicon::{self, Act, Form, Verb};
use crate::rating::Cue;
use crate::text::{Word, name_words};

/// A name taken apart.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) words: Vec<Word>,
    /// The act, if a verb was found.
    pub(super) evidence: Option<Evidence>,
    /// The name ends in a noun of information: `status`, `logs`.
    pub(super) read_noun: Option<Word>,
}

impl Name {
    pub(super) fn any(&self, test: impl Fn(&str) -> bool) -> Option<&Word> {
        self.words.iter().find(|word| test(&word.text))
    }
}

struct Candidate {
    at: usize,
    verb: Verb,
    range: Range<usize>,
    word: String,
}

/// Reads the name; `cue` and `place` say whether it is the name or the title.
pub(super) fn read(name: &str, cue: Cue, place: &str) -> Name {
    let words = name_words(name);
    let found = candidates(&words);
    let converts = conversion(&words, &found);
    let head = joined(&words, &found).or_else(|| head(&words, &found));
    let read_noun = words.last().filter(|word| lexicon::is_read_noun(&word.text)).cloned();
    let evidence = head.map(|(at, act, weight)| {
        let candidate = &found[at];
        let text = name.get(candidate.range.clone()).unwrap_or_default();
        let rest: Vec<&str> = words
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != candidate.at)
            .map(|(_, word)| word.text.as_str())
            .collect();
        let (act, weight) = objects::refine(act, weight, &candidate.word, &rest, true);
        Evidence::new(act, weight, &candidate.word, cue, place, text)
    });
    let converts = converts.map(|word| {
        let text = name.get(word.range.clone()).unwrap_or_default();
        Evidence::new(Act::Compute, Weight::Fair, "to", cue, place, text)
    });
    let evidence = evidence.filter(|it| it.is_strong() || converts.is_none()).or(converts);
    Name { words, evidence, read_noun }
}

/// `text_to_speech`, `html2pdf`: one thing turned into another.
fn conversion<'a>(words: &'a [Word], found: &[Candidate]) -> Option<&'a Word> {
    let at = words.iter().position(|word| word.text == "to")?;
    let plain = found.iter().any(|it| it.at < at && it.verb.is_strong());
    (at > 0 && at + 1 < words.len() && !plain).then(|| &words[at])
}

fn candidates(words: &[Word]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let start = word.range.start;
        if let Some(verb) = lexicon::verb(&word.text) {
            found.push(Candidate { at, verb, range: word.range.clone(), word: word.text.clone() });
        } else if let Some((verb, range)) = lexicon::unspaced_verb(&word.text) {
            let inner = word.text.get(range.clone()).unwrap_or_default().to_owned();
            let shown = if word.text.len() == word.range.len() {
                start + range.start..start + range.end
            } else {
                word.range.clone()
            };
            found.push(Candidate { at, verb, range: shown, word: inner });
        } else if let Some((verb, _)) = lexicon::split_run(&word.text) {
            found.push(Candidate { at, verb, range: word.range.clone(), word: word.text.clone() });
        }
    }
    found.retain(|it| it.verb.form != Form::Past || it.at > 0);
    found
}

/// `find_and_replace`, `create_or_update`: the graver of the two.
fn joined(words: &[Word], found: &[Candidate]) -> Option<(usize, Act, Weight)> {
    found.windows(2).enumerate().find_map(|(index, pair)| {
        let [left, right] = pair else { return None };
        let between = words.get(left.at + 1)?;
        let joined =
            right.at == left.at + 2 && matches!(between.text.as_str(), "or" | "and" | "then");
        let verbs = !left.verb.vague && !right.verb.vague && right.verb.form == Form::Base;
        (joined && verbs).then(|| {
            let graver = if right.verb.act > left.verb.act { index + 1 } else { index };
            (graver, found[graver].verb.act, Weight::Strong)
        })
    })
}

fn head(words: &[Word], found: &[Candidate]) -> Option<(usize, Act, Weight)> {
    let last_word = words.len().checked_sub(1)?;
    let plain = |it: &Candidate| it.verb.is_strong() && it.verb.form != Form::Ing;
    let at = |index: usize, weight: Weight| Some((index, found[index].verb.act, weight));
    let first = found.first()?;
    let last = found.len() - 1;
    let group = words.len() > 2
        && found[last].at == last_word
        && is_crisp(&found[last])
        && !is_crisp(first);
    if first.at == 0 && plain(first) && !group {
        return at(0, Weight::Strong);
    }
    let ends = found[last].at == last_word && found[last].verb.form == Form::Base;
    if ends && found[last].verb.is_strong() && !canonical(&found[last]) {
        return at(last, Weight::Strong);
    }
    if let Some(index) = found.iter().position(|it| plain(it) && it.verb.form == Form::Base) {
        // `job_import_status` tells of an import.
        let told = index > 0
            && !is_crisp(&found[index])
            && words.last().is_some_and(|word| lexicon::is_read_noun(&word.text));
        return at(index, if told { Weight::Fair } else { Weight::Strong });
    }
    if ends
        && (canonical(&found[last]) && (first.at != 0 || first.verb.noun)
            || found[last].verb.weak && !found[last].verb.noun && first.verb.noun)
    {
        return at(last, Weight::Strong);
    }
    // A verb that is as often a noun is an act where acts stand: first, before an object.
    if first.at == 0 && !first.verb.vague && first.verb.form != Form::Noun {
        return at(0, Weight::Fair);
    }
    let usable = |it: &Candidate| !it.verb.vague;
    let index = found
        .iter()
        .rposition(|it| usable(it) && it.at == last_word)
        .or_else(|| found.iter().position(|it| usable(it) && it.verb.form == Form::Base))
        .or_else(|| found.iter().position(usable))?;
    at(
        index,
        if found[index].verb.form == Form::Noun {
            Weight::Fair
        } else {
            Weight::Weak.max(fairness(&found[index], last_word))
        },
    )
}

fn fairness(candidate: &Candidate, last_word: usize) -> Weight {
    let base = candidate.verb.form == Form::Base;
    if base && (candidate.at <= 1 || candidate.at == last_word) {
        Weight::Fair
    } else {
        Weight::Weak
    }
}

/// Verbs that are acts wherever they stand: `deploy_logs_get` gets.
fn is_crisp(candidate: &Candidate) -> bool {
    matches!(
        candidate.word.as_str(),
        "get"
            | "create"
            | "delete"
            | "remove"
            | "show"
            | "describe"
            | "fetch"
            | "add"
            | "read"
            | "write"
            | "send"
            | "insert"
            | "execute"
    )
}

/// Verbs that noun-first names end in, though they are nouns elsewhere: `user_list`, `record_update`.
fn canonical(candidate: &Candidate) -> bool {
    matches!(
        candidate.word.as_str(),
        "list" | "update" | "search" | "query" | "set" | "import" | "upload"
    )
}
