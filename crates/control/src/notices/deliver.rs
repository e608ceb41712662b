//! Sending: what is due is claimed and sent, each endpoint's messages in order and several endpoints
//! at once; what fails is sent again, ever later, and given up in the end.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use sluice_domain::{DeliveryStatus, EndpointId};
use sluice_store::endpoints::{self, Endpoint, EndpointChange};
use sluice_store::outbox::{self, Claim, Delivery};
use sluice_upstream::{Mail, MailError, Post, SendError};
use sluice_vault::WebhookSecret;
use tokio::task::JoinSet;
use url::Url;

use super::{Body, EndpointColumn, Letter, endpoint_place};
use crate::throttle::after;
use crate::{Control, ControlError};

/// Messages that are claimed at once.
const BATCH: i64 = 40;
/// How long a claim holds. Longer than all that a sender does with what it claimed.
pub(super) const CLAIM: TimeDelta = TimeDelta::minutes(5);
/// How long a sender works on one endpoint's messages before it lets the rest go.
const BUDGET: std::time::Duration = std::time::Duration::from_mins(2);
/// How long an endpoint that does not answer is left alone by the messages behind the one that failed.
const REST: TimeDelta = TimeDelta::seconds(30);
/// After the first, second, … failure. After the last a message is given up.
const BACK_OFF: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::seconds(30),
    TimeDelta::minutes(2),
    TimeDelta::minutes(10),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(6),
    TimeDelta::hours(12),
    TimeDelta::hours(24),
];
/// The longest that the other side may ask for.
const MAX_RETRY_AFTER: u64 = 3_600;

/// How an attempt ended.
struct Attempt {
    fate: Fate,
    status: Option<u16>,
    words: String,
    retry_after_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    Again,
    /// The same, and nothing else gets through at the moment either.
    Down,
    Never,
    /// The other side wants nothing any more.
    Gone,
}

impl Attempt {
    fn never(words: &str) -> Self {
        Self { fate: Fate::Never, status: None, words: words.to_owned(), retry_after_s: None }
    }
}

impl Control {
    /// Sends what is due; says how many messages were tried. Safe in several processes at once.
    pub async fn deliver_due(&self) -> Result<usize, ControlError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let due = outbox::claim_due(&mut tx.conn(), after(now, CLAIM), BATCH, now).await?;
        tx.commit().await?;
        let tried = due.len();
        let mut groups: BTreeMap<Option<EndpointId>, Vec<(Claim, Delivery)>> = BTreeMap::new();
        for (claim, delivery) in due {
            groups.entry(delivery.endpoint_id).or_default().push((claim, delivery));
        }
        let mut sending = JoinSet::new();
        for group in groups.into_values() {
            let control = self.clone();
            sending.spawn(async move { control.deliver_group(group).await });
        }
        let mut failed = None;
        while let Some(done) = sending.join_next().await {
            if let Err(error) = done.map_err(ControlError::internal).and_then(|done| done) {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(tried), Err)
    }

    async fn deliver_group(&self, group: Vec<(Claim, Delivery)>) -> Result<(), ControlError> {
        let started = Instant::now();
        let mut down = false;
        for (claim, delivery) in group {
            if down || started.elapsed() > BUDGET {
                let mut tx = self.begin().await?;
                outbox::put_off(&mut tx.conn(), claim, after(self.now(), REST)).await?;
                tx.commit().await?;
                continue;
            }
            down = self.deliver(claim, &delivery).await?.1 == Fate::Down;
        }
        Ok(())
    }

    /// Sends one claimed message and notes how that went.
    pub(super) async fn deliver_one(
        &self,
        claim: Claim,
        delivery: &Delivery,
    ) -> Result<DeliveryStatus, ControlError> {
        Ok(self.deliver(claim, delivery).await?.0)
    }

    async fn deliver(
        &self,
        claim: Claim,
        delivery: &Delivery,
    ) -> Result<(DeliveryStatus, Fate), ControlError> {
        let started = Instant::now();
        let at = self.now();
        let attempt = self.attempt(delivery, at).await?;
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut tries = delivery.tries.as_array().cloned().unwrap_or_default();
        tries.push(json!({
            "at": at, "status": attempt.status, "error": attempt.words, "took_ms": took_ms,
        }));
        // A message that was replayed often keeps its last attempts.
        let cut = tries.len().saturating_sub(BACK_OFF.len() * 2 + 2);
        let tries = Value::Array(tries.split_off(cut));
        let next = next_at(delivery, &attempt, self.now());
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let status = match (attempt.fate, next) {
            (Fate::Sent, _) => {
                outbox::sent(conn, claim, &tries, now).await?;
                DeliveryStatus::Sent
            }
            (Fate::Again | Fate::Down, Some(next)) => {
                outbox::again(conn, claim, &tries, next).await?;
                DeliveryStatus::Waiting
            }
            _ => {
                outbox::dead(conn, claim, &tries, now).await?;
                DeliveryStatus::Dead
            }
        };
        if attempt.fate == Fate::Gone {
            switch_off(conn, delivery, now).await?;
        }
        tx.commit().await?;
        Ok((status, attempt.fate))
    }

    async fn attempt(
        &self,
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> Result<Attempt, ControlError> {
        if delivery.give_up_at < now {
            return Ok(Attempt::never("its time was over before it could be sent"));
        }
        let (id, workspace) = (delivery.id, delivery.workspace_id);
        match self.open_body(workspace, id, &delivery.sealed_body) {
            None => {
                Ok(Attempt::never("its text cannot be opened with the master keys that are given"))
            }
            Some(Body::Mail(letter)) => Ok(self.mail_attempt(delivery, letter).await),
            Some(Body::Http(body)) => {
                let (Some(workspace), Some(endpoint)) = (workspace, delivery.endpoint_id) else {
                    return Ok(Attempt::never("it has no endpoint"));
                };
                let mut tx = self.read().await?;
                let found = endpoints::find(&mut tx.conn(), workspace, endpoint).await?;
                tx.commit().await?;
                match found.filter(|endpoint| endpoint.enabled) {
                    Some(endpoint) => Ok(self.post_attempt(delivery, &endpoint, body, now).await),
                    None => Ok(Attempt::never("the endpoint is switched off")),
                }
            }
        }
    }

    async fn mail_attempt(&self, delivery: &Delivery, letter: Letter) -> Attempt {
        let Some(mailer) = &self.inner.mailer else {
            return Attempt::never(
                "this Sluice sends no mail; its operator can set SLUICE_SMTP_URL",
            );
        };
        let mail = Mail {
            text: letter.text(),
            html: letter.html(),
            to: letter.to,
            subject: letter.subject,
            id: delivery.id.to_string(),
            at: delivery.created_at,
        };
        let (fate, words) = match mailer.send(&mail).await {
            Ok(()) => (Fate::Sent, String::new()),
            Err(error @ MailError::Refused(_)) => (Fate::Never, error.to_string()),
            Err(error @ MailError::Later(_)) => (Fate::Again, error.to_string()),
            Err(error @ MailError::Unreachable(_)) => (Fate::Down, error.to_string()),
        };
        Attempt { fate, status: None, words, retry_after_s: None }
    }

    async fn post_attempt(
        &self,
        delivery: &Delivery,
        endpoint: &Endpoint,
        body: String,
        now: DateTime<Utc>,
    ) -> Attempt {
        let Some(post) = self.post_for(delivery, endpoint, body, now) else {
            return Attempt::never(
                "its address or secret cannot be opened with the master keys that are given",
            );
        };
        match self.inner.upstream.post(post).await {
            Ok(posted) => {
                let fate = match posted.status {
                    200..=299 => Fate::Sent,
                    410 => Fate::Gone,
                    429 | 500..=599 => Fate::Down,
                    _ => Fate::Again,
                };
                let words = match posted.status {
                    200..=299 => String::new(),
                    300..=399 => "it answered with a redirect, which is not followed".to_owned(),
                    410 => "it says that it is gone, so the endpoint was switched off".to_owned(),
                    status => format!("it answered {status}"),
                };
                let (status, retry_after_s) = (Some(posted.status), posted.retry_after_s);
                Attempt { fate, status, words, retry_after_s }
            }
            Err(error @ (SendError::Refused(_) | SendError::Unsendable(_))) => {
                Attempt::never(&error.to_string().replace("upstream", "endpoint"))
            }
            Err(error) => {
                let words = error.to_string().replace("upstream", "endpoint");
                Attempt { fate: Fate::Down, status: None, words, retry_after_s: None }
            }
        }
    }

    fn post_for(
        &self,
        delivery: &Delivery,
        endpoint: &Endpoint,
        body: String,
        now: DateTime<Utc>,
    ) -> Option<Post> {
        let open = |column, sealed: &[u8]| {
            let place = endpoint_place(endpoint.workspace_id, endpoint.id, column);
            let text = self.inner.vault.open(place, sealed).ok()?;
            String::from_utf8(text.to_vec()).ok()
        };
        let url = Url::parse(&open(EndpointColumn::Url, &endpoint.sealed_url)?).ok()?;
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (USER_AGENT, HeaderValue::from_static("Sluice")),
        ];
        if let Some(sealed) = &endpoint.sealed_secret {
            let secret = WebhookSecret::parse(&open(EndpointColumn::Secret, sealed)?)?;
            let (id, at) = (delivery.id.to_string(), now.timestamp());
            let mut signature = secret.sign(&id, at, body.as_bytes());
            let previous = endpoint.sealed_previous_secret.as_deref();
            if let Some(sealed) = previous.filter(|_| endpoint.previous_until > Some(now)) {
                let old = WebhookSecret::parse(&open(EndpointColumn::PreviousSecret, sealed)?)?;
                signature.push(' ');
                signature.push_str(&old.sign(&id, at, body.as_bytes()));
            }
            let mut signature = HeaderValue::from_str(&signature).ok()?;
            signature.set_sensitive(true);
            let header = HeaderName::from_static;
            headers.push((header("webhook-id"), HeaderValue::from_str(&id).ok()?));
            headers.push((header("webhook-timestamp"), HeaderValue::from(at)));
            headers.push((header("webhook-signature"), signature));
        }
        let (owner, revision) = (endpoint.id.uuid(), endpoint.revision);
        Some(Post { owner, revision, url, headers, body: body.into() })
    }
}

/// When a message that failed is sent again; `None`: never.
fn next_at(delivery: &Delivery, attempt: &Attempt, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let failures = usize::try_from(delivery.attempts).unwrap_or(usize::MAX);
    let wait = *BACK_OFF.get(failures)?;
    // Spread over a tenth, by the message's own id, so that a crowd does not come back at once.
    let spread = i64::from(delivery.id.uuid().as_bytes()[15]) * wait.num_milliseconds() / 2_550;
    let asked = attempt.retry_after_s.map_or(0, |s| s.min(MAX_RETRY_AFTER)).cast_signed();
    let wait = (wait + TimeDelta::milliseconds(spread)).max(TimeDelta::seconds(asked));
    let next = after(now, wait);
    (next <= delivery.give_up_at).then_some(next)
}

/// An endpoint that says it is gone is left alone from then on.
async fn switch_off(
    conn: &mut sluice_store::Conn<'_>,
    delivery: &Delivery,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let (Some(workspace), Some(endpoint)) = (delivery.workspace_id, delivery.endpoint_id) else {
        return Ok(());
    };
    let off = EndpointChange { enabled: Some(false), ..EndpointChange::default() };
    let changed = endpoints::update(conn, workspace, endpoint, None, off, now).await?;
    if let Some(endpoint) = changed {
        let id = endpoint.id.to_string();
        let event = crate::audit::Event::new("endpoint.gone", ("endpoint", &id, &endpoint.name));
        crate::audit::record_system(conn, workspace, event, now).await?;
    }
    Ok(())
}
