//! Messages to endpoints of users, such as webhooks: one POST over a checked connection, of which
//! only the status is of interest.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use sluice_domain::{ServerId, Transport};
use url::Url;
use uuid::Uuid;

use crate::send::{Prepared, SendError, Upstream};
use crate::target::Target;

/// What is read of an answer's body, so that the connection can be used again.
const MAX_ANSWER: usize = 64 * 1024;
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(2);

/// One message.
#[derive(Clone)]
pub struct Post {
    /// Whose connections are shared, and since which change of its address.
    pub owner: Uuid,
    pub revision: i64,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// What the other side said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    pub status: u16,
    /// Seconds that it wants to be left alone.
    pub retry_after_s: Option<u64>,
}

impl Upstream {
    /// Sends a message. A redirect is an answer like any other, and nothing of the body is kept.
    pub async fn post(&self, post: Post) -> Result<Posted, SendError> {
        let target = Target {
            server: ServerId::from_uuid(post.owner),
            url: post.url,
            headers: Vec::new(),
            transport: Transport::StreamableHttp,
            connect_timeout: CONNECT,
            idle_timeout: ANSWER,
            revision: post.revision,
            prepared: Prepared::default(),
        };
        let mut request = Request::new(Full::new(post.body));
        *request.method_mut() = Method::POST;
        request.headers_mut().extend(post.headers);
        let response = self.send(&target, request).await?;
        let (parts, body) = response.into_parts();
        let body = http_body_util::Limited::new(body, MAX_ANSWER);
        // Whether it ends well is nobody's concern.
        let _ = tokio::time::timeout(BODY, body.collect()).await;
        let seconds = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Posted {
            status: parts.status.as_u16(),
            retry_after_s: seconds.and_then(|text| text.trim().parse().ok()),
        })
    }

    /// Whether connections to this machine and to private networks are made at all.
    pub fn allows_private(&self) -> bool {
        self.resolver.allow_private
    }
}
