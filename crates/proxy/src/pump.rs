//! Passes an event stream of the upstream on to the client: every byte as it
//! came, except lists of tools, and watches what goes by.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use sluice_domain::{Access, Outcome};
use sluice_mcp::{
    Event, EventStream, Message, MessageKind, Peek, RawId, batch_texts, event_data, event_id,
    sse_event, with_data,
};
use tokio::time::Instant;

use crate::budget::Share;
use crate::failure::Failure;
use crate::filter::AnswerFilter;
use crate::follow::Follow;
use crate::forward::{Patience, UpstreamBody};
use crate::open_count::OpenPlace;
use crate::record::Recorder;
use crate::release::Release;
use crate::session::OpenRequest;
use crate::state::Inner;
use crate::watch::{News, Watch};

/// Larger events are passed on without a look at what they hold.
const MAX_LOOKED_AT: usize = 2 << 20;

/// What is to be done with a stream.
pub(crate) struct Plan {
    pub(crate) inner: Arc<Inner>,
    pub(crate) watch: Watch,
    /// Raw text of the request's id, on a stream that answers one.
    pub(crate) id: Option<String>,
    pub(crate) filter: AnswerFilter,
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

/// What becomes of a message.
enum Fate {
    Passes,
    Goes,
    Becomes(Vec<u8>),
    Fails(Failure),
}

/// Where a message stands.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// It is an event's data.
    Event(&'a Event),
    /// It is one of several.
    Text(&'a str),
}

impl Source<'_> {
    fn len(self) -> usize {
        match self {
            Self::Event(event) => event.len(),
            Self::Text(text) => text.len(),
        }
    }

    fn data(self) -> Vec<u8> {
        match self {
            Self::Event(event) => event_data(&event.concat()),
            Self::Text(text) => text.as_bytes().to_vec(),
        }
    }
}

/// The client's side of an upstream's event stream.
pub(crate) fn body(plan: Plan, upstream: UpstreamBody) -> Body {
    let limit = plan.inner.options.max_message_bytes;
    // Boxed: what waits for the next piece then holds it once, not twice.
    let pump = Box::new(Pump {
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
    });
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
                Box::pin(self.finish()).await;
                return None;
            }
            self.advance().await;
        }
    }

    /// Waits for whatever happens next. What is done then is boxed: a stream that waits holds no room for it.
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
            () = at(until) => Box::pin(self.fail(Failure::TimedOut)).await,
            frame = self.body.frame() => match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        Box::pin(self.take(&data)).await;
                    }
                }
                Some(Err(_)) => Box::pin(self.fail(Failure::Cut)).await,
                None => Box::pin(self.upstream_ended()).await,
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
            self.fail(Failure::TooLarge).await;
        } else if !self.share.fit(self.events.held_len()) {
            if self.plan.filter.holds() || self.events.lists_tools() {
                self.fail(Failure::TooLarge).await;
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
        if lost {
            self.fail(Failure::Cut).await;
        } else {
            self.end();
        }
    }

    async fn event(&mut self, event: Event) {
        self.resumable |= event.resumable;
        if event.resumable && !self.plan.watch.has_session() {
            self.sent(&event).await;
        }
        let torn = std::mem::take(&mut self.torn);
        let fate = match &event.message {
            None => Fate::Passes,
            Some(message) if message.kind == MessageKind::Batch => self.batch(&event, torn).await,
            Some(message) => self.message(message, Source::Event(&event), torn).await,
        };
        match fate {
            Fate::Passes => self.out.extend(event.raw),
            Fate::Goes => {}
            Fate::Becomes(data) => self.out.push_back(with_data(&event.concat(), &data).into()),
            Fate::Fails(failure) => {
                self.torn = torn;
                self.fail(failure).await;
            }
        }
    }

    /// Looks at a message. Nothing can be taken out of one of which a part was passed on already (`torn`).
    async fn message(&mut self, message: &Message, source: Source<'_>, torn: bool) -> Fate {
        match message.kind {
            MessageKind::Request => {
                if let Some(id) = message.id.as_deref().and_then(RawId::parse) {
                    self.plan.inner.sessions.issued(&self.plan.scope, id).await;
                }
            }
            MessageKind::Result | MessageKind::Error => {
                let own = self.plan.id.as_deref().and_then(RawId::parse);
                if own.is_some_and(|own| message.answers(own)) {
                    self.answer(source).await;
                }
            }
            MessageKind::Notification if !torn && self.muted(message) => return Fate::Goes,
            MessageKind::Notification | MessageKind::Batch | MessageKind::Other => {}
        }
        if !self.plan.filter.concerns(message) {
            return Fate::Passes;
        }
        if torn {
            return Fate::Fails(Failure::TooLarge);
        }
        let (watch, session) = (&self.plan.watch, self.plan.watch.has_session());
        match self.plan.filter.apply(&source.data(), &watch.entry, session).await {
            Ok(None) => Fate::Passes,
            Ok(Some(data)) => Fate::Becomes(data),
            Err(_) => Fate::Fails(Failure::NotMcp),
        }
    }

    /// Looks at each message of a batch by itself.
    async fn batch(&mut self, event: &Event, torn: bool) -> Fate {
        if torn {
            return Fate::Fails(Failure::TooLarge);
        }
        let data = event_data(&event.concat());
        let Some(texts) = batch_texts(&data) else {
            // Whatever it is, no client reads messages from it.
            let holds = self.plan.filter.holds();
            return if holds { Fate::Fails(Failure::NotMcp) } else { Fate::Passes };
        };
        let (mut stays, mut changed) = (Vec::with_capacity(texts.len()), false);
        for text in texts {
            let mut peek = Peek::default();
            peek.feed(text.as_bytes());
            let fate = match peek.finish().filter(|message| message.kind != MessageKind::Batch) {
                Some(message) => self.message(&message, Source::Text(text), torn).await,
                None => Fate::Fails(Failure::NotMcp),
            };
            changed |= !matches!(fate, Fate::Passes);
            match fate {
                Fate::Passes => stays.push(text.as_bytes().to_vec()),
                Fate::Goes => {}
                Fate::Becomes(data) => stays.push(data),
                Fate::Fails(failure) => return Fate::Fails(failure),
            }
        }
        match changed {
            false => Fate::Passes,
            true if stays.is_empty() => Fate::Goes,
            true => Fate::Becomes([b"[", &*stays.join(&b','), b"]"].concat()),
        }
    }

    /// Notes the id of an event, by which the grant may take the stream up again.
    async fn sent(&mut self, event: &Event) {
        if let Some(id) = event_id(&event.concat()) {
            self.plan.inner.sessions.sent(&self.plan.watch.entry, id).await;
        }
    }

    /// Whether a notification is about a part of MCP that the server's settings deny.
    fn muted(&self, message: &Message) -> bool {
        let settings = &self.plan.watch.entry.route.record.server.settings;
        let about = |part: &str| message.method.as_deref().is_some_and(|m| m.starts_with(part));
        settings.resources == Access::Deny && about("notifications/resources/")
            || settings.prompts == Access::Deny && about("notifications/prompts/")
    }

    /// Tells the client that its list of tools is another one now; never inside an event.
    fn announce(&mut self) {
        if let (Some(message), false) = (&self.plan.announce, self.torn) {
            self.out.push_back(sse_event(message.as_bytes()).into());
        }
    }

    /// The request was answered.
    async fn answer(&mut self, source: Source<'_>) {
        self.answered = true;
        self.plan.open = None;
        let follow = self.plan.follow.take();
        let release = self.plan.release.take();
        if follow.is_none() && release.is_none() {
            return;
        }
        // Larger answers are neither looked into nor kept.
        let data = (source.len() <= MAX_LOOKED_AT).then(|| Bytes::from(source.data()));
        if let (Some(follow), Some(data)) = (follow, &data) {
            follow.learn(data).await;
        }
        if let Some(release) = release {
            release.ran(data).await;
        }
    }

    /// Ends the stream with an error for the request that it was to answer.
    async fn fail(&mut self, failure: Failure) {
        self.over = true;
        // What was passed on of an unfinished event cannot be taken back.
        self.broken = self.torn;
        let cancelled = self.cancelled().await;
        let Some(id) = self.plan.id.as_deref().filter(|_| !self.answered && !cancelled) else {
            return;
        };
        if let Some(recorder) = &mut self.plan.recorder {
            let message = failure.log_message(self.plan.call);
            recorder.outcome(Outcome::Failed, failure.code(), &message);
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

    async fn cancelled(&mut self) -> bool {
        match &self.plan.open {
            Some(open) => self.plan.inner.sessions.was_cancelled(open).await,
            None => false,
        }
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
    async fn finish(&mut self) {
        let cancelled = !self.answered && self.cancelled().await;
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
