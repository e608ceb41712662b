//! The points of each signal.

use sluice_domain::Severity;

use super::{GradeSignal, Known, STABILITY_DAYS, Scored};
use crate::ModifierKind;
use crate::catalogue::{AuthNeeded, Lifecycle};

/// What was found: points and words, or why nothing was checked.
type Found = Result<(u32, String), &'static str>;

pub(super) fn scored(signal: GradeSignal, known: &Known<'_>) -> Scored {
    let of = signal.bound();
    let found = match signal {
        GradeSignal::Exposure => exposure(known, of),
        GradeSignal::Definitions => definitions(known, of),
        GradeSignal::Contradictions => contradictions(known, of),
        GradeSignal::Poison => poison(known, of),
        GradeSignal::Stability => stability(known, of),
        GradeSignal::Auth => auth(known, of),
        GradeSignal::Pinning => pinning(known, of),
        GradeSignal::Lifecycle => lifecycle(known, of),
    };
    match found {
        Ok((points, words)) => Scored { signal, points: Some(points.min(of)), of, words },
        Err(why) => Scored { signal, points: None, of, words: format!("not checked: {why}") },
    }
}

const NO_TOOLS: &str = "no definition of its tools is known";

fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// `1 tool`, `3 tools`
fn tools(number: usize) -> String {
    if number == 1 { "1 tool".to_owned() } else { format!("{number} tools") }
}

/// `points` of `whole` parts, where `parts` of them are lost; rounded down.
fn less(points: u32, parts: usize, whole: usize) -> u32 {
    let lost = u64::from(points) * parts as u64;
    let lost = lost.div_ceil(whole.max(1) as u64);
    points.saturating_sub(u32::try_from(lost).unwrap_or(u32::MAX))
}

/// A Critical tool costs its whole share of the points, a High one half of it.
fn exposure(known: &Known<'_>, of: u32) -> Found {
    if known.tools.is_empty() {
        return Err(NO_TOOLS);
    }
    let count = |severity| known.tools.iter().filter(|it| it.rating.severity == severity).count();
    let (high, critical) = (count(Severity::High), count(Severity::Critical));
    let all = known.tools.len();
    let words = format!("{critical} of {} Critical, {high} High", tools(all));
    Ok((less(of, 2 * critical + high, 2 * all), words))
}

fn definitions(known: &Known<'_>, of: u32) -> Found {
    if known.tools.is_empty() {
        return Err(NO_TOOLS);
    }
    let told = |text: &Option<String>| text.as_deref().is_some_and(|it| !it.trim().is_empty());
    let bare = known
        .tools
        .iter()
        .filter(|tool| {
            !told(&tool.definition.description) || tool.definition.input_schema.is_none()
        })
        .count();
    let all = known.tools.len();
    let words = match bare {
        0 => "every tool has a description and an input schema".to_owned(),
        _ => format!("{bare} of {} lack a description or an input schema", tools(all)),
    };
    Ok((less(of, bare, all), words))
}

fn contradictions(known: &Known<'_>, of: u32) -> Found {
    if known.tools.is_empty() {
        return Err(NO_TOOLS);
    }
    let says = |it: &&super::Looked<'_>| {
        it.rating.modifiers.iter().any(|one| one.kind == ModifierKind::Contradiction)
    };
    let count = known.tools.iter().filter(says).count();
    let words = match count {
        0 => "no hint contradicts its tool".to_owned(),
        _ => format!("the hints of {} contradict what else they say", tools(count)),
    };
    Ok((of.saturating_sub(u32_of(count).saturating_mul(5)), words))
}

fn poison(known: &Known<'_>, of: u32) -> Found {
    if known.tools.is_empty() {
        return Err(NO_TOOLS);
    }
    let found = known.tools.iter().filter(|tool| tool.findings > 0).count();
    Ok(match found {
        0 => (of, "no sign of hidden orders in any definition".to_owned()),
        _ => (0, format!("{} with signs of hidden orders", tools(found))),
    })
}

fn stability(known: &Known<'_>, of: u32) -> Found {
    let watched = known.watched.ok_or("the definitions were read once only")?;
    let days = watched.days.clamp(0, STABILITY_DAYS);
    let words = format!("{} changed in {days} days", tools(watched.changes));
    Ok((of.saturating_sub(u32_of(watched.changes).saturating_mul(2)), words))
}

fn auth(known: &Known<'_>, of: u32) -> Found {
    if known.command.is_some() {
        return Err("it runs where its client runs, and asks nobody who they are");
    }
    match known.auth {
        Some(AuthNeeded::OAuth) => Ok((of, "callers sign in with OAuth".to_owned())),
        Some(AuthNeeded::Token) => Ok((4, "callers need a key or token".to_owned())),
        Some(AuthNeeded::None) => Ok((0, "anybody may call it".to_owned())),
        Some(AuthNeeded::Unknown) | None => Err("what it asks of its callers is not known"),
    }
}

fn pinning(known: &Known<'_>, of: u32) -> Found {
    let command = known.command.ok_or("no command that starts it is known")?;
    Ok(if is_pinned(command) {
        (of, "its command names an exact version".to_owned())
    } else {
        (0, "its command names no exact version, so what runs can change unseen".to_owned())
    })
}

fn lifecycle(known: &Known<'_>, of: u32) -> Found {
    Ok(match known.lifecycle.ok_or("it has no registry record")? {
        Lifecycle::Active => (of, "its registry record is active".to_owned()),
        Lifecycle::Deprecated => (1, "its registry record is marked as deprecated".to_owned()),
        Lifecycle::Deleted => (0, "its registry record was deleted".to_owned()),
    })
}

/// Whether a start command names an exact version: `pkg@1.2.3`, `pkg==1.2.3`, `image@sha256:…` or `image:1.2.3`.
pub fn is_pinned(command: &str) -> bool {
    command.split_whitespace().skip(1).filter(|word| !word.starts_with('-')).any(|word| {
        if word.contains("@sha256:") {
            return true;
        }
        let after = word
            .rsplit_once("==")
            .or_else(|| word.rsplit_once('@'))
            .or_else(|| word.rsplit_once(':'))
            .map(|(_, version)| version);
        after.is_some_and(is_version)
    })
}

/// `1.2`, `2025.4.8`, `v1.2.3-rc1`; no range, no `latest`.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts = text.split(['-', '+']).next().unwrap_or_default().split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.clone().count() >= 2 && parts.all(number)
}
