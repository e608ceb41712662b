//! Single parts of a document by JSON Pointer: read, put, removed, moved. What else the text holds
//! stays as it was typed. None of these checks the document that comes of it.

use std::ops::Range;

use serde_json::Value;

use super::text::{Edited, find};
use crate::json::{Kind, Node, parse, to_value};
use crate::normalise::entry;

/// The segments of a JSON Pointer.
fn segments(pointer: &str) -> Vec<String> {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// The part at `pointer`, its digits kept.
pub fn get(text: &str, pointer: &str) -> Option<Value> {
    let tree = parse(text).ok()?;
    find(&tree.root, &borrowed(&segments(pointer))).map(to_value)
}

/// Puts a value at `pointer`: in the place of the old one, as a new member, or at a list's end where
/// the position is not taken. Objects on the way are made; a list is made for a position.
pub fn put(text: &str, pointer: &str, value: &Value) -> Option<String> {
    let path = segments(pointer);
    let path = borrowed(&path);
    let (key, parent) = path.split_last()?;
    let mut edited = Edited { text: text.to_owned() };
    let tree = parse(text).ok()?;
    let place = find(&tree.root, &path).map(|node| node.start..node.end);
    let in_list = find(&tree.root, parent).map(|node| matches!(node.kind, Kind::List(_)));
    drop(tree);
    if let Some(place) = place {
        let new = edited.layout(value, &edited.indent_of(place.start));
        edited.text.replace_range(place, &new);
        return Some(edited.text);
    }
    // A new list is asked for by its first position.
    let (list, around) = parent.split_last().unzip();
    match (in_list, list) {
        (Some(true), Some(list)) => edited.push(around.unwrap_or_default(), list, value),
        (None, Some(list)) if *key == "0" => {
            let around = around.unwrap_or_default();
            edited.add_member(around, list, &Value::Array(vec![value.clone()]));
        }
        _ => edited.add_member(parent, key, value),
    }
    Some(edited.text)
}

/// Removes the part at `pointer` with the comma and the blanks that go with it.
pub fn remove(text: &str, pointer: &str) -> Option<String> {
    let path = segments(pointer);
    let path = borrowed(&path);
    let tree = parse(text).ok()?;
    let part = whole(&tree.root, &path)?;
    let mut out = text.to_owned();
    let after = &text[part.end..];
    let blank = after.len() - after.trim_start().len();
    if let Some(rest) = after.trim_start().strip_prefix(',') {
        // The next one moves to this one's place.
        let next = rest.len() - rest.trim_start().len();
        out.replace_range(part.start..part.end + blank + 1 + next, "");
        return Some(out);
    }
    let before = text[..part.start].trim_end();
    match before.strip_suffix(',') {
        Some(before) => out.replace_range(before.len()..part.end, ""),
        // The only one: nothing is left between the brackets.
        None => out.replace_range(before.len()..part.end + blank, ""),
    }
    Some(out)
}

/// A value with its key.
fn whole(root: &Node<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (last, parent) = path.split_last()?;
    let around = find(root, parent)?;
    if let Kind::Object(members) = &around.kind {
        let member = members.iter().find(|member| member.key == *last)?;
        return Some(member.key_at..member.value.end);
    }
    let node = find(root, path)?;
    Some(node.start..node.end)
}

/// Changes places with the element before it, or after it.
pub fn shift(text: &str, pointer: &str, up: bool) -> Option<String> {
    let (list, position) = pointer.rsplit_once('/')?;
    let position: usize = position.parse().ok()?;
    let (first, second) =
        if up { (position.checked_sub(1)?, position) } else { (position, position + 1) };
    let path = segments(list);
    let tree = parse(text).ok()?;
    let items = find(&tree.root, &borrowed(&path))?.items();
    let (a, b) = (items.get(first)?, items.get(second)?);
    let (start, end) = (a.start, b.end);
    let swapped =
        format!("{}{}{}", &text[b.start..b.end], &text[a.end..b.start], &text[a.start..a.end]);
    let mut out = text.to_owned();
    out.replace_range(start..end, &swapped);
    Some(out)
}

/// Writes out the short forms of a tool's entry, so that its parts can be changed one by one.
pub fn write_out(text: &str, tool: &str) -> Option<String> {
    let tree = parse(text).ok()?;
    let node = find(&tree.root, &["tools", tool])?;
    let short = ["rate_limit", "action", "reason"];
    if !short.iter().any(|key| node.get(key).is_some()) {
        return Some(text.to_owned());
    }
    let (long, hidden) = entry(tool, node);
    let mut edited = Edited { text: text.to_owned() };
    let new = edited.layout(&long, &edited.indent_of(node.start));
    let place = node.start..node.end;
    edited.text.replace_range(place, &new);
    if hidden {
        edited.add_item(&[], "hide", &Value::from(tool));
    }
    Some(edited.text)
}
