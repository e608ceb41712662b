//! Pages that stay open and are told what happens: for how long, for whom, and how many.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_control::codes;
use sluice_control::{Control, ControlError, Viewer};
use sluice_domain::UserId;

/// How often it is looked whether the reader is still a member, signed in.
pub(crate) const LOOK: Duration = Duration::from_secs(15);
/// A browser asks anew after this.
pub(crate) const LONGEST: Duration = Duration::from_mins(10);
/// Streams that ask the database by themselves: of one person, and of all at this process.
const EACH: usize = 6;
const ALL: usize = 300;

/// The reader as of now; none once they have signed out or are no member any more.
pub(crate) async fn still_welcome(control: &Control, viewer: &Viewer) -> Option<Viewer> {
    let logins = control.logins(&viewer.actor).await.ok()?;
    if !logins.iter().any(|login| login.current) {
        return None;
    }
    control.enter(&viewer.actor, &viewer.slug).await.ok()
}

/// How many such streams each person holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<UserId, usize>>>);

/// A place among the watchers, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    watchers: Watchers,
    user: UserId,
}

impl Watchers {
    /// A place for one more stream.
    pub(crate) fn seat(&self, user: UserId) -> Result<Seat, ControlError> {
        let mut held = self.0.lock();
        let (all, own) = (held.values().sum::<usize>(), held.get(&user).copied().unwrap_or(0));
        if all >= ALL || own >= EACH {
            let detail = if own >= EACH {
                format!("{EACH} logs are followed live for you already; close one of those pages")
            } else {
                "too many logs are followed live just now; try again in a minute".to_owned()
            };
            let (code, retry_after_s) = (codes::TOO_MANY_STREAMS, Some(60));
            return Err(ControlError::TooMany { code, retry_after_s, detail });
        }
        *held.entry(user).or_default() += 1;
        drop(held);
        Ok(Seat { watchers: self.clone(), user })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut held = self.watchers.0.lock();
        if let Some(own) = held.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_some_seats_and_gets_them_back() {
        let (watchers, user) = (Watchers::default(), UserId::new());
        let mut seats: Vec<Seat> =
            (0..EACH).map(|_| watchers.seat(user).expect("a seat")).collect();
        let refused = watchers.seat(user).expect_err("one too many");
        assert!(refused.to_string().contains("for you already"), "{refused}");
        seats.pop();
        seats.push(watchers.seat(user).expect("the one that was given back"));
        let others: Vec<Seat> =
            (EACH..ALL).map(|_| watchers.seat(UserId::new()).expect("a seat")).collect();
        let refused = watchers.seat(UserId::new()).expect_err("the house is full");
        assert!(refused.to_string().contains("just now"), "{refused}");
        drop((seats, others));
        assert!(watchers.0.lock().is_empty());
    }
}
