//! Forms that take something away: what cannot be got back wants its name typed, and for everything else it is said
//! here how to get it back.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::world::World;

/// The name of what goes must be typed.
const TYPED: [&str; 4] = [
    "/w/{ws}/grants/{id}/revoke",
    "/w/{ws}/policies/{id}/delete",
    "/w/{ws}/servers/{id}/delete",
    "/w/{ws}/settings/delete",
];

/// How the rest is got back.
const BACK: [(&str, &str); 20] = [
    ("/account/identities/{id}/unlink", "the provider is linked again on the same page"),
    ("/account/passkeys/{id}/remove", "a passkey is made again on the same page"),
    ("/account/second-factor/end", "it asks for a code, and is begun again on the same page"),
    ("/account/sessions/end-others", "one signs in again"),
    ("/account/sessions/{id}/end", "one signs in again"),
    ("/w/{ws}/api-tokens/{id}/revoke", "another token is made on the same page"),
    ("/w/{ws}/approvals/deny", "the agent sends the call again"),
    ("/w/{ws}/approvals/exceptions/{id}/revoke", "it is given again with the next approval"),
    ("/w/{ws}/grants/{id}/rotate", "the old token may go on for days"),
    ("/w/{ws}/invites/{id}/revoke", "the person is invited again on the same page"),
    ("/w/{ws}/limits/reset", "the counter counts on from nothing; calls were not lost"),
    ("/w/{ws}/logs/filters/{id}/delete", "the filter is saved again from its address"),
    ("/w/{ws}/members/leave", "an admin invites again"),
    ("/w/{ws}/members/{id}/remove", "the person is invited again on the same page"),
    ("/w/{ws}/notifications/endpoints/{id}/delete", "it is made again on the same page"),
    ("/w/{ws}/notifications/endpoints/{id}/rotate", "the new secret is shown"),
    ("/w/{ws}/policies/{id}/undo", "each version stays and can be restored"),
    ("/w/{ws}/policies/{id}/versions/{version}/restore", "each version stays and can be restored"),
    ("/w/{ws}/settings/hand-over", "the new owner hands it back; it asks for the member"),
    ("/w/{ws}/settings/join-domains/{id}/remove", "the domain is added again on the same page"),
];

const VERBS: [&str; 14] = [
    "delete",
    "remove",
    "revoke",
    "rotate",
    "reset",
    "leave",
    "end",
    "end-others",
    "unlink",
    "deny",
    "undo",
    "restore",
    "hand-over",
    "forget",
];

#[test]
fn every_form_that_takes_away_wants_a_name_or_says_the_way_back() {
    let forms = include_str!("routes/table.txt").lines();
    let forms = forms.filter_map(|line| line.strip_prefix("POST ")?.split_whitespace().next());
    let ends: BTreeSet<&str> = forms
        .filter(|form| !form.starts_with("/api/"))
        .filter(|form| form.rsplit('/').next().is_some_and(|verb| VERBS.contains(&verb)))
        // It gives back what was deleted.
        .filter(|form| *form != "/account/workspaces/{id}/restore")
        .collect();
    let known: BTreeSet<&str> = TYPED.into_iter().chain(BACK.map(|(form, _)| form)).collect();
    assert_eq!(ends, known);
    assert!(BACK.iter().all(|(_, way)| way.len() > 12));
}

#[tokio::test]
async fn what_cannot_be_got_back_stays_until_its_name_is_typed() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    browser.submit(&format!("{server}/tools/executePython/apply"), &[]).await;
    browser.submit(&format!("{server}/grants/new"), &[("label", "agent")]).await;
    let first = |links: Vec<String>, start: &str| {
        links.into_iter().find(|link| link.starts_with(start)).expect("a link")
    };
    // One that no grant uses: another cannot be deleted at all.
    let spare =
        [("name", "spare"), ("document", r#"{"version":"1","default":"deny"}"#), ("press", "save")];
    let policy =
        browser.submit(&format!("{server}/policies/new"), &spare).await.location().to_owned();
    let policy = policy.split('?').next().expect("a path").to_owned();
    let grant = first(browser.get("/w/acme/grants").await.links(), "/w/acme/grants/");
    for (page, form) in [
        (grant.clone(), format!("{grant}/revoke")),
        (policy.clone(), format!("{policy}/delete")),
        (format!("{server}/settings"), format!("{server}/delete")),
        ("/w/acme/settings".to_owned(), "/w/acme/settings/delete".to_owned()),
    ] {
        for typed in ["", "something else"] {
            let answer = browser.submit_to(&page, &form, &[("confirm", typed)]).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form} with `{typed}`");
            assert!(answer.body.contains("name=\"confirm\""), "{form}: it asks again");
        }
        assert_eq!(browser.get(&page).await.status, StatusCode::OK, "{form}: it is there still");
    }
}
