//! The log record of one request, filled on the way and written exactly once,
//! however the request ends.

use std::time::Instant;

use chrono::{DateTime, Utc};
use sluice_domain::metrics::{self, Asked, Log};
use sluice_domain::{CallId, CallRecord, CallTiming, Code, Outcome};

use crate::call_log::{CallLog, LogFull, LogPlace};
use crate::route::Route;
use crate::trace::Traced;

const MAX_METHOD: usize = 128;
const MAX_TOOL: usize = 256;
const MAX_MESSAGE: usize = 1_024;

/// A record in the making, written when it is dropped. If nothing settled it by then, the client went
/// away or gave up.
#[derive(Debug)]
pub(crate) struct Recorder {
    log: CallLog,
    place: Option<LogPlace>,
    record: Option<Box<CallRecord>>,
    started: Instant,
    /// Since when the answer streams by, in microseconds from the start: that time is the upstream's.
    streams_since: Option<i64>,
    traced: Option<Traced>,
    /// What became of the request is known.
    settled: bool,
    only_failures: bool,
}

fn cut(text: &str, chars: usize) -> String {
    if text.len() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars).collect()
}

fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Recorder {
    pub(crate) fn new(log: CallLog, id: CallId, at: DateTime<Utc>, route: &Route) -> Self {
        let record = &route.record;
        let record = CallRecord {
            id,
            workspace: record.workspace,
            server: record.server.id,
            grant: record.grant.id,
            grant_label: record.grant.label.clone(),
            at,
            method: String::new(),
            tool: None,
            outcome: Outcome::Allowed,
            code: Code::Allowed,
            rule: String::new(),
            message: String::new(),
            policy: record.policy.as_ref().map(|policy| policy.id),
            policy_version: record.policy.as_ref().map(|policy| policy.version),
            observed: false,
            counter: None,
            retry_after_s: None,
            arguments: None,
            trace: None,
            client_name: None,
            protocol_version: None,
            session: None,
            client_address: None,
            request_bytes: 0,
            response_bytes: 0,
            upstream_status: None,
            timing: CallTiming::default(),
        };
        Self {
            log,
            place: None,
            record: Some(Box::new(record)),
            started: Instant::now(),
            streams_since: None,
            traced: None,
            settled: false,
            only_failures: false,
        }
    }

    /// Changes the record.
    pub(crate) fn note(&mut self, change: impl FnOnce(&mut CallRecord)) {
        if let Some(record) = &mut self.record {
            change(record);
        }
    }

    pub(crate) fn method(&mut self, method: &str, tool: Option<&str>) {
        self.note(|record| {
            record.method = cut(method, MAX_METHOD);
            record.tool = tool.map(|tool| cut(tool, MAX_TOOL));
        });
    }

    /// Takes a place in the log, so that the record cannot be lost.
    pub(crate) fn take_place(&mut self) -> Result<(), LogFull> {
        self.place = Some(self.log.place()?);
        Ok(())
    }

    /// The time since the request came in.
    pub(crate) fn elapsed_us(&self) -> i64 {
        micros(self.started.elapsed())
    }

    /// When the request came in.
    pub(crate) fn at(&self) -> Option<DateTime<Utc>> {
        self.record.as_ref().map(|record| record.at)
    }

    /// The request's id.
    pub(crate) fn id(&self) -> Option<CallId> {
        self.record.as_ref().map(|record| record.id)
    }

    /// The upstream's answer is on its way; the record stays as the decision left it.
    pub(crate) const fn answered(&mut self) {
        self.settled = true;
    }

    /// The request becomes spans of a trace.
    pub(crate) fn trace(&mut self, traced: Traced) {
        self.traced = Some(traced);
    }

    /// The request is sent on, so many microseconds from its start.
    pub(crate) const fn sends(&mut self, at_us: i64) {
        if let Some(traced) = &mut self.traced {
            traced.sent_us = Some(at_us);
        }
    }

    /// The answer begins to stream by: what it takes from now on is the upstream's time.
    pub(crate) fn streams(&mut self) {
        self.streams_since = Some(self.elapsed_us());
    }

    /// What becomes of the request is open again.
    pub(crate) const fn unsettle(&mut self) {
        self.settled = false;
    }

    pub(crate) fn outcome(&mut self, outcome: Outcome, code: Code, message: &str) {
        self.settled = true;
        self.note(|record| {
            record.outcome = outcome;
            record.code = code;
            record.message = cut(message, MAX_MESSAGE);
        });
    }

    /// Records the message only if something goes wrong with it: notifications and answers of
    /// clients have no outcome of their own.
    pub(crate) const fn only_failures(&mut self) {
        self.only_failures = true;
    }

    fn write(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        if self.only_failures && (!self.settled || record.outcome == Outcome::Allowed) {
            return;
        }
        if !self.settled {
            record.outcome = Outcome::Failed;
            record.code = Code::Cancelled;
        }
        record.timing.total_us = micros(self.started.elapsed());
        if let Some(since) = self.streams_since {
            record.timing.upstream_us += record.timing.total_us - since;
        }
        count(&record);
        if let Some(traced) = &self.traced {
            traced.ended(&record);
        }
        let place = self.place.take().map_or_else(|| self.log.place(), Ok);
        match place {
            Ok(place) => place.put(*record),
            Err(LogFull) => {
                metrics::LOG_LOST.add([Log::Call as usize], 1);
            }
        }
    }
}

/// Counts a request and where its time went.
fn count(record: &CallRecord) {
    metrics::REQUESTS.add([record.outcome as usize, record.code as usize], 1);
    let timing = &record.timing;
    let us = |part: i64| u64::try_from(part).unwrap_or(0);
    let asked = [Asked::of(&record.method) as usize];
    let others = timing.limits_us + timing.approval_us + timing.upstream_us;
    metrics::GATEWAY.micros(asked, us(timing.total_us - others));
    if timing.approval_us > 0 {
        metrics::APPROVAL.micros([], us(timing.approval_us));
    }
    if timing.upstream_us > 0 {
        metrics::UPSTREAM.micros(asked, us(timing.upstream_us));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write();
    }
}
