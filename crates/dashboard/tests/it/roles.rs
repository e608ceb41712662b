//! What `/docs/roles` says is what the routes answer: a table in people's words, and one call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::actions::{FORMS, rows};

const SUMMARY: &str = include_str!("roles.txt");

/// Who may, in the columns of the page.
type May = [bool; 3];

/// Of a grant's fields the policy is a policy manager's too; `control`'s and `api`'s tests of grants hold that.
const PART: (&str, May) = ("edit_grant:policy_id", [false, true, true]);

/// Who may do each call of a workspace, by its operation's name or, of a form, its path.
fn allowed(document: &Value) -> BTreeMap<String, May> {
    let mut all = BTreeMap::from([(PART.0.to_owned(), PART.1)]);
    for row in rows(FORMS) {
        let mut words = row.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else { continue };
        let answers: Vec<&str> = words.take(8).collect();
        let may = [5, 6, 7].map(|at| answers[at] != "403");
        if path.starts_with("/api/v1/workspaces/{ws}") {
            let operation = &document["paths"][&path["/api/v1".len()..]][method.to_lowercase()];
            let name = operation["operationId"].as_str().expect("every call is described");
            all.insert(name.to_owned(), may);
        } else if method == "POST" {
            all.insert(path.to_owned(), may);
        }
    }
    all
}

/// The table in people's words.
fn summary(document: &Value) -> String {
    let mut out =
        String::from("| | viewer | policy manager | admin |\n| --- | --- | --- | --- |\n");
    let allowed = allowed(document);
    let mut told = BTreeSet::new();
    for line in rows(SUMMARY) {
        let (says, calls) = line.split_once('|').expect("words and calls");
        let who: BTreeSet<May> = calls
            .split_whitespace()
            .map(|call| {
                told.insert(call);
                *allowed.get(call).unwrap_or_else(|| panic!("roles.txt: there is no call {call}"))
            })
            .collect();
        assert_eq!(who.len(), 1, "roles.txt: not everybody may do all of this: {says}: {who:?}");
        for may in who {
            let [viewer, manager, admin] = may.map(|may| if may { "yes" } else { "" });
            writeln!(out, "| {} | {viewer} | {manager} | {admin} |", says.trim())
                .expect("memory takes it");
        }
    }
    let untold: Vec<_> = allowed
        .keys()
        .filter(|call| !call.starts_with('/') && !told.contains(call.as_str()))
        .collect();
    assert!(untold.is_empty(), "roles.txt says nothing of {untold:?}");
    out
}

/// A part of the page between two lines, written anew.
fn replaced(page: &str, from: &str, until: &str, now: &str) -> String {
    let (head, rest) = page.split_once(from).expect("the page has the section");
    let (_, tail) = rest.split_once(until).expect("more comes after it");
    format!("{head}{from}{now}{until}{tail}")
}

/// The row of a call: its words, its address, and who may.
fn matrix(document: &Value) -> String {
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
fn the_roles_page_says_who_may_what_the_routes_let_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/roles.md");
    let page = std::fs::read_to_string(path).expect("it is there");
    let document = sluice_api::published();
    let now = replaced(
        &page,
        "includes the one before it.\n\n",
        "\nNobody sees a credential",
        &summary(&document),
    );
    let now = replaced(&now, "## Call by call\n", "\n## ", &matrix(&document));
    if std::env::var_os("SLUICE_WRITE_DOCS").is_some() {
        std::fs::write(path, &now).expect("it is written");
    }
    let kept = std::fs::read_to_string(path).expect("it is there");
    assert!(kept == now, "write docs/roles.md anew with SLUICE_WRITE_DOCS=1 and this test");
}
