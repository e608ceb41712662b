//! How often somebody may try a password or make an account. Kept in this process: it only slows
//! guessing down, and works when Redis does not.

use chrono::{DateTime, Utc};
use sluice_domain::{Amount, ReservationId, Reset, Scope, UserId, Window, WorkspaceId};
use sluice_limits::{Clock, CounterKey, Counters, Demand};
use uuid::Uuid;

use crate::ControlError;
use crate::codes;

/// Tries of one address from one place in 15 minutes.
const PER_EMAIL_AND_PLACE: u32 = 10;
/// Tries of one address from anywhere in an hour: high, so that a stranger can hardly lock it.
const PER_EMAIL: u32 = 200;
/// Tries from one place in an hour: high, because behind a proxy that is not trusted everybody
/// comes from one place.
const PER_PLACE: u32 = 500;
/// Accounts made from one place in an hour.
const SIGN_UPS_PER_PLACE: u32 = 200;
/// Reports of mistakes from one place in an hour.
const REPORTS_PER_PLACE: u32 = 20;
/// Links that are mailed to one address in an hour, whoever asks.
const MAILS_PER_EMAIL: u32 = 5;
/// Links that are asked for from one place in an hour.
const MAILS_PER_PLACE: u32 = 100;
/// Codes of a second factor that one person tries in 15 minutes, and in a day: only who knows the first
/// factor can use them up, and a guess is right three times in a million.
const CODES_PER_PERSON: u32 = 10;
const CODES_PER_PERSON_AND_DAY: u32 = 50;
/// Sign-ins by an identity provider that are begun from one place in an hour.
const PROVIDER_FLOWS_PER_PLACE: u32 = 500;
/// Characters of an address that tell it from others; longer ones are nobody's.
const MAX_EMAIL_CHARS: usize = 254;

pub(crate) struct Throttle(Counters);

/// A try that was counted; given back when it turns out to be the right person.
#[derive(Debug)]
pub(crate) struct Try {
    id: ReservationId,
    demands: Vec<Demand>,
}

impl Throttle {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Counters::in_memory(clock))
    }

    /// Counts a try to log in, or refuses it.
    pub(crate) async fn log_in(&self, email: &str, place: &str) -> Result<Try, ControlError> {
        let email: String = email.trim().to_lowercase().chars().take(MAX_EMAIL_CHARS).collect();
        let quarter = Window::Length { count: 15, unit: 'm' };
        self.take(vec![
            demand("login", quarter, format!("{email}\n{place}"), PER_EMAIL_AND_PLACE),
            demand("login_email", Window::Hour, email, PER_EMAIL),
            demand("login_place", Window::Hour, place.to_owned(), PER_PLACE),
        ])
        .await
    }

    /// Counts an account to be made, or refuses it.
    pub(crate) async fn sign_up(&self, place: &str) -> Result<Try, ControlError> {
        self.take(vec![demand("sign_up", Window::Hour, place.to_owned(), SIGN_UPS_PER_PLACE)]).await
    }

    /// Counts a report of a mistake, or refuses it.
    pub(crate) async fn report(&self, place: &str) -> Result<Try, ControlError> {
        self.take(vec![demand("report", Window::Hour, place.to_owned(), REPORTS_PER_PLACE)]).await
    }

    /// Counts a mail that somebody wants sent to an address, or refuses it.
    pub(crate) async fn mail(&self, email: &str, place: &str) -> Result<Try, ControlError> {
        let email: String = email.trim().to_lowercase().chars().take(MAX_EMAIL_CHARS).collect();
        self.take(vec![
            demand("mail", Window::Hour, email, MAILS_PER_EMAIL),
            demand("mail_place", Window::Hour, place.to_owned(), MAILS_PER_PLACE),
        ])
        .await
    }

    /// Counts a code that somebody typed, or refuses it.
    pub(crate) async fn code(&self, user: UserId) -> Result<Try, ControlError> {
        let (quarter, day) =
            (Window::Length { count: 15, unit: 'm' }, Window::Length { count: 24, unit: 'h' });
        self.take(vec![
            demand("code", quarter, user.to_string(), CODES_PER_PERSON),
            demand("code_day", day, user.to_string(), CODES_PER_PERSON_AND_DAY),
        ])
        .await
    }

    /// Counts a sign-in by an identity provider, or refuses it.
    pub(crate) async fn provider(&self, place: &str) -> Result<Try, ControlError> {
        let most = PROVIDER_FLOWS_PER_PLACE;
        self.take(vec![demand("provider", Window::Hour, place.to_owned(), most)]).await
    }

    /// Counts a passkey that somebody signs in by, or refuses it.
    pub(crate) async fn passkey(&self, place: &str) -> Result<Try, ControlError> {
        self.take(vec![demand("passkey", Window::Hour, place.to_owned(), PER_PLACE)]).await
    }

    /// It was the right person: the try does not count.
    pub(crate) async fn give_back(&self, attempt: Try) {
        // In process nothing can be unavailable but room, and then nothing was charged.
        let _ = self.0.refund(nowhere(), attempt.id, &attempt.demands).await;
    }

    async fn take(&self, demands: Vec<Demand>) -> Result<Try, ControlError> {
        let id = ReservationId::new();
        let reserved = self.0.reserve(nowhere(), id, &demands).await;
        let wait = match reserved {
            Ok(reserved) if reserved.granted => return Ok(Try { id, demands }),
            Ok(reserved) => reserved.readings.iter().filter_map(|reading| reading.wait).max(),
            Err(_) => None,
        };
        let seconds = wait.map_or(60, |wait| wait.as_secs() + 1);
        let minutes = seconds.div_ceil(60);
        let unit = if minutes == 1 { "minute" } else { "minutes" };
        Err(ControlError::TooMany {
            code: codes::TOO_MANY_ATTEMPTS,
            retry_after_s: Some(seconds),
            detail: format!("too many attempts; try again in {minutes} {unit}"),
        })
    }
}

/// The counters are nobody's workspace.
fn nowhere() -> WorkspaceId {
    WorkspaceId::from_uuid(Uuid::nil())
}

fn demand(counter: &str, window: Window, owner: String, max: u32) -> Demand {
    let key = CounterKey {
        counter: counter.to_owned(),
        window,
        reset: Reset::Sliding,
        scope: Scope::Workspace,
        owner,
    };
    Demand { key, max: Amount::whole(max), amount: Amount::ONE }
}

/// The end of a span that begins now, or the farthest time there is.
pub(crate) fn after(now: DateTime<Utc>, span: chrono::TimeDelta) -> DateTime<Utc> {
    now.checked_add_signed(span).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
