//! JSON text as a tree that remembers where everything stood.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use super::lexer::{Lexer, SyntaxError, SyntaxKind};
use super::place::escape_pointer;

/// Up to this many members are looked through for a second of the same key; more are hashed.
const FEW_MEMBERS: usize = 12;

/// A value and the bytes it spans.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a value is. Numbers keep their digits as written.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_at: usize,
    pub(crate) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// For messages: `a string`, `an object`.
    pub(crate) const fn type_words(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }

    pub(crate) fn members(&self) -> &[Member<'a>] {
        if let Kind::Object(members) = &self.kind { members } else { &[] }
    }

    pub(crate) fn items(&self) -> &[Node<'a>] {
        if let Kind::List(items) = &self.kind { items } else { &[] }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    pub(crate) const fn boolean(&self) -> Option<bool> {
        if let Kind::Bool(value) = &self.kind { Some(*value) } else { None }
    }

    pub(crate) const fn number(&self) -> Option<&'a str> {
        if let Kind::Number(text) = &self.kind { Some(text) } else { None }
    }

    pub(crate) const fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    /// The value of the first member with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.value)
    }
}

/// A key that stands twice in one object.
#[derive(Debug, Clone)]
pub(crate) struct Duplicate {
    pub(crate) pointer: String,
    pub(crate) key: String,
    pub(crate) at: usize,
    pub(crate) first_at: usize,
}

/// A parsed text. Of duplicate keys the first is kept, and all are told.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) root: Node<'a>,
    pub(crate) duplicates: Vec<Duplicate>,
}

/// Parses one JSON value; the error comes with the pointer of the value it stands in.
pub(crate) fn parse(text: &str) -> Result<Tree<'_>, (SyntaxError, String)> {
    let mut parser = Parser { lexer: Lexer::new(text), duplicates: Vec::new(), path: Vec::new() };
    let parsed = parser.document(text);
    let Parser { duplicates, path, .. } = parser;
    match parsed {
        Ok(root) => Ok(Tree { root, duplicates }),
        Err(error) => Err((error, pointer(&path))),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    duplicates: Vec<Duplicate>,
    /// The way to the value being read; left standing on an error.
    path: Vec<Step<'a>>,
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

fn pointer(path: &[Step<'_>]) -> String {
    path.iter().fold(String::new(), |mut out, step| {
        match step {
            Step::Key(key) => write!(out, "/{}", escape_pointer(key)),
            Step::Index(index) => write!(out, "/{index}"),
        }
        .ok();
        out
    })
}

impl<'a> Parser<'a> {
    fn document(&mut self, text: &'a str) -> Result<Node<'a>, SyntaxError> {
        if text.starts_with('\u{feff}') {
            return Err(self.lexer.error(SyntaxKind::ByteOrderMark));
        }
        let root = self.value(0)?;
        self.lexer.space();
        match self.lexer.peek() {
            None => Ok(root),
            Some(_) => Err(self.lexer.error(SyntaxKind::Trailing)),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, SyntaxError> {
        self.lexer.space();
        let start = self.lexer.at;
        let kind = match self.lexer.peek() {
            Some(b'"') => Kind::Text(self.lexer.string()?.decode()),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.lexer.number()?),
            Some(b'{') => Kind::Object(self.members(depth)?),
            Some(b'[') => Kind::List(self.items(depth)?),
            _ => match self.lexer.word()? {
                "null" => Kind::Null,
                word => Kind::Bool(word == "true"),
            },
        };
        Ok(Node { kind, start, end: self.lexer.at })
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node<'a>>, SyntaxError> {
        let mut items = Vec::new();
        let mut list = self.lexer.list(depth)?;
        while list.next(&mut self.lexer)? {
            self.path.push(Step::Index(items.len()));
            items.push(self.value(depth + 1)?);
            self.path.pop();
        }
        Ok(items)
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member<'a>>, SyntaxError> {
        let mut members: Vec<Member<'a>> = Vec::new();
        let mut seen: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let mut object = self.lexer.object(depth)?;
        while let Some((key, key_at)) = object.next(&mut self.lexer)? {
            let key = key.decode();
            self.path.push(Step::Key(key.clone()));
            let value = self.value(depth + 1)?;
            if members.len() == FEW_MEMBERS {
                seen.extend(members.iter().map(|member| (member.key.clone(), member.key_at)));
            }
            let first = if members.len() < FEW_MEMBERS {
                members.iter().find(|member| member.key == key).map(|member| member.key_at)
            } else {
                seen.get(&key).copied()
            };
            if let Some(first_at) = first {
                let pointer = pointer(&self.path);
                let key = key.into_owned();
                self.duplicates.push(Duplicate { pointer, key, at: key_at, first_at });
            } else {
                if members.len() >= FEW_MEMBERS {
                    seen.insert(key.clone(), key_at);
                }
                members.push(Member { key, key_at, value });
            }
            self.path.pop();
        }
        Ok(members)
    }
}
