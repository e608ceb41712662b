//! Log lines for a collector, and as JSON for standard error; both say which request they are about.

use std::fmt::{self, Write as _};

use chrono::SecondsFormat;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use serde_json::{Map, Value};
use sluice_proxy::current_request;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::collector::{Queue, attribute, text};
use crate::clock;

const MESSAGE: &str = "message";

/// One JSON object a line: when, how grave, what, where, and the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        let now = clock::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        line.insert("timestamp".to_owned(), now.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        event.record(&mut Fields(|name: &str, value| {
            line.insert(name.to_owned(), value);
        }));
        line.insert("target".to_owned(), event.metadata().target().into());
        if let Some(current) = current_request() {
            line.insert("request_id".to_owned(), current.id.to_string().into());
            if let Some(trace) = current.trace {
                line.insert("trace_id".to_owned(), format!("{:032x}", trace.trace).into());
                line.insert("span_id".to_owned(), format!("{:016x}", trace.span).into());
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Hands each field to a function.
struct Fields<F>(F);

impl<F: FnMut(&str, Value)> Visit for Fields<F> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        (self.0)(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        (self.0)(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        (self.0)(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        (self.0)(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        (self.0)(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = write!(text, "{value:?}");
        (self.0)(field.name(), text.into());
    }
}

/// Makes records of log lines and queues them.
#[derive(Debug, Clone)]
pub(crate) struct Lines(Queue<LogRecord>);

impl Lines {
    pub(crate) const fn new(queue: Queue<LogRecord>) -> Self {
        Self(queue)
    }
}

const fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

fn any(value: Value) -> any_value::Value {
    match value {
        Value::Bool(value) => any_value::Value::BoolValue(value),
        Value::String(text) => any_value::Value::StringValue(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => any_value::Value::IntValue(whole),
            (None, Some(value)) => any_value::Value::DoubleValue(value),
            (None, None) => any_value::Value::StringValue(number.to_string()),
        },
        other => any_value::Value::StringValue(other.to_string()),
    }
}

fn record(event: &Event<'_>) -> LogRecord {
    let (mut body, mut attributes) = (None, Vec::<KeyValue>::new());
    event.record(&mut Fields(|name: &str, value| match name {
        MESSAGE => body = Some(AnyValue { value: Some(any(value)) }),
        name => attributes.push(attribute(name, any(value))),
    }));
    let level = *event.metadata().level();
    attributes.push(text("code.namespace", event.metadata().target()));
    let (mut trace_id, mut span_id) = (Vec::new(), Vec::new());
    if let Some(current) = current_request() {
        attributes.push(text("sluice.request", current.id.to_string()));
        if let Some(trace) = current.trace {
            trace_id = trace.trace.to_be_bytes().to_vec();
            span_id = trace.span.to_be_bytes().to_vec();
        }
    }
    let now = clock::now().timestamp_nanos_opt().and_then(|nanos| u64::try_from(nanos).ok());
    let now = now.unwrap_or_default();
    LogRecord {
        time_unix_nano: now,
        observed_time_unix_nano: now,
        severity_number: severity(level).into(),
        severity_text: level.as_str().to_owned(),
        body,
        attributes,
        trace_id,
        span_id,
        ..Default::default()
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // What libraries say, and among them those that send this, would send ever more.
        if event.metadata().target().starts_with("sluice") {
            self.0.put(record(event));
        }
    }
}
