//! Grants: the token once, the rest as often as one likes.

use http::StatusCode;

use crate::world::World;

#[tokio::test]
async fn a_token_is_shown_once_and_never_again() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let new = format!("{path}/grants/new");
    let page = browser.submit(&new, &[("label", "bot")]).await;
    assert_eq!(page.status, StatusCode::OK);
    let token = page
        .body
        .split("id=\"token-once\">")
        .nth(1)
        .and_then(|rest| rest.split('<').next())
        .expect("a token")
        .to_owned();
    assert!(token.starts_with("slg_"), "{token}");
    let grant = page
        .links()
        .into_iter()
        .find(|link| link.starts_with("/w/acme/grants/"))
        .expect("a link to it");
    for path in [grant.as_str(), "/w/acme/grants", &format!("{path}/grants"), "/w/acme/audit"] {
        assert!(!browser.get(path).await.body.contains(&token), "{path}");
    }
    browser.get(&grant).await.says("No policy: refused").says("No call yet");
    let rotated =
        browser.submit_to(&grant, &format!("{grant}/rotate"), &[("overlap_hours", "1")]).await;
    rotated.says("The grant's new token");
    assert!(!rotated.body.contains(&token));
    // What cannot be undone is typed.
    let refused =
        browser.submit_to(&grant, &format!("{grant}/revoke"), &[("confirm", "bit")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("The grant was not revoked: type its label exactly.");
    let typed = [("confirm", "bot")];
    let revoked = browser.submit_to(&grant, &format!("{grant}/revoke"), &typed).await;
    assert_eq!(revoked.location(), grant);
    browser.get(&grant).await.says("Revoked");
    let list = browser.get("/w/acme/grants").await;
    list.says("No grant yet");
    browser.get("/w/acme/grants?revoked=1").await.says("bot");
}

#[tokio::test]
async fn faults_stand_at_their_fields_and_nothing_is_saved_by_halves() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let new = format!("{path}/grants/new");
    browser.submit(&new, &[("label", "bot")]).await;
    let twice = browser.submit(&new, &[("label", "bot"), ("networks", "10.0.0.0/8")]).await;
    assert_eq!(twice.status, StatusCode::CONFLICT);
    twice.says("Another grant has this label.");
    assert_eq!(
        (twice.value("label").as_str(), twice.value("networks").as_str()),
        ("bot", "10.0.0.0/8")
    );
    let odd = browser.submit(&new, &[("label", "bot2"), ("networks", "not a network")]).await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(odd.body.contains("id=\"networks-error\""), "{}", odd.body);
    let odd = browser.submit(&new, &[("label", "bot2"), ("policy", "nonsense")]).await;
    odd.says("This server has no such policy.");
    assert!(!browser.get("/w/acme/grants").await.body.contains("bot2"));
}

#[tokio::test]
async fn an_edit_of_something_older_is_told() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let page = browser.submit(&format!("{path}/grants/new"), &[("label", "bot")]).await;
    let grant = page
        .links()
        .into_iter()
        .find(|link| link.starts_with("/w/acme/grants/"))
        .expect("a link to it");
    let stale = browser.get(&grant).await.value("revision");
    let csrf = browser.get(&grant).await.value("csrf");
    browser.post(&grant, &[("csrf", &csrf), ("revision", &stale), ("label", "first")]).await;
    let second =
        browser.post(&grant, &[("csrf", &csrf), ("revision", &stale), ("label", "second")]).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    second.says("Somebody else changed it since you read it");
    assert_eq!(second.value("label"), "second", "what was typed is kept");
}

#[tokio::test]
async fn what_a_grant_did_is_told_with_the_calls_behind_it() {
    let world = World::new().await;
    let (mut browser, calls) = crate::logs::with_calls(&world, 3).await;
    let server = format!("/w/acme/servers/{}", calls[0].server);
    let page = browser.submit(&format!("{server}/grants/new"), &[("label", "agent")]).await;
    let links = page.links();
    let grant = links.iter().find(|link| link.starts_with("/w/acme/grants/")).expect("a link");
    let id = grant.rsplit('/').next().expect("an id").parse().expect("an id");
    let of = |n: usize| sluice_domain::CallRecord {
        id: sluice_domain::CallId::new(),
        grant: id,
        ..calls[n].clone()
    };
    let (one, two, three) = (of(0), of(1), of(3));
    crate::logs::write(&world, &[&one, &two, &three]).await;
    let page = browser.get(grant).await;
    page.says("What it did");
    let did: Vec<String> =
        page.links().into_iter().filter(|link| link.contains("kind=tools")).collect();
    assert_eq!(did.len(), 2, "{did:?}");
    browser.get(&did[0]).await.says("2 calls, newest first");
    browser.get(&did[1]).await.says("1 call");
}
