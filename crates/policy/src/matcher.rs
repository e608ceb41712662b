//! One comparison, made ready: its literal read once, its set hashed.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::decision::{Truth, ValueKind};
use crate::document::Comparison;
use crate::item::{Item, canonical};
use crate::json::Lexer;
use crate::number::Decimal;
use crate::op::Op;

/// A value of a document, ready to be compared by `eq`.
#[derive(Debug)]
pub(crate) enum Literal {
    Null,
    Boolean(bool),
    Number(Decimal<'static>),
    Text(String),
    /// The canonical text of a list or an object.
    Structure(ValueKind, String),
}

impl Literal {
    fn new(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Boolean(*value),
            Value::Number(number) => Self::Number(Decimal::read(&number.to_string()).into_owned()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(_) => Self::Structure(ValueKind::List, canonical(&value.to_string())),
            Value::Object(_) => Self::Structure(ValueKind::Object, canonical(&value.to_string())),
        }
    }

    /// By value; another type is not equal.
    fn equals(&self, item: &Item<'_>) -> bool {
        match (self, item) {
            (Self::Null, Item::Raw(ValueKind::Null, _)) => true,
            (Self::Boolean(wanted), Item::Raw(ValueKind::Boolean, text)) => {
                *wanted == text.starts_with('t')
            }
            (Self::Number(wanted), _) => {
                item.number().is_some_and(|found| wanted.compare(&found) == Ordering::Equal)
            }
            (Self::Text(wanted), _) => item.string().is_some_and(|found| found == *wanted),
            (Self::Structure(kind, wanted), Item::Raw(found, text)) => {
                kind == found && canonical(text) == *wanted
            }
            _ => false,
        }
    }
}

/// The values of `in` and `not_in`.
#[derive(Debug)]
pub(crate) struct Set {
    texts: HashSet<String>,
    /// Canonical texts of everything else.
    others: HashSet<String>,
}

impl Set {
    fn new(value: &Value) -> Self {
        let mut set = Self { texts: HashSet::new(), others: HashSet::new() };
        for value in value.as_array().map(Vec::as_slice).unwrap_or_default() {
            match value {
                Value::String(text) => set.texts.insert(text.clone()),
                other => set.others.insert(canonical(&other.to_string())),
            };
        }
        set
    }

    fn contains(&self, item: &Item<'_>) -> bool {
        if let Some(text) = item.string() {
            return self.texts.contains(&*text);
        }
        match item {
            Item::Raw(_, text) => !self.others.is_empty() && self.others.contains(&canonical(text)),
            Item::Number(text) => self.others.contains(&canonical(text)),
            _ => false,
        }
    }
}

/// What a comparison does with an item.
#[derive(Debug)]
pub(crate) enum Matcher {
    Equal {
        literal: Literal,
        wanted: bool,
    },
    Member {
        set: Set,
        wanted: bool,
    },
    Order {
        bound: Decimal<'static>,
        accept: fn(Ordering) -> bool,
    },
    Exists(bool),
    Regex(Arc<Regex>),
    Contains(Literal),
    Starts(String),
    Ends(String),
    Length(u64),
    /// A comparison that the checker refused; undecidable.
    Broken,
}

impl Matcher {
    pub(crate) fn new(comparison: &Comparison) -> Self {
        let value = &comparison.value;
        let order = |accept: fn(Ordering) -> bool| match value {
            Value::Number(number) => {
                Self::Order { bound: Decimal::read(&number.to_string()).into_owned(), accept }
            }
            _ => Self::Broken,
        };
        let text = || value.as_str().unwrap_or_default().to_owned();
        match comparison.op {
            Op::Eq => Self::Equal { literal: Literal::new(value), wanted: true },
            Op::Neq => Self::Equal { literal: Literal::new(value), wanted: false },
            Op::In => Self::Member { set: Set::new(value), wanted: true },
            Op::NotIn => Self::Member { set: Set::new(value), wanted: false },
            Op::Lt => order(Ordering::is_lt),
            Op::Lte => order(Ordering::is_le),
            Op::Gt => order(Ordering::is_gt),
            Op::Gte => order(Ordering::is_ge),
            Op::Exists => Self::Exists(value.as_bool().unwrap_or(true)),
            Op::Regex => comparison.regex.clone().map_or(Self::Broken, Self::Regex),
            Op::Contains => Self::Contains(Literal::new(value)),
            Op::StartsWith => Self::Starts(text()),
            Op::EndsWith => Self::Ends(text()),
            Op::LengthLte => {
                let number = value.as_number().map(ToString::to_string).unwrap_or_default();
                Decimal::read(&number).as_u64().map_or(Self::Broken, Self::Length)
            }
        }
    }

    /// The truth of the comparison for one item.
    pub(crate) fn test(&self, item: &Item<'_>) -> Truth {
        if let Self::Exists(wanted) = self {
            return match item {
                Item::Empty => Truth::False,
                Item::Missing
                | Item::Blocked(_)
                | Item::Raw(ValueKind::Null, _)
                | Item::Untold(Some(ValueKind::Null)) => Truth::of(!wanted),
                Item::Untold(None) => Truth::CannotTell,
                _ => Truth::of(*wanted),
            };
        }
        match item {
            Item::Empty => Truth::False,
            Item::Missing | Item::Raw(ValueKind::Null, _) | Item::Untold(Some(ValueKind::Null)) => {
                Truth::Missing
            }
            Item::Blocked(_) => Truth::WrongType,
            Item::Untold(None) => Truth::CannotTell,
            Item::Untold(Some(kind)) => self.untold(*kind),
            _ => self.compare(item).map_or(Truth::WrongType, Truth::of),
        }
    }

    /// The same for what a record keeps of a call: of a list or an object maybe not all parts.
    pub(crate) fn test_recorded(&self, item: &Item<'_>) -> Truth {
        let Item::Raw(kind @ (ValueKind::List | ValueKind::Object), text) = item else {
            return self.test(item);
        };
        let looks_inside = match self {
            Self::Equal { literal, .. } => literal.may_be(*kind),
            Self::Member { set, .. } => {
                set.others.iter().any(|other| other.starts_with(['[', '{']))
            }
            Self::Contains(_) => *kind == ValueKind::List,
            _ => false,
        };
        if looks_inside && text.contains(crate::recorded::MARK) {
            Truth::CannotTell
        } else {
            self.test(item)
        }
    }

    /// `None`: the item's type cannot be compared so.
    fn compare(&self, item: &Item<'_>) -> Option<bool> {
        Some(match self {
            Self::Equal { literal, wanted } => literal.equals(item) == *wanted,
            Self::Member { set, wanted } => set.contains(item) == *wanted,
            Self::Order { bound, accept } => accept(item.number()?.compare(bound)),
            Self::Regex(regex) => regex.is_match(&item.string()?),
            Self::Starts(text) => item.string()?.starts_with(text.as_str()),
            Self::Ends(text) => item.string()?.ends_with(text.as_str()),
            Self::Contains(literal) => return contains(literal, item),
            Self::Length(most) => length(item)? <= *most,
            Self::Exists(_) | Self::Broken => return None,
        })
    }

    /// What can be said of a value when only its type is known.
    fn untold(&self, kind: ValueKind) -> Truth {
        let decidable = match self {
            Self::Order { .. } => kind == ValueKind::Number,
            Self::Regex(_) | Self::Starts(_) | Self::Ends(_) => kind == ValueKind::String,
            Self::Contains(Literal::Text(_)) | Self::Length(_) => {
                matches!(kind, ValueKind::String | ValueKind::List)
            }
            Self::Contains(_) => kind == ValueKind::List,
            Self::Equal { literal, wanted } if !literal.may_be(kind) => return Truth::of(!wanted),
            Self::Broken => false,
            _ => true,
        };
        if decidable { Truth::CannotTell } else { Truth::WrongType }
    }
}

impl Literal {
    const fn may_be(&self, kind: ValueKind) -> bool {
        matches!(
            (self, kind),
            (Self::Boolean(_), ValueKind::Boolean)
                | (Self::Number(_), ValueKind::Number)
                | (Self::Text(_), ValueKind::String)
                | (Self::Structure(ValueKind::List, _), ValueKind::List)
                | (Self::Structure(ValueKind::Object, _), ValueKind::Object)
        )
    }
}

fn contains(literal: &Literal, item: &Item<'_>) -> Option<bool> {
    if let Some(text) = item.string() {
        let Literal::Text(wanted) = literal else { return None };
        return Some(text.contains(wanted.as_str()));
    }
    elements(item, |element| literal.equals(&element)).map(|(found, _)| found)
}

/// Looks at the elements of a list until `stop`; whether it stopped, and how many were looked at.
fn elements<'a>(item: &Item<'a>, mut stop: impl FnMut(Item<'a>) -> bool) -> Option<(bool, u64)> {
    let Item::Raw(ValueKind::List, text) = item else { return None };
    let mut lexer = Lexer::new(text);
    let mut items = lexer.list(0).ok()?;
    let mut count = 0;
    while items.next(&mut lexer).ok()? {
        lexer.space();
        let start = lexer.at;
        lexer.pass().ok()?;
        count += 1;
        if stop(Item::raw(lexer.since(start))) {
            return Some((true, count));
        }
    }
    Some((false, count))
}

fn length(item: &Item<'_>) -> Option<u64> {
    if let Some(text) = item.string() {
        return u64::try_from(text.chars().count()).ok();
    }
    elements(item, |_| false).map(|(_, count)| count)
}
