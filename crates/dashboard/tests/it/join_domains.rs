//! Joining by e-mail domain, from the settings page to the account of who joins.

use sluice_store::users;

use crate::world::World;

async fn confirm(world: &World, email: &str) {
    let mut tx = world.db.begin().await.expect("begins");
    let conn = &mut tx.conn();
    let user = users::find_by_email(conn, email).await.expect("answers").expect("there");
    users::set_verified(conn, user.id, world.control.now()).await.expect("notes");
    tx.commit().await.expect("commits");
}

#[tokio::test]
async fn an_admin_opens_the_workspace_to_a_domain_and_somebody_of_it_joins() {
    let world = World::new().await;
    let mut ann = world.admin().await;
    let settings = ann.get("/w/acme/settings").await;
    settings.says("Joining by e-mail domain").says("Yours is example.test");
    let add = [("domain", "example.test"), ("role", "viewer")];
    let refused = ann.submit_to("/w/acme/settings", "/w/acme/settings/join-domains", &add).await;
    refused.says("Your own address is not confirmed");
    confirm(&world, "ann@example.test").await;
    let refused = ann
        .submit_to(
            "/w/acme/settings",
            "/w/acme/settings/join-domains",
            &[("domain", "gmail.com"), ("role", "viewer")],
        )
        .await;
    refused.says("Anybody can get an address at gmail.com");
    ann.submit_to("/w/acme/settings", "/w/acme/settings/join-domains", &add).await;
    let page = ann.get("/w/acme/settings").await;
    page.says("example.test viewer");
    let mut bob = world.browser();
    bob.sign_up("bob@example.test").await;
    assert!(!bob.get("/account").await.body.contains("Workspaces you may join"));
    confirm(&world, "bob@example.test").await;
    bob.get("/workspaces/new").await.says("Or join one that is there").says("Acme");
    let account = bob.get("/account").await;
    account.says("Workspaces you may join").says("Acme");
    let join = account.body.split("action=\"/account/join/").nth(1).expect("a button");
    let id = join.split('"').next().expect("an id").to_owned();
    let path = format!("/account/join/{id}");
    let joined = bob.go_on(&account, "/account", &path, &[]).await;
    assert_eq!(joined.location(), "/w/acme/");
    bob.get("/w/acme/").await.says("Acme");
    let again = bob.go_on(&account, "/account", &path, &[]).await;
    assert_eq!(again.status, 404);
    let row = page.body.split("/settings/join-domains/").nth(1).expect("a button");
    let id = row.split('/').next().expect("an id");
    let path = format!("/w/acme/settings/join-domains/{id}/remove");
    ann.go_on(&page, "/w/acme/settings", &path, &[]).await;
    assert!(!ann.get("/w/acme/settings").await.body.contains("join-domains/"));
    let audit = ann.get("/w/acme/audit").await;
    audit.says("join_domain.add").says("member.join").says("join_domain.remove");
}
