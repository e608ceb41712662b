//! What moves the severity away from the category's base, by one step at most.

use sluice_domain::{Category, Severity, ToolDefinition};

use super::evidence::Evidence;
use super::facts::{Facts, Spot};
use super::names::Name;
use crate::lexicon;
use crate::rating::{Direction, Modifier, ModifierKind, Signal};
use crate::text::{cut, quote, sentence_words};

/// Everything the modifiers look at.
pub(super) struct Seen<'a> {
    pub(super) tool: &'a ToolDefinition,
    pub(super) category: Category,
    pub(super) name: &'a Name,
    pub(super) facts: &'a Facts,
    /// What says that it reaches others.
    pub(super) sends: Option<&'a Evidence>,
}

/// The modifiers, and the severity they lead to.
pub(super) fn weigh(seen: &Seen<'_>) -> (Severity, Vec<Modifier>) {
    let base = seen.category.base_severity();
    let mut found = Vec::new();
    inputs(seen, &mut found);
    acts(seen, &mut found);
    claims(seen, &mut found);
    annotations(seen, &mut found);
    let raises = found.iter().any(|it| it.direction == Direction::Raises);
    let lowers = found.iter().any(|it| it.direction == Direction::Lowers);
    if raises {
        for modifier in found.iter_mut().filter(|it| it.direction == Direction::Lowers) {
            modifier.direction = Direction::None;
        }
    }
    let severity = match (base, raises, lowers) {
        (Severity::Low, true, _) | (Severity::High, false, true) => Severity::Medium,
        (Severity::Medium, true, _) | (Severity::Critical, false, true) => Severity::High,
        (Severity::High, true, _) => Severity::Critical,
        (Severity::Medium, false, true) => Severity::Low,
        (same, ..) => same,
    };
    (severity, found)
}

fn add(found: &mut Vec<Modifier>, kind: ModifierKind, direction: Direction, spot: &Spot) {
    if !found.iter().any(|it| it.kind == kind) {
        found.push(Modifier {
            kind,
            direction,
            place: spot.place.clone(),
            quote: spot.quote.clone(),
        });
    }
}

fn raise_unless(seen: &Seen<'_>, meant: &[Category]) -> Direction {
    if meant.contains(&seen.category) { Direction::None } else { Direction::Raises }
}

fn inputs(seen: &Seen<'_>, found: &mut Vec<Modifier>) {
    use Category::{Destructive, Execute, Financial, Read, Write};
    let facts = seen.facts;
    if let Some(spot) = facts.code.as_ref().or(facts.command.as_ref()).or(facts.sql.as_ref()) {
        // A reader may be handed code to look at; only what runs or stores it is worse for it.
        let meant: &[Category] = if facts.code.is_some() { &[Execute, Read] } else { &[Execute] };
        add(found, ModifierKind::ArbitraryCode, raise_unless(seen, meant), spot);
    }
    if let Some(spot) = &facts.secret {
        add(found, ModifierKind::Secrets, raise_unless(seen, &[Read, Execute]), spot);
    }
    if let Some(spot) = &facts.mass {
        let direction = raise_unless(seen, &[Read, Execute, Destructive, Write]);
        add(found, ModifierKind::Bulk, direction, spot);
    }
    if let Some(spot) = &facts.force {
        add(found, ModifierKind::Force, raise_unless(seen, &[Read]), spot);
    }
    if let Some(spot) = &facts.overwrite {
        add(
            found,
            ModifierKind::Overwrites,
            raise_unless(seen, &[Read, Execute, Destructive]),
            spot,
        );
    }
    if let Some(spot) = facts.output_folder.as_ref().or(facts.save_path.as_ref()) {
        add(
            found,
            ModifierKind::WritesFiles,
            raise_unless(seen, &[Write, Execute, Destructive, Financial]),
            spot,
        );
    }
    if let Some(spot) = facts.amount.as_ref().filter(|_| facts.signals.contains(&Signal::Money)) {
        add(found, ModifierKind::Money, raise_unless(seen, &[Read, Financial]), spot);
    }
    if seen.category == Execute && !facts.free_input {
        let spot = Spot { place: "inputSchema".to_owned(), quote: "only fixed choices".to_owned() };
        add(found, ModifierKind::FixedAction, Direction::Lowers, &spot);
    }
}

fn acts(seen: &Seen<'_>, found: &mut Vec<Modifier>) {
    use Category::{Destructive, Execute, Financial, Read, Write};
    let name_spot = |word: &crate::text::Word| Spot {
        place: "name".to_owned(),
        quote: seen.tool.name.get(word.range.clone()).unwrap_or_default().to_owned(),
    };
    if let Some(sends) = seen.sends.filter(|_| seen.category == Write) {
        let spot = Spot { place: sends.place.clone(), quote: sends.quote.clone() };
        add(found, ModifierKind::OutsideParties, Direction::Raises, &spot);
    }
    let words = &seen.name.words;
    let pair = words.windows(2).find(|pair| is_key(&pair[0].text, &pair[1].text));
    if let Some(pair) = pair {
        let quote = seen
            .tool
            .name
            .get(pair[0].range.start..pair[1].range.end)
            .unwrap_or_default()
            .to_owned();
        let spot = Spot { place: "name".to_owned(), quote };
        add(found, ModifierKind::Secrets, raise_unless(seen, &[Destructive, Financial]), &spot);
    }
    if let Some(word) = seen.name.any(lexicon::is_secret_noun) {
        add(
            found,
            ModifierKind::Secrets,
            raise_unless(seen, &[Destructive, Financial]),
            &name_spot(word),
        );
    } else if seen.category == Read
        && let Some(word) = seen.name.any(lexicon::is_person_noun)
    {
        add(found, ModifierKind::SensitiveData, Direction::Raises, &name_spot(word));
    }
    if let Some(spot) = &seen.facts.told_secret {
        add(found, ModifierKind::Secrets, raise_unless(seen, &[Destructive, Financial]), spot);
    }
    if let Some(spot) = seen.facts.told_person.as_ref().filter(|_| seen.category == Read) {
        add(found, ModifierKind::SensitiveData, Direction::Raises, spot);
    }
    if let Some(word) = seen.name.any(|it| {
        matches!(it, "bulk" | "batch" | "mass" | "all" | "many" | "multiple" | "everything")
    }) {
        add(found, ModifierKind::Bulk, raise_unless(seen, &[Read, Execute]), &name_spot(word));
    }
    if let Some(word) = seen.name.any(is_access_noun) {
        add(
            found,
            ModifierKind::Access,
            raise_unless(seen, &[Read, Execute, Destructive, Financial]),
            &name_spot(word),
        );
    }
}

/// `api_key`, `access_token`.
fn is_key(first: &str, second: &str) -> bool {
    matches!(
        (first, second.trim_end_matches('s')),
        ("api" | "access" | "private" | "ssh" | "encryption" | "signing", "key")
            | ("access" | "api" | "auth" | "bearer" | "deploy", "token")
            | ("connection", "string")
    )
}

fn is_access_noun(word: &str) -> bool {
    matches!(
        word.trim_end_matches('s'),
        "permission"
            | "role"
            | "acl"
            | "firewall"
            | "admin"
            | "iam"
            | "rbac"
            | "owner"
            | "ownership"
            | "acces"
            | "invite"
            | "privilege"
    )
}

/// One of these is in every word that [`claims`] looks for.
const TELLING: &[&str] =
    &["sandbox", "isolated", "overwr", "lost", "irrevers", "permanent", "unrecover"];

/// Words of the description that raise, and claims that are shown without being believed.
fn claims(seen: &Seen<'_>, found: &mut Vec<Modifier>) {
    use Category::{Destructive, Execute, Read};
    let Some(description) = seen.tool.description.as_deref() else { return };
    let start = cut(description, 900);
    let lower = start.to_ascii_lowercase();
    if !TELLING.iter().any(|stem| lower.contains(stem)) {
        return;
    }
    for word in sentence_words(start, 160) {
        let spot = || Spot {
            place: "description".to_owned(),
            quote: quote(description.get(word.range.clone()).unwrap_or_default()),
        };
        match word.text.as_str() {
            "sandbox" | "sandboxed" | "isolated" if matches!(seen.category, Execute) => {
                add(found, ModifierKind::Sandboxed, Direction::None, &spot());
            }
            "overwrite" | "overwrites" | "overwriting" | "overwritten" => {
                add(
                    found,
                    ModifierKind::Overwrites,
                    raise_unless(seen, &[Read, Execute, Destructive]),
                    &spot(),
                );
            }
            "lost" if description.contains("will be lost") => {
                add(
                    found,
                    ModifierKind::Irreversible,
                    raise_unless(seen, &[Read, Destructive]),
                    &spot(),
                );
            }
            "irreversible" | "irreversibly" | "permanently" | "unrecoverable" => {
                add(
                    found,
                    ModifierKind::Irreversible,
                    raise_unless(seen, &[Read, Destructive]),
                    &spot(),
                );
            }
            _ => {}
        }
    }
}

fn annotations(seen: &Seen<'_>, found: &mut Vec<Modifier>) {
    let hint = |name: &str| {
        seen.tool
            .annotations
            .as_ref()
            .and_then(|it| it.get(name))
            .and_then(serde_json::Value::as_bool)
    };
    let spot = |name: &str, value: bool| Spot {
        place: format!("annotations.{name}"),
        quote: value.to_string(),
    };
    let mutates = seen.category != Category::Read;
    if mutates && hint("readOnlyHint") == Some(true) {
        add(found, ModifierKind::Contradiction, Direction::None, &spot("readOnlyHint", true));
    } else if mutates && hint("destructiveHint") == Some(true) {
        let direction =
            raise_unless(seen, &[Category::Execute, Category::Destructive, Category::Financial]);
        add(found, ModifierKind::Overwrites, direction, &spot("destructiveHint", true));
    }
}
