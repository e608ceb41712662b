//! Takes tools out of a `tools/list` answer by cutting its text; what stays
//! keeps its bytes, order and number literals.

use crate::scan;
use crate::text::{self, Span};

/// One tool of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// The name, unescaped.
    pub name: String,
    /// The definition's raw text.
    pub raw: String,
    /// Whether it stayed in the list.
    pub kept: bool,
}

/// A list after cutting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplicedList {
    /// The new message; none if nothing had to change.
    pub body: Option<Vec<u8>>,
    /// The tools that were in it.
    pub tools: Vec<ToolEntry>,
    /// The message held a list of tools at all.
    pub is_list: bool,
    /// More pages follow.
    pub has_more: bool,
}

/// An answer that cannot be filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    /// Not UTF-8 or not JSON.
    #[error("the list of tools is not JSON")]
    NotJson,
}

struct Splicer<'a, 'k> {
    text: &'a str,
    keep: &'k mut dyn FnMut(&str) -> bool,
    edits: Vec<(Span, String)>,
    out: SplicedList,
}

/// Cuts out the tools that `keep` does not want. With `private`, the answer is marked as not to be
/// cached for others (`cacheScope`, 2026-07-28).
pub fn splice_tools(
    body: &[u8],
    keep: &mut dyn FnMut(&str) -> bool,
    private: bool,
) -> Result<SplicedList, ListProblem> {
    let text = std::str::from_utf8(body).map_err(|_| ListProblem::NotJson)?;
    if !scan::is_json(text) {
        return Err(ListProblem::NotJson);
    }
    let mut splicer = Splicer { text, keep, edits: Vec::new(), out: SplicedList::default() };
    // A second `result` or `tools` would be the one that some parser takes.
    for (name, span) in text::members(text, text::whole(text)) {
        if is(name, "result") {
            splicer.result(span, private);
        }
    }
    Ok(splicer.finish())
}

fn is(raw_name: &str, name: &str) -> bool {
    text::unescape(raw_name).is_some_and(|own| own == name)
}

impl Splicer<'_, '_> {
    fn result(&mut self, result: Span, private: bool) {
        let members = text::members(self.text, result.clone());
        let mut scoped = false;
        let mut listed = false;
        for (name, span) in &members {
            if is(name, "tools") && self.text[span.clone()].starts_with('[') {
                listed = true;
                self.tools(span.clone());
            } else if is(name, "cacheScope") {
                scoped = true;
            } else if is(name, "nextCursor") {
                self.out.has_more |= &self.text[span.clone()] != "null";
            }
        }
        self.out.is_list |= listed;
        if !(private && listed) {
            return;
        }
        for (name, span) in &members {
            if is(name, "cacheScope") && &self.text[span.clone()] != "\"private\"" {
                self.edits.push((span.clone(), "\"private\"".to_owned()));
            }
        }
        if !scoped {
            let at = result.start + 1;
            self.edits.push((at..at, "\"cacheScope\":\"private\",".to_owned()));
        }
    }

    fn tools(&mut self, array: Span) {
        let elements = text::elements(self.text, array.clone());
        let mut kept = Vec::with_capacity(elements.len());
        for element in &elements {
            if self.tool(element.clone()) {
                kept.push(self.text[element.clone()].to_owned());
            }
        }
        if kept.len() < elements.len() {
            self.edits.push((array, format!("[{}]", kept.join(","))));
        }
    }

    /// Whether a tool stays: every name it gives must be wanted, and it must give one.
    fn tool(&mut self, element: Span) -> bool {
        let raw = &self.text[element.clone()];
        let mut stays = None;
        for (name, span) in text::members(self.text, element) {
            if !is(name, "name") {
                continue;
            }
            let named = text::string_value(&self.text[span]);
            let wanted = named.as_deref().is_some_and(|name| (self.keep)(name));
            stays = Some(wanted && stays != Some(false));
            if let Some(name) = named {
                self.out.tools.push(ToolEntry {
                    name: name.into_owned(),
                    raw: raw.to_owned(),
                    kept: wanted,
                });
            }
        }
        stays == Some(true)
    }

    fn finish(mut self) -> SplicedList {
        self.out.body = edited(self.text, self.edits);
        self.out
    }
}

/// The text with its spans replaced; none if there is nothing to replace.
pub(crate) fn edited(text: &str, mut edits: Vec<(Span, String)>) -> Option<Vec<u8>> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut body = Vec::with_capacity(text.len());
    let mut at = 0;
    for (span, new) in &edits {
        body.extend_from_slice(&text.as_bytes()[at..span.start]);
        body.extend_from_slice(new.as_bytes());
        at = span.end;
    }
    body.extend_from_slice(&text.as_bytes()[at..]);
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splice(body: &str, hidden: &[&str], private: bool) -> SplicedList {
        splice_tools(body.as_bytes(), &mut |name| !hidden.contains(&name), private).expect("JSON")
    }

    fn text(list: &SplicedList) -> &str {
        std::str::from_utf8(list.body.as_deref().expect("changed")).expect("UTF-8")
    }

    #[test]
    fn what_stays_keeps_its_bytes() {
        let body = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[ {"name":"a","x-vendor":1.0} , {"name":"\u0062","s":{"n":1E400}}, {"name":"c","icons":[]} ],"nextCursor":"b==","vendorTop":[1.0,2.50]}}"#;
        let list = splice(body, &["b"], false);
        assert_eq!(
            text(&list),
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x-vendor":1.0},{"name":"c","icons":[]}],"nextCursor":"b==","vendorTop":[1.0,2.50]}}"#
        );
        assert!(list.has_more && list.is_list);
        assert_eq!(list.tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(splice(body, &[], false).body, None);
    }

    #[test]
    fn an_emptied_page_keeps_its_cursor() {
        let list =
            splice(r#"{"id":1,"result":{"nextCursor":"n","tools":[{"name":"a"}]}}"#, &["a"], false);
        assert_eq!(text(&list), r#"{"id":1,"result":{"nextCursor":"n","tools":[]}}"#);
    }

    #[test]
    fn no_second_spelling_slips_through() {
        let twice = r#"{"result":{"tools":[{"name":"a"}],"t\u006fols":[{"name":"x"}]},"result":{"tools":[{"name":"a","name":"x"}]}}"#;
        assert_eq!(
            text(&splice(twice, &["x"], false)),
            r#"{"result":{"tools":[{"name":"a"}],"t\u006fols":[]},"result":{"tools":[]}}"#
        );
        let unnamed = r#"{"result":{"tools":[{"title":"a"},7,{"name":5}]}}"#;
        assert_eq!(text(&splice(unnamed, &[], false)), r#"{"result":{"tools":[]}}"#);
    }

    #[test]
    fn the_cache_scope_becomes_private() {
        let public = r#"{"result":{"tools":[],"ttlMs":5,"cacheScope":"public"}}"#;
        assert_eq!(
            text(&splice(public, &[], true)),
            r#"{"result":{"tools":[],"ttlMs":5,"cacheScope":"private"}}"#
        );
        let silent = r#"{"result":{"tools":[]}}"#;
        assert_eq!(
            text(&splice(silent, &[], true)),
            r#"{"result":{"cacheScope":"private","tools":[]}}"#
        );
        assert_eq!(
            splice(r#"{"result":{"tools":[],"cacheScope":"private"}}"#, &[], true).body,
            None
        );
        assert_eq!(splice(r#"{"id":1,"error":{"code":1}}"#, &[], true).body, None);
        assert_eq!(splice_tools(b"<html>", &mut |_| true, true), Err(ListProblem::NotJson));
    }
}
