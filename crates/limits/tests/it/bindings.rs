//! Entries that expire, with a bound for each owner.

use std::time::Duration;

use crate::store::{Store, eventually, on_both};

const LONG: Duration = Duration::from_mins(10);

on_both! {
    async fn an_entry_is_found_by_its_owner_alone_until_it_is_taken_out(store: Store) {
        let bindings = store.counters.bindings(10);
        let value = b"\x00up{stream}\xff".as_slice();
        assert!(bindings.put("grant", "session", value, LONG).await.expect("available"));
        assert_eq!(bindings.get("grant", "session", LONG).await.expect("available").as_deref(), Some(value));
        for (owner, key) in [("other", "session"), ("grant", "other"), ("grant}{x", "session")] {
            assert_eq!(bindings.get(owner, key, LONG).await.expect("available"), None);
        }
        assert!(bindings.put("grant", "session", b"new", LONG).await.expect("available"));
        assert_eq!(bindings.get("grant", "session", LONG).await.expect("available"), Some(b"new".to_vec()));
        assert!(bindings.delete("grant", "session").await.expect("available"));
        assert!(!bindings.delete("grant", "session").await.expect("available"));
        assert_eq!(bindings.get("grant", "session", LONG).await.expect("available"), None);
    }

    async fn an_owner_holds_only_so_many(store: Store) {
        let bindings = store.counters.bindings(3);
        for n in 0..5 {
            let put = bindings.put("greedy", &format!("s{n}"), b"v", LONG).await.expect("available");
            assert_eq!(put, n < 3, "entry {n}");
        }
        assert!(bindings.put("greedy", "s1", b"again", LONG).await.expect("available"), "a known one");
        assert!(bindings.put("modest", "s", b"v", LONG).await.expect("available"), "others are not hurt");
        assert_eq!(bindings.count("greedy").await.expect("available"), 3);
        bindings.delete("greedy", "s0").await.expect("available");
        assert_eq!(bindings.count("greedy").await.expect("available"), 2);
        assert!(bindings.put("greedy", "s9", b"v", LONG).await.expect("available"));
        assert!(!bindings.put("modest", "big", &vec![0; 65_537], LONG).await.expect("available"));
    }

    async fn an_entry_that_is_not_used_ends_and_makes_room(store: Store) {
        let bindings = store.counters.bindings(1);
        let short = Duration::from_millis(40);
        assert!(bindings.put("grant", "old", b"v", LONG).await.expect("available"));
        assert!(!bindings.put("grant", "new", b"v", LONG).await.expect("available"));
        // Shortened only now: however slow the machine is, it was there until here.
        assert!(bindings.put("grant", "old", b"v", short).await.expect("available"));
        // Redis goes by its own clock, the store in process by the test's.
        store.advance(short);
        eventually("the old entry ends", async || bindings.put("grant", "new", b"v", LONG).await.expect("available")).await;
        assert_eq!(bindings.get("grant", "old", LONG).await.expect("available"), None);
        assert_eq!(bindings.count("grant").await.expect("available"), 1);
    }

    async fn reading_keeps_an_entry_alive(store: Store) {
        let bindings = store.counters.bindings(1);
        assert!(bindings.put("grant", "s", b"v", Duration::from_mins(1)).await.expect("available"));
        bindings.get("grant", "s", LONG).await.expect("available");
        store.advance(Duration::from_secs(61));
        if let Some(redis) = &store.redis {
            let client = redis::Client::open(redis.url()).expect("an address");
            let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
            for key in ["sluice:{grant}:b", "sluice:{grant}:b:s"] {
                let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.expect("pttl");
                assert!(left > 61_000, "{key} ends in {left} ms");
            }
        }
        assert_eq!(bindings.get("grant", "s", LONG).await.expect("available"), Some(b"v".to_vec()));
    }

    async fn the_entry_that_was_not_used_for_longest_makes_room(store: Store) {
        let bindings = store.counters.bindings(3);
        let put = async |key: &str, ttl: Duration| {
            let value = format!("value of {key}");
            bindings.put_displacing("grant", key, value.as_bytes(), ttl).await.expect("available").expect("put")
        };
        for (key, minutes) in [("first}", 1), ("\u{e9} 2", 2), ("third", 3)] {
            assert_eq!(put(key, Duration::from_mins(minutes)).await, []);
        }
        bindings.get("grant", "first}", LONG).await.expect("available").expect("there");
        assert_eq!(put("third", Duration::from_mins(3)).await, [], "a known one needs no room");
        let gone = put("fourth", LONG).await;
        assert_eq!(gone.len(), 1);
        assert_eq!((gone[0].key.as_str(), gone[0].value.as_slice()), ("\u{e9} 2", "value of \u{e9} 2".as_bytes()));
        assert_eq!(bindings.get("grant", "\u{e9} 2", LONG).await.expect("available"), None);
        for key in ["first}", "third", "fourth"] {
            assert!(bindings.get("grant", key, LONG).await.expect("available").is_some(), "{key}");
        }
        assert_eq!(bindings.count("grant").await.expect("available"), 3);
        let none = store.counters.bindings(0).put_displacing("grant", "k", b"v", LONG).await;
        assert_eq!(none.expect("available"), None);
    }

    async fn a_look_does_not_keep_an_entry_alive(store: Store) {
        let bindings = store.counters.bindings(1);
        let short = Duration::from_millis(40);
        assert!(bindings.put("grant", "s", b"v", short).await.expect("available"));
        assert_eq!(bindings.peek("grant", "s").await.expect("available"), Some(b"v".to_vec()));
        store.advance(short);
        eventually("the entry ends", async || bindings.peek("grant", "s").await.expect("available").is_none()).await;
        assert_eq!(bindings.count("grant").await.expect("available"), 0);
    }
}
