//! The one read that the proxy needs.

use sluice_domain::ToolState;
use sluice_store::grants::GrantChange;
use sluice_store::{Db, grants, policies, routes, tools, workspaces};
use sluice_testkit::on_both;

use crate::support::{
    DOCUMENT, kept, later, now, poisoned, read_tool, settings, token, version, world,
};

on_both! {
    async fn a_token_leads_to_everything_that_decides_its_calls(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        let read = [read_tool("run", "runs"), poisoned("bad", "bad"), read_tool("gone", "goes")];
        tools::replace_read(&mut tx.conn(), a.workspace, a.server, &read, now()).await.unwrap();
        let reread = [read_tool("run", "RUNS"), read[1].clone()];
        tools::replace_read(&mut tx.conn(), a.workspace, a.server, &reread, now()).await.unwrap();
        policies::save_version(&mut tx.conn(), a.workspace, a.policy, None, version("{ }"), now())
            .await
            .unwrap();
        tx.commit().await.unwrap();

        let mut tx = db.read().await.unwrap();
        let route = routes::find(&mut tx.conn(), &a.token).await.unwrap().unwrap();
        assert_eq!(
            (route.workspace, route.workspace_slug.as_str(), route.suspended),
            (a.workspace, "a", false)
        );
        assert_eq!(
            (route.grant.id, route.grant.label.as_str(), route.grant.revoked),
            (a.grant, "agent", false)
        );
        assert_eq!(
            (route.server.id, &route.server.settings, route.server.tools_read),
            (a.server, &settings(), true)
        );
        assert_eq!(route.server.sealed_headers.as_deref(), Some(&b"sealed"[..]));
        let policy = route.policy.unwrap();
        assert_eq!((policy.id, policy.version, policy.document.as_str()), (a.policy, 2, "{ }"));
        let seen: Vec<_> = route.tools.iter().map(|t| (t.name.as_str(), t.state)).collect();
        assert_eq!(seen, [("bad", ToolState::Held), ("run", ToolState::Changed)]);
        assert_eq!(route.tools[1].definition_hash, read[0].hash, "the reviewed one");
        assert_eq!(
            route.tools[1].input_schema.as_deref(),
            Some(r#"{"type":"object","required":["x"]}"#)
        );
        assert_eq!(routes::find(&mut tx.conn(), &token("unknown")).await.unwrap(), None);
    }

    async fn a_route_says_what_ended(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        workspaces::set_suspended(conn, a.workspace, true, now()).await.unwrap();
        assert!(routes::find(conn, &a.token).await.unwrap().unwrap().suspended);
        workspaces::set_suspended(conn, a.workspace, false, now()).await.unwrap();
        let change = GrantChange {
            policy: Some(None),
            expires_at: Some(Some(later(60))),
            ..GrantChange::default()
        };
        grants::update(conn, a.workspace, a.grant, None, change, now()).await.unwrap();
        let route = routes::find(conn, &a.token).await.unwrap().unwrap();
        assert_eq!((route.policy, route.grant.expires_at), (None, Some(kept(later(60)))));
        grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap();
        assert!(routes::find(conn, &a.token).await.unwrap().unwrap().grant.revoked);
        workspaces::delete(conn, a.workspace, now()).await.unwrap();
        assert!(routes::find(conn, &a.token).await.unwrap().unwrap().suspended);
    }

    async fn a_rotated_token_works_until_its_overlap_ends(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let (second, third) = (token("second"), token("third"));
        let rotated =
            grants::rotate(conn, a.workspace, a.grant, (&second, "2222"), Some(later(60)), now())
                .await;
        let rotated = rotated.unwrap().unwrap();
        assert_eq!(
            (rotated.last4.as_str(), rotated.previous_until),
            ("2222", Some(kept(later(60))))
        );
        let old = routes::find(conn, &a.token).await.unwrap().unwrap();
        let new = routes::find(conn, &second).await.unwrap().unwrap();
        assert_eq!((old.grant.id, old.grant.expires_at), (a.grant, Some(kept(later(60)))));
        assert_eq!((new.grant.id, new.grant.expires_at), (a.grant, None));
        let change = GrantChange { expires_at: Some(Some(later(30))), ..GrantChange::default() };
        grants::update(conn, a.workspace, a.grant, None, change, now()).await.unwrap();
        let old = routes::find(conn, &a.token).await.unwrap().unwrap();
        assert_eq!(old.grant.expires_at, Some(kept(later(30))), "the earlier of both");
        // A second rotation without overlap ends both at once.
        grants::rotate(conn, a.workspace, a.grant, (&third, "3333"), None, now()).await.unwrap();
        assert_eq!(routes::find(conn, &a.token).await.unwrap(), None);
        assert_eq!(routes::find(conn, &second).await.unwrap(), None);
        let policy = routes::find(conn, &third).await.unwrap().unwrap().policy.unwrap();
        assert_eq!(policy.document, DOCUMENT);
    }
}
