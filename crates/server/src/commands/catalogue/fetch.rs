//! Fetches a registry's pages. Whoever runs the command chose the address, so private ones are fine.

use std::time::Duration;

use sluice_control::catalogue::{Fetch, FetchError};
use sluice_upstream::{Get, Upstream, UpstreamOptions};
use url::Url;
use uuid::Uuid;

/// One page: a hundred records of a few KiB each.
const MOST: usize = 32 * 1024 * 1024;
const TIME: Duration = Duration::from_mins(1);

pub(super) struct Fetcher {
    upstream: Upstream,
    owner: Uuid,
}

impl Fetcher {
    pub(super) fn new() -> Self {
        let options = UpstreamOptions { allow_private: true, ..UpstreamOptions::default() };
        Self { upstream: Upstream::new(options), owner: Uuid::now_v7() }
    }
}

impl Fetch for Fetcher {
    async fn fetch(&self, address: &str) -> Result<Vec<u8>, FetchError> {
        let url = Url::parse(address).map_err(|error| FetchError(error.to_string()))?;
        let get = Get { owner: self.owner, url, most: MOST, time: TIME };
        let got = self.upstream.get(&get).await.map_err(|error| FetchError(error.to_string()))?;
        match got.status {
            200 => Ok(got.body.to_vec()),
            300..=399 => Err(FetchError(format!(
                "the registry redirects (HTTP {}); give the address it redirects to",
                got.status
            ))),
            429 => Err(FetchError("the registry asks to come back later (HTTP 429)".to_owned())),
            status => Err(FetchError(format!("the registry answered with HTTP {status}"))),
        }
    }
}
