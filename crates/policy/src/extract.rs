//! Finds the values that a rule set's paths name, in one pass over the
//! arguments' text. Nothing is built but one slot a path.

use crate::arguments::Arguments;
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

    /// One item a slot.
    pub(crate) fn extract<'a>(&self, arguments: &Arguments<'a>) -> Vec<Item<'a>> {
        let Some(root) = self.nodes.first() else { return Vec::new() };
        let mut pass = Pass {
            tree: self,
            lexer: Lexer::new(arguments.raw()),
            slots: vec![Item::Missing; self.slots],
            recorded: arguments.is_recorded(),
        };
        // Cannot fail on checked text; if it did, what was not read stays missing.
        let _ = if pass.recorded || !arguments.top().is_complete() {
            pass.visit(0, 0)
        } else {
            pass.members(root, arguments)
        };
        pass.slots
    }
}

struct Pass<'p, 'a> {
    tree: &'p PathTree,
    lexer: Lexer<'a>,
    slots: Vec<Item<'a>>,
    recorded: bool,
}

impl<'p, 'a> Pass<'p, 'a> {
    /// The members of the arguments, whose places are known.
    fn members(&mut self, root: &'p Branch, arguments: &Arguments<'a>) -> Result<(), SyntaxError> {
        for (key, child) in &root.keys {
            let Some((start, text)) = arguments.top().find(arguments.raw(), key) else { continue };
            let branch = &self.tree.nodes[*child];
            if let (true, true, Some(slot)) =
                (branch.keys.is_empty(), branch.indexes.is_empty(), branch.slot)
            {
                self.slots[slot] = Item::raw(text);
            } else {
                self.lexer.at = start;
                self.visit(*child, 1)?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, at: usize, depth: usize) -> Result<(), SyntaxError> {
        self.lexer.space();
        let start = self.lexer.at;
        let tree: &'p PathTree = self.tree;
        let branch = &tree.nodes[at];
        match self.lexer.peek() {
            Some(b'{') => self.object(at, depth)?,
            Some(b'[') if !branch.indexes.is_empty() => self.list(branch, depth)?,
            _ => self.lexer.pass()?,
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
            return self.lexer.pass();
        }
        let mut members = self.lexer.object(depth)?;
        let mut left = keys.len();
        while let Some((key, _)) = members.next(&mut self.lexer)? {
            let key = key.decode();
            match keys.binary_search_by(|(other, _)| other.as_str().cmp(&key)) {
                Ok(found) => {
                    self.visit(keys[found].1, depth + 1)?;
                    // No key stands twice: what follows matters only for where the object ends.
                    left -= 1;
                    if left == 0 {
                        return if depth == 0 { Ok(()) } else { self.lexer.leave(1) };
                    }
                }
                Err(_) => self.lexer.pass()?,
            }
        }
        Ok(())
    }

    fn list(&mut self, branch: &'p Branch, depth: usize) -> Result<(), SyntaxError> {
        let mut items = self.lexer.list(depth)?;
        let mut index: u32 = 0;
        let last = branch.indexes.last().map(|(index, _)| *index);
        while items.next(&mut self.lexer)? {
            match branch.indexes.binary_search_by_key(&index, |(other, _)| *other) {
                Ok(found) => {
                    self.visit(branch.indexes[found].1, depth + 1)?;
                    if last == Some(index) {
                        return self.lexer.leave(1);
                    }
                }
                Err(_) => self.lexer.pass()?,
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
) {
    let Item::Raw(_, text) = item else {
        look(item);
        return;
    };
    // Cannot fail on checked text.
    let _ = Walk { lexer: Lexer::new(text), recorded, look }.value(segments);
}

struct Walk<'l, 'a, L> {
    lexer: Lexer<'a>,
    recorded: bool,
    look: &'l mut L,
}

impl<'a, L: FnMut(Item<'a>) -> bool> Walk<'_, 'a, L> {
    /// From the value that comes next; whether to go on, with the lexer behind the value.
    fn value(&mut self, segments: &[Segment]) -> Result<bool, SyntaxError> {
        self.lexer.space();
        let rest = self.lexer.rest();
        let kind = kind_of(rest);
        if self.recorded
            && let Some(kind) = marker(rest)
        {
            return self.end(|_| untold(segments.first(), kind));
        }
        match (segments.split_first(), kind) {
            (None, _) => self.end(|text| Item::Raw(kind, text)),
            (Some((Segment::Key(key), rest)), ValueKind::Object) => self.member(key, rest),
            (Some((Segment::Index(index), rest)), ValueKind::List) => self.element(*index, rest),
            (Some((Segment::Each, rest)), ValueKind::List) => self.each(rest),
            (_, ValueKind::Null) => self.end(|_| Item::Missing),
            _ => self.end(|_| Item::Blocked(kind)),
        }
    }

    fn end(&mut self, item: impl FnOnce(&'a str) -> Item<'a>) -> Result<bool, SyntaxError> {
        let start = self.lexer.at;
        self.lexer.pass()?;
        Ok((self.look)(item(self.lexer.since(start))))
    }

    fn member(&mut self, wanted: &str, rest: &[Segment]) -> Result<bool, SyntaxError> {
        let mut members = self.lexer.object(0)?;
        while let Some((key, _)) = members.next(&mut self.lexer)? {
            if key.means(wanted) {
                return self.inside(rest);
            }
            self.lexer.pass()?;
        }
        Ok((self.look)(Item::Missing))
    }

    fn element(&mut self, wanted: u32, rest: &[Segment]) -> Result<bool, SyntaxError> {
        let mut items = self.lexer.list(0)?;
        let mut index = 0;
        while items.next(&mut self.lexer)? {
            if index == wanted {
                return self.inside(rest);
            }
            self.lexer.pass()?;
            index += 1;
        }
        Ok((self.look)(Item::Missing))
    }

    /// A value of an object or a list, of which the others do not matter.
    fn inside(&mut self, rest: &[Segment]) -> Result<bool, SyntaxError> {
        let go_on = self.value(rest)?;
        if go_on {
            self.lexer.leave(1)?;
        }
        Ok(go_on)
    }

    fn each(&mut self, rest: &[Segment]) -> Result<bool, SyntaxError> {
        let mut items = self.lexer.list(0)?;
        let mut any = false;
        while items.next(&mut self.lexer)? {
            any = true;
            if !self.value(rest)? {
                return Ok(false);
            }
        }
        Ok(any || (self.look)(Item::Empty))
    }
}

/// What a path finds in a value of which only the type is known.
fn untold(next: Option<&Segment>, kind: ValueKind) -> Item<'static> {
    match (next, kind) {
        (None, _) => Item::Untold(Some(kind)),
        (_, ValueKind::Null) => Item::Missing,
        (Some(Segment::Key(_)), ValueKind::Object)
        | (Some(Segment::Index(_) | Segment::Each), ValueKind::List) => Item::Untold(None),
        _ => Item::Blocked(kind),
    }
}

/// The type that a recorded value had, where only that was kept: see [`recorded`](crate::recorded).
fn marker(text: &str) -> Option<ValueKind> {
    let word = text.strip_prefix(crate::recorded::MARK)?;
    crate::recorded::kind(&word[..word.find('"')?])
}
