//! Passes an event stream of the upstream on to the client: every byte as it
//! came, except lists of tools, and watches what goes by.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use sluice_domain::Outcome;
use sluice_mcp::{Event, EventStream, MessageKind, RawId, event_data, sse_event, with_data};
use tokio::time::Instant;

use crate::budget::Share;
use crate::failure::Failure;
use crate::filter::ListFilter;
use crate::follow::Follow;
use crate::forward::{Patience, UpstreamBody};
use crate::open_count::OpenPlace;
use crate::record::Recorder;
use crate::release::Release;
use crate::session::OpenRequest;
use crate::state::Inner;
use crate::watch::{News, Watch};

/// What is to be done with a stream.
pub(crate) struct Plan {
    pub(crate) inner: Arc<Inner>,
    pub(crate) watch: Watch,
    /// Raw text of the request's id, on a stream that answers one.
    pub(crate) id: Option<String>,
    pub(crate) filter: Option<ListFilter>,
    /// Looks at the answer.
    pub(crate) follow: Option<Follow>,
    /// The message that tells of a changed list of tools, if this stream is to be told.
    pub(crate) announce: Option<String>,
    /// Under which name requests of the server are noted.
    pub(crate) scope: String,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) open: Option<OpenRequest>,
    #[expect(dead_code, reason = "held for as long as the stream is open")]
    pub(crate) place: OpenPlace,
    /// The approval that the call uses up.
    pub(crate) release: Option<Release>,
    pub(crate) patience: Patience,
    /// The stream answers a `tools/call`.
    pub(crate) call: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "the state of a stream")]
struct Pump {
    plan: Plan,
    body: UpstreamBody,
    events: EventStream,
    share: Share,
    out: VecDeque<Bytes>,
    answered: bool,
    resumable: bool,
    /// Part of an event that has not ended was passed on already.
    torn: bool,
    over: bool,
    /// End the client's connection in a way that it cannot take for a proper end.
    broken: bool,
}

/// The client's side of an upstream's event stream.
pub(crate) fn body(plan: Plan, upstream: UpstreamBody) -> Body {
    let limit = plan.inner.options.max_message_bytes;
    let pump = Pump {
        share: plan.inner.budget.share(),
        plan,
        body: upstream,
        events: EventStream::new(limit),
        out: VecDeque::new(),
        answered: false,
        resumable: false,
        torn: false,
        over: false,
        broken: false,
    };
    Body::from_stream(stream::unfold(pump, |mut pump| async move {
        let next = pump.next().await?;
        Some((next, pump))
    }))
}

impl Pump {
    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        loop {
            if let Some(bytes) = self.out.pop_front() {
                self.count(bytes.len());
                return Some(Ok(bytes));
            }
            if self.broken {
                self.broken = false;
                return Some(Err(std::io::ErrorKind::ConnectionAborted.into()));
            }
            if self.over {
                self.finish();
                return None;
            }
            self.advance().await;
        }
    }

    /// Waits for whatever happens next.
    async fn advance(&mut self) {
        let until = self.plan.patience.until();
        tokio::select! {
            biased;
            news = self.plan.watch.news() => {
                match news {
                    News::Ended => self.end(),
                    News::ListChanged => self.announce(),
                    News::Same => {}
                }
            }
            () = at(until) => self.fail(Failure::TimedOut),
            frame = self.body.frame() => match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.take(&data).await;
                    }
                }
                Some(Err(_)) => self.fail(Failure::Cut),
                None => self.upstream_ended().await,
            },
        }
    }

    async fn take(&mut self, chunk: &Bytes) {
        let mut events = Vec::new();
        let fed = self.events.feed(chunk, &mut events);
        for event in events {
            self.event(event).await;
            if self.over {
                return;
            }
        }
        if fed.is_err() {
            self.fail(Failure::TooLarge);
        } else if !self.share.fit(self.events.held_len()) {
            if self.plan.filter.is_some() {
                self.fail(Failure::TooLarge);
            } else {
                self.torn = true;
                self.out.extend(self.events.take_held());
            }
        }
    }

    async fn upstream_ended(&mut self) {
        if let Some(event) = self.events.finish() {
            self.event(event).await;
        }
        if self.over {
            return;
        }
        // A stream with event ids may be taken up again by the client.
        let lost = self.plan.id.is_some() && !self.answered && !self.resumable;
        if lost { self.fail(Failure::Cut) } else { self.end() }
    }

    async fn event(&mut self, event: Event) {
        self.resumable |= event.resumable;
        let torn = std::mem::take(&mut self.torn);
        let kind = event.message.as_ref().map(|message| message.kind);
        match kind {
            Some(MessageKind::Request) => {
                let id =
                    event.message.as_ref().and_then(|m| m.id.as_deref()).and_then(RawId::parse);
                if let Some(id) = id {
                    self.plan.inner.sessions.issued(&self.plan.scope, id).await;
                }
            }
            Some(MessageKind::Result | MessageKind::Error) => {
                let own = self.plan.id.as_deref().and_then(RawId::parse);
                if own.is_some_and(|own| event.message.as_ref().is_some_and(|m| m.answers(own))) {
                    self.answer(&event).await;
                }
                if kind == Some(MessageKind::Result) && !torn && self.filter(&event) {
                    return;
                }
            }
            _ => {}
        }
        self.out.extend(event.raw);
    }

    /// Tells the client that its list of tools is another one now; never inside an event.
    fn announce(&mut self) {
        if let (Some(message), false) = (&self.plan.announce, self.torn) {
            self.out.push_back(sse_event(message.as_bytes()).into());
        }
    }

    /// The request was answered.
    async fn answer(&mut self, event: &Event) {
        self.answered = true;
        self.plan.open = None;
        if let Some(follow) = self.plan.follow.take() {
            follow.learn(&event_data(&event.concat())).await;
        }
        if let Some(release) = self.plan.release.take() {
            let data = Bytes::from(event_data(&event.concat()));
            release.ran(Some(data)).await;
        }
    }

    /// Passes a list on without the tools that the grant must not see; true if it took the event.
    fn filter(&mut self, event: &Event) -> bool {
        let Some(filter) = &self.plan.filter else { return false };
        let raw = event.concat();
        match filter.apply(&event_data(&raw), &self.plan.watch.entry) {
            Ok(None) => return false,
            Ok(Some(data)) => self.out.push_back(with_data(&raw, &data).into()),
            Err(_) => self.fail(Failure::NotMcp),
        }
        true
    }

    /// Ends the stream with an error for the request that it was to answer.
    fn fail(&mut self, failure: Failure) {
        self.over = true;
        // What was passed on of an unfinished event cannot be taken back.
        self.broken = self.torn;
        let cancelled = self.plan.open.as_ref().is_some_and(OpenRequest::cancelled);
        let Some(id) = self.plan.id.as_deref().filter(|_| !self.answered && !cancelled) else {
            return;
        };
        if let Some(recorder) = &mut self.plan.recorder {
            recorder.outcome(Outcome::Failed, failure.code(), failure.message(self.plan.call));
        }
        // A stream with event ids can be taken up again by the client.
        let resumed = self.resumable && failure == Failure::Cut;
        if !self.torn && !resumed {
            let request = self.plan.recorder.as_ref().and_then(Recorder::id);
            let request = request.map(|id| id.to_string()).unwrap_or_default();
            let error = failure.answer(Some(id), &request, self.plan.call);
            self.out.push_back(sse_event(&error).into());
        }
    }

    fn end(&mut self) {
        self.over = true;
    }

    fn count(&mut self, bytes: usize) {
        if let Some(recorder) = &mut self.plan.recorder {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            recorder.note(|record| record.response_bytes += bytes);
            if self.answered {
                recorder.answered();
            }
        }
    }

    /// The last byte went out; the record can be written.
    fn finish(&mut self) {
        let cancelled = self.plan.open.as_ref().is_some_and(OpenRequest::cancelled);
        if let Some(mut recorder) = self.plan.recorder.take()
            && (self.answered || (self.resumable && !cancelled))
        {
            recorder.answered();
        }
    }
}

/// Sleeps until a moment, or for ever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
