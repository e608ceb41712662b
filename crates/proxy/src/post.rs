//! POST: one message of a client, checked from the outside in.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use sluice_domain::{CallId, Code, Outcome};
use sluice_mcp::{
    Envelope, Era, Kind, Malformed, MethodGroup, MethodKind, RawId, classify_method, codes,
    decide_era,
};

use crate::exchange::{Exchange, Refusal};
use crate::gate::{self, Admitted, Security};
use crate::headers;
use crate::open_count::OpenPlace;
use crate::record::Recorder;
use crate::respond::Form;
use crate::session::{Found, Session};
use crate::state::{Inner, ProxyState};
use crate::trace::{self, Traced};
use crate::{call, follow, methods, page, pass};

/// How many times its bound a body may be before it is not read to its end.
const DROPPED: usize = 8;
/// What is read of the body of a request that is not let in, and for how long.
const DISCARDED: usize = 8 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Everything about a request that is known before its body is.
struct Incoming<'a> {
    inner: &'a Arc<Inner>,
    form: Form,
    admitted: &'a Admitted,
    headers: &'a HeaderMap,
}

pub(crate) async fn post(state: &ProxyState, server: &str, request: Request) -> Response {
    let inner = &state.0;
    let (mut parts, body) = request.into_parts();
    let form = Form::of(CallId::new(), &parts.headers);
    trace::is_current(form.id, None);
    let at = (inner.clock)();
    let admitted = match gate::admit(inner, server, &parts, form).await {
        Ok(admitted) => admitted,
        Err(response) => {
            discard(body).await;
            return response;
        }
    };
    let mut recorder = Recorder::new(inner.calls.clone(), form.id, at, &admitted.entry.route);
    if let Some(spans) = &inner.spans {
        recorder.trace(Traced::begin(spans, form.id, &mut parts.headers));
    }
    let address = admitted.address.map(|address| address.to_string());
    recorder.note(|record| record.client_address = address);
    let incoming = Incoming { inner, form, admitted: &admitted, headers: &parts.headers };
    let grant = admitted.entry.route.record.grant.id;
    let Some(place) = inner.open.enter(grant, inner.options.max_open_per_grant) else {
        discard(body).await;
        return incoming.too_many(recorder);
    };
    match incoming.read(body).await {
        Ok(body) => incoming.message(body, recorder, place).await,
        Err((status, message)) => {
            recorder.outcome(Outcome::Rejected, Code::Malformed, message);
            form.plain_error(status, codes::INVALID_REQUEST, message)
        }
    }
}

/// Reads and drops a body, within reason: a client that is still sending when the connection closes does
/// not see the answer.
async fn discard(mut body: Body) {
    let reading = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

impl Incoming<'_> {
    fn too_many(&self, mut recorder: Recorder) -> Response {
        let message = "this grant has too many requests open at once";
        recorder.outcome(Outcome::Rejected, Code::RateLimited, message);
        let status = StatusCode::TOO_MANY_REQUESTS;
        let mut response = self.form.plain_error(status, codes::INTERNAL_ERROR, message);
        response.headers_mut().insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
        response
    }

    /// The whole body, within its bounds and not coded.
    async fn read(&self, body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
        if !headers::is_identity(self.headers) {
            let message = "request bodies with a Content-Encoding are not accepted";
            discard(body).await;
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        if !headers::is_utf8_json(self.headers) {
            let message = "the Content-Type must be application/json, in UTF-8";
            discard(body).await;
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let reading = self.bounded(body);
        match tokio::time::timeout(self.inner.options.request_timeout, reading).await {
            Ok(read) => read,
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the request body took too long")),
        }
    }

    /// The body up to its bound. What is beyond is read and dropped, within reason: a client that is
    /// still sending when the connection closes does not see the answer.
    async fn bounded(&self, mut body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
        let limit = self.inner.options.max_request_bytes;
        let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "the request body is too large");
        let told =
            self.headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let told: usize = told.unwrap_or(0);
        if told > limit && (told > limit * DROPPED || self.headers.contains_key(header::EXPECT)) {
            return Err(too_large);
        }
        let mut kept = BytesMut::with_capacity(told.min(limit));
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let broken = |_| (StatusCode::BAD_REQUEST, "the request body broke off");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            length += data.len();
            if length <= limit {
                kept.extend_from_slice(&data);
            } else if length > limit * DROPPED {
                break;
            }
        }
        if length > limit { Err(too_large) } else { Ok(kept.freeze()) }
    }

    async fn message(&self, body: Bytes, mut recorder: Recorder, place: OpenPlace) -> Response {
        let size = i64::try_from(body.len()).unwrap_or(i64::MAX);
        recorder.note(|record| record.request_bytes = size);
        let (body, shown) = self.to_upstream(body);
        let (envelope, era) = match self.understood(&body) {
            Ok(read) => read,
            Err(error) => {
                let method = error.method.as_deref().unwrap_or_default();
                recorder.method(method, error.tool.as_deref());
                recorder.outcome(Outcome::Rejected, Code::Malformed, error.message);
                return self.form.malformed(&error);
            }
        };
        let tool = envelope.tool.as_ref().map(|tool| &*tool.name);
        recorder.method(&envelope.method, tool);
        let session = match self.session(era, &envelope).await {
            Ok(session) => session,
            Err(response) => {
                recorder.outcome(Outcome::Rejected, Code::Malformed, "session not found");
                return response;
            }
        };
        let exchange = Box::new(Exchange {
            inner: Arc::clone(self.inner),
            form: self.form,
            entry: Arc::clone(&self.admitted.entry),
            token: self.admitted.token,
            headers: self.headers,
            envelope: &envelope,
            era,
            body: body.clone(),
            session,
            open: None,
            place,
            recorder,
            release: None,
            rounds: 0,
            shown,
        });
        self.dispatch(exchange).await
    }

    fn understood<'b>(&self, body: &'b [u8]) -> Result<(Envelope<'b>, Era), Malformed> {
        let envelope = sluice_mcp::read(body)?;
        let era = self.era(&envelope)?;
        Ok((envelope, era))
    }

    /// The message without what its client says to the gateway itself, and what that is.
    fn to_upstream(&self, body: Bytes) -> (Bytes, Option<page::Shown>) {
        if !page::may_be_shown(self.headers, &body) {
            return (body, None);
        }
        let read = self.understood(&body);
        let shown = read.ok().and_then(|(envelope, era)| page::shown(&envelope, era));
        match shown.and_then(|shown| Some((page::without_ours(&body)?, shown))) {
            Some((body, shown)) => (body.into(), Some(shown)),
            None => (body, None),
        }
    }

    /// The era, once; an error where headers and body disagree.
    fn era(&self, envelope: &Envelope<'_>) -> Result<Era, Malformed> {
        let refused = |code, message| Malformed {
            code,
            message,
            id: envelope.id.map(|id| id.as_str().to_owned()),
            method: Some(envelope.method.clone().into_owned()),
            tool: envelope.tool.as_ref().map(|tool| tool.name.clone().into_owned()),
        };
        let twice = "a routing header occurs more than once or is not text";
        let routing =
            headers::routing(self.headers).map_err(|_| refused(codes::HEADER_MISMATCH, twice))?;
        let era = decide_era(envelope, routing)
            .map_err(|problem| refused(problem.code, problem.message))?;
        if era == Era::Modern && !self.params_agree(envelope) {
            let message = "an Mcp-Param header and the argument that it repeats differ";
            return Err(refused(codes::HEADER_MISMATCH, message));
        }
        Ok(era)
    }

    /// Whether each header that repeats an argument is there once and says what the argument does.
    fn params_agree(&self, envelope: &Envelope<'_>) -> bool {
        let route = &self.admitted.entry.route;
        headers::params_once(self.headers)
            && !envelope
                .tool
                .as_ref()
                .is_some_and(|tool| route.header_differs(&tool.name, self.headers, tool.arguments))
    }

    /// The session that the request names.
    async fn session(
        &self,
        era: Era,
        envelope: &Envelope<'_>,
    ) -> Result<Option<Arc<Session>>, Response> {
        let named = self.headers.get(headers::SESSION).and_then(|value| value.to_str().ok());
        let Some(named) = named.filter(|_| era == Era::Legacy) else { return Ok(None) };
        let id = envelope.id.map(RawId::as_str);
        find_session(self.inner, self.form, self.admitted, named, id).await.map(Some)
    }

    async fn dispatch(&self, mut exchange: Box<Exchange<'_>>) -> Response {
        let envelope = exchange.envelope;
        self.describe(&mut exchange);
        if !self.admitted.network {
            let message = "This grant may not be used from your network.";
            let refusal = Refusal::new(Outcome::Denied, Code::NetworkNotAllowed, "", message);
            return exchange.refuse(&refusal);
        }
        if envelope.kind == Kind::Response {
            return Box::pin(self.client_answer(exchange)).await;
        }
        let settings = &self.admitted.entry.route.record.server.settings;
        if let Some(refusal) = methods::refusal(settings, envelope) {
            return exchange.refuse(&refusal);
        }
        if let Some(refusal) = self.task_refusal(&exchange).await {
            return exchange.refuse(&refusal);
        }
        if let (Kind::Request, Some(id), Some(session)) =
            (envelope.kind, envelope.id, exchange.session.clone())
        {
            exchange.open = session.open(id);
            if exchange.open.is_none() {
                let message = "a request with this id is open in this session";
                let refusal = Refusal::new(Outcome::Rejected, Code::Malformed, "", message);
                return self.id_in_use(exchange, &refusal);
            }
        }
        if let Some(cancels) = envelope.cancels {
            self.cancel(&exchange, cancels).await;
        }
        match &envelope.tool {
            Some(tool) => call::call(exchange, tool).await,
            None if envelope.kind == Kind::Notification => Box::pin(self.quietly(exchange)).await,
            None => Box::pin(pass::forward(exchange, None)).await,
        }
    }

    /// The client gives up on a request.
    async fn cancel(&self, exchange: &Exchange<'_>, id: RawId<'_>) {
        let sessions = &self.inner.sessions;
        match &exchange.session {
            Some(session) => sessions.cancel(session, id).await,
            None => sessions.give_up(&exchange.scope(), id, (self.inner.clock)()).await,
        }
    }

    /// What the log keeps of who asks.
    fn describe(&self, exchange: &mut Exchange<'_>) {
        let client = exchange.client_name().map(|name| name.chars().take(256).collect());
        let header = self.headers.get(headers::VERSION).and_then(|value| value.to_str().ok());
        let asked = exchange.envelope.initialize_version.as_deref();
        let version = header.or(asked).map(|version| version.chars().take(32).collect());
        let session = exchange.session.as_ref().map(|session| session.id.clone());
        exchange.recorder.note(|record| {
            record.client_name = client;
            record.protocol_version = version;
            record.session = session;
        });
    }

    fn id_in_use(&self, mut exchange: Box<Exchange<'_>>, refusal: &Refusal) -> Response {
        exchange.recorder.outcome(refusal.outcome, refusal.code, &refusal.message);
        self.form.malformed(&Malformed {
            code: codes::INVALID_REQUEST,
            message: "a request with this id is open in this session",
            id: exchange.raw_id().map(str::to_owned),
            method: None,
            tool: None,
        })
    }

    /// Tasks are their grant's alone; a list without a session would show those of others.
    async fn task_refusal(&self, exchange: &Exchange<'_>) -> Option<Refusal> {
        let envelope = exchange.envelope;
        if classify_method(&envelope.method) != MethodKind::Request(MethodGroup::Tasks) {
            return None;
        }
        let fine = match &envelope.subject {
            Some(task) => {
                let in_session = exchange.session.is_some();
                follow::may_use_task(self.inner, &exchange.entry, task, in_session).await
            }
            None => exchange.session.is_some(),
        };
        let message = "Task not found";
        let refused = || Refusal::new(Outcome::Denied, Code::MethodNotAllowed, "(task)", message);
        (!fine).then(refused)
    }

    /// The client's answer to a request of the server: only for one that was sent to it.
    async fn client_answer(&self, mut exchange: Box<Exchange<'_>>) -> Response {
        if page::answered(&exchange).await {
            exchange.recorder.only_failures();
            return pass::accepted(&exchange);
        }
        let scope = exchange.scope();
        let issued = match exchange.envelope.id {
            Some(id) if !exchange.modern() => self.inner.sessions.take_issued(&scope, id).await,
            _ => Ok(false),
        };
        match issued {
            Ok(true) => self.quietly(exchange).await,
            Ok(false) => {
                let message = "nobody asked this client anything with this id";
                exchange.recorder.outcome(Outcome::Rejected, Code::Malformed, message);
                self.form.plain_error(StatusCode::BAD_REQUEST, codes::INVALID_REQUEST, message)
            }
            Err(_) => {
                let message = "the gateway cannot look up its sessions at the moment";
                exchange.recorder.outcome(Outcome::Failed, Code::LimitsUnavailable, message);
                self.form.unavailable(None, "limits_unavailable", message)
            }
        }
    }

    /// Forwards what has no answer; only a failure is logged.
    async fn quietly(&self, mut exchange: Box<Exchange<'_>>) -> Response {
        exchange.recorder.only_failures();
        pass::forward(exchange, None).await
    }
}

/// Finds a session for a grant; the answer where there is none.
pub(crate) async fn find_session(
    inner: &Arc<Inner>,
    form: Form,
    admitted: &Admitted,
    named: &str,
    id: Option<&str>,
) -> Result<Arc<Session>, Response> {
    match inner.sessions.find(named, &admitted.entry).await {
        Ok(Found::Session(session)) => Ok(session),
        Ok(Found::Gone) => Err(form.no_session(id)),
        Ok(Found::Foreign) => {
            let record = &admitted.entry.route.record;
            let whose = (record.workspace, record.grant.id);
            let security = Security { inner, form, address: admitted.address };
            let kind = sluice_domain::SecurityKind::ForeignSession;
            security.log(kind, Some(whose), "a session of another grant");
            Err(form.no_session(id))
        }
        Err(_) => {
            let message =
                "the gateway cannot look up its sessions at the moment; nothing was forwarded";
            Err(form.unavailable(id, "limits_unavailable", message))
        }
    }
}
