//! The stream that is opened for a client while its call waits for a person.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;
use sluice_domain::CallId;
use sluice_mcp::sse_event;
use sluice_policy::Decision;
use tokio::sync::mpsc;

use crate::approve::settle;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::headers::{self, BUFFERING, REQUEST_ID};
use crate::respond::request_id;

/// How often a waiting client is told that it waits.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Tells a waiting client that the gateway still waits, on the stream that was opened for it.
pub(crate) struct Progress {
    /// Raw text of the client's progress token, if it gave one.
    token: Option<String>,
    out: mpsc::Sender<Bytes>,
}

impl Progress {
    pub(crate) async fn tell(&self, count: u32) {
        let Some(token) = &self.token else { return };
        let message = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{count},\"message\":\"Waiting for approval\"}}}}"
        );
        self.say(message.as_bytes()).await;
    }

    /// Sends the client a message.
    pub(crate) async fn say(&self, message: &[u8]) {
        let _ = self.out.send(sse_event(message).into()).await;
    }
}

/// Opens the answer's stream at once, so that progress can be told and pages can be asked for on it.
pub(crate) fn streamed(exchange: Box<Exchange<'_>>, decision: Decision) -> Response {
    let token = exchange.envelope.progress_token.map(str::to_owned);
    let (out, events) = mpsc::channel::<Bytes>(16);
    let id = exchange.form.id;
    let headers = exchange.headers.clone();
    let Exchange {
        inner,
        form,
        entry,
        token: hash,
        era,
        body,
        session,
        open,
        place,
        recorder,
        shown,
        ..
    } = *exchange;
    let work = async move {
        // The same bytes, read again: the first reading borrowed from the request.
        let Ok(envelope) = sluice_mcp::read(&body) else { return };
        let Some(tool) = envelope.tool.clone() else { return };
        let progress = Progress { token, out: out.clone() };
        let failed = || {
            Failure::NotMcp.answer(
                envelope.id.map(sluice_mcp::RawId::as_str),
                &id.to_string(),
                true,
            )
        };
        let exchange = Box::new(Exchange {
            inner,
            form,
            entry,
            token: hash,
            headers: &headers,
            envelope: &envelope,
            era,
            body: body.clone(),
            session,
            open,
            place,
            recorder,
            release: None,
            rounds: 0,
            shown,
        });
        // Dropped as soon as the client has gone, which ends the wait but not the approval.
        tokio::select! {
            () = out.closed() => {}
            response = settle(exchange, &decision, &tool, Some(&progress)) => {
                retell(response, &out, failed).await;
            }
        }
    };
    tokio::spawn(work);
    opened(events, id)
}

/// The answer that streams what is sent.
fn opened(events: mpsc::Receiver<Bytes>, id: CallId) -> Response {
    let body = stream::unfold(events, |mut events| async move {
        let next = events.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(next), events))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    headers.insert(REQUEST_ID, request_id(id));
    response
}

/// Passes a finished answer on over a stream that is open already: JSON becomes one event.
async fn retell(response: Response, out: &mpsc::Sender<Bytes>, failed: impl Fn() -> Vec<u8>) {
    let media = headers::media_type(response.headers()).unwrap_or_default();
    let mut body = response.into_body();
    if media != "text/event-stream" {
        let message = match body.collect().await {
            Ok(collected) if media == "application/json" => collected.to_bytes(),
            _ => failed().into(),
        };
        let _ = out.send(sse_event(&message).into()).await;
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data()
            && out.send(data).await.is_err()
        {
            return;
        }
    }
}
