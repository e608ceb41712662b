//! A body that may not stay silent for too long.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

/// Why an upstream's answer ended early.
#[derive(Debug, thiserror::Error)]
pub enum IdleError {
    #[error("the server went silent")]
    Silent,
    #[error("the answer broke off")]
    Cut(#[source] hyper::Error),
}

/// An upstream's answer with a bound on the silence between two pieces of it. Dropping it before
/// its end closes the connection.
#[derive(Debug)]
pub struct IdleBody {
    inner: Incoming,
    bound: Duration,
    timer: Pin<Box<Sleep>>,
}

impl IdleBody {
    /// Must be made within a Tokio runtime.
    pub fn new(inner: Incoming, bound: Duration) -> Self {
        Self { inner, bound, timer: Box::pin(tokio::time::sleep(bound)) }
    }
}

impl Body for IdleBody {
    type Data = Bytes;
    type Error = IdleError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IdleError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            if let Some(deadline) = Instant::now().checked_add(this.bound) {
                this.timer.as_mut().reset(deadline);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(IdleError::Cut)));
        }
        this.timer.as_mut().poll(context).map(|()| Some(Err(IdleError::Silent)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
