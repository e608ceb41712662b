//! Puts the cues of a definition together into a rating.

use sluice_domain::{Category, Severity, ToolDefinition};

use crate::rating::{Confidence, Cue, Rating, Reason};

/// Rates one tool from its own definition alone.
pub fn classify(tool: &ToolDefinition) -> Rating {
    Rating {
        category: Category::Write,
        severity: Severity::Medium,
        base: Category::Write.base_severity(),
        confidence: Confidence::Unknown,
        reasons: vec![Reason {
            cue: Cue::Nothing,
            place: "name".to_owned(),
            quote: tool.name.clone(),
        }],
        modifiers: Vec::new(),
        signals: Vec::new(),
    }
}
