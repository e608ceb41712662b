//! Every form of the path against bad input: a clear word beside the field, everything typed kept,
//! nothing saved by halves.

mod odd;

use http::StatusCode;

use crate::browser::{Browser, MARKUP, PASSWORD, Page, plain};
use crate::world::World;

/// One field of a form, and what must not go in.
struct Field {
    name: &'static str,
    bad: Vec<String>,
    /// The id of the element that tells; empty where the head of the form does.
    told: &'static str,
}

/// One form, and values that it takes.
struct Form {
    page: String,
    action: String,
    good: Vec<(&'static str, String)>,
    fields: Vec<Field>,
}

/// What no name may be.
fn names() -> Vec<String> {
    [
        "",
        "   ",
        "\u{3000}\u{a0}",
        "a\u{0}b",
        "a\u{202e}b",
        "a\nb",
        "\u{200b}\u{feff}",
        "\u{1b}[31mred",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(["x".repeat(81), "x".repeat(100_000), "é".repeat(100), format!("{MARKUP}\u{2066}")])
    .collect()
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn name(name: &'static str, told: &'static str) -> Field {
    Field { name, bad: names(), told }
}

fn field(name: &'static str, told: &'static str, bad: &[&str]) -> Field {
    Field { name, bad: texts(bad), told }
}

fn form(page: &str, action: &str, good: &[(&'static str, &str)], fields: Vec<Field>) -> Form {
    Form {
        page: page.to_owned(),
        action: action.to_owned(),
        good: good.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        fields,
    }
}

const NOT_URLS: [&str; 12] = [
    "",
    "   ",
    "not a url",
    "file:///etc/hosts",
    "ftp://example.com/",
    "javascript:alert(1)",
    "http://user:pw@example.com/",
    "http://",
    "http://exa mple.com/",
    "http://a\\b/",
    "http://127.0.0.1:9/",
    "\u{202e}http://example.com/",
];
const NOT_NUMBERS: [&str; 8] = ["", "x", "-1", "1.5", "1e3", "99999999999999999999", "٣", "NaN"];

/// How many events the audit log holds: every change of a workspace is one.
async fn changes(browser: &mut Browser) -> String {
    let page = browser.get("/w/acme/audit").await;
    assert_eq!(page.status, StatusCode::OK);
    let newest = page.body.split("data-label=\"#\" class=\"num\">").nth(1);
    newest.and_then(|rest| rest.split('<').next()).expect("an event").to_owned()
}

/// Sends a form with one bad value and looks at what comes back.
async fn refused(browser: &mut Browser, form: &Form, field: &Field, bad: &str) {
    let typed: Vec<(&str, &str)> = form
        .good
        .iter()
        .map(|(name, value)| (*name, if *name == field.name { bad } else { value.as_str() }))
        .collect();
    let shown: String = bad.chars().take(40).collect();
    let case = format!("{} {}={shown:?}", form.action, field.name);
    let page = browser.submit_to(&form.page, &form.action, &typed).await;
    assert!(
        matches!(page.status.as_u16(), 401 | 409 | 422),
        "{case}: {} {}",
        page.status,
        plain(&page.body)
    );
    told(&page, field, &case);
    kept(&page, &typed, &case);
    assert!(!page.body.contains("<img"), "{case}: markup runs");
}

/// The word stands beside the field and is tied to it.
fn told(page: &Page, field: &Field, case: &str) {
    if field.told.is_empty() {
        assert!(page.body.contains("role=\"alert\""), "{case}: {}", plain(&page.body));
        return;
    }
    let id = format!("id=\"{}-error\"", field.told);
    assert!(page.body.contains(&id), "{case}: no {id} in {}", plain(&page.body));
    let error = page.body.split(&id).nth(1).unwrap_or_default();
    let words = plain(&format!("<{}", error.split("</span></span>").next().unwrap_or_default()));
    assert!(words.len() > 12 && words.ends_with(['.', '?', '!']), "{case}: says `{words}`");
    assert!(page.body.contains(&format!("aria-describedby=\"{}-error", field.told)), "{case}");
}

/// What was typed stands in its field again; passwords and keys do not.
fn kept(page: &Page, typed: &[(&str, &str)], case: &str) {
    for (name, value) in typed {
        let secret = ["password", "old_password", "new_password", "header_value"].contains(name);
        let chosen = ["policy", "expires", "rest", "role", "days", "transport", "confirm"];
        if secret {
            assert_eq!(page.value(name), "", "{case}: {name} is sent back");
        } else if !chosen.contains(name) && *name != "overlap_hours" {
            // A page escapes what it cannot show, and a browser reads CR LF for LF.
            let visible = |text: &str| {
                text.replace(['\u{202e}', '\u{2066}', '\u{fffd}'], "").replace("\r\n", "\n")
            };
            let back = plain(&visible(&page.value(name)).replace('<', "‹"));
            assert_eq!(back, plain(&visible(value).replace('<', "‹")), "{case}: {name}");
        }
    }
}

async fn all_refused(browser: &mut Browser, form: &Form) {
    for field in &form.fields {
        for bad in &field.bad {
            refused(browser, form, field, bad).await;
        }
    }
}

#[tokio::test]
async fn signing_up_and_in_refuse_what_is_no_account() {
    let world = World::new().await;
    let mut browser = world.browser();
    let emails =
        ["", "ann", "ann@", "@example.test", "a b@c.d", "ann@ex\u{202e}ample.test", MARKUP];
    let long = "x".repeat(2_000);
    let sign_up = form(
        "/signup",
        "/signup",
        &[("email", "ann@example.test"), ("password", PASSWORD), ("name", "Ann")],
        vec![
            field("email", "email", &emails),
            field("password", "password", &["", "short", &long]),
            Field { name: "name", bad: names().split_off(3), told: "name" },
        ],
    );
    all_refused(&mut browser, &sign_up).await;
    // Nothing was made on the way: the address is still free.
    browser.sign_up("ann@example.test").await;
    let taken = browser.submit_to("/account", "/logout", &[]).await;
    assert_eq!(taken.location(), "/login");
    let log_in = form(
        "/login",
        "/login",
        &[("email", "ann@example.test"), ("password", PASSWORD)],
        vec![field("password", "", &["", "wrong password"]), field("email", "", &[MARKUP])],
    );
    all_refused(&mut browser, &log_in).await;
}

#[tokio::test]
async fn workspaces_and_accounts_refuse_odd_names() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let before = changes(&mut browser).await;
    let forms = [
        form(
            "/workspaces/new",
            "/workspaces/new",
            &[("name", "Other")],
            vec![name("name", "name")],
        ),
        form(
            "/w/acme/settings",
            "/w/acme/settings/name",
            &[("name", "Acme")],
            vec![name("name", "name")],
        ),
        form(
            "/w/acme/settings",
            "/w/acme/settings/slug",
            &[("slug", "acme")],
            vec![field("slug", "slug", &["", "Acme", "a--b", "new", "a/b", "..", "é", MARKUP])],
        ),
        form(
            "/w/acme/settings",
            "/w/acme/settings/delete",
            &[("confirm", "acme")],
            vec![field("confirm", "confirm", &["", "Acme", "acme2", "é", MARKUP])],
        ),
        form(
            "/account",
            "/account/name",
            &[("name", "Ann")],
            vec![Field { name: "name", bad: names().split_off(3), told: "name" }],
        ),
        form(
            "/account",
            "/account/password",
            &[("old_password", PASSWORD), ("new_password", "another long password")],
            vec![
                field("old_password", "old_password", &["", "not it at all"]),
                field("new_password", "new_password", &["", "short"]),
            ],
        ),
    ];
    for form in &forms {
        all_refused(&mut browser, form).await;
    }
    assert_eq!(changes(&mut browser).await, before, "something was saved");
    assert_eq!(browser.get("/w").await.location(), "/w/acme/", "no workspace was made");
}

#[tokio::test]
async fn connecting_a_server_refuses_what_is_none() {
    let world = World::new().await;
    let (mut browser, _) = world.connected().await;
    let before = changes(&mut browser).await;
    let url = world.upstream.url();
    let mut taken = name("name", "name");
    taken.bad.extend(texts(&["sandbox", " SANDBOX "]));
    let new = form(
        "/w/acme/servers/new",
        "/w/acme/servers/new",
        &[
            ("name", "other"),
            ("upstream_url", &url),
            ("header_name", "X-Key"),
            ("header_value", "secret"),
        ],
        vec![
            taken,
            field("upstream_url", "upstream_url", &NOT_URLS),
            field("header_name", "header_value", &["", "Ho st", "Host", "a:b", "é", MARKUP]),
            field("header_value", "header_value", &["a\nb", "a\u{0}b"]),
        ],
    );
    all_refused(&mut browser, &new).await;
    assert_eq!(changes(&mut browser).await, before, "something was saved");
}

#[tokio::test]
async fn a_servers_settings_refuse_what_they_cannot_be() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let before = changes(&mut browser).await;
    let url = world.upstream.url();
    let settings = form(
        &format!("{path}/settings"),
        &format!("{path}/settings"),
        &[
            ("name", "sandbox"),
            ("upstream_url", &url),
            ("transport", "auto"),
            ("connect_timeout_s", "5"),
            ("idle_timeout_s", "300"),
            ("total_timeout_s", "3600"),
        ],
        vec![
            name("name", "name"),
            field("upstream_url", "upstream_url", &NOT_URLS),
            field("transport", "transport", &["", "carrier pigeon"]),
            field("connect_timeout_s", "connect_timeout_s", &NOT_NUMBERS),
            field("idle_timeout_s", "idle_timeout_s", &NOT_NUMBERS),
            field("total_timeout_s", "total_timeout_s", &NOT_NUMBERS),
        ],
    );
    all_refused(&mut browser, &settings).await;
    let delete = form(
        &format!("{path}/settings"),
        &format!("{path}/delete"),
        &[("confirm", "sandbox")],
        vec![field("confirm", "", &["", "sandbo", "SANDBOX", MARKUP])],
    );
    all_refused(&mut browser, &delete).await;
    // Several faults are told at once.
    let typed = [("name", ""), ("connect_timeout_s", "x"), ("idle_timeout_s", "y")];
    let page = browser.submit(&format!("{path}/settings"), &typed).await;
    for id in ["connect_timeout_s-error", "idle_timeout_s-error"] {
        assert!(page.body.contains(id), "{id}");
    }
    assert_eq!(changes(&mut browser).await, before, "something was saved");
}

#[tokio::test]
async fn rules_and_grants_refuse_what_they_cannot_be() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let made = browser.submit(&format!("{path}/grants/new"), &[("label", "bot")]).await;
    let links = made.links();
    let grant = links.iter().find(|link| link.starts_with("/w/acme/grants/")).expect("a link");
    let before = changes(&mut browser).await;
    let apply = format!("{path}/tools/executePython/apply");
    let mut taken = name("label", "label");
    taken.bad.extend(texts(&["bot", " BOT "]));
    let nets = ["not a network", "10.0.0.0/33", "10.0.0.0/8, x", "::1/129", MARKUP, "a\u{0}b"];
    let policies = ["nonsense", "019a0000-0000-7000-8000-000000000000", MARKUP];
    let forms = [
        form(
            &apply,
            &apply,
            &[("rest", "deny"), ("policy", "")],
            vec![field("rest", "", &["everything", MARKUP]), field("policy", "", &["nonsense"])],
        ),
        form(
            &format!("{path}/grants/new"),
            &format!("{path}/grants/new"),
            &[("label", "other"), ("policy", ""), ("expires", "7"), ("networks", "10.0.0.0/8")],
            vec![
                taken,
                field("policy", "policy", &policies),
                field("expires", "expires", &["0", "-1", "x", "99999", "1.5"]),
                field("networks", "networks", &nets),
            ],
        ),
        form(
            grant,
            grant,
            &[("label", "bot"), ("policy", ""), ("networks", "")],
            vec![
                name("label", "label"),
                field("policy", "policy", &policies),
                field("networks", "networks", &nets),
            ],
        ),
        form(
            grant,
            &format!("{grant}/rotate"),
            &[("overlap_hours", "1")],
            vec![field("overlap_hours", "", &["", "-1", "x", "721", "1.5"])],
        ),
    ];
    for form in &forms {
        all_refused(&mut browser, form).await;
    }
    assert_eq!(changes(&mut browser).await, before, "something was saved");
}

#[tokio::test]
async fn members_and_tokens_refuse_what_they_cannot_be() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let before = changes(&mut browser).await;
    let forms = [
        form(
            "/w/acme/api-tokens",
            "/w/acme/api-tokens",
            &[("label", "ci"), ("role", "viewer"), ("days", "30")],
            vec![
                name("label", "label"),
                field("role", "role", &["", "owner", MARKUP]),
                field("days", "days", &["", "-1", "x", "99999"]),
            ],
        ),
        form(
            "/w/acme/members",
            "/w/acme/members/invite",
            &[("email", "eve@example.test"), ("role", "viewer")],
            vec![
                field("email", "email", &["", "eve", "a b@c.d", MARKUP]),
                field("role", "role", &["", "owner"]),
            ],
        ),
    ];
    for form in &forms {
        all_refused(&mut browser, form).await;
    }
    assert_eq!(changes(&mut browser).await, before, "something was saved");
}
