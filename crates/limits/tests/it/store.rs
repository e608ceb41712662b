//! What the tests share: a store of each kind, and short ways to ask it.

use std::time::Duration;

use chrono::TimeDelta;
use sluice_domain::{Amount, ReservationId, Reset, Scope, Window, WorkspaceId};
use sluice_limits::{CounterKey, Counters, Demand, Reading, RedisOptions, Reserved};
use sluice_testkit::{RedisServer, TestClock};

/// A fresh store, its clock, and the server behind it.
pub(crate) struct Store {
    pub(crate) counters: Counters,
    pub(crate) clock: TestClock,
    pub(crate) workspace: WorkspaceId,
    pub(crate) redis: Option<RedisServer>,
}

/// When tests begin: a Monday, in the middle of everything.
pub(crate) const START: &str = "2026-11-30T09:17:23.456789Z";

impl Store {
    pub(crate) fn in_memory() -> Self {
        let clock = TestClock::at(START);
        let counters = Counters::in_memory(clock.function());
        Self { counters, clock, workspace: WorkspaceId::new(), redis: None }
    }

    /// Redis with the test's clock.
    pub(crate) async fn in_redis() -> Self {
        let redis = RedisServer::start();
        let store = Self::at(&redis.url()).await;
        Self { redis: Some(redis), ..store }
    }

    /// A workspace of its own in a Redis, Valkey, cluster or Sentinel's master that others share.
    pub(crate) async fn at(url: &str) -> Self {
        let clock = TestClock::at(START);
        let options = RedisOptions { clock: Some(clock.function()), ..RedisOptions::default() };
        let counters = Counters::redis(url, options).await.expect("the address is fine");
        Self { counters, clock, workspace: WorkspaceId::new(), redis: None }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(TimeDelta::from_std(by).expect("short enough"));
    }

    pub(crate) fn set(&self, rfc3339: &str) {
        self.clock.set(rfc3339.parse().expect(rfc3339));
    }

    pub(crate) async fn reserve(&self, demands: &[Demand]) -> Reserved {
        self.reserve_as(ReservationId::new(), demands).await
    }

    pub(crate) async fn reserve_as(&self, id: ReservationId, demands: &[Demand]) -> Reserved {
        self.counters.reserve(self.workspace, id, demands).await.expect("available")
    }

    pub(crate) async fn refund(&self, id: ReservationId, demands: &[Demand]) {
        self.counters.refund(self.workspace, id, demands).await.expect("available");
    }

    pub(crate) async fn read(&self, demand: &Demand) -> Reading {
        let keys = [(demand.key.clone(), demand.max)];
        self.counters.read(self.workspace, &keys).await.expect("available")[0]
    }

    pub(crate) async fn used(&self, demand: &Demand) -> String {
        self.read(demand).await.used.to_string()
    }
}

/// A demand of one call on the sliding counter `counter` of grant `g`.
pub(crate) fn demand(counter: &str, window: &str, max: &str) -> Demand {
    let key = CounterKey {
        counter: counter.to_owned(),
        window: window.parse::<Window>().expect(window),
        reset: Reset::Sliding,
        scope: Scope::Grant,
        owner: "g".to_owned(),
    };
    Demand { key, max: amount(max), amount: Amount::ONE }
}

pub(crate) fn amount(text: &str) -> Amount {
    text.parse().expect(text)
}

pub(crate) fn of(owner: &str, mut demand: Demand) -> Demand {
    owner.clone_into(&mut demand.key.owner);
    demand
}

pub(crate) fn calendar(mut demand: Demand) -> Demand {
    demand.key.reset = Reset::Calendar;
    demand
}

pub(crate) fn weighing(text: &str, mut demand: Demand) -> Demand {
    demand.amount = amount(text);
    demand
}

/// Waits for what has no event of its own.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(std::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The body of a test as a value, for stores that are dear to start: one of them runs all bodies.
pub(crate) type Body = fn(Store) -> std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// Makes a test of each body: one in memory, one in Redis; and, if it is named, a list of all bodies.
macro_rules! on_both {
    (const $list:ident; $($(#[$meta:meta])* async fn $name:ident($store:ident: Store) $body:block)+) => {
        $crate::store::on_both! { $($(#[$meta])* async fn $name($store: Store) $body)+ }

        pub(crate) const $list: &[(&str, $crate::store::Body)] =
            &[$((stringify!($name), |store| Box::pin($name::body(store)))),+];
    };
    ($($(#[$meta:meta])* async fn $name:ident($store:ident: Store) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                use super::*;

                pub(super) async fn body($store: Store) $body

                #[tokio::test]
                async fn in_memory() {
                    body(Store::in_memory()).await;
                }

                #[tokio::test]
                async fn in_redis() {
                    body(Store::in_redis().await).await;
                }
            }
        )+
    };
}
pub(crate) use on_both;
