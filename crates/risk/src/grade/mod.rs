//! A server's grade, A to F, from stated signals: each has a bound of points, what was found in words, and
//! says so where nothing was checked. Who stands behind a server is told beside it and only caps it.
//! The formula is documented in `/docs/grades`, and a test holds that page against the constants here.

mod signals;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sluice_domain::ToolDefinition;

use crate::catalogue::{AuthNeeded, Identity, Lifecycle, ServerEntry};
use crate::words::words;
use crate::{Rating, classify, findings};

pub use signals::is_pinned;

words!(
    /// The grade, best first.
    Letter { A = "A", B = "B", C = "C", D = "D", F = "F" }
);

words!(
    /// What a grade is computed from.
    GradeSignal {
        Exposure = "exposure",
        Definitions = "definition hygiene",
        Contradictions = "contradictions with annotations",
        Poison = "poison findings",
        Stability = "stability",
        Auth = "auth posture",
        Pinning = "pinning",
        Lifecycle = "lifecycle",
    }
);

impl GradeSignal {
    /// The points that this signal can give.
    pub const fn bound(self) -> u32 {
        match self {
            Self::Exposure => 20,
            Self::Definitions | Self::Contradictions => 15,
            Self::Poison => 25,
            Self::Stability => 10,
            Self::Auth | Self::Pinning | Self::Lifecycle => 5,
        }
    }
}

/// The least percentage of points for each letter; below the last it is F.
pub const LEAST: [(Letter, u32); 4] =
    [(Letter::A, 90), (Letter::B, 80), (Letter::C, 65), (Letter::D, 50)];
/// Changes older than this say nothing of today.
pub const STABILITY_DAYS: i64 = 90;

/// A tool with what was found in its definition.
#[derive(Debug, Clone)]
pub struct Looked<'a> {
    pub definition: &'a ToolDefinition,
    pub rating: Rating,
    /// How many signs of a poisoned definition there are.
    pub findings: usize,
}

impl<'a> Looked<'a> {
    /// Rates the definition and looks for poison in it.
    pub fn at(definition: &'a ToolDefinition) -> Self {
        Self { definition, rating: classify(definition), findings: findings(definition).len() }
    }
}

/// About how many tokens a model reads of a definition: four bytes of its JSON are taken as one. Models differ;
/// this compares definitions, and is not a bill.
pub fn token_weight(definition: &ToolDefinition) -> usize {
    serde_json::to_string(definition).map_or(0, |text| text.len().div_ceil(4))
}

/// How a server's tools changed while they were watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Since how many days.
    pub days: i64,
    /// Tools that came, went or changed in the last [`STABILITY_DAYS`] days.
    pub changes: usize,
}

/// What is known of a server.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub tools: &'a [Looked<'a>],
    /// `None`: the definitions were seen once only.
    pub watched: Option<Watched>,
    /// What a remote server asks of its callers; `None`: not known, or it runs where the client runs.
    pub auth: Option<AuthNeeded>,
    /// What starts it, where the client starts it.
    pub command: Option<&'a str>,
    /// Its registry record's state; `None`: it has no registry record.
    pub lifecycle: Option<Lifecycle>,
    pub identity: Identity,
}

/// One signal with its points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scored {
    pub signal: GradeSignal,
    /// `None`: not checked.
    pub points: Option<u32>,
    pub of: u32,
    /// What was found, or why nothing was checked.
    pub words: String,
}

/// A grade and all it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// `None`: no tool's definition is known, so there is nothing to grade.
    pub letter: Option<Letter>,
    /// Points of those that were checked, in percent, rounded down.
    pub percent: Option<u32>,
    pub points: u32,
    /// The points that the checked signals could give.
    pub of: u32,
    /// Why the letter is lower than the points say.
    pub caps: Vec<String>,
    pub signals: Vec<Scored>,
}

impl Grade {
    /// `B`, or `not graded`.
    pub fn shown(&self) -> &'static str {
        self.letter.map_or("not graded", Letter::as_str)
    }

    /// The whole grade in one sentence.
    pub fn sentence(&self) -> String {
        let unchecked = self.signals.iter().filter(|one| one.points.is_none()).count();
        let Some((letter, percent)) = self.letter.zip(self.percent) else {
            return "Not graded: no definition of its tools is known.".to_owned();
        };
        let mut text = format!("{letter}: {} of {} points ({percent} %)", self.points, self.of);
        if unchecked > 0 {
            let _ = write!(text, ", {unchecked} of {} signals not checked", self.signals.len());
        }
        for cap in &self.caps {
            text.push_str("; ");
            text.push_str(cap);
        }
        text.push('.');
        text
    }
}

/// Computes the grade.
pub fn grade(known: &Known<'_>) -> Grade {
    let signals: Vec<Scored> =
        GradeSignal::ALL.iter().map(|signal| signals::scored(*signal, known)).collect();
    let checked = || signals.iter().filter_map(|one| Some((one.points?, one.of)));
    let points: u32 = checked().map(|(points, _)| points).sum();
    let of: u32 = checked().map(|(_, of)| of).sum();
    if known.tools.is_empty() || of == 0 {
        return Grade { letter: None, percent: None, points, of, caps: Vec::new(), signals };
    }
    let percent = points * 100 / of;
    let earned = LEAST.iter().find(|(_, least)| percent >= *least);
    let mut letter = earned.map_or(Letter::F, |(letter, _)| *letter);
    let mut caps = Vec::new();
    for (holds, most, words) in [
        (known.identity == Identity::Unverified, Letter::C, "who publishes it is unverified"),
        (
            known.tools.iter().any(|tool| tool.findings > 0),
            Letter::D,
            "a definition holds signs of poison",
        ),
        (known.lifecycle == Some(Lifecycle::Deleted), Letter::F, "its publisher deleted it"),
    ] {
        if holds && letter < most {
            letter = most;
            caps.push(format!("at most {most}, since {words}"));
        }
    }
    Grade { letter: Some(letter), percent: Some(percent), points, of, caps, signals }
}

/// The grade of a record with its tools.
pub fn grade_of(entry: &ServerEntry, tools: &[Looked<'_>], watched: Option<Watched>) -> Grade {
    let remote = entry.upstream_url.is_some();
    grade(&Known {
        tools,
        watched,
        auth: remote.then_some(entry.auth_needed),
        command: entry.stdio_command.as_deref().filter(|_| !remote),
        lifecycle: entry.lifecycle,
        identity: entry.identity,
    })
}

#[cfg(test)]
mod tests;
