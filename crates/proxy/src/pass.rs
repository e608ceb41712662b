//! Forwards a message and passes the answer back in the form it came.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sluice_domain::{Code, OnUnavailable, Outcome};
use sluice_mcp::{Kind, Message, MessageKind, Peek, member_text, string_value};

use crate::carry::Cargo;
use crate::decide::{self, Booking};
use crate::exchange::{Exchange, Refusal};
use crate::failure::Failure;
use crate::filter::{AnswerFilter, Asked};
use crate::follow::Follow;
use crate::forward::{self, Collected, Passing, Patience, UpstreamBody};
use crate::headers::{self, REQUEST_ID, SESSION};
use crate::pump::{self, Plan};
use crate::respond::request_id;
use crate::session::{Client, Session};
use crate::watch::Watch;

/// Forwards a message whose charges are booked.
pub(crate) async fn forward(mut exchange: Box<Exchange<'_>>, booking: Option<Booking>) -> Response {
    let inner = Arc::clone(&exchange.inner);
    let entry = Arc::clone(&exchange.entry);
    let logged = exchange.envelope.kind == Kind::Request;
    if logged
        && exchange.recorder.take_place().is_err()
        && inner.options.on_log_full == OnUnavailable::Deny
    {
        give_back(&mut exchange, booking.as_ref()).await;
        let message = "The call log cannot take this call at the moment, so it was not made.";
        return exchange.refuse(&Refusal::new(Outcome::Denied, Code::LogUnavailable, "", message));
    }
    let patience = patience(&exchange);
    let started = exchange.recorder.elapsed_us();
    exchange.recorder.sends(started);
    let cargo = Cargo {
        inner: &inner,
        entry: &exchange.entry,
        envelope: exchange.envelope,
        era: exchange.era,
        session: exchange.session.as_ref(),
        headers: exchange.headers,
        body: exchange.body.clone(),
        patience,
    };
    let mut watch =
        Watch::new(Arc::clone(&inner), exchange.token, entry, exchange.session.clone(), false);
    let sent = tokio::select! {
        biased;
        sent = cargo.send() => sent,
        () = watch.ended() => Err(Failure::Revoked),
    };
    let took = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.upstream_us = took);
    match sent {
        Ok(response) => answer(exchange, response, patience, watch).await,
        Err(failure) => {
            if failure.never_sent() {
                give_back(&mut exchange, booking.as_ref()).await;
            } else {
                exchange.release = None;
            }
            Box::pin(exchange.fail(failure)).await
        }
    }
}

/// The call never reached the upstream.
async fn give_back(exchange: &mut Exchange<'_>, booking: Option<&Booking>) {
    if let Some(booking) = booking {
        decide::refund(&exchange.inner, &exchange.entry.route, booking).await;
    }
    if let Some(release) = exchange.release.take() {
        release.not_run().await;
    }
}

fn patience(exchange: &Exchange<'_>) -> Patience {
    if listens(exchange) { Patience::ENDLESS } else { Patience::of(&exchange.entry) }
}

fn listens(exchange: &Exchange<'_>) -> bool {
    exchange.envelope.method == "subscriptions/listen"
}

/// Passes on what the upstream answered.
async fn answer(
    mut exchange: Box<Exchange<'_>>,
    response: Response<UpstreamBody>,
    patience: Patience,
    watch: Watch,
) -> Response {
    let status = response.status();
    exchange.recorder.note(|record| record.upstream_status = Some(i32::from(status.as_u16())));
    let media = headers::media_type(response.headers()).unwrap_or_default();
    if exchange.envelope.kind != Kind::Request && status.is_success() {
        return accepted(&exchange);
    }
    if status == StatusCode::NOT_FOUND
        && let Some(session) = &exchange.session
    {
        exchange.inner.sessions.forget(session).await;
    }
    let session = if status.is_success() {
        opened(&mut exchange, response.headers().get(SESSION).cloned()).await
    } else {
        exchange.session.clone()
    };
    match (status, media.as_str()) {
        (StatusCode::OK, "text/event-stream") => stream(exchange, response, patience, session),
        (StatusCode::OK, "application/json") => {
            whole(exchange, response, patience, session, watch).await
        }
        (status, _) if status.is_client_error() => {
            whole(exchange, response, patience, session, watch).await
        }
        (status, "application/json") if status.is_server_error() => {
            whole(exchange, response, patience, session, watch).await
        }
        _ => Box::pin(exchange.fail(Failure::NotMcp)).await,
    }
}

/// A notification or an answer of the client got through.
pub(crate) fn accepted(exchange: &Exchange<'_>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(REQUEST_ID, request_id(exchange.form.id));
    response
}

/// The session that goes with the answer: the request's, or a new one if the upstream opened one.
async fn opened(
    exchange: &mut Exchange<'_>,
    upstream: Option<HeaderValue>,
) -> Option<Arc<Session>> {
    if exchange.envelope.method != "initialize" || exchange.modern() {
        return exchange.session.clone();
    }
    let upstream = upstream?;
    let client = Client::of(exchange.envelope);
    let session = exchange.inner.sessions.bind(&upstream, client, &exchange.entry).await?;
    exchange.recorder.note(|record| record.session = Some(session.id.clone()));
    Some(session)
}

fn down(
    exchange: &Exchange<'_>,
    upstream: &HeaderMap,
    session: Option<&Arc<Session>>,
) -> HeaderMap {
    let mut out = headers::down(upstream);
    let theirs = upstream.get(SESSION);
    if let Some(session) = session.filter(|session| theirs == Some(&session.upstream))
        && let Ok(id) = HeaderValue::from_str(&session.id)
    {
        out.insert(SESSION, id);
    }
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    out.insert(REQUEST_ID, request_id(exchange.form.id));
    out
}

/// What is to be learned from the answer.
fn follow(exchange: &Exchange<'_>, session: Option<&Arc<Session>>) -> Option<Follow> {
    Follow::is_wanted(exchange.envelope).then(|| Follow {
        inner: Arc::clone(&exchange.inner),
        entry: Arc::clone(&exchange.entry),
        session: session.cloned(),
        modern: exchange.modern(),
        initialize: exchange.envelope.tool.is_none(),
        request: exchange.body.clone(),
        rounds: exchange.rounds,
    })
}

fn filter(exchange: &Exchange<'_>) -> AnswerFilter {
    let asked = match &*exchange.envelope.method {
        "tools/list" => Asked::Lists,
        "initialize" | "server/discover" => Asked::Hello,
        _ => Asked::Other,
    };
    AnswerFilter::new(Arc::clone(&exchange.inner), exchange.era, asked)
}

#[expect(clippy::needless_pass_by_value, reason = "both end here")]
fn stream(
    mut exchange: Box<Exchange<'_>>,
    response: Response<UpstreamBody>,
    patience: Patience,
    session: Option<Arc<Session>>,
) -> Response {
    let headers = down(&exchange, response.headers(), session.as_ref());
    let endless = listens(&exchange);
    if endless {
        exchange.recorder.answered();
    }
    exchange.recorder.streams();
    let inner = Arc::clone(&exchange.inner);
    let watch = Watch::new(
        Arc::clone(&inner),
        exchange.token,
        Arc::clone(&exchange.entry),
        session.clone(),
        endless,
    );
    let plan = Plan {
        watch,
        id: exchange.raw_id().map(str::to_owned),
        filter: filter(&exchange),
        follow: follow(&exchange, session.as_ref()),
        announce: announcement(&exchange),
        scope: crate::exchange::scope(session.as_ref(), &exchange.entry),
        call: exchange.envelope.tool.is_some(),
        recorder: Some(exchange.recorder),
        open: exchange.open,
        place: exchange.place,
        release: exchange.release,
        patience,
        inner,
    };
    let mut out = Response::new(pump::body(plan, response.into_body()));
    *out.headers_mut() = headers;
    out
}

/// What a `subscriptions/listen` stream is told when the grant's list of tools changes, if it asked for that.
fn announcement(exchange: &Exchange<'_>) -> Option<String> {
    let id = exchange.raw_id().filter(|_| listens(exchange))?;
    let wanted = member_text(exchange.envelope.params?, "notifications")?;
    (member_text(wanted, "toolsListChanged") == Some("true")).then(|| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}"
        )
    })
}

/// An answer that is read to its end before it is passed on.
async fn whole(
    mut exchange: Box<Exchange<'_>>,
    response: Response<UpstreamBody>,
    patience: Patience,
    session: Option<Arc<Session>>,
    mut watch: Watch,
) -> Response {
    let inner = Arc::clone(&exchange.inner);
    let status = response.status();
    let headers = down(&exchange, response.headers(), session.as_ref());
    let mut share = inner.budget.share();
    let started = exchange.recorder.elapsed_us();
    let collected = tokio::select! {
        biased;
        collected = forward::collect(&inner, response, patience, &mut share) => collected,
        () = watch.ended() => Err(Failure::Revoked),
    };
    let took = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.upstream_us += took);
    let found = match collected {
        Ok(Collected::Whole(pieces, length)) => {
            checked(&exchange, status, pieces, length, session.is_some()).await
        }
        Ok(Collected::Part(held, rest)) if !filter(&exchange).holds() => {
            let body = passing(exchange, status, held, rest, patience);
            return answered(status, headers, body);
        }
        Ok(Collected::Part(..)) => Err(Failure::TooLarge),
        Err(failure) => Err(failure),
    };
    let body = match found {
        Ok(body) => body,
        Err(failure) => return Box::pin(exchange.fail(failure)).await,
    };
    let status = if forgotten(&exchange, status, &body) {
        if let Some(session) = &exchange.session {
            inner.sessions.forget(session).await;
        }
        StatusCode::NOT_FOUND
    } else {
        status
    };
    if let Some(follow) = follow(&exchange, session.as_ref()) {
        follow.learn(&body).await;
    }
    exchange.recorder.answered();
    let bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
    exchange.recorder.note(|record| record.response_bytes = bytes);
    if let Some(release) = exchange.release.take() {
        release.ran(Some(body.clone())).await;
    }
    answered(status, headers, Body::from(share.keep(body)))
}

fn answered(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut out = Response::new(body);
    *out.status_mut() = status;
    *out.headers_mut() = headers;
    out
}

/// An answer that cannot be held, piece by piece.
fn passing(
    mut exchange: Box<Exchange<'_>>,
    status: StatusCode,
    held: VecDeque<Bytes>,
    rest: UpstreamBody,
    patience: Patience,
) -> Body {
    exchange.recorder.answered();
    let limit = exchange.inner.options.max_message_bytes;
    let id = exchange.raw_id().filter(|_| !status.is_client_error()).map(str::to_owned);
    let passing = Passing::new(id.as_deref(), limit, (exchange.place, exchange.open));
    forward::passed_on(held, rest, patience, passing)
}

/// The body as it may be passed on, if it is an answer to the request.
async fn checked(
    exchange: &Exchange<'_>,
    status: StatusCode,
    pieces: VecDeque<Bytes>,
    length: usize,
    session: bool,
) -> Result<Bytes, Failure> {
    let mut peek = Peek::default();
    for piece in &pieces {
        peek.feed(piece);
    }
    let message = peek.finish();
    let id = exchange.raw_id();
    let fits = |message: &Message| id.is_some_and(|id| forward::answers(message, id));
    let batch = message.as_ref().is_some_and(|message| message.kind == MessageKind::Batch);
    if batch || !(status.is_client_error() || message.as_ref().is_some_and(fits)) {
        return Err(Failure::NotMcp);
    }
    let body = forward::joined(pieces, length);
    let filter = filter(exchange);
    if !message.is_some_and(|message| filter.concerns(&message)) {
        return Ok(body);
    }
    match filter.apply(&body, &exchange.entry, session).await {
        Ok(None) => Ok(body),
        Ok(Some(new)) => Ok(new.into()),
        Err(_) => Err(Failure::NotMcp),
    }
}

/// Whether an upstream says that it does not know the session it was sent, in a way that clients do not
/// understand: the specification has 404 for that, and some servers answer 400.
fn forgotten(exchange: &Exchange<'_>, status: StatusCode, body: &[u8]) -> bool {
    if status != StatusCode::BAD_REQUEST || exchange.session.is_none() || body.len() > 64 * 1024 {
        return false;
    }
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let error = member_text(text, "error");
    let code = error.and_then(|error| member_text(error, "code"));
    let words = error.and_then(|error| member_text(error, "message")).and_then(string_value);
    let words = words.unwrap_or_default().to_ascii_lowercase();
    let unknown = ["no valid", "not found", "invalid", "unknown", "expired", "not exist"];
    matches!(code, Some("-32000" | "-32001" | "-32600"))
        && (words.contains("not initialized")
            || words.contains("session") && unknown.iter().any(|word| words.contains(word)))
}
