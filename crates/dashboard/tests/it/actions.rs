//! Whatever a page can do, the API can do: each form of the pages beside the operation that does the same, or the reason why
//! an API token may not. `routes/table.txt`, which is held complete by its own test, names the forms.

use std::collections::{BTreeMap, BTreeSet};

const FORMS: &str = include_str!("routes/table.txt");
const ACTIONS: &str = include_str!("actions.txt");

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What a form's row says: operations, or a reason in brackets.
fn actions() -> BTreeMap<&'static str, &'static str> {
    rows(ACTIONS).map(|line| line.split_once(' ').expect("a path and what does the same")).collect()
}

#[test]
fn every_form_of_the_pages_has_an_operation_or_a_reason() {
    let forms: BTreeSet<&str> = rows(FORMS)
        .filter_map(|line| line.strip_prefix("POST "))
        .filter_map(|rest| rest.split_whitespace().next())
        .filter(|path| !path.starts_with("/api/"))
        .collect();
    assert!(forms.len() > 60, "only {} forms", forms.len());
    let named: BTreeSet<&str> = actions().into_keys().collect();
    let missing: Vec<_> = forms.difference(&named).collect();
    assert!(missing.is_empty(), "say in actions.txt which operation does the same as {missing:#?}");
    let gone: Vec<_> = named.difference(&forms).collect();
    assert!(gone.is_empty(), "there are no such forms: {gone:#?}");
}

#[test]
fn every_operation_that_stands_for_a_form_is_there() {
    let document = sluice_api::published();
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.values().flat_map(|item| item.as_object().into_iter().flatten());
    let known: BTreeSet<&str> = all.filter_map(|(_, one)| one["operationId"].as_str()).collect();
    for (form, does) in actions() {
        let does = does.trim();
        if let Some(reason) = does.strip_prefix('(') {
            assert!(reason.ends_with(')') && reason.len() > 15, "{form}: say why: {reason}");
            continue;
        }
        for operation in does.split_whitespace() {
            assert!(known.contains(operation), "{form}: there is no operation `{operation}`");
        }
    }
}

const START: &str = "## Call by call\n";

/// The row of a call: its words, its address, and who may.
fn matrix(document: &serde_json::Value) -> String {
    let mut out = String::from(
        "\nMade from the routes of the API, whose answers to each role are tried by a test. A page's form may do what its call may.\n\n\
         | | call | viewer | policy manager | admin |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut lines: Vec<(&str, String)> = Vec::new();
    for row in rows(FORMS) {
        let mut words = row.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else { continue };
        let Some(short) = path.strip_prefix("/api/v1/workspaces/{ws}") else { continue };
        let operation = &document["paths"][&path["/api/v1".len()..]][method.to_lowercase()];
        let says = operation["summary"].as_str().unwrap_or_default().replace('\n', " ");
        let says = says.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let answers: Vec<&str> = words.take(8).collect();
        let may = |at: usize| if answers[at] == "403" { "" } else { "yes" };
        // Of a grant's fields the policy is a policy manager's too; another test holds that.
        let part = if (method, short) == ("PATCH", "/grants/{id}") { "its policy" } else { may(6) };
        let who = format!("{} | {part} | {}", may(5), may(7));
        lines.push((short, format!("| {says} | `{method} …{short}` | {who} |\n")));
    }
    lines.sort();
    out.extend(lines.into_iter().map(|(_, line)| line));
    out
}

#[test]
fn the_roles_page_says_of_each_call_who_may() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/roles.md");
    let page = std::fs::read_to_string(path).expect("it is there");
    let (head, rest) = page.split_once(START).expect("the page has the section");
    let (_, tail) = rest.split_once("\n## ").expect("more comes after it");
    let now = format!("{head}{START}{}\n## {tail}", matrix(&sluice_api::published()));
    if std::env::var_os("SLUICE_WRITE_DOCS").is_some() {
        std::fs::write(path, &now).expect("it is written");
    }
    let kept = std::fs::read_to_string(path).expect("it is there");
    assert!(kept == now, "write docs/roles.md anew with SLUICE_WRITE_DOCS=1 and this test");
}
