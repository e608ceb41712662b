//! Policies: writing one by rules and as JSON, its versions, its end.

mod editor;
mod lossless;
mod trials;

use http::StatusCode;
use serde_json::json;

use crate::browser::{Browser, MARKUP, Page};
use crate::world::World;

const FIRST: &str = r#"{
  "version": "1",
  "default": "deny",
  "tools": {
    "executePython": {
      "require": [{"conditions": [{"path": "args.n", "op": "lte", "value": 100}]}],
      "limits": [{"counter": "executepython_rate", "window": "minute", "max": 10}]
    }
  }
}
"#;

/// Makes a policy of the server; gives its path.
async fn make(browser: &mut Browser, server: &str, name: &str, document: &str) -> String {
    let typed = [("name", name), ("document", document), ("press", "save")];
    let answer = browser.submit(&format!("{server}/policies/new"), &typed).await;
    let path = answer.location().to_owned();
    assert!(path.starts_with("/w/acme/policies/"), "{path}");
    path
}

async fn press(browser: &mut Browser, policy: &str, typed: &[(&str, &str)]) -> Page {
    browser.submit(&format!("{policy}/edit"), typed).await
}

#[tokio::test]
async fn a_bad_document_is_kept_and_each_problem_has_its_line() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let bad = "{\n  \"version\": \"1\",\n  \"default\": \"denny\",\n  \"tools\": {\"read_fil\": {}},\n  \"hid\": []\n}";
    // A browser sends line ends as CRLF.
    let typed = [("name", "A"), ("document", &bad.replace('\n', "\r\n")), ("press", "save")];
    let new = format!("{server}/policies/new");
    let page = browser.submit(&new, &typed).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!((page.value("document").as_str(), page.value("name").as_str()), (bad, "A"));
    page.says("2 errors to mend before it can be saved, and 1 warning.")
        .says("Line 3, column")
        .says("Line 5, column")
        .says("/hid")
        .says("Did you mean deny?")
        .says("Did you mean hide?")
        .says("Did you mean read_file?");
    assert!(
        page.body.contains("href=\"#L3\"") && page.body.contains("class=\"l l-err\" id=\"L3\"")
    );
    assert!(page.body.contains("class=\"l l-warn\" id=\"L4\""));
    let broken = browser
        .submit(&new, &[("name", "A"), ("document", "{\n\"version\""), ("press", "save")])
        .await;
    assert_eq!(broken.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(broken.value("document"), "{\n\"version\"");
    browser.get("/w/acme/policies").await.says("No policy yet");
    // The name's fault stands at the name, the document's with the document.
    let both = browser.submit(&new, &[("name", " "), ("document", "{}"), ("press", "save")]).await;
    assert!(both.body.contains("id=\"name-error\"") && both.body.contains("id=\"document-error\""));
    // Warnings do not keep it from being saved.
    let odd = bad.replace("denny", "deny").replace(",\n  \"hid\": []", "");
    let path = make(&mut browser, &server, "A", &odd).await;
    browser.get(&path).await.says("read_fil may be called.");
}

#[tokio::test]
async fn check_shows_what_would_change_and_saves_nothing() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let start = browser.get(&format!("{server}/policies/new")).await;
    start
        .says("The document is valid")
        .says("It offers: ")
        .says("Tools that are not named here are refused.");
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let more = FIRST.replace("\"max\": 10", "\"max\": 20");
    for (press_, note) in [("check", "why"), ("", "")] {
        let page =
            press(&mut browser, &path, &[("document", &more), ("note", note), ("press", press_)])
                .await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(
            (page.value("document").as_str(), page.value("note").as_str()),
            (more.as_str(), note)
        );
        page.says("Gone: executePython may run 10 times a minute per grant.")
            .says("New: executePython may run 20 times a minute per grant.")
            .says("Change to the saved version")
            .says("There are no calls to try it on yet.");
    }
    let page = browser.get(&path).await;
    page.says("version 1").says("executePython may run 10 times a minute per grant.");
    assert!(page.body.contains("href=\"#L7\""), "a rule leads to its line: {}", page.body);
    assert!(page.links().iter().any(|link| link.contains("/logs?policy=")
        && link.contains("rule=/tools/executePython/limits/0")));
    let saved =
        press(&mut browser, &path, &[("document", &more), ("note", "more"), ("press", "save")])
            .await;
    assert_eq!(saved.location(), path);
    browser.get(&path).await.says("Saved version 2 of Sandbox").says("20 times a minute");
}

#[tokio::test]
async fn a_save_on_top_of_another_shows_the_other_change_first() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let theirs = FIRST.replace("\"max\": 10", "\"max\": 11");
    let mine = FIRST.replace("\"value\": 100", "\"value\": 50");
    press(&mut browser, &path, &[("document", &theirs), ("press", "save")]).await.location();
    for button in ["check", "save"] {
        let typed =
            [("document", mine.as_str()), ("version", "1"), ("note", "mine"), ("press", button)];
        let page = press(&mut browser, &path, &typed).await;
        assert_eq!(
            page.status,
            if button == "save" { StatusCode::CONFLICT } else { StatusCode::OK }
        );
        page.says("somebody saved version 2 while you were writing")
            .says("from version 1 to version 2")
            .says("added: \"limits\": [{\"counter\": \"executepython_rate\", \"window\": \"minute\", \"max\": 11}]");
        assert_eq!(page.value("document"), mine);
        assert_eq!((page.value("version").as_str(), page.value("note").as_str()), ("2", "mine"));
    }
    // A form without its version is nobody's.
    for version in ["", "x"] {
        let page = press(
            &mut browser,
            &path,
            &[("document", &mine), ("version", version), ("press", "save")],
        )
        .await;
        assert_eq!(page.status, StatusCode::CONFLICT);
    }
    press(&mut browser, &path, &[("document", &mine), ("version", "2"), ("press", "save")])
        .await
        .location();
    browser.get(&path).await.says("version 3").says("args.n is at most 50");
}

#[tokio::test]
async fn rules_are_added_to_the_text_and_saved_by_nobody_else() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let new = format!("{server}/policies/new");
    let rule = [
        ("rule_tool", "read_file"),
        ("rule_kind", "limit"),
        ("rule_max", "30"),
        ("rule_window", "hour"),
        ("press", "add"),
    ];
    let page = browser.submit(&new, &rule).await;
    page.says(
        "Added to the document, not saved yet: read_file may run 30 times an hour per grant.",
    );
    let text = page.value("document");
    assert!(text.contains("\"read_file_rate\""), "{text}");
    let typed = [("document", text.as_str()), ("recommend", "delete_file"), ("name", "kept")];
    let page = browser.submit(&new, &typed).await;
    page.says("Added to the document, not saved yet: delete_file is hidden");
    assert_eq!(page.value("name"), "kept");
    let text = page.value("document");
    let page =
        browser.submit(&new, &[("document", text.as_str()), ("recommend", "delete_file")]).await;
    page.says("The document says so already");
    let odd =
        [("document", text.as_str()), ("rule_tool", "x"), ("rule_max", "many"), ("press", "add")];
    let page = browser.submit(&new, &odd).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.body.contains("id=\"rule_max-error\""));
    assert_eq!((page.value("document"), page.value("rule_tool").as_str()), (text, "x"));
    let page = browser.submit(&new, &[("document", "{"), ("recommend", "read_file")]).await;
    page.says("The rule was not added: mend the document's errors first.");
    browser.get("/w/acme/policies").await.says("No policy yet");
}

#[tokio::test]
async fn versions_tell_who_changed_what_and_can_be_restored() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let more = FIRST.replace("\"max\": 10", "\"max\": 20");
    press(&mut browser, &path, &[("document", &more), ("note", "needs `more`"), ("press", "save")])
        .await
        .location();
    browser
        .get(&format!("{path}/versions"))
        .await
        .says("ann@example.test")
        .says("needs more")
        .says("New: executePython may run 20 times a minute per grant.")
        .says("The first one");
    browser
        .get(&format!("{path}/versions/2"))
        .await
        .says("Change from version 1")
        .says("needs more")
        .says("Compare outcomes");
    browser
        .get(&format!("{path}/versions/2?compare=outcomes"))
        .await
        .says("There are no calls to compare on yet.");
    let first = format!("{path}/versions/1");
    let restore = format!("{first}/restore");
    assert!(
        !browser.get(&format!("{path}/versions/2")).await.body.contains("Restore this version")
    );
    // Somebody saves between looking and pressing.
    let csrf = browser.get(&first).await.value("csrf");
    let page = browser.post(&restore, &[("csrf", &csrf), ("current", "1")]).await;
    assert_eq!(page.location(), format!("{path}/versions"));
    browser.get(&path).await.says("Nothing was restored").says("20 times");
    let page = browser.submit_to(&first, &restore, &[]).await;
    assert_eq!(page.location(), path);
    browser.get(&path).await.says("Version 1 holds again, as version 3.").says("10 times a minute");
    for gone in ["/versions/9", "/versions/x", "/versions/0"] {
        assert_eq!(
            browser.get(&format!("{path}{gone}")).await.status,
            StatusCode::NOT_FOUND,
            "{gone}"
        );
    }
}

#[tokio::test]
async fn a_policy_is_deleted_by_its_name_and_only_unused() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let delete = format!("{path}/delete");
    let page = browser.submit_to(&path, &delete, &[("confirm", "sandbox")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("Nothing was deleted: type the policy's name exactly");
    assert_eq!(page.value("confirm"), "sandbox");
    let csrf = page.value("csrf");
    for version in ["", "7"] {
        let typed = [("csrf", csrf.as_str()), ("version", version), ("confirm", "Sandbox")];
        assert_eq!(browser.post(&delete, &typed).await.status, StatusCode::CONFLICT);
    }
    let policy = path.rsplit('/').next().unwrap_or_default().to_owned();
    let grant = [("label", "bot"), ("policy", policy.as_str())];
    browser.submit(&format!("{server}/grants/new"), &grant).await.says("bot");
    let page = browser.get(&path).await;
    page.says("Grants use it.");
    assert!(page.body.contains(">bot</a>"));
    let typed = [("csrf", csrf.as_str()), ("version", "1"), ("confirm", "Sandbox")];
    let page = browser.post(&delete, &typed).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("1 grant has this policy");

    let other = make(&mut browser, &server, "Other", FIRST).await;
    let page = browser.submit_to(&other, &format!("{other}/delete"), &[("confirm", "Other")]).await;
    assert_eq!(page.location(), format!("{server}/policies"));
    assert_eq!(browser.get(&other).await.status, StatusCode::NOT_FOUND);
    browser
        .get(&format!("{other}/versions/1"))
        .await
        .says("Deleted policy")
        .says("10 times a minute");
    browser
        .get("/w/acme/policies")
        .await
        .says("2 sentences, the rest refused")
        .says("Written here");
}

#[tokio::test]
async fn a_viewer_reads_and_tries_and_changes_nothing() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let typed = [("email", "vic@example.test"), ("role", "viewer")];
    let page = browser.submit_to("/w/acme/members", "/w/acme/members/invite", &typed).await;
    let (_, link) = page.body.split_once("/join/").expect("a link");
    let token: String =
        link.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
    let mut viewer = world.browser();
    viewer.sign_up("vic@example.test").await;
    viewer.submit(&format!("/join/{token}"), &[]).await.location();

    let page = viewer.get(&path).await;
    page.says("10 times a minute");
    assert!(!page.links().iter().any(|link| link.ends_with("/edit")), "{:?}", page.links());
    let csrf = page.value("csrf");
    let tried = [("tool", "executePython"), ("arguments", "{}"), ("press", "call")];
    viewer.submit(&format!("{path}/try"), &tried).await.says("require_failed");
    for edit in [format!("{path}/edit"), format!("{server}/policies/new")] {
        assert_eq!(viewer.get(&edit).await.status, StatusCode::FORBIDDEN, "{edit}");
    }
    let fields = [
        ("csrf", csrf.as_str()),
        ("name", "Mine"),
        ("document", FIRST),
        ("version", "1"),
        ("press", "save"),
        ("current", "1"),
        ("confirm", "Sandbox"),
    ];
    for refused in ["/edit", "/delete", "/versions/1/restore"] {
        let page = viewer.post(&format!("{path}{refused}"), &fields).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{refused}");
    }
    let page = viewer.post(&format!("{server}/policies/new"), &fields).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    page.says("policy managers and admins");
    browser.get(&path).await.says("version 1").says("Sandbox");
    browser.get("/w/acme/policies").await.says("1 policy");
}

#[tokio::test]
async fn hostile_names_are_text_on_every_page() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let document = json!({"version": "1", "description": MARKUP, "default": "deny", "hide": [format!("{MARKUP}*")],
        "tools": {MARKUP: {"deny_if": [{"conditions": [{"path": "args.a", "op": "eq", "value": MARKUP}], "on_deny": MARKUP}]}}});
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    let path = make(&mut browser, &server, MARKUP, &text).await;
    let second = text.replace("\"eq\"", "\"neq\"");
    press(&mut browser, &path, &[("document", &second), ("note", MARKUP), ("press", "save")])
        .await
        .location();
    let arguments = json!({"a": MARKUP}).to_string();
    let bad = format!("{{\"version\": \"1\", \"default\": \"{MARKUP}\", \"{MARKUP}\": 1}}");
    let pages = [
        browser.get("/w/acme/policies").await,
        browser.get(&path).await,
        browser.get(&format!("{path}/edit")).await,
        browser.get(&format!("{path}/versions")).await,
        browser.get(&format!("{path}/versions/2")).await,
        browser
            .submit(
                &format!("{path}/try"),
                &[("tool", MARKUP), ("arguments", &arguments), ("press", "call")],
            )
            .await,
        press(
            &mut browser,
            &path,
            &[("document", &bad), ("name", MARKUP), ("note", MARKUP), ("press", "save")],
        )
        .await,
        press(&mut browser, &path, &[("document", &text), ("version", "1"), ("press", "save")])
            .await,
        press(
            &mut browser,
            &path,
            &[("rule_tool", MARKUP), ("rule_kind", "hide"), ("press", "add")],
        )
        .await,
        browser.submit_to(&path, &format!("{path}/delete"), &[("confirm", "\"><img src=x>")]).await,
    ];
    for (at, page) in pages.iter().enumerate() {
        assert!(!page.body.contains("<img"), "markup runs on page {at}");
        assert!(
            page.body.contains("&#60;img") || page.body.contains("&lt;img"),
            "page {at} shows the name"
        );
        assert!(!page.body.contains(" style=") && !page.body.contains(" onclick="), "page {at}");
    }
}
