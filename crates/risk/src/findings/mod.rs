//! Signs of a poisoned definition, in every string of it: names, descriptions, parameter names,
//! choices, defaults, titles. A definition should describe only its own tool, so what is looked for is
//! orders about anything else, secrecy, and text that people cannot see. Precision comes first.

mod blobs;
mod characters;
mod demands;
mod orders;
mod patterns;
mod pretexts;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_domain::ToolDefinition;

use crate::text::quote;
use crate::words::words;

words!(
    /// What kind of sign.
    FindingKind {
        /// Orders meant for the model rather than a description of the tool.
        HiddenInstruction = "hidden instruction",
        /// Orders about other tools, or about correcting their results.
        OtherTool = "orders about other tools",
        /// Orders to read, send or hand over what is not the tool's own.
        OutsideResource = "orders about files or addresses",
        /// Orders to change what is passed on.
        SubstitutedArgument = "substituted argument",
        /// Orders to keep something from the user, or to go round their consent.
        Concealment = "concealment from the user",
        InvisibleCharacters = "invisible characters",
        BidirectionalCharacters = "bidirectional characters",
        /// Characters that spell text which no screen shows.
        TagCharacters = "tag characters",
        /// A name that mixes alphabets to look like another.
        LookAlikeLetters = "look-alike letters",
        EncodedBlob = "encoded blob",
        /// Markup that only a model would heed.
        Markup = "instruction markup",
    }
);

/// One sign of a poisoned definition, quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// `name`, `title`, `description`, or a path into a schema: `inputSchema/properties/path/description`.
    #[serde(rename = "where")]
    pub place: String,
    /// The words, on one line, with invisible characters written as `U+200B`.
    pub quote: String,
}

/// How much of a definition is looked through; what is beyond is a tool's own kind of sign.
const MOST_BYTES: usize = 512 * 1024;
const MOST_FINDINGS: usize = 50;
const MOST_LEVELS: usize = 64;

/// Looks through every string of the definition.
pub fn findings(tool: &ToolDefinition) -> Vec<Finding> {
    let mut scan = Scan { found: Vec::new(), bytes: 0 };
    scan.name("name", &tool.name);
    if let Some(title) = &tool.title {
        scan.text("title", title);
    }
    if let Some(description) = &tool.description {
        scan.text("description", description);
    }
    for (place, value) in [
        ("inputSchema", &tool.input_schema),
        ("outputSchema", &tool.output_schema),
        ("annotations", &tool.annotations),
    ] {
        if let Some(value) = value {
            scan.value(place, value, 0);
        }
    }
    scan.found
}

struct Scan {
    found: Vec<Finding>,
    bytes: usize,
}

impl Scan {
    fn room(&mut self, text: &str) -> bool {
        self.bytes += text.len();
        self.bytes <= MOST_BYTES && self.found.len() < MOST_FINDINGS
    }

    fn add(&mut self, kind: FindingKind, place: &str, words: &str) {
        let finding = Finding { kind, place: place.to_owned(), quote: quote(words) };
        if !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    /// An identifier: what hides in it is worse than in prose.
    fn name(&mut self, place: &str, name: &str) {
        if !self.room(name) {
            return;
        }
        for (kind, words) in characters::in_name(name) {
            self.add(kind, place, &words);
        }
        for (kind, words) in orders::in_name(name) {
            self.add(kind, place, &words);
        }
        if name.len() > 40 {
            self.text(place, name);
        }
    }

    fn text(&mut self, place: &str, text: &str) {
        if !self.room(text) {
            return;
        }
        for (kind, words) in characters::in_text(text) {
            self.add(kind, place, &words);
        }
        for (kind, words) in orders::in_text(text) {
            self.add(kind, place, &words);
        }
        if let Some(words) = blobs::find(text) {
            self.add(FindingKind::EncodedBlob, place, words);
        }
    }

    fn value(&mut self, place: &str, value: &Value, depth: usize) {
        if depth > MOST_LEVELS || self.found.len() >= MOST_FINDINGS || self.bytes > MOST_BYTES {
            return;
        }
        match value {
            Value::String(text) => self.text(place, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{place}/{index}"), item, depth + 1);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let shown = key.replace('~', "~0").replace('/', "~1");
                    let inner = format!("{place}/{shown}");
                    self.name(&inner, key);
                    self.value(&inner, member, depth + 1);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
