//! How many REST requests a token may send. Counted where calls are counted, so that replicas that
//! share Redis share the allowance; where the counters are away, requests pass uncounted.

use sluice_domain::{Amount, ReservationId, Reset, Scope, Window};
use sluice_limits::{CounterKey, Demand};

use crate::access::Proof;
use crate::codes;
use crate::{Actor, Control, ControlError};

/// The window of the allowance.
pub const REQUEST_WINDOW_S: u64 = 60;

/// How a token stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// Requests in the window.
    pub limit: u32,
    /// What is left of them, as written in a header.
    pub remaining: String,
    /// Seconds until all are there again, if no more are sent.
    pub resets_s: u64,
    /// The request is one too many; in so many seconds the next one fits.
    pub wait_s: Option<u64>,
}

impl Allowance {
    /// Why the request is refused, if it is.
    pub fn refusal(&self) -> Option<ControlError> {
        let seconds = self.wait_s?;
        Some(ControlError::TooMany {
            code: codes::RATE_LIMITED,
            retry_after_s: Some(seconds),
            detail: format!(
                "this token has sent its {} requests of a minute; go on in {seconds} s",
                self.limit
            ),
        })
    }
}

impl Control {
    /// Counts a request of a token. `None`: nothing is counted.
    pub async fn count_request(&self, actor: &Actor) -> Option<Allowance> {
        let Proof::ApiToken { id, workspace, .. } = &actor.proof else { return None };
        let limit = self.settings().bounds.requests_per_minute;
        let key = CounterKey {
            counter: "rest_requests".to_owned(),
            window: Window::Minute,
            reset: Reset::Sliding,
            scope: Scope::Grant,
            owner: id.to_string(),
        };
        let demand = Demand { key, max: Amount::whole(limit), amount: Amount::ONE };
        let counted =
            self.inner.requests.reserve(*workspace, ReservationId::new(), &[demand]).await;
        let reserved = match counted {
            Ok(reserved) => reserved,
            Err(error) => {
                tracing::warn!(%error, "A REST request was not counted");
                return None;
            }
        };
        let reading = reserved.readings.first()?;
        let seconds =
            |time: std::time::Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let wait = if reserved.granted { None } else { reading.wait.map(seconds).or(Some(1)) };
        Some(Allowance {
            limit,
            remaining: reading.remaining.to_string(),
            resets_s: reading.resets_in.map_or(0, seconds),
            wait_s: wait,
        })
    }
}
