//! Finds the values that a rule set's paths name, in one pass over the
//! arguments' text. Nothing is built but one slot a path.

use crate::decision::ValueKind;
use crate::item::{Item, kind_of};
use crate::json::{Lexer, SyntaxError};
use crate::path::Segment;

/// The paths of a rule set as a tree; each leaf fills a slot.
#[derive(Debug, Default)]
pub(crate) struct PathTree {
    nodes: Vec<Branch>,
    slots: usize,
}

#[derive(Debug, Default)]
struct Branch {
    slot: Option<usize>,
    /// Sorted by key.
    keys: Vec<(String, usize)>,
    /// Sorted by index.
    indexes: Vec<(u32, usize)>,
}

impl PathTree {
    /// The slot of a path without `[*]`.
    pub(crate) fn slot(&mut self, segments: &[Segment]) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(Branch::default());
        }
        let mut at = 0;
        for segment in segments {
            at = match segment {
                Segment::Key(key) => self.key_child(at, key),
                Segment::Index(index) => self.index_child(at, *index),
                Segment::Each => at,
            };
        }
        let slots = &mut self.slots;
        *self.nodes[at].slot.get_or_insert_with(|| {
            *slots += 1;
            *slots - 1
        })
    }

    fn key_child(&mut self, at: usize, key: &str) -> usize {
        match self.nodes[at].keys.binary_search_by(|(other, _)| other.as_str().cmp(key)) {
            Ok(found) => self.nodes[at].keys[found].1,
            Err(place) => {
                let child = self.nodes.len();
                self.nodes.push(Branch::default());
                self.nodes[at].keys.insert(place, (key.to_owned(), child));
                child
            }
        }
    }

    fn index_child(&mut self, at: usize, index: u32) -> usize {
        match self.nodes[at].indexes.binary_search_by_key(&index, |(other, _)| *other) {
            Ok(found) => self.nodes[at].indexes[found].1,
            Err(place) => {
                let child = self.nodes.len();
                self.nodes.push(Branch::default());
                self.nodes[at].indexes.insert(place, (index, child));
                child
            }
        }
    }

    /// One item a slot. `raw` is JSON that was checked.
    pub(crate) fn extract<'a>(&self, raw: &'a str, recorded: bool) -> Vec<Item<'a>> {
        if self.slots == 0 {
            return Vec::new();
        }
        let mut pass = Pass {
            tree: self,
            lexer: Lexer::new(raw),
            slots: vec![Item::Missing; self.slots],
            recorded,
        };
        // Cannot fail on checked text; if it did, what was not read stays missing.
        let _ = pass.visit(0, 0);
        pass.slots
    }
}

struct Pass<'p, 'a> {
    tree: &'p PathTree,
    lexer: Lexer<'a>,
    slots: Vec<Item<'a>>,
    recorded: bool,
}

impl<'p> Pass<'p, '_> {
    fn visit(&mut self, at: usize, depth: usize) -> Result<(), SyntaxError> {
        self.lexer.space();
        let start = self.lexer.at;
        let tree: &'p PathTree = self.tree;
        let branch = &tree.nodes[at];
        match self.lexer.peek() {
            Some(b'{') => self.object(at, depth)?,
            Some(b'[') if !branch.indexes.is_empty() => self.list(branch, depth)?,
            _ => self.lexer.skip(depth)?,
        }
        let text = self.lexer.since(start);
        let kind = kind_of(text);
        if self.recorded
            && let Some(kind) = marker(text)
        {
            self.untold(branch, kind);
            return Ok(());
        }
        if kind != ValueKind::Object {
            self.block(branch.keys.iter().map(|(_, child)| *child), kind);
        }
        if kind != ValueKind::List {
            self.block(branch.indexes.iter().map(|(_, child)| *child), kind);
        }
        if let Some(slot) = branch.slot {
            self.slots[slot] = Item::Raw(kind, text);
        }
        Ok(())
    }

    fn object(&mut self, at: usize, depth: usize) -> Result<(), SyntaxError> {
        let tree: &'p PathTree = self.tree;
        let keys = &tree.nodes[at].keys;
        if keys.is_empty() {
            return self.lexer.skip(depth);
        }
        let mut members = self.lexer.object(depth)?;
        while let Some((key, _)) = members.next(&mut self.lexer)? {
            let key = key.decode();
            match keys.binary_search_by(|(other, _)| other.as_str().cmp(&key)) {
                Ok(found) => self.visit(keys[found].1, depth + 1)?,
                Err(_) => self.lexer.skip(depth + 1)?,
            }
        }
        Ok(())
    }

    fn list(&mut self, branch: &'p Branch, depth: usize) -> Result<(), SyntaxError> {
        let mut items = self.lexer.list(depth)?;
        let mut index: u32 = 0;
        while items.next(&mut self.lexer)? {
            match branch.indexes.binary_search_by_key(&index, |(other, _)| *other) {
                Ok(found) => self.visit(branch.indexes[found].1, depth + 1)?,
                Err(_) => self.lexer.skip(depth + 1)?,
            }
            index = index.saturating_add(1);
        }
        Ok(())
    }

    /// The log kept only the type: what the type can hold is open, the rest is as with any value of it.
    fn untold(&mut self, branch: &'p Branch, kind: ValueKind) {
        for (holder, children) in [
            (ValueKind::Object, branch.keys.iter().map(|(_, child)| *child).collect::<Vec<_>>()),
            (ValueKind::List, branch.indexes.iter().map(|(_, child)| *child).collect()),
        ] {
            if kind == holder {
                for child in children {
                    self.fill(child, Item::Untold(None));
                }
            } else {
                self.block(children.into_iter(), kind);
            }
        }
        if let Some(slot) = branch.slot {
            self.slots[slot] = Item::Untold(Some(kind));
        }
    }

    /// Below a null there is nothing; below another wrong type it is told that something is there.
    fn block(&mut self, children: impl Iterator<Item = usize>, kind: ValueKind) {
        if kind != ValueKind::Null {
            for child in children {
                self.fill(child, Item::Blocked(kind));
            }
        }
    }

    fn fill(&mut self, at: usize, item: Item<'static>) {
        let tree: &'p PathTree = self.tree;
        let branch = &tree.nodes[at];
        if let Some(slot) = branch.slot {
            self.slots[slot] = item;
        }
        let keys = branch.keys.iter().map(|(_, child)| *child);
        for child in keys.chain(branch.indexes.iter().map(|(_, child)| *child)) {
            self.fill(child, item);
        }
    }
}

/// Goes from a value through `segments`, which begin with `[*]`, and shows every end to `look`,
/// until it answers false.
pub(crate) fn walk<'a>(
    item: Item<'a>,
    segments: &[Segment],
    recorded: bool,
    look: &mut impl FnMut(Item<'a>) -> bool,
) -> bool {
    let Item::Raw(kind, text) = item else { return look(item) };
    if recorded && let Some(kind) = marker(text) {
        return look(match (segments.first(), kind) {
            (None, _) => Item::Untold(Some(kind)),
            (_, ValueKind::Null) => Item::Missing,
            (Some(Segment::Key(_)), ValueKind::Object)
            | (Some(Segment::Index(_) | Segment::Each), ValueKind::List) => Item::Untold(None),
            _ => Item::Blocked(kind),
        });
    }
    let Some((segment, rest)) = segments.split_first() else { return look(item) };
    let mut lexer = Lexer::new(text);
    let result = match (segment, kind) {
        (_, ValueKind::Null) => return look(Item::Missing),
        (Segment::Key(key), ValueKind::Object) => member(&mut lexer, key),
        (Segment::Index(index), ValueKind::List) => element(&mut lexer, *index),
        (Segment::Each, ValueKind::List) => {
            return each(&mut lexer, rest, recorded, look).unwrap_or(true);
        }
        _ => return look(Item::Blocked(kind)),
    };
    walk(result.ok().flatten().map_or(Item::Missing, Item::raw), rest, recorded, look)
}

fn each<'a>(
    lexer: &mut Lexer<'a>,
    rest: &[Segment],
    recorded: bool,
    look: &mut impl FnMut(Item<'a>) -> bool,
) -> Result<bool, SyntaxError> {
    let mut items = lexer.list(0)?;
    let mut any = false;
    while items.next(lexer)? {
        any = true;
        if !walk(Item::raw(next_value(lexer)?), rest, recorded, look) {
            return Ok(false);
        }
    }
    Ok(any || look(Item::Empty))
}

fn next_value<'a>(lexer: &mut Lexer<'a>) -> Result<&'a str, SyntaxError> {
    lexer.space();
    let start = lexer.at;
    lexer.skip(0)?;
    Ok(lexer.since(start))
}

fn member<'a>(lexer: &mut Lexer<'a>, wanted: &str) -> Result<Option<&'a str>, SyntaxError> {
    let mut members = lexer.object(0)?;
    while let Some((key, _)) = members.next(lexer)? {
        let value = next_value(lexer)?;
        if key.decode() == wanted {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn element<'a>(lexer: &mut Lexer<'a>, wanted: u32) -> Result<Option<&'a str>, SyntaxError> {
    let mut items = lexer.list(0)?;
    let mut index = 0;
    while items.next(lexer)? {
        let value = next_value(lexer)?;
        if index == wanted {
            return Ok(Some(value));
        }
        index += 1;
    }
    Ok(None)
}

/// The type that a recorded value had, where only that was kept: see [`recorded`](crate::recorded).
fn marker(text: &str) -> Option<ValueKind> {
    let word = text.strip_prefix(crate::recorded::MARK)?;
    crate::recorded::kind(&word[..word.find('"')?])
}
