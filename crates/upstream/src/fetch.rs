//! Questions to services that the operator named, such as identity providers: one GET or one form over
//! a checked connection, the answer read whole within bounds. A redirect is an answer like any other.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use secrecy::{ExposeSecret, SecretString};
use sluice_domain::{ServerId, Transport};
use url::Url;
use uuid::Uuid;

use crate::get::{GetError, Got};
use crate::send::{Prepared, Upstream};
use crate::target::Target;

const CONNECT: Duration = Duration::from_secs(10);

/// What is asked.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Whose connections are shared.
    pub owner: Uuid,
    pub url: Url,
    /// Credentials and the like.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// A form to post; without one it is a GET.
    pub form: Option<SecretString>,
    /// The most bytes of the answer.
    pub most: usize,
    /// How long all of it may take.
    pub time: Duration,
}

impl Upstream {
    /// Asks, and reads the answer.
    pub async fn fetch(&self, fetch: &Fetch) -> Result<Got, GetError> {
        let asking = self.ask(fetch);
        tokio::time::timeout(fetch.time, asking).await.unwrap_or(Err(GetError::Slow(fetch.time)))
    }

    async fn ask(&self, fetch: &Fetch) -> Result<Got, GetError> {
        let target = Target {
            server: ServerId::from_uuid(fetch.owner),
            url: fetch.url.clone(),
            headers: fetch.headers.clone(),
            transport: Transport::StreamableHttp,
            connect_timeout: CONNECT,
            idle_timeout: fetch.time,
            revision: 0,
            prepared: Prepared::default(),
        };
        let body = fetch.form.as_ref().map(|form| Bytes::from(form.expose_secret().to_owned()));
        let mut request = Request::new(Full::new(body.unwrap_or_default()));
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("sluice/", env!("CARGO_PKG_VERSION"))),
        );
        if fetch.form.is_some() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, form);
            *request.method_mut() = Method::POST;
        }
        let response = self.send(&target, request).await.map_err(GetError::Send)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, fetch.most).collect().await.map_err(|error| {
            let large = error.downcast_ref::<LengthLimitError>().is_some();
            if large { GetError::TooLarge(fetch.most) } else { GetError::Cut }
        })?;
        Ok(Got { status: parts.status.as_u16(), body: body.to_bytes() })
    }
}
