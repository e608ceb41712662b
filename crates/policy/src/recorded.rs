//! Arguments as the log keeps them: where a value is not kept, a mark stands
//! for it that tells its type, so that rules can still be tried on the call.

use crate::decision::ValueKind;
use crate::json::{Lexer, SyntaxError, push_quoted};

/// How a mark begins: `{"$type":"string"}`.
pub(crate) const MARK: &str = "{\"$type\":\"";
/// Bytes of a record; what does not fit is told by type alone.
const MOST: usize = 16 * 1024;
/// Room that a record is given at first, if its arguments are as long.
const USUAL: usize = 256;
/// Levels that are kept.
const LEVELS: usize = 8;

const KINDS: &[(&str, ValueKind)] = &[
    ("null", ValueKind::Null),
    ("boolean", ValueKind::Boolean),
    ("number", ValueKind::Number),
    ("string", ValueKind::String),
    ("list", ValueKind::List),
    ("object", ValueKind::Object),
];

pub(crate) fn kind(word: &str) -> Option<ValueKind> {
    KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
}

/// The mark of a value that is not kept.
pub fn mark(kind: ValueKind) -> String {
    let mut out = String::with_capacity(MARK.len() + 9);
    push_mark(&mut out, kind);
    out
}

fn push_mark(out: &mut String, kind: ValueKind) {
    let word = KINDS.iter().find(|(_, other)| *other == kind).map_or("null", |(word, _)| word);
    out.push_str(MARK);
    out.push_str(word);
    out.push_str("\"}");
}

/// Names and types of arguments, without their values. `arguments` is JSON text that was checked.
pub fn types_only(arguments: &str) -> String {
    redacted(arguments, &|_| false)
}

/// Arguments with a mark for every value whose key `keep` refuses (elements of lists go by the
/// list's key), and for what is too deep or too long.
pub fn redacted(arguments: &str, keep: &dyn Fn(&str) -> bool) -> String {
    let out = String::with_capacity(arguments.len().min(USUAL));
    let mut writer = Writer { out, keep };
    let mut lexer = Lexer::new(arguments);
    if writer.value(&mut lexer, None, 0).is_err() {
        return mark(ValueKind::Object);
    }
    if writer.out.len() > MOST * 2 { mark(ValueKind::Object) } else { writer.out }
}

struct Writer<'w> {
    out: String,
    keep: &'w dyn Fn(&str) -> bool,
}

impl Writer<'_> {
    fn value(
        &mut self,
        lexer: &mut Lexer<'_>,
        key: Option<&str>,
        depth: usize,
    ) -> Result<(), SyntaxError> {
        lexer.space();
        let start = lexer.at;
        let full = depth > LEVELS || self.out.len() > MOST;
        match lexer.peek() {
            Some(b'{') if !full => return self.object(lexer, depth),
            Some(b'[') if !full => return self.list(lexer, key, depth),
            _ => lexer.skip(depth)?,
        }
        let text = lexer.since(start);
        let kind = crate::item::kind_of(text);
        let scalar = !matches!(kind, ValueKind::Object | ValueKind::List);
        let fits = !full && text.len() <= MOST - self.out.len().min(MOST);
        if scalar && fits && key.is_some_and(self.keep) {
            self.out.push_str(text);
        } else {
            push_mark(&mut self.out, kind);
        }
        Ok(())
    }

    fn object(&mut self, lexer: &mut Lexer<'_>, depth: usize) -> Result<(), SyntaxError> {
        let (before, start) = (self.out.len(), lexer.at);
        let mut members = lexer.object(depth)?;
        self.out.push('{');
        let mut first = true;
        while let Some((key, _)) = members.next(lexer)? {
            let key = key.decode();
            // An object with a member of the mark's name would be read as a mark.
            if self.out.len() > MOST || (first && key == "$type") {
                self.out.truncate(before);
                push_mark(&mut self.out, ValueKind::Object);
                lexer.at = start;
                return lexer.skip(depth);
            }
            if !first {
                self.out.push(',');
            }
            first = false;
            push_quoted(&mut self.out, &key);
            self.out.push(':');
            self.value(lexer, Some(&key), depth + 1)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn list(
        &mut self,
        lexer: &mut Lexer<'_>,
        key: Option<&str>,
        depth: usize,
    ) -> Result<(), SyntaxError> {
        let (before, start) = (self.out.len(), lexer.at);
        let mut items = lexer.list(depth)?;
        self.out.push('[');
        let mut first = true;
        while items.next(lexer)? {
            if self.out.len() > MOST {
                self.out.truncate(before);
                push_mark(&mut self.out, ValueKind::List);
                lexer.at = start;
                return lexer.skip(depth);
            }
            if !first {
                self.out.push(',');
            }
            first = false;
            self.value(lexer, key, depth + 1)?;
        }
        self.out.push(']');
        Ok(())
    }
}
