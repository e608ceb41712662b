//! A call's demands as the stores want them: one entry a counter, each with its own name.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sluice_domain::{Amount, Scope};

use crate::buckets::left;
use crate::contract::{CounterKey, Demand, Reading};
use crate::span::Span;

/// Everything that one call asks of one counter.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    /// The smallest `max` asked.
    pub(crate) max: Amount,
    /// The sum of the amounts asked.
    pub(crate) amount: Amount,
    pub(crate) hint: Hint,
}

/// Where a counter was found the last time; to be looked at, not believed. A clone knows nothing yet.
#[derive(Debug)]
pub(crate) struct Hint(AtomicUsize);

impl Hint {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, place: usize) {
        self.0.store(place, Ordering::Relaxed);
    }
}

impl Default for Hint {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

impl Clone for Hint {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The asks of a call, and which of them answers which demand.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) asks: Vec<Ask>,
    /// The grant and session whose own counters are charged; a call has one session at most.
    pub(crate) session: Option<(String, String)>,
    demands: Vec<(usize, Amount)>,
}

impl Plan {
    pub(crate) fn of(demands: &[Demand]) -> Self {
        let mut asks: Vec<Ask> = Vec::with_capacity(demands.len());
        let session = demands
            .iter()
            .filter(|demand| demand.key.scope == Scope::Session && demand.amount > Amount::ZERO)
            .find_map(|demand| demand.key.owner.split_once('/'))
            .map(|(grant, session)| (grant.to_owned(), session.to_owned()));
        let demands = demands
            .iter()
            .map(|demand| {
                let ask = ask(&demand.key, demand.max, demand.amount);
                let at = asks.iter().position(|known| known.name == ask.name);
                let at = at.unwrap_or_else(|| {
                    asks.push(Ask { amount: Amount::ZERO, ..ask.clone() });
                    asks.len() - 1
                });
                let known = &mut asks[at];
                known.amount = known.amount.saturating_add(ask.amount);
                known.max = known.max.min(ask.max);
                (at, demand.max)
            })
            .collect();
        Self { asks, session, demands }
    }

    /// A reading of each demand from a reading of each ask.
    pub(crate) fn readings(&self, of_asks: &[Reading]) -> Vec<Reading> {
        self.demands
            .iter()
            .filter_map(|&(at, max)| of_asks.get(at).map(|reading| (reading, max)))
            .map(|(reading, max)| Reading { remaining: left(max, reading.used), ..*reading })
            .collect()
    }
}

/// Demands that are made again and again, with everything ready that they need each time.
#[derive(Debug, Clone)]
pub struct Prepared {
    demands: Vec<Demand>,
    pub(crate) plan: Plan,
}

impl Prepared {
    /// Makes demands ready.
    pub fn of(demands: Vec<Demand>) -> Self {
        Self { plan: Plan::of(&demands), demands }
    }

    /// The demands as they were given.
    pub fn demands(&self) -> &[Demand] {
        &self.demands
    }
}

/// A negative amount would lower a count: it is charged as nothing.
fn ask(key: &CounterKey, max: Amount, amount: Amount) -> Ask {
    let span = Span::of(key.window, key.reset);
    let (name, amount) = (name(key, span).into(), amount.max(Amount::ZERO));
    Ask { name, span, max, amount, hint: Hint::default() }
}

/// A counter to be read: as asked for the least amount there is, so that `wait` says when anything fits.
pub(crate) fn look(key: &CounterKey, max: Amount) -> Ask {
    ask(key, max, Amount::from_billionths(1))
}

/// The counter's name within its workspace. Unambiguous whatever counter and owner are made of.
pub(crate) fn name(key: &CounterKey, span: Span) -> String {
    let scope = match key.scope {
        Scope::Grant => 'g',
        Scope::Session => 's',
        Scope::Server => 'v',
        Scope::Workspace => 'w',
    };
    format!("{scope}:{}:{}:{}", span.name(), escaped(&key.counter), escaped(&key.owner))
}

/// Keeps separators, braces (Redis hash tags) and spaces out of a part of a name.
pub(crate) fn escaped(part: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if part.bytes().all(plain) {
        return Cow::Borrowed(part);
    }
    let mut out = String::with_capacity(part.len());
    for c in part.chars() {
        if u8::try_from(c).is_ok_and(plain) {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push('%');
                out.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
                out.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
            }
        }
    }
    Cow::Owned(out)
}

/// What [`escaped`] was made from.
fn unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// The grant and session of a session's counter, by the counter's name.
pub(crate) fn session_of(name: &str) -> Option<(String, String)> {
    let owner = name.strip_prefix("s:")?.rsplit(':').next()?;
    let (grant, session) = owner.split_once("%2f")?;
    Some((grant.to_owned(), unescaped(session)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_domain::{Reset, Window};

    fn key(counter: &str, owner: &str) -> CounterKey {
        CounterKey {
            counter: counter.to_owned(),
            window: Window::Minute,
            reset: Reset::Sliding,
            scope: Scope::Grant,
            owner: owner.to_owned(),
        }
    }

    #[test]
    fn names_are_unambiguous() {
        let name = |counter, owner| name(&key(counter, owner), Span::Month);
        assert_ne!(name("a:b", "c"), name("a", "b:c"));
        assert_ne!(name("a%3a", "c"), name("a:", "c"));
        assert!(!name("a} {b", "ö\n").contains(['{', '}', ' ', '\n']));
    }

    #[test]
    fn the_session_is_read_back_from_its_counters_name() {
        let session = |owner: &str, scope| {
            let key = CounterKey { scope, ..key("n", owner) };
            session_of(&name(&key, Span::Month))
        };
        for id in ["a1.b-2_c", "a/b%2f", "ö:{x}"] {
            let told = session(&format!("g-1/{id}"), Scope::Session);
            assert_eq!(told, Some(("g-1".to_owned(), id.to_owned())));
        }
        assert_eq!(session("g-1", Scope::Session), None, "outside a session");
        assert_eq!(session("g-1/a", Scope::Grant), None);
    }

    #[test]
    fn demands_on_one_counter_are_asked_together() {
        let demand = |max, amount| Demand {
            key: key("n", "o"),
            max: Amount::whole(max),
            amount: Amount::whole(amount),
        };
        let plan = Plan::of(&[demand(5, 1), demand(3, 2)]);
        assert_eq!(plan.asks.len(), 1);
        assert_eq!((plan.asks[0].max, plan.asks[0].amount), (Amount::whole(3), Amount::whole(3)));
    }
}
