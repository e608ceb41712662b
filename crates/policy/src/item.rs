//! What a path finds.

use std::borrow::Cow;

use crate::decision::{Found, ValueKind};
use crate::json::Lexer;
use crate::number::Decimal;

/// What stands at a path of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// Nothing.
    Missing,
    /// On the way there is a value of a type that the path cannot enter.
    Blocked(ValueKind),
    /// `[*]` of an empty list.
    Empty,
    /// A value of the arguments, as JSON text.
    Raw(ValueKind, &'a str),
    /// A string of the context.
    Plain(&'a str),
    /// A number of the context.
    Number(&'a str),
    /// A value that the log does not keep; of its type only what is known.
    Untold(Option<ValueKind>),
}

impl<'a> Item<'a> {
    /// A value whose JSON text starts with its first character.
    pub(crate) fn raw(text: &'a str) -> Self {
        Self::Raw(kind_of(text), text)
    }

    /// The string that it is.
    pub(crate) fn string(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Plain(text) => Some(Cow::Borrowed(text)),
            Self::Raw(ValueKind::String, raw) => {
                Lexer::new(raw).string().ok().map(crate::json::Text::decode)
            }
            _ => None,
        }
    }

    /// The number that it is.
    pub(crate) fn number(&self) -> Option<Decimal<'a>> {
        let (Self::Number(text) | Self::Raw(ValueKind::Number, text)) = *self else {
            return None;
        };
        Some(Decimal::read(text))
    }

    /// Type and size, for the trace.
    pub(crate) const fn found(&self) -> Option<Found> {
        Some(match self {
            Self::Missing | Self::Empty | Self::Untold(None) => return None,
            Self::Blocked(kind) | Self::Untold(Some(kind)) => Found { kind: *kind, bytes: 0 },
            Self::Raw(kind, text) => Found { kind: *kind, bytes: text.len() },
            Self::Plain(text) => Found { kind: ValueKind::String, bytes: text.len() },
            Self::Number(text) => Found { kind: ValueKind::Number, bytes: text.len() },
        })
    }

    /// The value as JSON text.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Raw(_, text) | Self::Number(text) => Some((*text).to_owned()),
            Self::Plain(text) => Some(crate::json::quote(text)),
            _ => None,
        }
    }
}

/// The type of a value, by its first character.
pub(crate) fn kind_of(text: &str) -> ValueKind {
    match text.as_bytes().first() {
        Some(b'"') => ValueKind::String,
        Some(b'{') => ValueKind::Object,
        Some(b'[') => ValueKind::List,
        Some(b't' | b'f') => ValueKind::Boolean,
        Some(b'n') | None => ValueKind::Null,
        Some(_) => ValueKind::Number,
    }
}

/// One text for every way to write the same JSON value: keys sorted, numbers and escapes alike.
pub(crate) fn canonical(raw: &str) -> String {
    let mut out = String::new();
    // Only text that was checked comes here; what could not be read stands for nothing.
    if write_canonical(&mut Lexer::new(raw), &mut out, 0).is_err() {
        out.clear();
    }
    out
}

fn write_canonical(
    lexer: &mut Lexer<'_>,
    out: &mut String,
    depth: usize,
) -> Result<(), crate::json::SyntaxError> {
    lexer.space();
    match lexer.peek() {
        Some(b'"') => out.push_str(&crate::json::quote(&lexer.string()?.decode())),
        Some(b'-' | b'0'..=b'9') => Decimal::read(lexer.number()?).canonical(out),
        Some(b'{') => {
            let mut pairs = Vec::new();
            let mut members = lexer.object(depth)?;
            while let Some((key, _)) = members.next(lexer)? {
                let mut value = String::new();
                write_canonical(lexer, &mut value, depth + 1)?;
                pairs.push((key.decode(), value));
            }
            pairs.sort();
            out.push('{');
            for (key, value) in pairs {
                out.push_str(&crate::json::quote(&key));
                out.push(':');
                out.push_str(&value);
                out.push(',');
            }
            out.push('}');
        }
        Some(b'[') => {
            let mut items = lexer.list(depth)?;
            out.push('[');
            while items.next(lexer)? {
                write_canonical(lexer, out, depth + 1)?;
                out.push(',');
            }
            out.push(']');
        }
        _ => out.push_str(lexer.word()?),
    }
    Ok(())
}
