//! One field finds pages, things, the handbook and calls.

use sluice_domain::CallId;

use crate::browser::Page;
use crate::world::World;

/// Where the list of a search leads.
fn places(page: &Page) -> Vec<String> {
    let list = page.body.split("id=\"places\"").nth(1).expect("a list");
    let list = list.split("</ul>").next().expect("closed");
    let links = list.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.map(|link| link.replace("&#38;", "&").replace("&amp;", "&")).collect()
}

#[tokio::test]
async fn one_field_leads_to_pages_things_the_handbook_and_calls() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    browser.submit(&format!("{server}/tools/executePython/apply"), &[]).await;
    browser.submit(&format!("{server}/grants/new"), &[("label", "Nightly agent")]).await;
    let policies = browser.get(&format!("{server}/policies")).await;
    let policy = policies.links().into_iter().find(|link| link.starts_with("/w/acme/policies/"));
    let grants = browser.get("/w/acme/grants").await;
    let grant = grants.links().into_iter().find(|link| link.starts_with("/w/acme/grants/"));
    let (policy, grant) = (policy.expect("a policy"), grant.expect("a grant"));
    let name = policies.body.split(&format!("{policy}\">")).nth(1).expect("its name");
    let name = name.split('<').next().expect("closed").to_owned();

    // The field stands on every page and needs no script.
    let home = browser.get("/w/acme/").await;
    assert!(home.body.contains("action=\"/w/acme/find\""), "no field");
    let id = CallId::new().to_string();
    for (words, place) in [
        ("SANDB", server.as_str()),
        ("python", &format!("{server}/tools/executePython")),
        (&name, &policy),
        ("nightly", &grant),
        ("approv", "/w/acme/approvals"),
        ("audit log", "/w/acme/audit"),
        ("quorum", "/docs/approvals"),
        (&id, &format!("/w/acme/logs/{id}")),
        ("no such thing", "/w/acme/logs?q=no%20such%20thing"),
    ] {
        let page = browser.get(&format!("/w/acme/find?q={}", words.replace(' ', "+"))).await;
        let found = places(&page);
        assert!(
            found.iter().any(|link| link.split('#').next() == Some(place)),
            "{words}: {found:?}"
        );
    }
    // Nothing in it is a pattern or markup; nothing asked for is every page.
    let found = places(&browser.get("/w/acme/find?q=%25%25%25").await);
    assert_eq!(found, ["/w/acme/logs?q=%25%25%25"]);
    let odd = browser.get("/w/acme/find?q=%3Cimg%20src%3Dx%3E").await;
    assert!(!odd.body.contains("<img src=x>"));
    let all = places(&browser.get("/w/acme/find").await);
    assert!(all.contains(&"/w/acme/settings".to_owned()) && all.len() > 14, "{all:?}");
}
