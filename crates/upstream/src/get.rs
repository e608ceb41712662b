//! Documents of others, such as a registry's pages: one GET over a checked connection, read whole
//! within bounds. A redirect is an answer like any other.

use std::time::Duration;

use bytes::Bytes;
use url::Url;
use uuid::Uuid;

use crate::fetch::Fetch;
use crate::send::{SendError, Upstream};

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
        let Get { owner, url, most, time } = get;
        let (headers, form) = (Vec::new(), None);
        let fetch =
            Fetch { owner: *owner, url: url.clone(), headers, form, most: *most, time: *time };
        self.fetch(&fetch).await
    }
}
