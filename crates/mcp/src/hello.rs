//! Takes out of `initialize` and `server/discover` answers the capabilities that the gateway does not
//! pass, by cutting their text; what stays keeps its bytes.

use crate::lists::{self, ListProblem};
use crate::scan;
use crate::text::{self, Span, unescape};

/// The answer without the named capabilities: each a path inside `capabilities`. None if none was there.
pub fn without_capabilities(
    body: &[u8],
    denied: &[&[&str]],
) -> Result<Option<Vec<u8>>, ListProblem> {
    let text = std::str::from_utf8(body).map_err(|_| ListProblem::NotJson)?;
    if !scan::is_json(text) {
        return Err(ListProblem::NotJson);
    }
    let mut cuts = Vec::new();
    for capabilities in inside(text, text::whole(text), "result")
        .into_iter()
        .flat_map(|result| inside(text, result, "capabilities"))
    {
        find(text, capabilities, denied, &mut cuts);
    }
    Ok(lists::edited(text, cuts.into_iter().map(|cut| (cut, String::new())).collect()))
}

/// The message without the members at these paths; what stays keeps its bytes. None if none was there.
pub fn without_members(body: &[u8], paths: &[&[&str]]) -> Result<Option<Vec<u8>>, ListProblem> {
    let text = std::str::from_utf8(body).map_err(|_| ListProblem::NotJson)?;
    if !scan::is_json(text) {
        return Err(ListProblem::NotJson);
    }
    let mut cuts = Vec::new();
    find(text, text::whole(text), paths, &mut cuts);
    Ok(lists::edited(text, cuts.into_iter().map(|cut| (cut, String::new())).collect()))
}

fn is(text: &str, key: &Span, name: &str) -> bool {
    unescape(&text[key.clone()]).is_some_and(|key| key == name)
}

/// The values of an object's members of this name; of equal names each counts.
fn inside(text: &str, object: Span, name: &str) -> Vec<Span> {
    let members = text::member_spans(text, object).into_iter();
    members.filter(|(key, _)| is(text, key, name)).map(|(_, value)| value).collect()
}

/// Finds what must be cut so that the object has no member at any of the paths.
fn find(text: &str, object: Span, paths: &[&[&str]], cuts: &mut Vec<Span>) {
    let members = text::member_spans(text, object);
    let mut goes = vec![false; members.len()];
    for ((key, value), goes) in members.iter().zip(&mut goes) {
        let here = |path: &&&[&str]| path.first().is_some_and(|first| is(text, key, first));
        let rest: Vec<&[&str]> = paths.iter().filter(here).map(|path| &path[1..]).collect();
        *goes = rest.iter().any(|path| path.is_empty());
        if !*goes && !rest.is_empty() {
            find(text, value.clone(), &rest, cuts);
        }
    }
    cut(&members, &goes, cuts);
}

/// The spans of the members that go, each with the comma that they leave behind.
fn cut(members: &[(Span, Span)], goes: &[bool], cuts: &mut Vec<Span>) {
    // A name's span is inside its quotes.
    let start = |at: usize| members[at].0.start - 1;
    let last_kept = goes.iter().rposition(|goes| !goes);
    if goes.iter().all(|goes| !goes) {
        return;
    }
    for (at, goes) in goes.iter().enumerate().take(last_kept.unwrap_or(0)) {
        if *goes {
            cuts.push(start(at)..start(at + 1));
        }
    }
    let Some(end) = members.last().map(|(_, value)| value.end) else { return };
    match last_kept {
        Some(kept) if kept + 1 < members.len() => cuts.push(members[kept].1.end..end),
        Some(_) => {}
        None => cuts.push(start(0)..end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(capabilities: &str, denied: &[&[&str]]) -> Option<String> {
        let body = |inner: &str| {
            format!(r#"{{"id":1, "result":{{"a":1.0,"capabilities":{inner} ,"x":[ 1E400]}}}}"#)
        };
        let out = without_capabilities(body(capabilities).as_bytes(), denied).expect("JSON");
        out.map(|out| {
            let out = String::from_utf8(out).expect("UTF-8");
            let around = body("@");
            let (before, after) = around.split_once('@').expect("a place");
            let inner = out.strip_prefix(before).and_then(|out| out.strip_suffix(after));
            inner.unwrap_or_else(|| panic!("more was changed: {out}")).to_owned()
        })
    }

    #[test]
    fn what_is_denied_goes_and_the_rest_keeps_its_bytes() {
        let denied: &[&[&str]] = &[&["resources"], &["prompts"]];
        for (before, after) in [
            (r#"{ "tools":{ } , "resources":{"subscribe":true}}"#, r#"{ "tools":{ }}"#),
            (r#"{"resources":{},"tools":{"x":1.50},"prompts":{} }"#, r#"{"tools":{"x":1.50} }"#),
            (r#"{ "prompts":{},"resources":{}}"#, "{ }"),
            (r#"{"resou\u0072ces":{},"resources":{}, "vendor":[1, 2]}"#, r#"{"vendor":[1, 2]}"#),
            (
                r#"{"a":1,"prompts":1,"b":{"resources":2},"resources":3,"c":4}"#,
                r#"{"a":1,"b":{"resources":2},"c":4}"#,
            ),
        ] {
            assert_eq!(without(before, denied).as_deref(), Some(after), "{before}");
        }
        for same in [r#"{"tools":{},"Resources":{}}"#, "{}", "7", r#"["resources"]"#] {
            assert_eq!(without(same, denied), None, "{same}");
        }
    }

    #[test]
    fn members_are_cut_out_of_a_call() {
        let paths: &[&[&str]] = &[&["params", "requestState"], &["params", "inputResponses"]];
        let cut = |body: &str| {
            let out = without_members(body.as_bytes(), paths).expect("JSON");
            out.map(|out| String::from_utf8(out).expect("UTF-8"))
        };
        assert_eq!(
            cut(r#"{"id":1,"params":{"inputResponses":{"a":1}, "arguments":{"requestState":1.0} ,"requestState":"s" }}"#)
                .as_deref(),
            Some(r#"{"id":1,"params":{"arguments":{"requestState":1.0} }}"#)
        );
        assert_eq!(cut(r#"{"requestState":"s","params":{"name":"x"}}"#), None);
        assert!(without_members(b"{", paths).is_err());
    }

    #[test]
    fn a_part_of_a_capability_goes_alone() {
        let denied: &[&[&str]] = &[&["tasks", "list"]];
        assert_eq!(
            without(r#"{"tasks":{"list":{},"cancel":{}},"list":{}}"#, denied).as_deref(),
            Some(r#"{"tasks":{"cancel":{}},"list":{}}"#)
        );
        assert_eq!(without(r#"{"tasks":true}"#, denied), None);
        assert!(without_capabilities(b"<html>", denied).is_err());
    }
}
