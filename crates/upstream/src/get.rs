//! Documents of others, such as a registry's pages: one GET over a checked connection, read whole
//! within bounds. A redirect is an answer like any other.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use sluice_domain::{ServerId, Transport};
use url::Url;
use uuid::Uuid;

use crate::send::{Prepared, SendError, Upstream};
use crate::target::Target;

const CONNECT: Duration = Duration::from_secs(10);

/// What is to be read.
#[derive(Debug, Clone)]
pub struct Get {
    /// Whose connections are shared.
    pub owner: Uuid,
    pub url: Url,
    /// The most bytes of the answer.
    pub most: usize,
    /// How long all of it may take.
    pub time: Duration,
}

/// An answer, read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    pub status: u16,
    pub body: Bytes,
}

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    #[error("{0}")]
    Send(#[source] SendError),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer was broken off")]
    Cut,
    #[error("the answer took longer than {} s", .0.as_secs())]
    Slow(Duration),
}

impl Upstream {
    /// Reads a document.
    pub async fn get(&self, get: &Get) -> Result<Got, GetError> {
        let reading = self.read_document(get);
        tokio::time::timeout(get.time, reading).await.unwrap_or(Err(GetError::Slow(get.time)))
    }

    async fn read_document(&self, get: &Get) -> Result<Got, GetError> {
        let target = Target {
            server: ServerId::from_uuid(get.owner),
            url: get.url.clone(),
            headers: Vec::new(),
            transport: Transport::StreamableHttp,
            connect_timeout: CONNECT,
            idle_timeout: get.time,
            revision: 0,
            prepared: Prepared::default(),
        };
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = Method::GET;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("sluice/", env!("CARGO_PKG_VERSION"))),
        );
        let response = self.send(&target, request).await.map_err(GetError::Send)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, get.most).collect().await.map_err(|error| {
            let large = error.downcast_ref::<LengthLimitError>().is_some();
            if large { GetError::TooLarge(get.most) } else { GetError::Cut }
        })?;
        Ok(Got { status: parts.status.as_u16(), body: body.to_bytes() })
    }
}
