//! Counters in process survive a clean restart.

use std::time::Duration;

use sluice_domain::ReservationId;
use sluice_limits::{Counters, FileError};

use crate::store::{Store, calendar, demand, weighing};

#[tokio::test]
async fn a_restart_keeps_counts_and_reservations() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("counters.json");
    let store = Store::in_memory();
    let limits = [weighing("1.25", demand("n", "hour", "10")), calendar(demand("m", "month", "5"))];
    let short = [demand("short", "second", "1")];
    let (parked, plain) = (ReservationId::new(), ReservationId::new());
    let kept = Duration::from_hours(2);
    store.counters.reserve_for(store.workspace, parked, &limits, kept).await.expect("available");
    store.reserve_as(plain, &limits).await;
    store.reserve(&short).await;
    store.counters.save(&path).await.expect("saved");

    store.advance(Duration::from_mins(10));
    let counters = Counters::in_memory(store.clock.function());
    assert_eq!(counters.load(&path).await.expect("loaded"), 2, "the second has passed");
    let again = Store { counters, ..store };
    assert_eq!(again.used(&limits[0]).await, "2.5");
    assert_eq!(again.used(&limits[1]).await, "2");
    again.refund(parked, &limits).await;
    again.refund(parked, &limits).await;
    assert_eq!(again.used(&limits[0]).await, "1.25");
    assert!(again.reserve(&short).await.granted);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("counters.json");
    let store = Store::in_memory();
    for _ in 0..2 {
        store.reserve(&[demand("n", "hour", "10")]).await;
        store.counters.save(&path).await.expect("saved, also over an older one");
        let mode = std::fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let names: Vec<_> = std::fs::read_dir(dir.path()).expect("listed").collect();
    assert_eq!(names.len(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn a_missing_file_is_no_error_and_a_damaged_one_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("counters.json");
    let store = Store::in_memory();
    assert_eq!(store.counters.load(&path).await.expect("nothing to load"), 0);
    for (text, damaged) in [
        ("{\"version\":1", true),
        ("[]", true),
        ("{\"version\":2,\"counters\":[],\"reservations\":[]}", false),
    ] {
        std::fs::write(&path, text).expect("written");
        let error = store.counters.load(&path).await.expect_err(text);
        assert_eq!(matches!(error, FileError::Damaged { .. }), damaged, "{text}");
        assert!(error.to_string().contains("counters.json"));
    }
    let nowhere = dir.path().join("missing").join("counters.json");
    assert!(matches!(store.counters.save(&nowhere).await, Err(FileError::Io { .. })));
}
