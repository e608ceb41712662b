//! Whatever a page can do, the API can do: each form of the pages beside the operation that does the same, or the reason why
//! an API token may not. `routes/table.txt`, which is held complete by its own test, names the forms.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) const FORMS: &str = include_str!("routes/table.txt");
const ACTIONS: &str = include_str!("actions.txt");

pub(crate) fn rows(text: &str) -> impl Iterator<Item = &str> {
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
