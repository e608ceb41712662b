//! Forwards a message and passes the answer back in the form it came.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sluice_domain::{Code, OnUnavailable, Outcome};
use sluice_mcp::{Kind, MessageKind, Peek, RawId, member_text};

use crate::carry::Cargo;
use crate::decide::{self, Booking};
use crate::exchange::{Exchange, Refusal};
use crate::failure::Failure;
use crate::filter::ListFilter;
use crate::follow::Follow;
use crate::forward::{self, Collected, Patience, UpstreamBody};
use crate::headers::{self, REQUEST_ID, SESSION};
use crate::pump::{self, Plan};
use crate::respond::request_id;
use crate::session::Session;
use crate::watch::Watch;

/// Forwards a message whose charges are booked.
pub(crate) async fn forward(mut exchange: Exchange<'_>, booking: Option<Booking>) -> Response {
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
    let cargo = Cargo {
        inner: &inner,
        entry: &entry,
        envelope: exchange.envelope,
        era: exchange.era,
        session: exchange.session.as_ref(),
        headers: exchange.headers,
        body: exchange.body.clone(),
        patience,
    };
    let sent = cargo.send().await;
    let took = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.upstream_us = took);
    match sent {
        Ok(response) => answer(exchange, response, patience).await,
        Err(failure) => {
            if failure.may_have_run()
                || failure == Failure::Unauthorized
                || failure == Failure::Redirect
            {
                exchange.release = None;
            } else {
                give_back(&mut exchange, booking.as_ref()).await;
            }
            exchange.fail(failure)
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
    mut exchange: Exchange<'_>,
    response: Response<UpstreamBody>,
    patience: Patience,
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
        (StatusCode::OK, "application/json") => whole(exchange, response, patience, session).await,
        (status, _) if status.is_client_error() => {
            whole(exchange, response, patience, session).await
        }
        (status, "application/json") if status.is_server_error() => {
            whole(exchange, response, patience, session).await
        }
        _ => exchange.fail(Failure::NotMcp),
    }
}

/// A notification or an answer of the client got through.
fn accepted(exchange: &Exchange<'_>) -> Response {
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
    let envelope = exchange.envelope;
    let session = exchange
        .inner
        .sessions
        .bind(
            &upstream,
            envelope.client_name.as_deref(),
            envelope.initialize_version.as_deref(),
            &exchange.entry,
        )
        .await?;
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

fn filter(exchange: &Exchange<'_>) -> Option<ListFilter> {
    (exchange.envelope.method == "tools/list")
        .then(|| ListFilter::new(Arc::clone(&exchange.inner), exchange.era))
}

#[expect(clippy::needless_pass_by_value, reason = "both end here")]
fn stream(
    mut exchange: Exchange<'_>,
    response: Response<UpstreamBody>,
    patience: Patience,
    session: Option<Arc<Session>>,
) -> Response {
    let headers = down(&exchange, response.headers(), session.as_ref());
    let endless = listens(&exchange);
    if endless {
        exchange.recorder.answered();
    }
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
    mut exchange: Exchange<'_>,
    response: Response<UpstreamBody>,
    patience: Patience,
    session: Option<Arc<Session>>,
) -> Response {
    let inner = Arc::clone(&exchange.inner);
    let status = response.status();
    let headers = down(&exchange, response.headers(), session.as_ref());
    let mut share = inner.budget.share();
    let started = exchange.recorder.elapsed_us();
    let collected = forward::collect(&inner, response, patience, &mut share).await;
    let took = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.upstream_us += took);
    let (pieces, length) = match collected {
        Ok(Collected::Whole(pieces, length)) => (pieces, length),
        Ok(Collected::Part(held, rest)) if filter(&exchange).is_none() => {
            exchange.recorder.answered();
            let limit = inner.options.max_message_bytes;
            let mut out = Response::new(forward::passed_on(held, rest, patience, limit));
            *out.status_mut() = status;
            *out.headers_mut() = headers;
            return out;
        }
        Ok(Collected::Part(..)) => return exchange.fail(Failure::TooLarge),
        Err(failure) => return exchange.fail(failure),
    };
    if !status.is_client_error() && !is_answer(&pieces, exchange.raw_id()) {
        return exchange.fail(Failure::NotMcp);
    }
    let Ok(body) = filtered(&exchange, pieces, length) else {
        return exchange.fail(Failure::NotMcp);
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
    let mut out = Response::new(Body::from(body));
    *out.status_mut() = status;
    *out.headers_mut() = headers;
    out
}

/// Whether this answers the request: its result or error, or an error of a server that could not read
/// the id.
fn is_answer(pieces: &VecDeque<Bytes>, id: Option<&str>) -> bool {
    let mut peek = Peek::default();
    for piece in pieces {
        peek.feed(piece);
    }
    let Some(message) = peek.finish() else { return false };
    let unnamed = message.kind == MessageKind::Error && message.id.is_none();
    unnamed || id.and_then(RawId::parse).is_some_and(|id| message.answers(id))
}

fn filtered(
    exchange: &Exchange<'_>,
    pieces: VecDeque<Bytes>,
    length: usize,
) -> Result<Bytes, sluice_mcp::ListProblem> {
    let body = forward::joined(pieces, length);
    let Some(filter) = filter(exchange) else { return Ok(body) };
    match filter.apply(&body, &exchange.entry) {
        Ok(None) => Ok(body),
        Ok(Some(new)) => Ok(new.into()),
        Err(problem) => Err(problem),
    }
}
