//! GET and DELETE: the session's own stream, and its end.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sluice_domain::CallId;
use sluice_mcp::{Era, codes};

use crate::carry;
use crate::failure::Failure;
use crate::filter::{AnswerFilter, Asked};
use crate::forward::{self, Patience, UpstreamBody};
use crate::gate::{self, Admitted};
use crate::headers::{self, REQUEST_ID, SESSION};
use crate::post::find_session;
use crate::pump::{self, Plan};
use crate::respond::{Form, request_id};
use crate::session::Session;
use crate::state::{Inner, ProxyState};
use crate::watch::Watch;

/// The first version without sessions and streams of their own.
const FIRST_STATELESS: &str = "2026-07-28";

/// What a session's stream is told when the grant's list of tools changes.
const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// A request without a body, let in, and its session.
struct Opened {
    form: Form,
    admitted: Admitted,
    session: Option<Arc<Session>>,
    headers: HeaderMap,
}

async fn open(inner: &Arc<Inner>, server: &str, request: Request) -> Result<Opened, Response> {
    let (parts, _) = request.into_parts();
    let form = Form::of(CallId::new(), &HeaderMap::new());
    let admitted = gate::admit(inner, server, &parts, form).await?;
    if !admitted.network {
        let message = "this grant may not be used from your network";
        return Err(form.plain_error(StatusCode::FORBIDDEN, codes::INVALID_REQUEST, message));
    }
    let routing = headers::routing(&parts.headers).map_err(|_| {
        let message = "a routing header occurs more than once or is not text";
        form.plain_error(StatusCode::BAD_REQUEST, codes::HEADER_MISMATCH, message)
    })?;
    // The stateless era has one method, POST.
    if routing
        .version
        .is_some_and(|version| version.len() == FIRST_STATELESS.len() && version >= FIRST_STATELESS)
    {
        let message = "this protocol version uses POST alone";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut response = form.plain_error(status, codes::INVALID_REQUEST, message);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return Err(response);
    }
    let session = match routing.session {
        Some(named) => Some(find_session(inner, form, &admitted, named, None).await?),
        None => None,
    };
    if session.is_none() {
        may_resume(inner, form, &admitted, &parts.headers).await?;
    }
    Ok(Opened { form, admitted, session, headers: parts.headers })
}

/// Outside a session only its own grant may take a stream up again: the id of an event is no secret.
async fn may_resume(
    inner: &Inner,
    form: Form,
    admitted: &Admitted,
    headers: &HeaderMap,
) -> Result<(), Response> {
    let Some(last) = headers.get(headers::LAST_EVENT) else { return Ok(()) };
    match inner.sessions.was_sent(&admitted.entry, last.as_bytes()).await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = "no stream of this grant has an event with this Last-Event-ID";
            Err(form.plain_error(StatusCode::BAD_REQUEST, codes::INVALID_REQUEST, message))
        }
        Err(_) => {
            let message = "the gateway cannot look up its streams at the moment";
            Err(form.unavailable(None, "limits_unavailable", message))
        }
    }
}

impl Opened {
    async fn send(&self, inner: &Inner, method: Method) -> Result<Response<UpstreamBody>, Failure> {
        let entry = &self.admitted.entry;
        if let Some(session) = &self.session {
            let bridged = if method == Method::GET {
                carry::listen(inner, session).await
            } else {
                carry::end(inner, session).await
            };
            if let Some(carried) = bridged {
                let response = carried?;
                self.forget_if_gone(inner, response.status()).await;
                return Ok(response);
            }
        } else if carry::only_bridged(inner, entry) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            return Ok(response);
        }
        let target = entry.route.target.as_ref().ok_or(Failure::UNUSABLE)?;
        let upstream = self.session.as_ref().map(|session| &session.upstream);
        let headers = headers::up(&self.headers, Era::Legacy, upstream);
        let response = forward::send(inner, target, method, headers, Bytes::new(), None).await?;
        self.forget_if_gone(inner, response.status()).await;
        Ok(response)
    }

    async fn forget_if_gone(&self, inner: &Inner, status: StatusCode) {
        if status == StatusCode::NOT_FOUND
            && let Some(session) = &self.session
        {
            inner.sessions.forget(session).await;
        }
    }

    fn fail(&self, failure: Failure) -> Response {
        let body = failure.answer(None, &self.form.id.to_string(), false);
        self.form.message(StatusCode::BAD_GATEWAY, body)
    }

    fn headers(&self, upstream: &HeaderMap) -> HeaderMap {
        let mut out = headers::down(upstream);
        if let Some(session) = &self.session
            && upstream.get(SESSION) == Some(&session.upstream)
            && let Ok(id) = HeaderValue::from_str(&session.id)
        {
            out.insert(SESSION, id);
        }
        out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        out.insert(REQUEST_ID, request_id(self.form.id));
        out
    }

    /// An answer that is no stream, with its body.
    async fn plain(&self, inner: &Inner, response: Response<UpstreamBody>) -> Response {
        let status = response.status();
        if status.is_server_error() {
            return self.fail(Failure::NotMcp);
        }
        let mut headers = self.headers(response.headers());
        let patience = Patience::of(&self.admitted.entry);
        let mut share = inner.budget.share();
        let body = match forward::collect(inner, response, patience, &mut share).await {
            Ok(forward::Collected::Whole(pieces, length)) => forward::joined(pieces, length),
            Ok(forward::Collected::Part(..)) => return self.fail(Failure::TooLarge),
            Err(failure) => return self.fail(failure),
        };
        if body.is_empty() {
            headers.remove(header::CONTENT_TYPE);
        }
        let mut out = Response::new(Body::from(body));
        *out.status_mut() = status;
        *out.headers_mut() = headers;
        out
    }
}

/// GET: the stream on which a legacy server speaks by itself, or on which a client takes up an old one.
pub(crate) async fn get(state: &ProxyState, server: &str, request: Request) -> Response {
    let inner = &state.0;
    let opened = match open(inner, server, request).await {
        Ok(opened) => opened,
        Err(response) => return response,
    };
    let entry = &opened.admitted.entry;
    let grant = entry.route.record.grant.id;
    let Some(place) = inner.open.enter(grant, inner.options.max_open_per_grant) else {
        let message = "this grant has too many requests open at once";
        let status = StatusCode::TOO_MANY_REQUESTS;
        return opened.form.plain_error(status, codes::INTERNAL_ERROR, message);
    };
    let response = match opened.send(inner, Method::GET).await {
        Ok(response) => response,
        Err(failure) => return opened.fail(failure),
    };
    let events = headers::media_type(response.headers()).as_deref() == Some("text/event-stream");
    if !(response.status() == StatusCode::OK && events) {
        return if response.status().is_success() {
            opened.fail(Failure::NotMcp)
        } else {
            opened.plain(inner, response).await
        };
    }
    let headers = opened.headers(response.headers());
    let plan = Plan {
        inner: Arc::clone(inner),
        watch: Watch::new(
            Arc::clone(inner),
            opened.admitted.token,
            Arc::clone(entry),
            opened.session.clone(),
            true,
        ),
        id: None,
        filter: AnswerFilter::new(Arc::clone(inner), Era::Legacy, Asked::Lists),
        follow: None,
        announce: opened
            .session
            .as_ref()
            .filter(|session| session.announces())
            .map(|_| LIST_CHANGED.to_owned()),
        scope: crate::exchange::scope(opened.session.as_ref(), entry),
        recorder: None,
        open: None,
        place,
        release: None,
        patience: Patience::ENDLESS,
        call: false,
    };
    let mut out = Response::new(pump::body(plan, response.into_body()));
    *out.headers_mut() = headers;
    out
}

/// DELETE: the client ends its session.
pub(crate) async fn delete(state: &ProxyState, server: &str, request: Request) -> Response {
    let inner = &state.0;
    let opened = match open(inner, server, request).await {
        Ok(opened) => opened,
        Err(response) => return response,
    };
    match opened.send(inner, Method::DELETE).await {
        Ok(response) => {
            if let Some(session) =
                opened.session.as_ref().filter(|_| response.status().is_success())
            {
                inner.sessions.forget(session).await;
            }
            opened.plain(inner, response).await
        }
        Err(failure) => opened.fail(failure),
    }
}

/// Ends a session at its upstream, because nobody used it any more.
pub(crate) async fn end_upstream(inner: &Inner, session: &Arc<Session>) {
    if carry::end(inner, session).await.is_some() {
        return;
    }
    let mut headers = HeaderMap::new();
    headers.insert(SESSION, session.upstream.clone());
    if let Some(version) = session.version.as_deref().and_then(|v| HeaderValue::from_str(v).ok()) {
        headers.insert(headers::VERSION, version);
    }
    let entry = session.entry.load_full();
    let Some(target) = &entry.route.target else { return };
    let sent = forward::send(inner, target, Method::DELETE, headers, Bytes::new(), None).await;
    if let Err(failure) = sent {
        tracing::debug!(server = %session.server, ?failure, "Could not end an idle session upstream");
    }
}
