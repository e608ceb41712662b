//! Server-sent events as bytes (WHATWG HTML, "Parsing an event stream"): cuts a
//! stream into events and glances at their messages, leaving every byte as it is.

use bytes::Bytes;
use memchr::memchr2;

use crate::peek::{Message, Peek};

/// The mark of UTF-8 that a stream may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// One event as it came, with the blank line that ends it; or bytes between events.
#[derive(Debug, Default)]
pub struct Event {
    /// The bytes, in pieces of the chunks they came in.
    pub raw: Vec<Bytes>,
    /// The event has an `id` that a client can resume from.
    pub resumable: bool,
    /// What its data holds, if it has data.
    pub message: Option<Message>,
}

impl Event {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.raw.iter().map(Bytes::len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece.
    pub fn concat(&self) -> Vec<u8> {
        self.raw.concat()
    }
}

/// An event is larger than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than the bound")]
pub struct TooLarge;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Field {
    #[default]
    Undecided,
    Data {
        fresh: bool,
    },
    Id,
    Other,
}

/// Cuts a stream into events.
#[derive(Debug)]
pub struct EventStream {
    limit: usize,
    held: Vec<Bytes>,
    held_len: usize,
    event_len: usize,
    field: Field,
    name: Vec<u8>,
    line_len: usize,
    skip_lf: bool,
    /// How much of the mark at the stream's start was seen; none once that is behind us.
    mark: Option<usize>,
    has_data: bool,
    resumable: bool,
    peek: Peek,
}

impl EventStream {
    /// Events of more than `limit` bytes are an error.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Vec::new(),
            held_len: 0,
            event_len: 0,
            field: Field::Undecided,
            name: Vec::new(),
            line_len: 0,
            skip_lf: false,
            mark: Some(0),
            has_data: false,
            resumable: false,
            peek: Peek::default(),
        }
    }

    /// Bytes of an event that has not ended yet and were not taken.
    pub const fn held_len(&self) -> usize {
        self.held_len
    }

    /// Whether the unfinished event is part of a list of tools as far as it has come.
    pub const fn lists_tools(&self) -> bool {
        self.peek.lists_tools()
    }

    /// Lets go of what is held of an unfinished event; its message is still glanced at.
    pub fn take_held(&mut self) -> Vec<Bytes> {
        self.held_len = 0;
        std::mem::take(&mut self.held)
    }

    /// Takes a chunk; events that it completes are added to `out`.
    pub fn feed(&mut self, chunk: &Bytes, out: &mut Vec<Event>) -> Result<(), TooLarge> {
        let chunk = &self.after_mark(chunk, out)?;
        let mut start = 0;
        let mut at = 0;
        if std::mem::take(&mut self.skip_lf) && chunk.first() == Some(&b'\n') {
            // Second half of a CRLF that was cut; belongs to no event.
            if self.held.is_empty() && self.line_len == 0 {
                out.push(Event { raw: vec![chunk.slice(..1)], ..Event::default() });
                start = 1;
            }
            at = 1;
        }
        while let Some(found) = memchr2(b'\n', b'\r', &chunk[at..]).map(|found| at + found) {
            self.line(&chunk[at..found]);
            at = found + 1;
            if chunk[found] == b'\r' {
                match chunk.get(at) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.skip_lf = true,
                }
            }
            if self.end_line() {
                self.hold(chunk.slice(start..at))?;
                out.push(self.end_event());
                start = at;
            }
        }
        self.line(&chunk[at..]);
        self.hold(chunk.slice(start..))
    }

    /// Passes the mark on by itself, so that no event begins with it.
    fn after_mark(&mut self, chunk: &Bytes, out: &mut Vec<Event>) -> Result<Bytes, TooLarge> {
        let Some(seen) = self.mark else { return Ok(chunk.clone()) };
        let more = chunk.iter().zip(&MARK[seen..]).take_while(|(is, mark)| is == mark).count();
        self.mark = Some(seen + more);
        if seen + more == MARK.len() {
            self.mark = None;
            out.push(Event { raw: vec![Bytes::from_static(MARK)], ..Event::default() });
        } else if more < chunk.len() {
            self.no_mark(seen)?;
            return Ok(chunk.clone());
        }
        Ok(chunk.slice(more..))
    }

    /// What looked like the mark begins the first line.
    fn no_mark(&mut self, seen: usize) -> Result<(), TooLarge> {
        self.mark = None;
        self.line(&MARK[..seen]);
        self.hold(Bytes::from_static(&MARK[..seen]))
    }

    /// The stream is over; what had not ended is handed out as if it had.
    pub fn finish(&mut self) -> Option<Event> {
        if let Some(seen) = self.mark {
            // Two bytes are no more than any bound.
            let _ = self.no_mark(seen);
        }
        self.end_line();
        let event = self.end_event();
        (!event.raw.is_empty() || event.message.is_some()).then_some(event)
    }

    fn hold(&mut self, piece: Bytes) -> Result<(), TooLarge> {
        if piece.is_empty() {
            return Ok(());
        }
        self.held_len += piece.len();
        self.event_len += piece.len();
        self.held.push(piece);
        if self.event_len > self.limit { Err(TooLarge) } else { Ok(()) }
    }

    /// A piece of the current line, without its end.
    fn line(&mut self, mut piece: &[u8]) {
        self.line_len += piece.len();
        while let Some((&byte, rest)) = piece.split_first() {
            match self.field {
                Field::Undecided if byte == b':' => {
                    self.decide();
                    piece = rest;
                }
                Field::Undecided => {
                    self.name.push(byte);
                    piece = rest;
                    if self.name.len() > 8 {
                        self.field = Field::Other;
                    }
                }
                Field::Data { fresh } => {
                    let skip = usize::from(fresh && byte == b' ');
                    self.field = Field::Data { fresh: false };
                    self.peek.feed(&piece[skip..]);
                    return;
                }
                Field::Id => {
                    self.resumable |= piece.iter().any(|b| *b != b' ');
                    return;
                }
                Field::Other => return,
            }
        }
    }

    fn decide(&mut self) {
        self.field = match self.name.as_slice() {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.peek.feed(b"\n");
                }
                Field::Data { fresh: true }
            }
            b"id" => Field::Id,
            _ => Field::Other,
        };
    }

    /// Ends the current line; true if it was blank, which ends the event.
    fn end_line(&mut self) -> bool {
        if self.field == Field::Undecided && self.name == b"data" {
            self.decide();
        }
        self.field = Field::Undecided;
        self.name.clear();
        std::mem::take(&mut self.line_len) == 0
    }

    fn end_event(&mut self) -> Event {
        self.held_len = 0;
        self.event_len = 0;
        self.has_data = false;
        Event {
            raw: std::mem::take(&mut self.held),
            resumable: std::mem::take(&mut self.resumable),
            message: self.peek.finish(),
        }
    }
}

/// The lines of an event's bytes as (content, with its end).
fn lines(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let content = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let crlf = rest.get(content..content + 2) == Some(b"\r\n");
        let end = (content + if crlf { 2 } else { 1 }).min(rest.len());
        let line = (&rest[..content], &rest[..end]);
        rest = &rest[end..];
        Some(line)
    })
}

/// The value of a line that is of this field.
fn value_of<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(field)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

fn data_of(line: &[u8]) -> Option<&[u8]> {
    value_of(line, b"data")
}

/// The name of one event's bytes, `message` where it names none.
pub fn event_name(raw: &[u8]) -> &[u8] {
    let named = lines(raw).filter_map(|(line, _)| value_of(line, b"event")).last();
    named.filter(|name| !name.is_empty()).unwrap_or(b"message")
}

/// The id of one event's bytes, that a client may resume from.
pub fn event_id(raw: &[u8]) -> Option<&[u8]> {
    let ids = lines(raw).filter_map(|(line, _)| value_of(line, b"id"));
    ids.filter(|id| !id.contains(&0)).last().filter(|id| !id.is_empty())
}

/// The data of one event's bytes, its lines joined.
pub fn event_data(raw: &[u8]) -> Vec<u8> {
    let data: Vec<&[u8]> = lines(raw).filter_map(|(line, _)| data_of(line)).collect();
    data.join(&b'\n')
}

/// One event's bytes with other data; everything else stays as it is.
pub fn with_data(raw: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len() + data.len());
    let mut written = false;
    for (line, full) in lines(raw) {
        if data_of(line).is_none() {
            out.extend_from_slice(full);
        } else if !std::mem::replace(&mut written, true) {
            let end = &full[line.len()..];
            let end = if end.is_empty() { b"\n" } else { end };
            for part in data.split(|b| matches!(b, b'\n' | b'\r')) {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(part);
                out.extend_from_slice(end);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
