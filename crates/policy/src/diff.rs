//! What changed between two versions of a document, part by part, in their long form.

use serde::Serialize;
use serde_json::Value;

use crate::item::canonical;
use crate::json::escape_pointer;
use crate::normalise::normalise;
use crate::problem::Problem;

/// How a part changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

/// One part that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// JSON Pointer: into the old document for what was removed, else into the new one.
    pub pointer: String,
    pub kind: ChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The changes from one document text to another. Order of keys and ways to write a number do not count.
pub fn diff(before: &str, after: &str) -> Result<Vec<Change>, Vec<Problem>> {
    let mut out = Vec::new();
    values("", &long_form(before)?, &long_form(after)?, &mut out);
    Ok(out)
}

fn long_form(text: &str) -> Result<Value, Vec<Problem>> {
    crate::check::read(text)?;
    // Read above, so it parses.
    Ok(crate::json::parse(text).map(|tree| normalise(&tree.root)).unwrap_or_default())
}

fn same(a: &Value, b: &Value) -> bool {
    canonical(&a.to_string()) == canonical(&b.to_string())
}

fn values(pointer: &str, a: &Value, b: &Value, out: &mut Vec<Change>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for (key, old) in x {
                let at = format!("{pointer}/{}", escape_pointer(key));
                match y.get(key) {
                    Some(new) => values(&at, old, new, out),
                    None => out.push(change(at, Some(old), None)),
                }
            }
            for (key, new) in y.iter().filter(|(key, _)| !x.contains_key(*key)) {
                let at = format!("{pointer}/{}", escape_pointer(key));
                out.push(change(at, None, Some(new)));
            }
        }
        (Value::Array(x), Value::Array(y)) => lists(pointer, x, y, out),
        _ if same(a, b) => {}
        _ => out.push(change(pointer.to_owned(), Some(a), Some(b))),
    }
}

fn change(pointer: String, before: Option<&Value>, after: Option<&Value>) -> Change {
    let kind = match (before, after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    };
    Change { pointer, kind, before: before.cloned(), after: after.cloned() }
}

/// Elements that stay are matched first (longest common run of equal ones); between them, old and
/// new are paired in order as changes, and what is left over was removed or added.
fn lists(pointer: &str, x: &[Value], y: &[Value], out: &mut Vec<Change>) {
    let mut kept = common(x, y);
    kept.push((x.len(), y.len()));
    let (mut i, mut j) = (0, 0);
    for (next_i, next_j) in kept {
        while i < next_i && j < next_j {
            values(&format!("{pointer}/{j}"), &x[i], &y[j], out);
            (i, j) = (i + 1, j + 1);
        }
        for (index, old) in x.iter().enumerate().take(next_i).skip(i) {
            out.push(change(format!("{pointer}/{index}"), Some(old), None));
        }
        for (index, new) in y.iter().enumerate().take(next_j).skip(j) {
            out.push(change(format!("{pointer}/{index}"), None, Some(new)));
        }
        (i, j) = (next_i + 1, next_j + 1);
    }
}

/// Pairs of equal elements in order, as many as can be. Long lists (`hide`) are compared by their
/// equal start and end alone.
fn common(x: &[Value], y: &[Value]) -> Vec<(usize, usize)> {
    let (x, y): (Vec<String>, Vec<String>) = (texts(x), texts(y));
    let start = x.iter().zip(&y).take_while(|(a, b)| a == b).count();
    let rest = x.len().min(y.len()) - start;
    let end = x.iter().rev().zip(y.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|at| (at, at)).collect();
    let (a, b) = (&x[start..x.len() - end], &y[start..y.len() - end]);
    if a.len() * b.len() <= 250_000 {
        pairs.extend(longest(a, b).into_iter().map(|(i, j)| (i + start, j + start)));
    }
    pairs.extend((0..end).map(|at| (x.len() - end + at, y.len() - end + at)));
    pairs
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| canonical(&value.to_string())).collect()
}

fn longest(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let mut best = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            best[i][j] = if a[i] == b[j] {
                best[i + 1][j + 1] + 1
            } else {
                best[i + 1][j].max(best[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}
