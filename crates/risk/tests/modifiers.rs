//! Every modifier, from the definition that means it: where it stands, what is quoted, which way it pulls and
//! where the severity ends. A new kind fails here until it has a row.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sluice_domain::{Category, Severity, ToolDefinition};
use sluice_risk::{Cue, Direction, ModifierKind, classify};

fn tool(definition: Value) -> ToolDefinition {
    serde_json::from_value(definition).expect("a tool")
}

fn takes(name: &str, properties: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn says(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}})
}

fn answers(name: &str, properties: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
        "outputSchema": {"type": "object", "properties": properties}})
}

struct Row {
    definition: Value,
    kind: ModifierKind,
    direction: Direction,
    place: &'static str,
    quote: &'static str,
    severity: Severity,
}

fn row(
    definition: Value,
    kind: ModifierKind,
    direction: Direction,
    (place, quote): (&'static str, &'static str),
    severity: Severity,
) -> Row {
    Row { definition, kind, direction, place, quote, severity }
}

// A row a line.
#[rustfmt::skip]
fn of_inputs() -> Vec<Row> {
    use Direction::{None, Raises};
    use ModifierKind::{ArbitraryCode, Bulk, FixedAction, Force, Money, Overwrites, Secrets};
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let list = json!({"type": "array", "items": {"type": "string"}});
    vec![
        row(takes("save_macro", &json!({"script": text})), ArbitraryCode, Raises, ("args.script", "script"), Severity::High),
        row(takes("run_macro", &json!({"script": text})), ArbitraryCode, None, ("args.script", "script"), Severity::High),
        row(takes("save_alias", &json!({"name": text, "sql": text})), ArbitraryCode, Raises, ("args.sql", "sql"), Severity::High),
        row(takes("create_user", &json!({"password": text})), Secrets, Raises, ("args.password", "password"), Severity::High),
        row(takes("get_user", &json!({"password": text})), Secrets, None, ("args.password", "password"), Severity::Low),
        row(takes("update_tasks", &json!({"ids": list})), Bulk, None, ("args.ids", "ids"), Severity::Medium),
        row(takes("update_branch", &json!({"force": flag, "a": text})), Force, Raises, ("args.force", "force"), Severity::High),
        row(takes("create_note", &json!({"overwrite": flag, "a": text})), Overwrites, Raises, ("args.overwrite", "overwrite"), Severity::High),
        row(takes("get_report", &json!({"outputDir": text})), ModifierKind::WritesFiles, Raises, ("args.outputDir", "outputDir"), Severity::Medium),
        row(takes("delete_plan", &json!({"refund_amount": {"type": "number"}, "currency": text})), Money, Raises, ("args.refund_amount", "refund_amount"), Severity::Critical),
        row(takes("pay", &json!({"amount": {"type": "number"}, "currency": text})), Money, None, ("args.amount", "amount"), Severity::Critical),
        row(takes("restart_service", &json!({"fast": flag})), FixedAction, Direction::Lowers, ("inputSchema", "only fixed choices"), Severity::Medium),
    ]
}

// A row a line.
#[rustfmt::skip]
fn of_words() -> Vec<Row> {
    use Direction::{None, Raises};
    use ModifierKind::{
        Access, Bulk, Irreversible, OutsideParties, Overwrites, Sandboxed, Secrets, SensitiveData,
    };
    vec![
        row(says("get_secret", "Gets it."), Secrets, Raises, ("name", "secret"), Severity::Medium),
        row(says("rotate_apiKey", "Rotates it."), Secrets, Raises, ("name", "apiKey"), Severity::High),
        row(says("list_patients", "Lists them."), SensitiveData, Raises, ("name", "patients"), Severity::Medium),
        row(says("bulk_edit", "Edits them."), Bulk, Raises, ("name", "bulk"), Severity::High),
        row(says("update_permission", "Updates it."), Access, Raises, ("name", "permission"), Severity::High),
        row(says("chat_send_text", "Sends it."), OutsideParties, Raises, ("name", "send"), Severity::High),
        row(says("zorp", "Publishes a post."), OutsideParties, Raises, ("description", "Publishes"), Severity::High),
        row(says("write_page", "Writes a page and overwrites what was there."), Overwrites, Raises, ("description", "overwrites"), Severity::High),
        row(says("merge_accounts", "Merges two. Cannot be split: it is irreversible."), Irreversible, Raises, ("description", "irreversible"), Severity::High),
        row(says("format_disk", "Creates a file system; all data will be lost."), Irreversible, Raises, ("description", "lost"), Severity::High),
        row(says("run_code", "Runs code in a sandbox."), Sandboxed, None, ("description", "sandbox"), Severity::High),
    ]
}

// A row a line.
#[rustfmt::skip]
fn of_the_rest() -> Vec<Row> {
    use Direction::{None, Raises};
    let hinted = |name: &str, hints: Value| json!({"name": name, "annotations": hints, "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let text = json!({"type": "string"});
    vec![
        row(answers("get_session", &json!({"accessToken": text})), ModifierKind::Secrets, Raises, ("output.accessToken", "accessToken"), Severity::Medium),
        row(answers("get_employee", &json!({"pay": {"type": "object", "properties": {"salary": {"type": "number"}}}})), ModifierKind::SensitiveData, Raises, ("name", "employee"), Severity::Medium),
        row(answers("get_row", &json!({"pay": {"type": "object", "properties": {"salary": {"type": "number"}}}})), ModifierKind::SensitiveData, Raises, ("output.pay.salary", "salary"), Severity::Medium),
        row(hinted("update_note", json!({"destructiveHint": true})), ModifierKind::Overwrites, Raises, ("annotations.destructiveHint", "true"), Severity::High),
        row(hinted("delete_note", json!({"readOnlyHint": true})), ModifierKind::Contradiction, None, ("annotations.readOnlyHint", "true"), Severity::Critical),
    ]
}

#[test]
fn every_modifier_is_shown_with_its_words_and_pulls_one_step_at_most() {
    let mut met = BTreeSet::new();
    for row in of_inputs().into_iter().chain(of_words()).chain(of_the_rest()) {
        let shown = row.definition.to_string();
        let rating = classify(&tool(row.definition));
        let modifier = rating.modifiers.iter().find(|it| it.kind == row.kind);
        let modifier = modifier.unwrap_or_else(|| panic!("{shown}: {:?}", rating.modifiers));
        assert_eq!(
            (modifier.direction, modifier.place.as_str(), modifier.quote.as_str()),
            (row.direction, row.place, row.quote),
            "{shown}"
        );
        assert_eq!(rating.severity, row.severity, "{shown}: {:?}", rating.modifiers);
        met.insert(row.kind.as_str());
    }
    let all: BTreeSet<&str> = ModifierKind::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(met, all, "a kind without a row");
    // A page must not say that a claim counts.
    let boxed = classify(&tool(says("run_code", "Runs code in a sandbox.")));
    assert_eq!(boxed.modifiers[0].effect(), "a claim, shown and not believed");
}

#[test]
fn many_modifiers_together_still_pull_one_step() {
    let text = json!({"type": "string"});
    let properties = json!({"password": text, "force": {"type": "boolean"}, "overwrite": {"type": "boolean"},
        "script": text, "amount": {"type": "number"}});
    let mut definition = takes("bulk_update_admin_secret", &properties);
    definition["description"] = json!("Updates it permanently; overwrites what was there.");
    let rating = classify(&tool(definition));
    let raising = rating.modifiers.iter().filter(|it| it.direction == Direction::Raises).count();
    assert!(raising >= 6, "{:?}", rating.modifiers);
    assert_eq!((rating.base, rating.severity), (Severity::Medium, Severity::High));
    // What lowers is outweighed, and says so.
    let fixed = takes("restart_admin_secret", &json!({"force": {"type": "boolean"}}));
    let rating = classify(&tool(fixed));
    assert!(rating.modifiers.iter().all(|it| it.direction != Direction::Lowers), "{rating:?}");
    assert_eq!((rating.base, rating.severity), (Severity::High, Severity::Critical));
}

#[test]
fn an_annotation_raises_where_it_says_more_and_is_shown() {
    let gets = says("get_note", "Gets a note.");
    for (hints, severity, place) in [
        (json!({"readOnlyHint": false}), Severity::Medium, "annotations.readOnlyHint"),
        // It says that something may be overwritten, too.
        (json!({"destructiveHint": true}), Severity::High, "annotations.destructiveHint"),
    ] {
        let mut definition = gets.clone();
        definition["annotations"] = hints;
        let rating = classify(&tool(definition));
        assert_eq!((rating.category, rating.severity), (Category::Write, severity));
        let reason = &rating.reasons[0];
        assert_eq!((reason.cue, reason.place.as_str()), (Cue::Annotation, place));
    }
    // The kind that is in the list of known failures: a table is dropped by a tool that says it only reads.
    let mut drops = says("drop_table", "Drops a table. Safe, read-only and harmless.");
    let bare = classify(&tool(drops.clone()));
    drops["annotations"] =
        json!({"readOnlyHint": true, "destructiveHint": false, "title": "Look at a table"});
    let hinted = classify(&tool(drops));
    assert_eq!((hinted.category, hinted.severity), (Category::Destructive, bare.severity));
    assert!(hinted.modifiers.iter().any(|it| it.kind == ModifierKind::Contradiction));
}
