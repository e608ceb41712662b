//! Work on the database that is dropped on its way, as when a client goes: nothing of it stays in the pool.

use std::task::Poll;

use sluice_store::{Db, users};
use sluice_testkit::on_both;

use crate::support::now;

/// Polls a future so often, and drops it.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let ready =
            std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready()));
        if ready.await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

on_both! {
    async fn a_transaction_that_is_dropped_while_it_begins_is_none(db: Db) {
        for round in 0..300_usize {
            dropped_after(1 + round % 60, db.read()).await;
            // One after the other they all have the same connection.
            let email = format!("p{round}@example.test");
            let mut tx = db.begin().await.unwrap();
            users::create(&mut tx.conn(), &email, "", None, now()).await.unwrap();
            tx.commit().await.unwrap();
            dropped_after(1 + round % 60, db.begin()).await;
            let mut tx = db.read().await.unwrap();
            let found = users::find_by_email(&mut tx.conn(), &email).await.unwrap();
            assert!(found.is_some(), "{email} is not there");
            tx.commit().await.unwrap();
        }
    }
}
