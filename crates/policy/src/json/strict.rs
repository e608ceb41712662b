//! Checks JSON text without building it.

use std::collections::HashSet;

use super::lexer::{Lexer, SyntaxError, SyntaxKind, Text};

/// Up to this many keys are compared pairwise, which is faster than hashing.
const FEW_KEYS: usize = 12;

/// Accepts exactly one JSON value that every reader reads alike: no duplicate
/// keys (after unescaping) at any depth, no half surrogates, depth bounded.
pub(crate) fn check_strict(text: &str) -> Result<(), SyntaxError> {
    let mut reader = Strict { lexer: Lexer::new(text), keys: Vec::new() };
    if text.starts_with('\u{feff}') {
        return Err(reader.lexer.error(SyntaxKind::ByteOrderMark));
    }
    reader.value(0)?;
    reader.lexer.space();
    match reader.lexer.peek() {
        None => Ok(()),
        Some(_) => Err(reader.lexer.error(SyntaxKind::Trailing)),
    }
}

struct Strict<'a> {
    lexer: Lexer<'a>,
    /// Keys of the objects that are open, innermost last.
    keys: Vec<(Text<'a>, usize)>,
}

impl Strict<'_> {
    fn value(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.lexer.space();
        match self.lexer.peek() {
            Some(b'{') => {
                let base = self.keys.len();
                let mut members = self.lexer.object(depth)?;
                while let Some(key) = members.next(&mut self.lexer)? {
                    self.keys.push(key);
                    self.value(depth + 1)?;
                }
                if let Some(at) = duplicate(&self.keys[base..]) {
                    return Err(SyntaxError { at, kind: SyntaxKind::Duplicate });
                }
                self.keys.truncate(base);
                Ok(())
            }
            Some(b'[') => {
                let mut items = self.lexer.list(depth)?;
                while items.next(&mut self.lexer)? {
                    self.value(depth + 1)?;
                }
                Ok(())
            }
            _ => self.lexer.skip(depth),
        }
    }
}

/// Where the first key stands that was there before.
fn duplicate(keys: &[(Text<'_>, usize)]) -> Option<usize> {
    if keys.len() <= FEW_KEYS {
        return keys
            .iter()
            .enumerate()
            .find(|(i, (key, _))| keys[..*i].iter().any(|(other, _)| key.same(*other)))
            .map(|(_, (_, at))| *at);
    }
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().find(|(key, _)| !seen.insert(key.decode())).map(|(_, at)| *at)
}
