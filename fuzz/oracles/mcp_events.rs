//! The reader beside an event stream. However the stream is cut into pieces, every byte comes out again,
//! and the events seen are those of the standard's own algorithm, read in one go; of each event's
//! message the kind, id and method are what a JSON parser finds.

use bytes::Bytes;
use serde_json::Value;
use sluice_mcp::{
    Event, EventStream, Message, MessageKind, RawId, event_data, event_name, with_data,
};

/// Longer ids and methods are not kept.
const LONG: usize = 1_000;

/// An event that has data or an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// None: no line of data.
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) name: Vec<u8>,
    pub(crate) resumable: bool,
}

/// The first byte says how the rest is cut. Panics where something does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let events = feed(stream, usize::from(cut % 16));
    let out: Vec<u8> = events.iter().flat_map(Event::concat).collect();
    assert_eq!(out, stream, "the bytes pass as they came");
    let ours: Vec<Seen> = events.iter().filter_map(seen).collect();
    assert_eq!(ours, standard(stream), "cut by {cut}: {}", String::from_utf8_lossy(stream));
    for event in &events {
        let raw = event.concat();
        let data = event_data(&raw);
        glance(event.message.as_ref(), &data);
        if ours.iter().any(|seen| seen.data.is_some())
            && seen(event).is_some_and(|s| s.data.is_some())
        {
            replaced(&raw, &data);
        }
    }
}

/// Feeds a stream in pieces: whole, byte by byte, or in pieces of growing length.
pub(crate) fn feed(stream: &[u8], cut: usize) -> Vec<Event> {
    let mut events = EventStream::new(usize::MAX);
    let (mut out, mut rest, mut length) = (Vec::new(), stream, cut);
    while !rest.is_empty() {
        let at = if cut == 0 { rest.len() } else { length.clamp(1, rest.len()) };
        let (piece, left) = rest.split_at(at);
        events.feed(&Bytes::copy_from_slice(piece), &mut out).expect("there is no bound");
        rest = left;
        length = if cut > 8 { length + 3 } else { cut };
    }
    out.extend(events.finish());
    out
}

fn seen(event: &Event) -> Option<Seen> {
    let raw = event.concat();
    let lines = lines(&raw);
    let data = lines.iter().any(|line| field(line).0 == b"data").then(|| event_data(&raw));
    let name = event_name(&raw).to_vec();
    (data.is_some() || event.resumable).then_some(Seen { data, name, resumable: event.resumable })
}

/// "Interpreting an event stream" of the HTML standard, but what is unfinished at the end counts, too.
pub(crate) fn standard(stream: &[u8]) -> Vec<Seen> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut out = Vec::new();
    let mut data: Option<Vec<u8>> = None;
    let (mut name, mut resumable) = (b"message".to_vec(), false);
    let mut lines = lines(stream);
    lines.push(b"");
    for line in lines {
        if line.is_empty() {
            let resumable = std::mem::take(&mut resumable);
            let name = std::mem::replace(&mut name, b"message".to_vec());
            let data = data.take();
            if data.is_some() || resumable {
                out.push(Seen { data, name, resumable });
            }
            continue;
        }
        match field(line) {
            (b"data", value) => match &mut data {
                None => data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            },
            (b"event", b"") => name = b"message".to_vec(),
            (b"event", value) => name = value.to_vec(),
            (b"id", value) => resumable |= value.iter().any(|byte| *byte != b' '),
            _ => {}
        }
    }
    out
}

/// The lines, without their ends: LF, CR LF or CR.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        if matches!(text[at], b'\n' | b'\r') {
            out.push(&text[start..at]);
            at += usize::from(text[at..].starts_with(b"\r\n"));
            start = at + 1;
        }
        at += 1;
    }
    if start < text.len() {
        out.push(&text[start..]);
    }
    out
}

fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        None => (line, b""),
        Some(0) => (b":", b""),
        Some(at) => {
            let value = &line[at + 1..];
            (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

/// The message beside what a parser makes of the same data.
fn glance(message: Option<&Message>, data: &[u8]) {
    let Some(message) = message else {
        assert!(data.iter().all(u8::is_ascii_whitespace), "a message was overlooked");
        return;
    };
    // JSON's own white space: a form feed, say, begins no list for any parser.
    let begins = data.iter().find(|byte| !b" \t\n\r".contains(byte));
    assert_eq!(message.kind == MessageKind::Batch, begins == Some(&b'['), "a batch is a list");
    let Ok(Value::Object(value)) = serde_json::from_slice::<Value>(data) else { return };
    let id = value.get("id").map(Value::to_string).filter(|id| RawId::parse(id).is_some());
    let method = value.get("method").and_then(Value::as_str);
    if id.as_ref().is_some_and(|id| id.len() > LONG / 6)
        || method.is_some_and(|m| m.len() > LONG / 6)
    {
        return;
    }
    let kind = match (method, &id) {
        (None, _) if value.contains_key("error") => MessageKind::Error,
        (None, _) if value.contains_key("result") => MessageKind::Result,
        (Some(_), Some(_)) => MessageKind::Request,
        (Some(_), None) => MessageKind::Notification,
        _ => MessageKind::Other,
    };
    let text = String::from_utf8_lossy(data);
    assert_eq!((message.kind, message.method.as_deref()), (kind, method), "{text}");
    let same = match (
        message.id.as_deref().and_then(RawId::parse),
        id.as_deref().and_then(RawId::parse),
    ) {
        (Some(ours), Some(theirs)) => ours.same(theirs),
        (ours, theirs) => ours.is_none() && theirs.is_none(),
    };
    assert!(same, "{:?} is not {id:?}: {text}", message.id);
}

/// An event whose data was replaced has that data, and its other lines.
fn replaced(raw: &[u8], data: &[u8]) {
    let other: Vec<u8> = data.iter().map(|byte| if *byte == b'a' { b'b' } else { *byte }).collect();
    let new = with_data(raw, &other);
    assert_eq!(event_data(&new), other, "{}", String::from_utf8_lossy(raw));
    assert_eq!(event_name(&new), event_name(raw));
}
