//! Values with secrets by reference: `Bearer ${env:GITHUB_TOKEN}`, `${file:secrets/key}`. A file of
//! configuration never holds a secret; whoever applies it brings the values.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// An environment variable of whoever applies.
    Env(String),
    /// A file of whoever applies, without the line end at its end.
    File(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// The values of references, by how they are written: `env:NAME`, `file:PATH`.
pub type Secrets = BTreeMap<String, SecretString>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Secret(Reference),
}

/// A text in which references stand for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

/// A template with its references looked up.
#[derive(Debug)]
pub(super) enum Filled {
    Value(SecretString),
    /// These have no value here.
    Missing(Vec<Reference>),
}

impl Template {
    /// Reads a text; `$${` is a plain `${`. The error is a sentence.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, after) = rest.split_at(at);
            if let Some(plain) = before.strip_suffix('$') {
                literal.push_str(plain);
                literal.push_str("${");
                rest = &after[2..];
                continue;
            }
            literal.push_str(before);
            let Some((inside, behind)) = after[2..].split_once('}') else {
                return Err("a `${` has no `}`; write `$${` for the characters themselves".into());
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Secret(reference(inside)?));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self(parts))
    }

    pub(super) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|part| match part {
            Part::Secret(reference) => Some(reference),
            Part::Literal(_) => None,
        })
    }

    /// The text before the first reference.
    pub(super) fn start(&self) -> &str {
        match self.0.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        self.references().next().is_none()
    }

    /// Puts the values in.
    pub(super) fn fill(&self, secrets: &Secrets) -> Filled {
        let (mut text, mut missing) = (String::new(), Vec::new());
        for part in &self.0 {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Secret(reference) => match secrets.get(&reference.to_string()) {
                    Some(value) => text.push_str(value.expose_secret()),
                    None => missing.push(reference.clone()),
                },
            }
        }
        let value = SecretString::from(text);
        if missing.is_empty() { Filled::Value(value) } else { Filled::Missing(missing) }
    }

    /// Whether the text can have come from this template, with whatever values.
    pub(super) fn fits(&self, text: &str) -> bool {
        let mut rest = text;
        for (index, part) in self.0.iter().enumerate() {
            let Part::Literal(literal) = part else { continue };
            let (first, last) = (index == 0, index + 1 == self.0.len());
            let found = match (first, last) {
                (true, true) => (rest == literal).then_some(""),
                (true, false) => rest.strip_prefix(literal.as_str()),
                (false, true) => rest.ends_with(literal.as_str()).then_some(""),
                (false, false) => rest.split_once(literal.as_str()).map(|(_, behind)| behind),
            };
            match found {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty() || matches!(self.0.last(), Some(Part::Secret(_)))
    }
}

fn reference(inside: &str) -> Result<Reference, String> {
    let odd = || {
        format!("`${{{inside}}}` is no reference; there are `${{env:NAME}}` and `${{file:PATH}}`")
    };
    let (kind, name) = inside.split_once(':').ok_or_else(odd)?;
    let word = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match kind {
        "env" if word(name) => Ok(Reference::Env(name.to_owned())),
        "file" if !name.trim().is_empty() => Ok(Reference::File(name.to_owned())),
        _ => Err(odd()),
    }
}

/// A text in which nothing is a reference.
pub(super) fn plain(text: &str) -> String {
    text.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, secrets: &Secrets) -> Result<String, Vec<String>> {
        match Template::parse(template).expect("reads").fill(secrets) {
            Filled::Value(value) => Ok(value.expose_secret().to_owned()),
            Filled::Missing(missing) => Err(missing.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn references_are_filled_and_missing_ones_are_named() {
        let secrets = Secrets::from([
            ("env:TOKEN".to_owned(), SecretString::from("t-1")),
            ("file:a/b.key".to_owned(), SecretString::from("k-2")),
        ]);
        for (template, expected) in [
            ("Bearer ${env:TOKEN}", Ok("Bearer t-1")),
            ("${file:a/b.key}:${env:TOKEN}", Ok("k-2:t-1")),
            ("plain", Ok("plain")),
            ("", Ok("")),
            ("$${env:TOKEN} $5", Ok("${env:TOKEN} $5")),
            ("${env:TOKEN}${env:NONE}", Err("env:NONE")),
        ] {
            let expected = expected.map(str::to_owned).map_err(|name: &str| vec![name.to_owned()]);
            assert_eq!(filled(template, &secrets), expected, "{template}");
        }
        for odd in
            ["${", "${env}", "${env:}", "${env:A-B}", "${env:1}", "${vault:x}", "a ${file: }"]
        {
            assert!(Template::parse(odd).is_err(), "{odd}");
        }
        assert_eq!(filled(&plain("a ${env:TOKEN}"), &secrets), Ok("a ${env:TOKEN}".to_owned()));
    }

    #[test]
    fn a_stored_value_fits_the_template_it_can_have_come_from() {
        for (template, text, fits) in [
            ("Bearer ${env:T}", "Bearer abc", true),
            ("Bearer ${env:T}", "Basic abc", false),
            ("${env:T}", "anything", true),
            ("https://a.test/mcp?${env:T}", "https://a.test/mcp?x=1", true),
            ("https://a.test/mcp?${env:T}", "https://a.test.evil/mcp?x=1", false),
            ("https://a.test/${env:T}/mcp", "https://a.test/s-1/mcp", true),
            ("https://a.test/${env:T}/mcp", "https://a.test/s-1/other", false),
            ("a${env:T}b${env:U}c", "a1b2c", true),
            ("a${env:T}b${env:U}c", "a12c", false),
            ("same", "same", true),
            ("same", "same more", false),
        ] {
            assert_eq!(
                Template::parse(template).expect("reads").fits(text),
                fits,
                "{template} {text}"
            );
        }
    }
}
