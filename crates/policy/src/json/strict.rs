//! Checks JSON text without building it.

use std::collections::HashSet;
use std::ops::Range;

use super::lexer::{Lexer, SyntaxError, SyntaxKind};
use super::text::Text;

/// Up to this many keys are compared pairwise, which is faster than hashing.
const FEW_KEYS: usize = 12;
/// Keys of open objects that there is room for from the start.
const USUAL_KEYS: usize = 24;

/// Members whose places are kept.
const NOTED: usize = 12;

/// Where the members of the outermost object stand, so that they need not be looked for again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TopLevel {
    /// How many there are; more than `NOTED`, and not all are noted.
    count: usize,
    /// Which keys have escapes, as bits.
    escaped: u16,
    noted: [Noted; NOTED],
}

/// One member: the raw text of its key and its value, in bytes of the whole.
#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    key: (u32, u32),
    value: (u32, u32),
}

impl TopLevel {
    pub(crate) const NONE: Self =
        Self { count: 0, escaped: 0, noted: [Noted { key: (0, 0), value: (0, 0) }; NOTED] };

    /// Whether every member is noted.
    pub(crate) const fn is_complete(&self) -> bool {
        self.count <= NOTED
    }

    /// A member's value in the text that was checked: where it starts, and its text.
    pub(crate) fn find<'a>(&self, text: &'a str, key: &str) -> Option<(usize, &'a str)> {
        let part = |(start, end): (u32, u32)| text.get(start as usize..end as usize);
        let numbered = (0..).zip(self.noted.get(..self.count)?);
        let is_it = |(index, noted): &(u32, &Noted)| {
            let escaped = self.escaped & (1 << index) != 0;
            part(noted.key).is_some_and(|raw| Text { raw, escaped }.means(key))
        };
        let (_, noted) = numbered.into_iter().find(is_it)?;
        Some((noted.value.0 as usize, part(noted.value)?))
    }

    fn note(&mut self, key: Text<'_>, key_at: usize, value: Range<usize>) {
        let place = |start: usize, end: usize| -> Option<(u32, u32)> {
            Some((u32::try_from(start).ok()?, u32::try_from(end).ok()?))
        };
        let raw = key_at + 1..key_at + 1 + key.raw.len();
        let both = place(raw.start, raw.end).zip(place(value.start, value.end));
        match (self.noted.get_mut(self.count), both) {
            (Some(noted), Some((at, value))) => {
                *noted = Noted { key: at, value };
                self.escaped |= u16::from(key.escaped) << self.count;
                self.count += 1;
            }
            _ => self.count = NOTED + 1,
        }
    }
}

/// Accepts exactly one JSON value that every reader reads alike: no duplicate
/// keys (after unescaping) at any depth, no half surrogates, depth bounded.
pub(crate) fn check_strict(text: &str) -> Result<TopLevel, SyntaxError> {
    let keys = Vec::with_capacity(USUAL_KEYS);
    let mut reader = Strict { lexer: Lexer::new(text), keys, top: TopLevel::NONE };
    if text.starts_with('\u{feff}') {
        return Err(reader.lexer.error(SyntaxKind::ByteOrderMark));
    }
    reader.value(0)?;
    reader.lexer.space();
    match reader.lexer.peek() {
        None => Ok(reader.top),
        Some(_) => Err(reader.lexer.error(SyntaxKind::Trailing)),
    }
}

struct Strict<'a> {
    lexer: Lexer<'a>,
    /// Keys of the objects that are open, innermost last.
    keys: Vec<(Text<'a>, usize)>,
    top: TopLevel,
}

impl Strict<'_> {
    fn value(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.lexer.space();
        match self.lexer.peek() {
            Some(b'{') => {
                let base = self.keys.len();
                let mut members = self.lexer.object(depth)?;
                while let Some((key, at)) = members.next(&mut self.lexer)? {
                    self.keys.push((key, at));
                    self.lexer.space();
                    let value = self.lexer.at;
                    self.value(depth + 1)?;
                    if depth == 0 {
                        self.top.note(key, at, value..self.lexer.at);
                    }
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
            Some(b'"') => self.lexer.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.lexer.number().map(drop),
            _ => self.lexer.word().map(drop),
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
