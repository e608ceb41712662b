//! What every store must do, rule by rule.

use std::time::Duration;

use sluice_domain::{Amount, GrantId, ReservationId, Scope, WorkspaceId};
use sluice_limits::{CounterKey, Demand, session_owner};

use crate::store::{Store, amount, calendar, demand, of, on_both, weighing};

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);

on_both! {
    const BODIES;

    async fn all_limits_are_charged_or_none(store: Store) {
        // F-R3: a call refused by the narrow limit leaves the broad one alone.
        let narrow = demand("narrow", "minute", "2");
        let broad = of("w", Demand {
            key: CounterKey { scope: Scope::Workspace, ..demand("broad", "minute", "100").key },
            ..demand("broad", "minute", "100")
        });
        for n in 0..50 {
            let reserved = store.reserve(&[broad.clone(), narrow.clone()]).await;
            assert_eq!(reserved.granted, n < 2, "call {n}");
            if n >= 2 {
                assert_eq!(reserved.blamed(), Some(1));
                assert_eq!(reserved.readings[0].wait, None);
            }
        }
        assert_eq!(store.used(&broad).await, "2");
        let other = of("other", narrow.clone());
        assert!(store.reserve(&[broad.clone(), other.clone()]).await.granted);
        assert_eq!(store.read(&other).await.remaining, Amount::ONE);
        assert_eq!(store.read(&broad).await.remaining, amount("97"));
    }

    async fn no_demand_is_granted_and_costs_nothing(store: Store) {
        assert!(store.reserve(&[]).await.granted);
        assert!(store.counters.read(store.workspace, &[]).await.expect("available").is_empty());
    }

    async fn sums_are_exact(store: Store) {
        let tenth = weighing("0.1", demand("money", "day", "0.3"));
        for expected in ["0.1", "0.2", "0.3"] {
            let reserved = store.reserve(std::slice::from_ref(&tenth)).await;
            assert!(reserved.granted);
            assert_eq!(reserved.readings[0].used.to_string(), expected);
        }
        assert!(!store.reserve(&[weighing("0.000000001", tenth.clone())]).await.granted);

        let huge = demand("huge", "day", "999999999999999.999999999");
        for part in ["999999999999998.999999999", "0.999999999", "0.000000001"] {
            assert!(store.reserve(&[weighing(part, huge.clone())]).await.granted, "{part}");
            store.advance(SECOND * 7_200);
        }
        assert_eq!(store.used(&huge).await, "999999999999999.999999999");
        assert!(!store.reserve(&[weighing("0.000000001", huge)]).await.granted);
    }

    async fn a_retry_at_the_time_told_succeeds_and_one_before_does_not(store: Store) {
        let limit = demand("n", "minute", "3");
        for _ in 0..3 {
            assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
            store.advance(SECOND * 7);
        }
        let refused = store.reserve(std::slice::from_ref(&limit)).await;
        let wait = refused.readings[0].wait.expect("waiting helps");
        // The first call was 21 s ago: 39 s, and at most a twentieth of the window more.
        assert!(wait > SECOND * 39 && wait <= SECOND * 42, "{wait:?}");
        store.advance(wait.checked_sub(MICROSECOND).expect("longer than that"));
        let still = store.reserve(std::slice::from_ref(&limit)).await;
        assert_eq!(still.readings[0].wait, Some(MICROSECOND));
        store.advance(MICROSECOND);
        assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
        assert!(!store.reserve(&[limit]).await.granted);
    }

    async fn what_never_fits_is_told_from_what_must_wait(store: Store) {
        let none = demand("none", "minute", "0");
        let much = weighing("5.1", demand("much", "minute", "5"));
        for limit in [none, much] {
            let reserved = store.reserve(std::slice::from_ref(&limit)).await;
            assert!(!reserved.granted && reserved.readings[0].never);
            assert_eq!((reserved.readings[0].wait, reserved.blamed()), (None, Some(0)));
        }
        let full = demand("full", "minute", "1");
        store.reserve(std::slice::from_ref(&full)).await;
        let reserved = store.reserve(&[full, demand("none", "minute", "0")]).await;
        assert_eq!(reserved.blamed(), Some(1), "what never fits outweighs any wait");
    }

    async fn the_longest_wait_is_to_blame(store: Store) {
        let limits = [demand("a", "minute", "1"), demand("b", "day", "1"), demand("c", "hour", "1")];
        assert!(store.reserve(&limits).await.granted);
        assert_eq!(store.reserve(&limits).await.blamed(), Some(1));
    }

    async fn a_calendar_day_ends_at_midnight_utc_and_only_then(store: Store) {
        // F-R4.
        let limit = calendar(demand("day", "day", "3"));
        store.set("2026-11-30T23:59:59.9Z");
        for _ in 0..3 {
            assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
        }
        let fourth = store.reserve(std::slice::from_ref(&limit)).await;
        assert_eq!(fourth.readings[0].wait, Some(Duration::from_millis(100)));
        store.set("2026-12-01T00:00:00Z");
        assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
        store.set("2026-12-01T20:00:00Z");
        for granted in [true, true, false] {
            assert_eq!(store.reserve(std::slice::from_ref(&limit)).await.granted, granted);
        }
    }

    async fn calendar_weeks_months_and_odd_lengths_reset_at_their_borders(store: Store) {
        for (window, before, after) in [
            ("second", "2026-11-30T23:59:58.999999Z", "2026-11-30T23:59:59Z"),
            ("minute", "2026-11-30T23:58:59.999999Z", "2026-11-30T23:59:00Z"),
            ("week", "2026-12-06T23:59:59.999999Z", "2026-12-07T00:00:00Z"),
            ("month", "2027-01-31T23:59:59.999999Z", "2027-02-01T00:00:00Z"),
            ("month", "2028-02-29T23:59:59.999999Z", "2028-03-01T00:00:00Z"),
            ("month", "2100-02-28T23:59:59.999999Z", "2100-03-01T00:00:00Z"),
            ("6h", "2101-01-01T05:59:59.999999Z", "2101-01-01T06:00:00Z"),
            ("14d", "2101-01-02T23:59:59.999999Z", "2101-01-03T00:00:00Z"),
        ] {
            let limit = calendar(of(after, demand("border", window, "1")));
            store.set(before);
            assert!(store.reserve(std::slice::from_ref(&limit)).await.granted, "{window} {before}");
            let refused = store.reserve(std::slice::from_ref(&limit)).await;
            if window != "14d" {
                assert_eq!(refused.readings[0].wait, Some(MICROSECOND), "{window} {before}");
                store.set(after);
                assert!(store.reserve(std::slice::from_ref(&limit)).await.granted, "{window} {after}");
            }
        }
    }

    async fn a_sliding_month_is_31_days(store: Store) {
        let limit = demand("m", "month", "1");
        store.reserve(std::slice::from_ref(&limit)).await;
        let wait = store.reserve(&[limit]).await.readings[0].wait.expect("waits");
        let days = 86_400 * SECOND;
        assert!(wait > 31 * days && wait <= 31 * days + 31 * days / 20, "{wait:?}");
    }

    async fn repeating_a_reservation_charges_once(store: Store) {
        let (id, limit) = (ReservationId::new(), demand("n", "minute", "2"));
        for _ in 0..5 {
            let reserved = store.reserve_as(id, std::slice::from_ref(&limit)).await;
            assert!(reserved.granted);
            assert_eq!(reserved.readings[0].used, Amount::ONE);
        }
        store.advance(SECOND * 59);
        assert!(store.reserve_as(id, std::slice::from_ref(&limit)).await.granted);
        assert_eq!(store.used(&limit).await, "1");
    }

    async fn a_refund_is_paid_once_and_only_for_what_was_charged(store: Store) {
        let limits = [demand("n", "minute", "5"), weighing("2.5", demand("m", "day", "10"))];
        let (kept, given_back) = (ReservationId::new(), ReservationId::new());
        store.reserve_as(kept, &limits).await;
        store.reserve_as(given_back, &limits).await;
        for _ in 0..3 {
            store.refund(given_back, &limits).await;
            store.refund(ReservationId::new(), &limits).await;
        }
        assert_eq!(store.used(&limits[0]).await, "1");
        assert_eq!(store.used(&limits[1]).await, "2.5");
    }

    async fn a_refused_reservation_has_nothing_to_refund(store: Store) {
        let (id, limit) = (ReservationId::new(), demand("n", "minute", "1"));
        store.reserve(std::slice::from_ref(&limit)).await;
        assert!(!store.reserve_as(id, std::slice::from_ref(&limit)).await.granted);
        store.refund(id, std::slice::from_ref(&limit)).await;
        assert_eq!(store.used(&limit).await, "1");
    }

    async fn a_refund_goes_to_the_bucket_that_was_charged(store: Store) {
        let (old, limit) = (ReservationId::new(), demand("n", "minute", "2"));
        store.reserve_as(old, std::slice::from_ref(&limit)).await;
        store.advance(SECOND * 30);
        store.reserve(std::slice::from_ref(&limit)).await;
        store.refund(old, std::slice::from_ref(&limit)).await;
        // The charge that stays is the younger one: it counts for another minute.
        store.advance(SECOND * 59);
        assert_eq!(store.used(&limit).await, "1");
        store.advance(SECOND * 5);
        assert_eq!(store.used(&limit).await, "0");
    }

    async fn a_late_refund_does_not_lower_what_was_charged_since(store: Store) {
        let (old, limit) = (ReservationId::new(), demand("n", "minute", "2"));
        let kept = SECOND * 86_400;
        store.counters.reserve_for(store.workspace, old, std::slice::from_ref(&limit), kept).await.expect("available");
        store.advance(SECOND * 90);
        store.reserve(std::slice::from_ref(&limit)).await;
        store.refund(old, std::slice::from_ref(&limit)).await;
        assert_eq!(store.used(&limit).await, "1");
    }

    async fn a_reservation_that_comes_after_its_refund_charges_nothing(store: Store) {
        // A time-out: the caller gave up and refunded, and then the reserve arrives.
        let (id, limit) = (ReservationId::new(), demand("n", "minute", "5"));
        store.refund(id, std::slice::from_ref(&limit)).await;
        assert!(!store.reserve_as(id, std::slice::from_ref(&limit)).await.granted);
        assert_eq!(store.used(&limit).await, "0");
    }

    async fn a_parked_charge_moves_to_its_release_in_one_step(store: Store) {
        let limits = [demand("n", "minute", "1"), demand("d", "day", "1")];
        let (parked, released) = (ReservationId::new(), ReservationId::new());
        store.counters.reserve_for(store.workspace, parked, &limits, SECOND * 86_400).await.expect("available");
        store.advance(SECOND * 600);
        for _ in 0..2 {
            let moved = store.counters.rebook(store.workspace, parked, &limits, released, &limits).await;
            assert!(moved.expect("available").granted);
        }
        assert_eq!(store.used(&limits[0]).await, "1");
        assert_eq!(store.used(&limits[1]).await, "1");
        // Charged at the time of release, and refundable as such.
        assert!(store.read(&limits[0]).await.resets_in.expect("counts") > SECOND * 60);
        store.refund(parked, &limits).await;
        assert_eq!(store.used(&limits[1]).await, "1");
        store.refund(released, &limits).await;
        assert_eq!(store.used(&limits[1]).await, "0");
    }

    async fn a_release_that_the_limits_refuse_changes_nothing(store: Store) {
        let limits = [demand("n", "minute", "1"), demand("d", "day", "3")];
        let (parked, released) = (ReservationId::new(), ReservationId::new());
        store.counters.reserve_for(store.workspace, parked, &limits, SECOND * 86_400).await.expect("available");
        store.advance(SECOND * 600);
        store.reserve(&limits).await;
        let moved = store.counters.rebook(store.workspace, parked, &limits, released, &limits).await.expect("available");
        assert!(!moved.granted);
        assert_eq!(moved.blamed(), Some(0));
        assert_eq!(store.used(&limits[1]).await, "2");
        store.advance(SECOND * 64);
        let moved = store.counters.rebook(store.workspace, parked, &limits, released, &limits).await.expect("available");
        assert!(moved.granted);
        assert_eq!(store.used(&limits[1]).await, "2");
    }

    async fn a_release_under_another_policy_gives_the_old_counters_back(store: Store) {
        let (before, after) = ([demand("old", "day", "1")], [demand("new", "day", "1")]);
        let (parked, released) = (ReservationId::new(), ReservationId::new());
        store.reserve_as(parked, &before).await;
        store.counters.rebook(store.workspace, parked, &before, released, &after).await.expect("available");
        assert_eq!(store.used(&before[0]).await, "0");
        assert_eq!(store.used(&after[0]).await, "1");
        let gone = store.counters.rebook(store.workspace, released, &after, ReservationId::new(), &[]).await;
        assert!(gone.expect("available").granted);
        assert_eq!(store.used(&after[0]).await, "0");
    }

    async fn a_new_maximum_applies_to_the_running_count(store: Store) {
        // F-R8.
        let limit = |max| demand("n", "hour", max);
        for _ in 0..5 {
            assert!(store.reserve(&[limit("5")]).await.granted);
        }
        assert!(!store.reserve(&[limit("5")]).await.granted);
        for _ in 0..5 {
            assert!(store.reserve(&[limit("10")]).await.granted);
        }
        let lowered = store.reserve(&[limit("3")]).await;
        assert!(!lowered.granted && lowered.readings[0].wait.is_some());
        assert_eq!(lowered.readings[0].remaining, Amount::ZERO);
        assert!(!store.reserve(&[limit("10")]).await.granted, "nothing was forgotten meanwhile");
    }

    async fn workspaces_owners_scopes_and_windows_do_not_share(store: Store) {
        // F-R7.
        let limit = demand("hourly", "hour", "1");
        assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
        let elsewhere = store.counters.reserve(WorkspaceId::new(), ReservationId::new(), std::slice::from_ref(&limit));
        assert!(elsewhere.await.expect("available").granted);
        let mut session = limit.clone();
        session.key.scope = Scope::Session;
        for other in [of("g2", limit.clone()), session, calendar(limit.clone()), demand("hourly", "day", "1"), demand("hourly2", "hour", "1")] {
            assert!(store.reserve(&[other]).await.granted);
        }
        assert!(!store.reserve(&[demand("hourly", "60m", "1")]).await.granted, "60 minutes are an hour");
    }

    async fn a_reset_empties_one_counter_and_later_refunds_do_not_reach_past_it(store: Store) {
        let (before, limits) = (ReservationId::new(), [demand("a", "day", "2"), demand("b", "day", "2")]);
        store.reserve_as(before, &limits).await;
        let held = store.counters.reset(store.workspace, &limits[0].key).await.expect("available");
        assert_eq!(held, Amount::ONE, "what was there is told, for the record");
        let empty = store.counters.reset(store.workspace, &demand("c", "day", "2").key).await;
        assert_eq!(empty.expect("available"), Amount::ZERO);
        assert_eq!(store.used(&limits[0]).await, "0");
        assert_eq!(store.used(&limits[1]).await, "1");
        store.reserve(&limits).await;
        store.refund(before, &limits).await;
        assert_eq!(store.used(&limits[0]).await, "1");
        assert_eq!(store.used(&limits[1]).await, "1");
    }

    async fn a_grants_sessions_are_found_while_they_count(store: Store) {
        let (one, other) = (GrantId::new(), GrantId::new());
        let of_session = |grant: GrantId, session: &str, window| {
            let key = CounterKey {
                scope: Scope::Session,
                owner: session_owner(grant, session),
                ..demand("n", window, "2").key
            };
            Demand { key, ..demand("n", window, "2") }
        };
        let sessions = async |most| {
            let found = store.counters.sessions(store.workspace, &[one, other], most).await;
            let mut found = found.expect("available");
            found.sort();
            found
        };
        assert!(sessions(10).await.is_empty());
        let odd = "a/b:{c}%2f ö";
        for (grant, session, window) in
            [(one, "s-1", "second"), (one, odd, "hour"), (one, odd, "hour"), (other, "s-1", "hour")]
        {
            let plain = demand("plain", "hour", "100");
            assert!(store.reserve(&[plain, of_session(grant, session, window)]).await.granted);
        }
        let refused = store.reserve(&[of_session(one, odd, "hour")]).await;
        assert!(!refused.granted);
        let elsewhere = of_session(one, "elsewhere", "hour");
        store.counters.reserve(WorkspaceId::new(), ReservationId::new(), &[elsewhere]).await.expect("available");
        let all = [(one, odd.to_owned()), (one, "s-1".to_owned()), (other, "s-1".to_owned())];
        let mut sorted = all.to_vec();
        sorted.sort();
        assert_eq!(sessions(10).await, sorted);
        assert_eq!(sessions(1).await.len(), 2, "so many of each grant");
        assert!(sessions(0).await.is_empty());
        // The plain counter of the call lives for an hour; the session's own second has passed.
        store.advance(SECOND * 7_200);
        assert!(sessions(10).await.is_empty());
    }

    async fn many_counters_are_read_at_once(store: Store) {
        let limit = |n: usize| demand(&format!("n{n}"), "hour", "5");
        for n in [0, 999, 1_000, 2_499] {
            assert!(store.reserve(&[limit(n)]).await.granted);
        }
        let keys: Vec<_> = (0..2_500).map(|n| (limit(n).key, limit(n).max)).collect();
        let read = store.counters.read(store.workspace, &keys).await.expect("available");
        assert_eq!(read.len(), 2_500);
        let charged: Vec<_> = (0..2_500).filter(|&n| read[n].used > Amount::ZERO).collect();
        assert_eq!(charged, [0, 999, 1_000, 2_499]);
    }

    async fn reading_tells_how_a_counter_stands_and_charges_nothing(store: Store) {
        let limit = demand("n", "minute", "2");
        let empty = store.read(&limit).await;
        assert_eq!((empty.used, empty.remaining), (Amount::ZERO, amount("2")));
        assert_eq!((empty.wait, empty.resets_in, empty.never), (None, None, false));
        store.reserve(std::slice::from_ref(&limit)).await;
        store.advance(SECOND * 20);
        store.reserve(std::slice::from_ref(&limit)).await;
        let full = store.read(&limit).await;
        assert_eq!((full.used, full.remaining), (amount("2"), Amount::ZERO));
        let (wait, resets) = (full.wait.expect("full"), full.resets_in.expect("counts"));
        assert!(wait > SECOND * 40 && wait <= SECOND * 43, "{wait:?}");
        assert!(resets > SECOND * 60 && resets <= SECOND * 63, "{resets:?}");
        assert_eq!(store.read(&limit).await, full);
    }

    async fn one_counter_asked_twice_is_charged_for_both(store: Store) {
        let limits = [weighing("2", demand("n", "minute", "10")), weighing("3", demand("n", "60s", "6"))];
        let reserved = store.reserve(&limits).await;
        assert!(reserved.granted);
        assert_eq!(reserved.readings.iter().map(|r| r.remaining.to_string()).collect::<Vec<_>>(), ["5", "1"]);
        assert!(!store.reserve(&limits).await.granted);
        assert_eq!(store.used(&limits[0]).await, "5");
    }

    async fn an_amount_of_nothing_fits_a_full_counter(store: Store) {
        let limit = demand("n", "minute", "1");
        store.reserve(std::slice::from_ref(&limit)).await;
        assert!(store.reserve(&[weighing("0", limit.clone())]).await.granted);
        assert!(store.reserve(&[weighing("0", of("fresh", demand("n", "minute", "0")))]).await.granted);
        let negative = Demand { amount: Amount::from_billionths(-1_000_000_000), ..limit.clone() };
        store.reserve(&[negative]).await;
        assert_eq!(store.used(&limit).await, "1", "a negative amount lowers nothing");
    }

    async fn a_clock_that_goes_back_neither_frees_nor_locks(store: Store) {
        let limit = demand("n", "minute", "1");
        store.reserve(std::slice::from_ref(&limit)).await;
        store.set("2026-11-01T00:00:00Z");
        let wait = store.reserve(std::slice::from_ref(&limit)).await.readings[0].wait.expect("still counts");
        assert!(wait <= SECOND * 63);
        store.set("2026-11-01T00:01:03Z");
        assert!(store.reserve(std::slice::from_ref(&limit)).await.granted);
    }
}
