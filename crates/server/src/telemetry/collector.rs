//! Sends spans and log lines to an OpenTelemetry collector. A bounded queue for each; what has no room in it, and
//! what the collector does not take, is dropped and counted, and that it takes nothing is told once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use sluice_domain::metrics::{self, Signal};
use sluice_proxy::Spans;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::lines::Lines;
use super::spans::{Sampler, SpanQueue};
use crate::failure::{Failure, Outcome};
use crate::settings::{CollectorArgs, Sent};

/// Spans, and log lines, that wait to be sent.
const QUEUE: usize = 4_096;
/// How many are sent together, and how long they wait for one another.
const BATCH: usize = 512;
const FILLS: Duration = Duration::from_secs(1);
/// How long the collector may take, and how often it is tried, with pauses between.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// How long what is left may take at the end.
const LAST: Duration = Duration::from_secs(5);

/// What a collector takes.
pub(crate) trait Item: Send + 'static {
    const SIGNAL: Signal;
    const PATH: &'static str;

    /// A request with these.
    fn request(resource: &Resource, items: Vec<Self>) -> Vec<u8>
    where
        Self: Sized;
}

fn scope() -> InstrumentationScope {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    InstrumentationScope { name: "sluice".to_owned(), version, ..Default::default() }
}

impl Item for Span {
    const SIGNAL: Signal = Signal::Traces;
    const PATH: &'static str = "v1/traces";

    fn request(resource: &Resource, spans: Vec<Self>) -> Vec<u8> {
        let spans = ScopeSpans { scope: Some(scope()), spans, ..Default::default() };
        let resource = Some(resource.clone());
        let all = ResourceSpans { resource, scope_spans: vec![spans], ..Default::default() };
        ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec()
    }
}

impl Item for LogRecord {
    const SIGNAL: Signal = Signal::Logs;
    const PATH: &'static str = "v1/logs";

    fn request(resource: &Resource, log_records: Vec<Self>) -> Vec<u8> {
        let records = ScopeLogs { scope: Some(scope()), log_records, ..Default::default() };
        let resource = Some(resource.clone());
        let all = ResourceLogs { resource, scope_logs: vec![records], ..Default::default() };
        ExportLogsServiceRequest { resource_logs: vec![all] }.encode_to_vec()
    }
}

/// The sending end of a queue. Cheap to clone; never waits.
#[derive(Debug)]
pub(crate) struct Queue<T>(mpsc::Sender<T>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Item> Queue<T> {
    pub(crate) fn put(&self, item: T) {
        if self.0.try_send(item).is_err() {
            metrics::TELEMETRY_LOST.add([T::SIGNAL as usize], 1);
        }
    }
}

/// A text as the value of an attribute.
pub(crate) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.into()))
}

/// A number as the value of an attribute.
pub(crate) fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, any_value::Value::IntValue(value))
}

pub(crate) fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..Default::default() }
}

/// Everything on its way to a collector.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    spans: Option<SpanQueue>,
    lines: Option<Lines>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Collector {
    /// Begins to send; nothing at all without an address. Must be called within a Tokio runtime.
    pub(crate) fn start(args: &CollectorArgs) -> Outcome<Self> {
        let Some(endpoint) = &args.otlp_endpoint else { return Ok(Self::default()) };
        let line = Arc::new(Line::new(args)?);
        let mut all = Self::default();
        let base = endpoint.as_str().trim_end_matches('/');
        if args.traces_exporter == Sent::Otlp {
            let queue = all.begin::<Span>(&line, base)?;
            all.spans = Some(SpanQueue::new(queue, Sampler::of(args)));
        }
        if args.logs_exporter == Sent::Otlp {
            all.lines = Some(Lines::new(all.begin::<LogRecord>(&line, base)?));
        }
        Ok(all)
    }

    fn begin<T: Item>(&mut self, line: &Arc<Line>, base: &str) -> Outcome<Queue<T>> {
        let uri = format!("{base}/{}", T::PATH).parse();
        let uri = uri
            .context("`OTEL_EXPORTER_OTLP_ENDPOINT` is no address")
            .map_err(Failure::settings)?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (line, stop) = (Arc::clone(line), self.stop.clone());
        let task = Sending { line, uri, receiver, stop, failing: false };
        self.tasks.spawn(task.run());
        Ok(Queue(sender))
    }

    /// Where spans go, if anywhere.
    pub(crate) fn spans(&self) -> Option<Arc<dyn Spans>> {
        self.spans.clone().map(|spans| Arc::new(spans) as Arc<dyn Spans>)
    }

    /// Where log lines go besides, if anywhere.
    pub(crate) fn lines(&self) -> Option<Lines> {
        self.lines.clone()
    }

    /// Sends what is left, within a bound.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST, ending).await;
    }
}

/// How the collector is spoken to.
struct Line {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
    resource: Resource,
}

impl Line {
    fn new(args: &CollectorArgs) -> Outcome<Self> {
        let https =
            HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1().build();
        let mut headers = HeaderMap::new();
        let told = args.headers().map_err(|words| Failure::settings(anyhow::anyhow!(words)))?;
        for (name, value) in told.0 {
            let (Ok(name), Ok(mut value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(&value))
            else {
                let words = format!("`OTEL_EXPORTER_OTLP_HEADERS`: `{name}` cannot be a header");
                return Err(Failure::settings(anyhow::anyhow!(words)));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let mut attributes = vec![
            text("service.name", args.service_name.as_str()),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", uuid::Uuid::now_v7().to_string()),
        ];
        let more = args.resource_attributes.iter().flat_map(|pairs| &pairs.0);
        attributes.extend(more.map(|(name, value)| text(name, value.as_str())));
        let resource = Resource { attributes, ..Default::default() };
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(Self { client, headers, resource })
    }

    /// Sends once; an error says whether it is worth another try, and what went wrong.
    async fn post(&self, uri: &Uri, body: Bytes) -> Result<(), (bool, String)> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        request.headers_mut().extend(self.headers.clone());
        let status = match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Ok(Ok(response)) => response.status(),
            Ok(Err(error)) if error.is_connect() => {
                return Err((true, "it cannot be reached".to_owned()));
            }
            Ok(Err(_)) => return Err((true, "it broke off the connection".to_owned())),
            Err(_) => return Err((true, "it does not answer in time".to_owned())),
        };
        let again = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        match status {
            status if status.is_success() => Ok(()),
            status => Err((again.contains(&status), format!("it answers {status}"))),
        }
    }
}

/// The task that sends one signal.
struct Sending<T> {
    line: Arc<Line>,
    uri: Uri,
    receiver: mpsc::Receiver<T>,
    stop: CancellationToken,
    failing: bool,
}

impl<T: Item> Sending<T> {
    async fn run(mut self) {
        loop {
            let mut items = Vec::new();
            tokio::select! {
                biased;
                count = self.receiver.recv_many(&mut items, BATCH) => if count == 0 { return },
                () = self.stop.cancelled(), if !self.receiver.is_closed() => {
                    self.receiver.close();
                    continue;
                }
            }
            self.fill(&mut items).await;
            let count = items.len() as u64;
            let body = T::request(&self.line.resource, items);
            let sent = self.send(body.into()).await;
            let (told, signal) = (
                if sent.is_ok() { &metrics::TELEMETRY_SENT } else { &metrics::TELEMETRY_LOST },
                T::SIGNAL,
            );
            told.add([signal as usize], count);
            self.tell(sent.err());
        }
    }

    /// Waits a little for more.
    async fn fill(&mut self, items: &mut Vec<T>) {
        let stop = self.stop.clone();
        let filling = async {
            while items.len() < BATCH {
                let room = BATCH - items.len();
                if self.receiver.recv_many(items, room).await == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            () = filling => {}
            () = tokio::time::sleep(FILLS) => {}
            () = stop.cancelled() => {}
        }
    }

    async fn send(&self, body: Bytes) -> Result<(), String> {
        for pause in PAUSES {
            match self.line.post(&self.uri, body.clone()).await {
                Ok(()) => return Ok(()),
                Err((false, why)) => return Err(why),
                Err((true, _)) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.line.post(&self.uri, body).await.map_err(|(_, why)| why)
    }

    /// Says that the collector takes nothing, once, and that it does again.
    fn tell(&mut self, why: Option<String>) {
        let failing = why.is_some();
        if std::mem::replace(&mut self.failing, failing) == failing {
            return;
        }
        let signal = T::SIGNAL.as_str();
        if let Some(why) = why {
            warn!(
                signal, %why,
                "The OpenTelemetry collector takes nothing; what it misses is counted in sluice_telemetry_lost_total"
            );
        } else {
            info!(signal, "The OpenTelemetry collector takes what it is sent again");
        }
    }
}
