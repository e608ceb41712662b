//! What became of requests, as spans: one of the gateway, and below it one of the request to the server.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use sluice_domain::{CallRecord, Outcome};
use sluice_proxy::{CallSpan, Spans};

use super::collector::{Queue, number, text};
use crate::settings::{CollectorArgs, SamplerWord};

/// Which traces are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// The client's word is followed where it has one.
    follows: bool,
    /// Of 2^56 traces, how many.
    kept: u64,
}

/// The right-most bits of a trace's id, which are the random ones.
const RANDOM: u128 = (1 << 56) - 1;

impl Sampler {
    pub(crate) fn of(args: &CollectorArgs) -> Self {
        let all = 1_u64 << 56;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of 2^56, which a number of that kind holds"
        )]
        let part = (args.traces_sampler_arg * all as f64) as u64;
        let (follows, kept) = match args.traces_sampler {
            SamplerWord::AlwaysOn => (false, all),
            SamplerWord::AlwaysOff => (false, 0),
            SamplerWord::Traceidratio => (false, part),
            SamplerWord::ParentbasedAlwaysOn => (true, all),
            SamplerWord::ParentbasedAlwaysOff => (true, 0),
            SamplerWord::ParentbasedTraceidratio => (true, part),
        };
        Self { follows, kept }
    }

    fn samples(self, trace: u128, parent: Option<bool>) -> bool {
        match parent {
            Some(parent) if self.follows => parent,
            _ => trace & RANDOM < u128::from(self.kept),
        }
    }
}

/// Makes spans and queues them.
#[derive(Debug, Clone)]
pub(crate) struct SpanQueue {
    queue: Queue<Span>,
    sampler: Sampler,
}

impl SpanQueue {
    pub(crate) const fn new(queue: Queue<Span>, sampler: Sampler) -> Self {
        Self { queue, sampler }
    }
}

impl Spans for SpanQueue {
    fn samples(&self, trace: u128, parent: Option<bool>) -> bool {
        self.sampler.samples(trace, parent)
    }

    fn ended(&self, span: &CallSpan<'_>) {
        self.queue.put(of_request(span));
        if let Some(sent_us) = span.sent_us {
            self.queue.put(of_upstream(span, sent_us));
        }
    }
}

/// A moment of the request, in nanoseconds of Unix time.
fn at(record: &CallRecord, us: i64) -> u64 {
    let us = record.at.timestamp_micros().saturating_add(us.max(0));
    u64::try_from(us).unwrap_or(0).saturating_mul(1_000)
}

fn id(span: u64) -> Vec<u8> {
    span.to_be_bytes().to_vec()
}

/// `tools/call echo`, or the method alone.
fn name(record: &CallRecord) -> String {
    match (&record.tool, record.method.as_str()) {
        (_, "") => "request".to_owned(),
        (Some(tool), method) => format!("{method} {tool}"),
        (None, method) => method.to_owned(),
    }
}

/// What both spans say of the request: never a value of an argument, a token, an address or what a person wrote.
fn common(record: &CallRecord) -> Vec<KeyValue> {
    let mut all = vec![
        text("mcp.method.name", record.method.as_str()),
        text("sluice.server", record.server.to_string()),
    ];
    let more =
        [("gen_ai.tool.name", &record.tool), ("mcp.protocol.version", &record.protocol_version)];
    all.extend(more.into_iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    all
}

fn of_request(span: &CallSpan<'_>) -> Span {
    let (record, context) = (span.record, span.context);
    let mut attributes = common(record);
    attributes.extend([
        text("sluice.outcome", record.outcome.as_str()),
        text("sluice.code", record.code.as_str()),
        text("sluice.request", record.id.to_string()),
        text("sluice.workspace", record.workspace.to_string()),
        text("sluice.grant", record.grant.to_string()),
        number("sluice.limits_us", record.timing.limits_us),
        number("sluice.approval_us", record.timing.approval_us),
    ]);
    if !record.rule.is_empty() {
        attributes.push(text("sluice.rule", record.rule.as_str()));
    }
    if let Some(policy) = record.policy {
        attributes.push(text("sluice.policy", policy.to_string()));
        attributes.push(number("sluice.policy_version", record.policy_version.unwrap_or(0)));
    }
    Span {
        parent_span_id: context.parent.map(id).unwrap_or_default(),
        ..made(span, context.span, SpanKind::Server, attributes, 0, record.timing.total_us)
    }
}

fn of_upstream(span: &CallSpan<'_>, sent_us: i64) -> Span {
    let (record, context) = (span.record, span.context);
    let mut attributes = common(record);
    let status = record.upstream_status.map(i64::from);
    attributes.extend(status.map(|status| number("http.response.status_code", status)));
    let ends = sent_us.saturating_add(record.timing.upstream_us);
    Span {
        parent_span_id: id(context.span),
        ..made(span, context.sent(), SpanKind::Client, attributes, sent_us, ends)
    }
}

fn made(
    span: &CallSpan<'_>,
    own: u64,
    kind: SpanKind,
    mut attributes: Vec<KeyValue>,
    from_us: i64,
    to_us: i64,
) -> Span {
    let record = span.record;
    let failed = record.outcome == Outcome::Failed;
    if failed {
        attributes.push(text("error.type", record.code.as_str()));
    }
    let code = if failed { StatusCode::Error } else { StatusCode::Unset };
    Span {
        trace_id: span.context.trace.to_be_bytes().to_vec(),
        span_id: id(own),
        name: name(record),
        kind: kind.into(),
        start_time_unix_nano: at(record, from_us),
        end_time_unix_nano: at(record, to_us),
        attributes,
        status: Some(Status { code: code.into(), ..Default::default() }),
        // The trace is kept; that its parent is remote is known where there is one.
        flags: 0x101
            | if kind == SpanKind::Server && span.context.parent.is_some() { 0x200 } else { 0 },
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(follows: bool, kept: u64) -> Sampler {
        Sampler { follows, kept }
    }

    #[test]
    fn a_ratio_keeps_that_part_of_ids_and_a_parents_word_counts_where_it_is_asked() {
        let quarter = 1 << 54;
        let kept = (0..4_000_u128).filter(|number| {
            let trace = (number << 64) | (number * ((1 << 56) / 4_000));
            sampler(false, quarter).samples(trace, Some(true))
        });
        assert_eq!(kept.count(), 1_001);
        for trace in [0, u128::MAX] {
            assert!(sampler(true, 0).samples(trace, Some(true)));
            assert!(!sampler(true, 1 << 56).samples(trace, Some(false)));
            assert!(sampler(true, 1 << 56).samples(trace, None));
            assert!(!sampler(false, 0).samples(trace, Some(true)));
        }
    }
}
