//! One strict pass over a JSON text: grammar (RFC 8259), depth, duplicate
//! names at every depth, names that impersonate reserved ones, lone
//! surrogates. Remembers where the members stand that the gateway reads.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memchr2;

use crate::error::{Malformed, codes};
use crate::{fold, text};

/// Deepest nesting that a request may have; the message itself is depth 1.
pub const MAX_DEPTH: usize = 64;

/// What `serde_json` gives a meaning of its own; no honest client writes it.
const PRIVATE: &str = "$serde_json::private::";

/// Objects of up to this many members are compared without hashing.
const FEW: usize = 16;

/// What an object in the text is to the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Envelope,
    Params,
    Meta,
    ClientInfo,
    Elsewhere,
}

/// Raw texts of the members that the gateway reads.
#[derive(Debug, Default)]
pub(crate) struct Slots<'a> {
    pub(crate) jsonrpc: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) params: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
    pub(crate) uri: Option<&'a str>,
    pub(crate) task_id: Option<&'a str>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) protocol_version: Option<&'a str>,
    pub(crate) capabilities: Option<&'a str>,
    pub(crate) input_responses: Option<&'a str>,
    pub(crate) request_state: Option<&'a str>,
    pub(crate) meta_version: Option<&'a str>,
    pub(crate) meta_capabilities: Option<&'a str>,
    pub(crate) progress_token: Option<&'a str>,
    pub(crate) client_name: Option<&'a str>,
}

impl<'a> Slots<'a> {
    fn get(&mut self, place: Place, key: &str) -> Option<&mut Option<&'a str>> {
        Some(match (place, key) {
            (Place::Envelope, "jsonrpc") => &mut self.jsonrpc,
            (Place::Envelope, "id") => &mut self.id,
            (Place::Envelope, "method") => &mut self.method,
            (Place::Envelope, "params") => &mut self.params,
            (Place::Envelope, "result") => &mut self.result,
            (Place::Envelope, "error") => &mut self.error,
            (Place::Params, "name") => &mut self.name,
            (Place::Params, "arguments") => &mut self.arguments,
            (Place::Params, "uri") => &mut self.uri,
            (Place::Params, "taskId") => &mut self.task_id,
            (Place::Params, "requestId") => &mut self.request_id,
            (Place::Params, "protocolVersion") => &mut self.protocol_version,
            (Place::Params, "capabilities") => &mut self.capabilities,
            (Place::Params, "inputResponses") => &mut self.input_responses,
            (Place::Params, "requestState") => &mut self.request_state,
            (Place::Meta, "io.modelcontextprotocol/protocolVersion") => &mut self.meta_version,
            (Place::Meta, "io.modelcontextprotocol/clientCapabilities") => {
                &mut self.meta_capabilities
            }
            (Place::Meta, "progressToken") => &mut self.progress_token,
            (Place::ClientInfo, "name") => &mut self.client_name,
            _ => return None,
        })
    }
}

impl Place {
    /// What the value of `key` is, should it be an object.
    fn inside(self, key: &str) -> Self {
        match (self, key) {
            (Self::Envelope, "params") => Self::Params,
            (Self::Params, "_meta") => Self::Meta,
            (Self::Params, "clientInfo") | (Self::Meta, "io.modelcontextprotocol/clientInfo") => {
                Self::ClientInfo
            }
            _ => Self::Elsewhere,
        }
    }

    const fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Envelope => fold::ENVELOPE,
            Self::Params => fold::PARAMS,
            Self::Meta => fold::META,
            Self::ClientInfo | Self::Elsewhere => &[],
        }
    }
}

/// A JSON text that has been read once.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    pub(crate) slots: Slots<'a>,
    /// The first thing found that is JSON but must not pass.
    pub(crate) fault: Option<&'static str>,
    /// The outermost value is an object.
    pub(crate) object: bool,
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    keys: Vec<Cow<'a, str>>,
    fault: Option<&'static str>,
    slots: Slots<'a>,
}

/// Scans one JSON text; an error means that it is not JSON or too deep.
pub(crate) fn scan(text: &str, max_depth: usize) -> Result<Scanned<'_>, Malformed> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        max_depth,
        keys: Vec::new(),
        fault: None,
        slots: Slots::default(),
    };
    scanner.space();
    let object = scanner.peek() == Some(b'{');
    scanner.value(1, Place::Envelope)?;
    scanner.space();
    if scanner.at != text.len() {
        return Err(Malformed::syntax("data after the JSON text"));
    }
    Ok(Scanned { slots: scanner.slots, fault: scanner.fault, object })
}

type Step<T = ()> = Result<T, Malformed>;

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&mut self, what: &'static str) {
        self.fault.get_or_insert(what);
    }

    fn value(&mut self, depth: usize, place: Place) -> Step {
        match self.peek() {
            Some(b'{') => self.object(depth, place),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(|_| ()),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(Malformed::syntax("not JSON")),
        }
    }

    fn open(&mut self, depth: usize) -> Step {
        if depth > self.max_depth {
            return Err(Malformed::new(codes::INVALID_REQUEST, "nested too deeply"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn object(&mut self, depth: usize, place: Place) -> Step {
        self.open(depth)?;
        let first = self.keys.len();
        let mut seen: Option<HashSet<Cow<'a, str>>> = None;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(Malformed::syntax("a member name is missing"));
            }
            let key = self.string()?;
            self.check_name(&key, first, &mut seen, place);
            self.space();
            self.expect(b':')?;
            self.space();
            let start = self.at;
            self.value(depth + 1, place.inside(&key))?;
            let raw = &self.text[start..self.at];
            if let Some(slot) = self.slots.get(place, &key) {
                slot.get_or_insert(raw);
            }
            self.remember(key, &mut seen);
            self.space();
            if self.next_or_end(b'}')? {
                self.keys.truncate(first);
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> Step {
        self.open(depth)?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1, Place::Elsewhere)?;
            self.space();
            if self.next_or_end(b']')? {
                return Ok(());
            }
        }
    }

    /// A comma (and then the next thing), or the end of the container.
    fn next_or_end(&mut self, end: u8) -> Step<bool> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.space();
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(Malformed::syntax("not JSON")),
        }
    }

    fn expect(&mut self, byte: u8) -> Step {
        if self.peek() != Some(byte) {
            return Err(Malformed::syntax("not JSON"));
        }
        self.at += 1;
        Ok(())
    }

    fn check_name(
        &mut self,
        key: &str,
        first: usize,
        seen: &mut Option<HashSet<Cow<'a, str>>>,
        place: Place,
    ) {
        if seen.is_none() && self.keys.len() - first >= FEW {
            *seen = Some(self.keys.drain(first..).collect());
        }
        let twice = match seen {
            Some(seen) => seen.contains(key),
            None => self.keys[first..].iter().any(|known| known == key),
        };
        if twice {
            self.fault("a member name occurs twice in one object");
        }
        // JSON readers in Rust take objects with such a member for a number or a raw text.
        if key.starts_with(PRIVATE) {
            self.fault("a member name begins with `$serde_json::private::`");
        }
        if fold::impersonates(key, place.reserved()) {
            self.fault("a member name differs from a reserved one only by letter case");
        }
    }

    fn remember(&mut self, key: Cow<'a, str>, seen: &mut Option<HashSet<Cow<'a, str>>>) {
        match seen {
            Some(seen) => {
                seen.insert(key);
            }
            None => self.keys.push(key),
        }
    }

    fn literal(&mut self, word: &str) -> Step {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Malformed::syntax("not JSON"));
        }
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Step {
        let count = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return Err(Malformed::syntax("not a JSON number"));
        }
        self.at += count;
        Ok(())
    }

    fn number(&mut self) -> Step {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// A string, unescaped; a lone surrogate is a fault and reads as empty.
    fn string(&mut self) -> Step<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        let mut plain = true;
        loop {
            let rest = &self.bytes[self.at..];
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                return Err(Malformed::syntax("a string does not end"));
            };
            if rest[..found].iter().any(|b| *b < 0x20) {
                return Err(Malformed::syntax("a control character stands in a string"));
            }
            self.at += found + 1;
            if rest[found] == b'"' {
                break;
            }
            plain = false;
            self.escape()?;
        }
        let inner = &self.text[start..self.at - 1];
        if plain {
            return Ok(Cow::Borrowed(inner));
        }
        Ok(text::unescape(inner).unwrap_or_else(|| {
            self.fault("a string holds a lone surrogate");
            Cow::Borrowed("")
        }))
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Step {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') if self.text.get(self.at + 1..).and_then(text::hex4).is_some() => {
                self.at += 5;
            }
            _ => return Err(Malformed::syntax("not a JSON string escape")),
        }
        Ok(())
    }
}

/// Whether a peer's text is JSON at all; duplicates and the like are its own affair.
pub(crate) fn is_json(text: &str) -> bool {
    scan(text, 256).is_ok()
}

#[cfg(test)]
mod tests;
