//! Reads an event stream of a server, one event at a time.

use std::collections::VecDeque;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use sluice_mcp::{Event, EventStream, event_data};

use super::ReadError;
use super::answer::{MAX_BYTES, idle, silence};
use crate::idle::IdleBody;
use crate::target::Target;

/// More events than a list of tools needs, whatever comes between.
const MAX_EVENTS: usize = 10_000;

/// An open event stream.
pub(super) struct Events {
    body: IdleBody,
    cutter: EventStream,
    ready: VecDeque<Event>,
    seen: usize,
    bytes: usize,
}

impl Events {
    pub(super) fn new(target: &Target, body: Incoming) -> Self {
        Self {
            body: IdleBody::new(body, silence(target)),
            cutter: EventStream::new(MAX_BYTES),
            ready: VecDeque::new(),
            seen: 0,
            bytes: 0,
        }
    }

    /// The next event that has data: its name (`message` unless it says otherwise) and the data.
    pub(super) async fn next(&mut self) -> Result<(String, Vec<u8>), ReadError> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                self.seen += 1;
                if self.seen > MAX_EVENTS {
                    return Err(ReadError::Endless("it sends events without end"));
                }
                let raw = event.concat();
                let data = event_data(&raw);
                if !data.is_empty() {
                    return Ok((name(&raw), data));
                }
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), ReadError> {
        let frame = self.body.frame().await.ok_or(ReadError::Cut)?;
        let Ok(data) = frame.map_err(|error| idle(&error))?.into_data() else { return Ok(()) };
        self.bytes += data.len();
        let too_large = || ReadError::TooLarge(MAX_BYTES / (1024 * 1024));
        if self.bytes > MAX_BYTES {
            return Err(too_large());
        }
        let mut events = Vec::new();
        self.cutter.feed(&data, &mut events).map_err(|_| too_large())?;
        self.ready.extend(events);
        Ok(())
    }
}

/// The event's name: the last `event` field.
fn name(raw: &[u8]) -> String {
    let lines = raw.split(|byte| matches!(byte, b'\n' | b'\r'));
    let named = lines.filter_map(|line| line.strip_prefix(b"event:")).next_back();
    let name = named.map(|name| name.strip_prefix(b" ").unwrap_or(name));
    name.map_or_else(|| "message".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
}
