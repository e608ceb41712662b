//! The visual builder: every press changes the document's text and nothing else of it, and the page
//! shows both alike. Without any script.

use serde_json::{Value, json};

use super::make;
use crate::browser::{Browser, Page};
use crate::world::World;

/// With short forms, odd spacing and digits that must stay as they are.
const WRITTEN: &str = r#"{
  "version": "1",
  "description": "mine  —  1.50",
  "default": "deny",
  "hide": ["admin_*"],
  "tools": {
    "read_file": {  },
    "executePython": { "rate_limit": "10/minute" },
    "pay": {"require": [{"conditions": [{"not": {"any": [{"path": "args.to", "op": "eq", "value": "x"}, {"path": "args.amount", "op": "gt", "value": 1.50}]}}]}]}
  }
}
"#;

/// An editor that is open: each press goes on from the page that the last one gave.
struct Editor<'b> {
    browser: &'b mut Browser,
    path: String,
    page: Page,
}

impl<'b> Editor<'b> {
    /// The editor of a new policy with this document; the server has a tool `pay` with a schema.
    async fn open(browser: &'b mut Browser, server: &str, document: &str) -> Self {
        let path = make(browser, server, "Mine", document).await;
        let path = format!("{path}/edit");
        let page = browser.get(&path).await;
        Self { browser, path, page }
    }

    /// Types into the form and presses a button.
    async fn press(&mut self, button: &str, typed: &[(&str, &str)]) -> &Page {
        let mut all = typed.to_vec();
        all.push(("press", button));
        self.page = self.browser.go_on(&self.page, &self.path, &self.path, &all).await;
        &self.page
    }

    fn text(&self) -> String {
        self.page.value("document")
    }

    fn document(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn shows(&self, markup: &str) -> bool {
        self.page.body.contains(markup)
    }
}

/// The fake upstream with a tool whose schema has something of each type.
async fn connected(world: &World) -> (Browser, String) {
    let (mut browser, server) = world.connected().await;
    let schema = json!({"type": "object", "required": ["amount"], "properties": {
        "amount": {"type": "number", "description": "How much"},
        "currency": {"type": "string", "enum": ["eur", "usd"]},
        "to": {"type": "string"}, "dry": {"type": "boolean"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}}});
    let named =
        |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
    world.upstream.tools(vec![
        json!({"name": "pay", "description": "Pay somebody", "inputSchema": schema}),
        named("read_file"),
        named("executePython"),
        named("wipe"),
    ]);
    let refreshed = browser.submit_to(&server, &format!("{server}/refresh"), &[]).await;
    refreshed.location();
    (browser, server)
}

#[tokio::test]
async fn each_tool_is_allowed_denied_hidden_or_asked_for_by_one_button() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    for (tool, fate) in
        [("read_file", "allow"), ("executePython", "custom"), ("pay", "custom"), ("wipe", "deny")]
    {
        let pressed = format!("value=\"fate:{fate}:{tool}\" aria-pressed=\"true\"");
        assert!(editor.shows(&pressed), "{tool} is {fate}: {}", editor.page.body);
    }
    editor
        .press("fate:hide:read_file", &[])
        .await
        .says("read_file is hidden, and refused when called.");
    assert_eq!(editor.document()["hide"], json!(["admin_*", "read_file"]));
    assert!(editor.document()["tools"].get("read_file").is_none());
    assert!(editor.shows("value=\"fate:hide:read_file\" aria-pressed=\"true\""));
    editor.press("undo", &[]).await;
    assert_eq!(editor.text(), WRITTEN, "one step back is where it was, to the byte");
    editor.press("fate:approve:wipe", &[]).await.says("wipe waits for a person's approval.");
    assert_eq!(editor.document()["tools"]["wipe"], json!({"approve_if": [{"conditions": []}]}));
    editor.press("fate:allow:wipe", &[]).await;
    assert_eq!(editor.document()["tools"]["wipe"], json!({}));
    editor.press("fate:deny:wipe", &[]).await;
    assert_eq!(editor.text(), WRITTEN, "without an entry the default denies");
    // What hides by a pattern is not undone for one name.
    editor.press("fate:allow:admin_x", &[]).await.says("admin_x stays hidden by admin_*");
    assert_eq!(editor.text(), WRITTEN);
    editor.press("fate:allow:read_file", &[]).await.says("The document says so already");
    editor.press("check", &[("document", "{")]).await.says("once the document’s errors are mended");
    editor.press("fate:allow:wipe", &[]).await.says("Mend the document's errors first.");
    assert_eq!(editor.text(), "{", "what was typed stays");
}

#[tokio::test]
async fn a_rule_is_built_from_the_tool_s_schema() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    editor.press("fate:custom:pay", &[]).await.says("Rules of pay");
    editor
        .press("new:deny_if", &[])
        .await
        .says("args.amount (number)")
        .says("args.items[*].id (text)");
    // Operators fit the field: a number is not matched by a regular expression, a text is not compared.
    assert!(editor.shows("<option value=\"lte\"") && !editor.shows("<option value=\"regex\""));
    editor.press("look", &[("c0_path", "args.to")]).await;
    assert!(editor.shows("<option value=\"regex\"") && !editor.shows("<option value=\"lte\""));
    editor.press("look", &[("c0_path", "args.currency"), ("c0_op", "eq")]).await;
    assert!(editor.shows("<option value=\"usd\""), "the schema's own values are offered");
    editor.press("look", &[("c0_path", "args.dry")]).await;
    assert!(editor.shows("<option value=\"false\""));
    editor
        .press("row:or", &[("c0_path", "args.amount"), ("c0_op", "gt"), ("c0_value", "1000.10")])
        .await;
    editor
        .press(
            "row:and",
            &[
                ("c1_path", "args.to"),
                ("c1_op", "starts_with"),
                ("c1_value", "vip"),
                ("c1_not", "1"),
            ],
        )
        .await;
    let last = [
        ("c2_path", "args.currency"),
        ("c2_op", "in"),
        ("c2_value", "eur, usd"),
        ("r_on_deny", "Too much."),
        ("r_name", "big"),
    ];
    editor
        .press("put", &last)
        .await
        .says("Changed in the document, not saved yet: pay is refused when");
    let rule = json!({"name": "big", "conditions": [
        {"any": [{"path": "args.amount", "op": "gt", "value": serde_json::from_str::<Value>("1000.10").expect("a number")},
                 {"not": {"path": "args.to", "op": "starts_with", "value": "vip"}}]},
        {"path": "args.currency", "op": "in", "value": ["eur", "usd"]}], "on_deny": "Too much."});
    assert_eq!(editor.document()["tools"]["pay"]["deny_if"], json!([rule]));
    assert!(
        editor.text().contains("1000.10")
            && editor.text().contains("\"description\": \"mine  —  1.50\"")
    );
}

#[tokio::test]
async fn a_rule_is_read_back_as_it_was_written_and_changed_in_its_place() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let denial = r#""deny_if": [{"conditions": [{"any": [{"path": "args.amount", "op": "gt", "value": 1000.10}, {"not": {"path": "args.to", "op": "starts_with", "value": "vip"}}]}, {"path": "args.currency", "op": "in", "value": ["eur", "usd"]}]}], "require""#;
    let written = WRITTEN.replacen("\"require\"", denial, 1);
    let mut editor = Editor::open(&mut browser, &server, &written).await;
    editor.press("fate:custom:pay", &[]).await;
    editor.press("edit:/tools/pay/deny_if/0", &[]).await;
    assert_eq!(
        (editor.page.value("c0_value"), editor.page.value("c2_value")),
        ("1000.10".to_owned(), "eur, usd".to_owned())
    );
    assert_eq!(editor.page.value("c1_join"), "or");
    editor.press("row:1", &[]).await;
    editor.press("put", &[("c0_value", "5")]).await;
    assert_eq!(
        editor.document()["tools"]["pay"]["deny_if"][0]["conditions"][0],
        json!({"path": "args.amount", "op": "gt", "value": 5})
    );
    // What rows cannot say is kept as JSON.
    editor.press("edit:/tools/pay/require/0", &[]).await.says("Nested deeper than rows can show");
    let before = editor.text();
    editor.press("put", &[]).await;
    assert_eq!(serde_json::from_str::<Value>(&before).expect("JSON"), editor.document());
    editor.press("remove:/tools/pay/deny_if/0", &[]).await;
    assert_eq!(editor.document()["tools"]["pay"]["deny_if"], json!([]));
    // Only parts of the open entry.
    let before = editor.text();
    editor.press("remove:/version", &[]).await;
    editor.press("remove:/tools/read_file/require/0", &[]).await;
    assert_eq!(editor.text(), before);
}

#[tokio::test]
async fn what_is_wrong_in_a_form_stands_beside_its_field_and_is_kept() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    editor.press("fate:custom:pay", &[]).await;
    editor.press("new:require", &[]).await;
    let typed =
        [("c0_path", "other"), ("c0_path_text", "amount"), ("c0_op", "lte"), ("c0_value", "ten")];
    editor.press("put", &typed).await;
    assert!(editor.shows("id=\"c0_path_text-error\""), "{}", editor.page.body);
    assert_eq!(editor.page.value("c0_path_text"), "amount");
    editor.press("put", &[("c0_path_text", "args.amount.x[0]")]).await;
    assert!(editor.shows("id=\"c0_value-error\""));
    editor.press("put", &[("c0_value", "10"), ("r_name", "Not A Slug")]).await;
    assert!(editor.shows("id=\"r_name-error\""), "{}", editor.page.body);
    assert_eq!(editor.text(), WRITTEN);
    editor.press("put", &[("r_name", "slug")]).await;
    assert_eq!(
        editor.document()["tools"]["pay"]["require"][1]["conditions"][0]["path"],
        "args.amount.x[0]"
    );
    editor.press("up:/tools/pay/require/1", &[]).await;
    assert_eq!(editor.document()["tools"]["pay"]["require"][0]["name"], "slug");
    editor.press("down:/tools/pay/require/0", &[]).await;
    assert_eq!(editor.document()["tools"]["pay"]["require"][1]["name"], "slug");
    editor.press("new:require", &[]).await;
    editor.press("cancel", &[]).await;
    assert!(!editor.shows("name=\"r_list\""));
}

#[tokio::test]
async fn a_short_form_is_written_out_where_a_part_of_it_is_changed() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    editor
        .press("fate:custom:executePython", &[])
        .await
        .says("executePython may run 10 times a minute per session.");
    editor.press("edit:/tools/executePython/limits/0", &[]).await;
    editor
        .press(
            "put",
            &[
                ("l_max", "20"),
                ("l_scope", "workspace"),
                ("l_window", "other"),
                ("l_window_text", "90s"),
            ],
        )
        .await;
    let limit =
        json!({"counter": "executepython_rate", "window": "90s", "max": 20, "scope": "workspace"});
    assert_eq!(editor.document()["tools"]["executePython"], json!({"limits": [limit]}));
    assert!(
        editor.text().contains("\"read_file\": {  }"),
        "what was not touched is as it was typed"
    );
}

#[tokio::test]
async fn amounts_are_summed_from_arguments_that_are_numbers_and_approvals_go_as_chosen() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    editor.press("fate:custom:pay", &[]).await;
    editor.press("new:limits", &[]).await.says("the value of args.amount");
    assert!(!editor.page.body.contains("the value of args.to"));
    let typed = [
        ("l_max", "99.50"),
        ("l_window", "day"),
        ("l_increment_from", "args.amount"),
        ("l_reset", "calendar"),
        ("l_on_unavailable", "allow"),
    ];
    editor.press("put", &typed).await.says("pay may use 99.5 of args.amount");
    assert!(editor.text().contains("99.50"));
    editor.press("new:limits", &[]).await;
    editor.press("put", &[("l_max", "ten")]).await;
    assert!(editor.shows("id=\"l_max-error\""));
    editor
        .press("put", &[("l_max", "1"), ("l_window", "other"), ("l_window_text", "fortnight")])
        .await;
    assert!(editor.shows("id=\"l_window_text-error\""), "{}", editor.page.body);
    editor.press("cancel", &[]).await;
    editor.press("approval", &[]).await;
    editor
        .press(
            "put",
            &[
                ("p_hold", "2m"),
                ("p_quorum", "2"),
                ("p_approvers", "role:admin, member:a@b.c"),
                ("p_self", "false"),
            ],
        )
        .await;
    assert_eq!(
        editor.document()["tools"]["pay"]["approval"],
        json!({"hold": "2m", "approvers": ["role:admin", "member:a@b.c"], "quorum": 2, "self": false})
    );
    editor.press("approval", &[]).await;
    editor.press("put", &[("p_hold", "2 minutes")]).await;
    assert!(editor.shows("id=\"p_hold-error\""), "{}", editor.page.body);
}

#[tokio::test]
async fn rules_for_every_call_and_for_a_pattern_are_built_alike_and_saved() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    editor.press("open:all", &[]).await.says("Rules for every call");
    editor.press("new:deny_if", &[]).await.says("call.weekday_utc (text)");
    editor
        .press("put", &[("c0_path", "call.hour_utc"), ("c0_op", "gte"), ("c0_value", "20")])
        .await;
    assert_eq!(editor.document()["all_tools"]["deny_if"][0]["conditions"][0]["value"], 20);
    editor.press("name", &[("rule_tool", "get_*")]).await.says("Rules of tools named like get_*");
    editor.press("new:approve_if", &[]).await;
    editor.press("row:0", &[]).await.says("No conditions: the rule always holds.");
    editor.press("put", &[]).await.says("get_*");
    assert_eq!(editor.document()["tools"]["get_*"], json!({"approve_if": [{"conditions": []}]}));
    let saved = editor.press("save", &[]).await;
    assert!(saved.location().starts_with("/w/acme/policies/"));
}

#[tokio::test]
async fn what_is_written_is_tried_before_it_is_saved() {
    let world = World::new().await;
    let (mut browser, server) = connected(&world).await;
    let mut editor = Editor::open(&mut browser, &server, WRITTEN).await;
    let written = r#"{"version":"1","default":"deny","tools":{"pay":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}]}}}"#;
    editor.press("fields", &[("document", written), ("tool", "pay")]).await.says("How much");
    editor.press("call", &[("a.0", "100.00"), ("a.1", "eur")]).await.says("It would be forwarded.");
    editor
        .press("call", &[("a.0", "100.01")])
        .await
        .says("It would be refused.")
        .says("/tools/pay/require/0");
    assert_eq!(editor.page.value("a.0"), "100.01", "what was typed stays");
    editor.press("call", &[("a.0", "ten")]).await;
    assert!(editor.shows("id=\"a.0-error\""), "{}", editor.page.body);
    editor.press("call", &[("a.0", "")]).await.says("nothing was there");
    editor.press("as:json", &[("a.0", "7")]).await;
    let arguments: Value = serde_json::from_str(&editor.page.value("arguments")).expect("JSON");
    assert_eq!(arguments["amount"], 7);
    editor.press("call", &[("arguments", r#"{"amount": "7"}"#)]).await.says("It would be refused.");
    editor.press("as:form", &[]).await;
    assert_eq!(editor.page.value("a.0"), "7");
    let cases = r#"{"cases":[{"tool":"pay","arguments":{"amount":1},"expect":"allow"},{"tool":"read_file","expect":"allow"}]}"#;
    editor.press("tests", &[("cases", cases)]).await.says("1 passed, 1 failed");
    editor.press("log", &[]).await.says("There are no calls to try it on yet.");
    // A document with errors is told of, and nothing is lost.
    editor.press("tests", &[("document", "{")]).await;
    assert_eq!((editor.text().as_str(), editor.page.value("cases").as_str()), ("{", cases));
    assert_eq!(world.upstream.calls_of("pay"), 0, "nothing was sent");
}
