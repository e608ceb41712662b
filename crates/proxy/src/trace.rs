//! W3C trace context: a client's trace goes on through the gateway, or one begins here. Only where the operator
//! has spans collected; else a client's header goes up as it came, and nothing here runs.
//!
//! What a client can say is which trace its request is part of, and whether that is recorded at its side. The
//! upstream's parent is always a span of ours, and a header that is not one in the standard's form, or is there
//! twice, is not passed on.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use sluice_domain::{CallId, CallRecord};

use crate::ports::Spans;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Where a request stands in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    /// The client's span.
    pub parent: Option<u64>,
    /// Our span of the request.
    pub span: u64,
    /// Whether spans are kept.
    pub sampled: bool,
}

/// What a request became, for a span.
#[derive(Debug)]
pub struct CallSpan<'a> {
    pub context: TraceContext,
    pub record: &'a CallRecord,
    /// When it was sent on, in microseconds from its start.
    pub sent_us: Option<i64>,
}

/// A `traceparent` in the standard's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Theirs {
    trace: u128,
    span: u64,
    sampled: bool,
}

fn lower_hex(text: &str) -> Option<u128> {
    let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Reads `00-{trace}-{span}-{flags}`; later versions may have more at the end.
fn theirs(headers: &HeaderMap) -> Option<Theirs> {
    let mut values = headers.get_all(TRACEPARENT).into_iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let text = value.to_str().ok()?;
    let (known, more) = (text.get(..55)?, text.get(55..)?);
    let mut parts = known.split('-');
    let mut part = |length: usize| parts.next().filter(|part| part.len() == length);
    let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    let (version, flags) = (lower_hex(version)?, lower_hex(flags)?);
    let ends = more.is_empty() || version > 0 && more.starts_with('-');
    let (trace, span) = (lower_hex(trace)?, u64::try_from(lower_hex(span)?).ok()?);
    (version != 0xff && ends && trace != 0 && span != 0).then_some(Theirs {
        trace,
        span,
        sampled: flags & 1 == 1,
    })
}

impl TraceContext {
    /// Goes on with the client's trace, or begins one; from now on the headers name our span.
    fn adopt(id: CallId, headers: &mut HeaderMap, spans: &dyn Spans) -> Self {
        let theirs = theirs(headers);
        // A trace that begins here has the id by which the request is found in the log.
        let own = id.uuid().as_u128();
        let trace = theirs.map_or(own, |theirs| theirs.trace);
        let sampled = spans.samples(trace, theirs.map(|theirs| theirs.sampled));
        // The lower half of a UUID is never zero: two of its bits say what kind it is.
        let span = u64::try_from(own & u128::from(u64::MAX)).unwrap_or(1);
        let context = Self { trace, parent: theirs.map(|theirs| theirs.span), span, sampled };
        if theirs.is_none() {
            headers.remove(TRACESTATE);
        }
        if let Ok(value) = HeaderValue::from_str(&context.outgoing()) {
            headers.insert(TRACEPARENT, value);
        }
        context
    }

    /// Our span of the request to the upstream.
    pub const fn sent(self) -> u64 {
        !self.span
    }

    fn outgoing(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.sent(), u8::from(self.sampled))
    }
}

/// A request that becomes spans.
pub(crate) struct Traced {
    spans: Arc<dyn Spans>,
    context: TraceContext,
    pub(crate) sent_us: Option<i64>,
}

impl std::fmt::Debug for Traced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traced").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Traced {
    /// Of a request with these headers, which then name our span.
    pub(crate) fn begin(spans: &Arc<dyn Spans>, id: CallId, headers: &mut HeaderMap) -> Self {
        let context = TraceContext::adopt(id, headers, spans.as_ref());
        is_current(id, Some(context));
        Self { spans: Arc::clone(spans), context, sent_us: None }
    }

    /// The request is over.
    pub(crate) fn ended(&self, record: &CallRecord) {
        if self.context.sampled {
            let span = CallSpan { context: self.context, record, sent_us: self.sent_us };
            self.spans.ended(&span);
        }
    }
}

/// The request that is worked on, for log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    pub id: CallId,
    pub trace: Option<TraceContext>,
}

tokio::task_local! {
    static CURRENT: Cell<Option<Current>>;
}

/// Makes [`current_request`] known to whatever a request's future does.
pub fn within_request<F: Future>(answering: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(Cell::new(None), answering)
}

/// The request that this task works on, where it is known.
pub fn current_request() -> Option<Current> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

pub(crate) fn is_current(id: CallId, trace: Option<TraceContext>) {
    // Without a scope nobody asks.
    let _ = CURRENT.try_with(|current| current.set(Some(Current { id, trace })));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what its parent keeps, or all.
    struct All;

    impl Spans for All {
        fn samples(&self, _: u128, parent: Option<bool>) -> bool {
            parent.unwrap_or(true)
        }

        fn ended(&self, _: &CallSpan<'_>) {}
    }

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, value.parse().expect("a value"));
        }
        headers.insert(TRACESTATE, HeaderValue::from_static("vendor=1"));
        headers
    }

    #[test]
    fn a_clients_trace_goes_on_with_our_span_as_the_upstreams_parent() {
        let (id, mut headers) = (CallId::new(), headers(&[GOOD]));
        let context = TraceContext::adopt(id, &mut headers, &All);
        assert_eq!(context.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(context.parent, Some(0xb7ad_6b71_6920_3331));
        assert!(context.sampled && context.span != context.sent() && context.sent() != 0);
        let expected = format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", context.sent());
        assert_eq!(headers[TRACEPARENT], expected.as_str());
        assert_eq!(headers[TRACESTATE], "vendor=1");
    }

    #[test]
    fn what_the_client_does_not_record_is_not_recorded_and_says_so_further_on() {
        let mut headers = headers(&[&GOOD.replace("-01", "-00")]);
        let context = TraceContext::adopt(CallId::new(), &mut headers, &All);
        assert!(!context.sampled);
        assert!(headers[TRACEPARENT].to_str().expect("text").ends_with("-00"));
    }

    #[test]
    fn without_a_trace_in_the_standards_form_one_begins_with_the_requests_id() {
        let long = format!("{GOOD}-more");
        let table: [&[&str]; 10] = [
            &[],
            &[GOOD, GOOD],
            &[&GOOD.to_uppercase()],
            &[&GOOD.replace("00-0a", "ff-0a")],
            &["00-00000000000000000000000000000000-b7ad6b7169203331-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1"],
            &["00-0af7651916cd43dd8448eb211c80319cb7ad6b7169203331-01--"],
            &[&long],
            &["00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
        ];
        for values in table {
            let (id, mut headers) = (CallId::new(), headers(values));
            let context = TraceContext::adopt(id, &mut headers, &All);
            assert_eq!((context.trace, context.parent), (id.uuid().as_u128(), None), "{values:?}");
            let sent = headers[TRACEPARENT].to_str().expect("text");
            assert!(sent.contains(&id.uuid().simple().to_string()), "{values:?}: {sent}");
            assert_eq!(headers.get_all(TRACEPARENT).into_iter().count(), 1, "{values:?}");
            assert!(!headers.contains_key(TRACESTATE), "it belongs to another trace: {values:?}");
        }
    }

    #[test]
    fn a_later_version_may_have_more_at_its_end() {
        let later = format!("{}-more", GOOD.replacen("00", "01", 1));
        let context = TraceContext::adopt(CallId::new(), &mut headers(&[&later]), &All);
        assert!(context.parent.is_some());
    }

    #[tokio::test]
    async fn a_request_is_known_within_its_own_future_alone() {
        let id = CallId::new();
        let within = within_request(async {
            assert_eq!(current_request(), None);
            is_current(id, None);
            current_request()
        });
        assert_eq!(within.await, Some(Current { id, trace: None }));
        assert_eq!(current_request(), None);
    }
}
