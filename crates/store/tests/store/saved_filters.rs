//! A member's saved filters: theirs alone, and gone with the membership.

use sluice_domain::Role;
use sluice_store::{Db, StoreError, members, saved_filters};
use sluice_testkit::on_both;

use crate::support::{now, world};

on_both! {
async fn are_the_members_own(db: Db) {
    let mut tx = db.begin().await.expect("begins");
    let conn = &mut tx.conn();
    let (a, b) = (world(conn, "acme").await, world(conn, "globex").await);
    // A member of both.
    members::add(conn, a.workspace, b.user, Role::Viewer, now()).await.expect("a member");
    let mine = ("Refused", "outcome=denied");
    let id = saved_filters::create(conn, a.workspace, a.user, mine, now()).await.expect("saves");
    for (workspace, user) in [(a.workspace, b.user), (b.workspace, b.user)] {
        let theirs = ("Refused", "outcome=limited");
        saved_filters::create(conn, workspace, user, theirs, now()).await.expect("saves");
        assert!(!saved_filters::delete(conn, workspace, user, id).await.expect("asks"));
        let found = saved_filters::list(conn, workspace, user).await.expect("lists");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].query.as_str()), theirs);
    }
    tx.commit().await.expect("commits");

    let mut tx = db.begin().await.expect("begins");
    let again = saved_filters::create(&mut tx.conn(), a.workspace, a.user, mine, now()).await;
    assert!(
        matches!(&again, Err(StoreError::Conflict { constraint }) if constraint == "saved_filters_name"),
        "{again:?}"
    );
    drop(tx);
    let mut tx = db.begin().await.expect("begins");
    let stranger = saved_filters::create(&mut tx.conn(), b.workspace, a.user, mine, now()).await;
    assert!(matches!(stranger, Err(StoreError::DanglingReference)), "{stranger:?}");
    drop(tx);

    let mut tx = db.begin().await.expect("begins");
    let conn = &mut tx.conn();
    members::remove(conn, a.workspace, b.user, now()).await.expect("removes");
    let left = saved_filters::list(conn, a.workspace, b.user).await.expect("lists");
    assert!(left.is_empty(), "gone with the membership");
    assert_eq!(saved_filters::list(conn, b.workspace, b.user).await.expect("lists").len(), 1);
    assert!(saved_filters::delete(conn, a.workspace, a.user, id).await.expect("deletes"));
    tx.commit().await.expect("commits");
}
}
