//! Signing up, in and out.

use http::StatusCode;

use crate::browser::PASSWORD;
use crate::world::World;

#[tokio::test]
async fn a_form_without_its_token_or_with_an_old_one_is_refused() {
    let world = World::new().await;
    let mut browser = world.browser();
    let typed = [("email", "ann@example.test"), ("password", PASSWORD)];
    assert_eq!(browser.post("/signup", &typed).await.status, StatusCode::FORBIDDEN);
    browser.sign_up("ann@example.test").await;
    let old = browser.get("/account").await.value("csrf");
    assert!(!old.is_empty());
    // Signing in again ends what the old form was good for, for the same person and for another.
    browser.submit_to("/account", "/logout", &[]).await;
    browser.submit("/login", &typed).await;
    let page = browser.post("/workspaces/new", &[("csrf", &old), ("name", "Acme")]).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    page.says("This is not open to you").says("Nothing was saved");
    assert_eq!(browser.get("/w").await.location(), "/workspaces/new");
}

#[tokio::test]
async fn signing_out_ends_the_session_on_the_server() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let copied = browser.cookies();
    assert_eq!(browser.get("/w/acme/").await.status, StatusCode::OK);
    let out = browser.submit_to("/account", "/logout", &[]).await;
    assert_eq!(out.location(), "/login");
    browser.get("/login").await.says("Signed out");
    browser.set_cookies(copied);
    assert_eq!(browser.get("/w/acme/").await.location(), "/login?next=%2Fw%2Facme%2F");
}

#[tokio::test]
async fn what_was_typed_is_kept_and_each_fault_stands_at_its_field() {
    let world = World::new().await;
    let mut browser = world.browser();
    let page = browser
        .submit("/signup", &[("email", "\"><b>"), ("password", "x"), ("name", "A\u{202e}B")])
        .await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(page.value("email"), "\"><b>");
    for id in ["email-error", "password-error", "name-error"] {
        assert!(page.body.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(!page.body.contains("<b>\""), "{}", page.body);
    assert_eq!(page.value("password"), "", "a password is never sent back");
    let page = browser
        .submit("/login", &[("email", "ann@example.test"), ("password", "wrong password")])
        .await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    page.says("E-mail address or password is wrong.");
    assert_eq!(page.value("email"), "ann@example.test");
}

#[tokio::test]
async fn a_password_is_changed_with_the_old_one_only() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let wrong = [("old_password", "not it at all"), ("new_password", "another long password")];
    let page = browser.submit_to("/account", "/account/password", &wrong).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("This is not your present password.");
    let right = [("old_password", PASSWORD), ("new_password", "another long password")];
    assert_eq!(
        browser.submit_to("/account", "/account/password", &right).await.location(),
        "/account"
    );
    browser.get("/account").await.says("Changed your password").says("This one");
    // The sentence is shown once.
    assert!(!browser.get("/account").await.body.contains("Changed your password"));
}

#[tokio::test]
async fn a_stranger_is_sent_to_sign_in_and_another_workspace_does_not_exist() {
    let world = World::new().await;
    world.admin().await;
    let mut stranger = world.browser();
    assert_eq!(
        stranger.get("/w/acme/logs?tool=x").await.location(),
        "/login?next=%2Fw%2Facme%2Flogs%3Ftool%3Dx"
    );
    stranger.sign_up("eve@example.test").await;
    for path in ["/w/acme/", "/w/acme/servers", "/w/acme/logs", "/w/acme/settings", "/w/nobody/"] {
        let page = stranger.get(path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        page.says("There is no such page");
    }
}

#[tokio::test]
async fn a_second_workspace_of_the_same_name_is_another_one() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    assert_eq!(
        browser.submit("/workspaces/new", &[("name", "Acme")]).await.location(),
        "/w/acme-2/"
    );
    let page = browser.submit("/workspaces/new", &[("name", "  ")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("Give it a name.");
}

#[tokio::test]
async fn a_workspace_is_deleted_by_typing_its_address_and_restored_from_the_account() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let page = browser
        .submit_to("/w/acme/settings", "/w/acme/settings/delete", &[("confirm", "Acme")])
        .await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("Type acme, the workspace's address, to delete it");
    assert!(page.body.contains("value=\"Acme\""), "what was typed stays");
    let gone = browser
        .submit_to("/w/acme/settings", "/w/acme/settings/delete", &[("confirm", "acme")])
        .await;
    assert_eq!(gone.location(), "/account");
    assert_eq!(browser.get("/w/acme/").await.status, StatusCode::NOT_FOUND);
    let page = browser.get("/account").await;
    page.says("You can restore it until").says("Deleted workspaces");
    let at = page.body.find("/account/workspaces/").expect("a form");
    let action = page.body[at..].split('"').next().expect("its address").to_owned();
    assert_eq!(browser.submit_to("/account", &action, &[]).await.location(), "/w/acme/");
    browser.get("/w/acme/").await.says("Restored the workspace");
    assert!(!browser.get("/account").await.body.contains("Deleted workspaces"));
}

#[tokio::test]
async fn a_workspace_is_handed_to_another_member() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    browser.get("/w/acme/settings").await.says("You are the only member");
    let invited = browser
        .submit_to(
            "/w/acme/members",
            "/w/acme/members/invite",
            &[("email", "bob@example.test"), ("role", "viewer")],
        )
        .await;
    let at = invited.body.find("/join/").expect("a link");
    let link: String = invited.body[at..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || "/_-".contains(*c))
        .collect();
    let mut bob = world.browser();
    bob.sign_up("bob@example.test").await;
    bob.submit(&link, &[]).await;
    let page = browser.get("/w/acme/settings").await;
    page.says("bob@example.test").says("Servers").says("As many as the policies allow");
    let at = page.body.find("bob@example.test</option>").expect("an option");
    let id = page.body[..at]
        .rsplit("value=\"")
        .next()
        .and_then(|it| it.split('"').next())
        .expect("an id")
        .to_owned();
    for (member, stay, told) in [
        ("nobody", "admin", "Choose a member."),
        (id.as_str(), "king", "Choose what becomes of you."),
    ] {
        let page = browser
            .submit_to(
                "/w/acme/settings",
                "/w/acme/settings/hand-over",
                &[("member", member), ("stay", stay)],
            )
            .await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{stay}");
        page.says(told);
    }
    let done = browser
        .submit_to(
            "/w/acme/settings",
            "/w/acme/settings/hand-over",
            &[("member", &id), ("stay", "leave")],
        )
        .await;
    assert_eq!(done.location(), "/account");
    assert_eq!(browser.get("/w/acme/").await.status, StatusCode::NOT_FOUND);
    bob.get("/w/acme/settings").await.says("Delete this workspace");
}
