//! A glance at a message that streams by: its id, method and kind, in constant
//! memory. Not a validator; the bytes pass as they are.

use memchr::memchr2;

use crate::id::RawId;
use crate::text;

/// Ids and methods longer than this are not remembered.
const CAPTURE_MAX: usize = 1_100;
/// What nearly all of them fit in.
const CAPTURE_USUAL: usize = 32;

/// What a message is, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has a result.
    Result,
    /// Has an error.
    Error,
    /// A list, perhaps of messages: servers of 2025-03-26 may send them in one.
    Batch,
    /// Something else.
    Other,
}

/// What was seen of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    /// Raw text of the id.
    pub id: Option<String>,
    /// The method, unescaped.
    pub method: Option<String>,
    /// The result is a list of tools, whichever request it answers: it holds `tools`, a list, and no
    /// `content`, which every result of a call has.
    pub lists_tools: bool,
}

impl Message {
    /// Whether this answers the request with this id.
    pub fn answers(&self, id: RawId<'_>) -> bool {
        matches!(self.kind, MessageKind::Result | MessageKind::Error)
            && self.id.as_deref().and_then(RawId::parse).is_some_and(|own| own.same(id))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expect {
    #[default]
    Start,
    Key,
    Colon,
    Value,
    Broken,
    Done,
}

/// Reads a message piece by piece.
#[expect(clippy::struct_excessive_bools, reason = "the state of a byte machine")]
#[derive(Debug, Default)]
pub struct Peek {
    expect: Expect,
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// It begins as a list.
    batch: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Total bytes fed.
    len: usize,
    id: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    result: bool,
    error: bool,
    /// The members of the result, while inside it.
    inner: Expect,
    inner_key: Vec<u8>,
    tools: bool,
    content: bool,
}

impl Peek {
    /// How many bytes were fed since the last [`Peek::finish`].
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Nothing was fed.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether what was fed so far may be part of a list of tools, see [`Message::lists_tools`]. What is in a
    /// batch is not looked at.
    pub const fn lists_tools(&self) -> bool {
        self.batch || (self.tools && !self.content)
    }

    /// Takes the next piece of the message.
    pub fn feed(&mut self, mut piece: &[u8]) {
        self.len += piece.len();
        while let Some((&byte, rest)) = piece.split_first() {
            if self.in_string {
                piece = self.string_bytes(piece);
            } else {
                self.byte(byte);
                piece = rest;
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let into = match (self.depth, self.expect, self.inner) {
            (1, Expect::Key, _) => &mut self.key,
            (1, Expect::Value, _) => &mut self.value,
            (2, _, Expect::Key) => &mut self.inner_key,
            _ => return,
        };
        if into.capacity() == 0 {
            into.reserve(CAPTURE_USUAL);
        }
        if into.len() + bytes.len() <= CAPTURE_MAX {
            into.extend_from_slice(bytes);
        } else {
            // Too long to be one of the names or values that matter; left unusable.
            into.truncate(0);
            into.resize(CAPTURE_MAX, b'?');
        }
    }

    fn string_bytes<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        if self.escaped {
            self.escaped = false;
            self.keep(&piece[..1]);
            return &piece[1..];
        }
        let found = memchr2(b'"', b'\\', piece);
        let end = found.map_or(piece.len(), |at| at + 1);
        self.keep(&piece[..end]);
        match found.map(|at| piece[at]) {
            Some(b'"') => {
                self.in_string = false;
                if self.depth == 1 && self.expect == Expect::Key {
                    self.expect = Expect::Colon;
                } else if self.depth == 2 && self.inner == Expect::Key {
                    self.inner = Expect::Colon;
                }
            }
            Some(_) => self.escaped = true,
            None => {}
        }
        &piece[end..]
    }

    fn byte(&mut self, byte: u8) {
        match (self.expect, byte) {
            (Expect::Broken, _) | (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            _ if self.depth == 2 && self.inner != Expect::Start && self.inner_byte(byte) => {}
            (Expect::Start, b'{') => {
                self.depth = 1;
                self.expect = Expect::Key;
            }
            (Expect::Start | Expect::Done, _) => {
                self.batch = self.expect == Expect::Start && byte == b'[';
                self.expect = Expect::Broken;
            }
            (Expect::Colon, b':') => self.expect = Expect::Value,
            (_, b'"') => {
                self.in_string = true;
                self.keep(b"\"");
            }
            (_, b'{' | b'[') => {
                self.keep(&[byte]);
                let result = self.depth == 1 && byte == b'{' && named(&self.key, "result");
                self.inner = match self.depth {
                    1 if result => Expect::Key,
                    1 => Expect::Start,
                    _ => self.inner,
                };
                self.depth += 1;
            }
            (_, b'}' | b']') => self.close(),
            (Expect::Value, b',') if self.depth == 1 => self.member(),
            _ => self.keep(&[byte]),
        }
    }

    /// A byte between the strings of the result's own members; true if nothing else looks at it.
    fn inner_byte(&mut self, byte: u8) -> bool {
        match (self.inner, byte) {
            (Expect::Colon, b':') => self.inner = Expect::Value,
            (Expect::Value, _) => {
                self.tools |= byte == b'[' && named(&self.inner_key, "tools");
                self.content |= named(&self.inner_key, "content");
                self.inner = Expect::Done;
                self.inner_key.clear();
                return false;
            }
            (Expect::Done, b',') => self.inner = Expect::Key,
            _ => return false,
        }
        true
    }

    fn close(&mut self) {
        if self.depth == 1 {
            self.member();
            self.expect = Expect::Done;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// One member of the message is over.
    fn member(&mut self) {
        if self.expect == Expect::Value {
            let key = std::str::from_utf8(&self.key).ok().and_then(text::string_value);
            match key.as_deref() {
                Some("id") => self.id = Some(std::mem::take(&mut self.value)),
                Some("method") => self.method = Some(std::mem::take(&mut self.value)),
                Some("result") => self.result = true,
                Some("error") => self.error = true,
                _ => {}
            }
        }
        self.key.clear();
        self.value.clear();
        self.expect = Expect::Key;
    }

    /// The message is complete; starts anew. None if nothing but space was fed.
    pub fn finish(&mut self) -> Option<Message> {
        let seen = std::mem::take(self);
        if seen.expect == Expect::Start {
            return None;
        }
        if seen.expect != Expect::Done {
            let kind = if seen.batch { MessageKind::Batch } else { MessageKind::Other };
            return Some(Message { kind, id: None, method: None, lists_tools: false });
        }
        let lists_tools = seen.lists_tools();
        let utf8 = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let id = utf8(seen.id).filter(|id| RawId::parse(id).is_some());
        let method = utf8(seen.method)
            .and_then(|raw| text::string_value(&raw).map(std::borrow::Cow::into_owned));
        let kind = match (&method, &id) {
            (None, _) if seen.error => MessageKind::Error,
            (None, _) if seen.result => MessageKind::Result,
            (Some(_), Some(_)) => MessageKind::Request,
            (Some(_), None) => MessageKind::Notification,
            _ => MessageKind::Other,
        };
        Some(Message { kind, id, method, lists_tools })
    }
}

/// Whether the raw text of a member's name, with its quotes, is this name.
fn named(raw: &[u8], name: &str) -> bool {
    let raw = std::str::from_utf8(raw).ok().and_then(text::string_value);
    raw.as_deref() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<Message> {
        let mut peek = Peek::default();
        peek.feed(text.as_bytes());
        peek.finish()
    }

    #[test]
    fn messages_are_known_however_they_are_cut() {
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":"a\"}","result":{"id":7,"method":"x"}}"#,
                MessageKind::Result,
            ),
            (r#" { "result" : [ {"id":1} ] , "\u0069d" : "a\"}" } "#, MessageKind::Result),
            (r#"{"error":{"code":-1,"message":"}"},"id":"a\"}"}"#, MessageKind::Error),
            (
                r#"{"id":"a\"}","method":"sampling\/createMessage","params":{}}"#,
                MessageKind::Request,
            ),
        ];
        for (text, kind) in table {
            let seen = whole(text).expect(text);
            assert_eq!((seen.kind, seen.id.as_deref()), (kind, Some(r#""a\"}""#)), "{text}");
            for cut in 0..text.len() {
                let mut peek = Peek::default();
                peek.feed(&text.as_bytes()[..cut]);
                peek.feed(&text.as_bytes()[cut..]);
                assert_eq!(peek.finish().as_ref(), Some(&seen), "{text} cut at {cut}");
            }
        }
        let note = whole(r#"{"method":"notifications/progress","params":{"id":1}}"#).expect("one");
        assert_eq!((note.kind, note.id), (MessageKind::Notification, None));
    }

    #[test]
    fn a_list_of_tools_is_known_by_its_result_alone() {
        let lists = [
            r#"{"id":1,"result":{"tools":[{"name":"a","content":1}]}}"#,
            r#" { "r\u0065sult" : { "x" : {"content":[]} , "t\u006fols" : [ ] } , "id" : 1 } "#,
            r#"{"result":{"nextCursor":"c","_meta":{"a":[1,"}"]},"tools":[]},"method":"x","id":1}"#,
            r#"{"result":{},"id":1,"result":{"a":"content","tools":[]}}"#,
        ];
        for text in lists {
            for cut in 0..text.len() {
                let mut peek = Peek::default();
                peek.feed(&text.as_bytes()[..cut]);
                peek.feed(&text.as_bytes()[cut..]);
                assert!(peek.lists_tools(), "{text} cut at {cut}");
                assert!(peek.finish().is_some_and(|message| message.lists_tools), "{text}");
            }
        }
        for text in [
            r#"{"id":1,"result":{"content":[],"tools":[]}}"#,
            r#"{"id":1,"result":{"tools":{},"x":["tools",[]]}}"#,
            r#"{"id":1,"result":{"a":{"tools":[]},"b":[{"tools":[]}],"c":"tools"}}"#,
            r#"{"id":1,"params":{"tools":[]},"result":[{"tools":[]}]}"#,
            r#"{"id":1,"error":{"tools":[]}}"#,
            r#"{"tools":[],"id":1,"result":"tools"}"#,
        ] {
            assert!(whole(text).is_some_and(|message| !message.lists_tools), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_said_to_be_other() {
        for text in ["<html>", "{", r#"{"id":1}"#, r#"{"id":1,"result":1} x"#, "{}}", "1"] {
            assert_eq!(whole(text).map(|m| m.kind), Some(MessageKind::Other), "{text}");
        }
        for text in ["[1]", " [", "[]x"] {
            assert_eq!(whole(text).map(|m| m.kind), Some(MessageKind::Batch), "{text}");
        }
        assert_eq!(whole("{}[").map(|m| m.kind), Some(MessageKind::Other));
        assert_eq!(whole(" \n"), None);
        let long = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(5_000));
        assert_eq!(whole(&long).map(|m| m.id), Some(None));
    }
}
