//! The reader of a message. What it takes, every other reader takes for the same message: parsers that
//! keep the last of two equal names, one that keeps the first, and one that does not mind letter case.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use simd_json::prelude::{ValueAsArray as _, ValueAsObject as _, ValueAsScalar as _};
use sluice_mcp::{Envelope, Kind};
use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _};

/// A value as any JSON reader can hold it: numbers as doubles, members in the order of their names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Tree>),
    Members(Vec<(String, Tree)>),
}

/// What an upstream would act on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reading {
    pub(crate) id: Option<Tree>,
    pub(crate) method: Option<Tree>,
    pub(crate) name: Option<Tree>,
    pub(crate) arguments: Option<Tree>,
    pub(crate) uri: Option<Tree>,
    pub(crate) task: Option<Tree>,
    pub(crate) version: Option<Tree>,
    pub(crate) token: Option<Tree>,
    pub(crate) state: Option<Tree>,
}

/// One other reader; none where it refuses the message.
type Reader = fn(&[u8]) -> Option<Reading>;

pub(crate) const READERS: &[(&str, Reader)] = &[
    ("serde_json", serde_reading),
    ("simd-json", simd_reading),
    ("jiter", jiter_reading),
    ("sonic-rs", sonic_reading),
    ("first of two names", |bytes| read_pairs(bytes, Pick::First)),
    ("any letter case", |bytes| read_pairs(bytes, Pick::AnyCase)),
];

/// Panics where something does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let Ok(envelope) = sluice_mcp::read(bytes) else { return };
    let ours = ours(&envelope);
    for (name, reader) in READERS {
        // A reader that refuses the message runs nothing.
        if let Some(theirs) = reader(bytes) {
            let kept = kept(&envelope, theirs);
            assert_eq!(kept, ours, "{name} on {}", String::from_utf8_lossy(bytes));
        }
    }
    let text = std::str::from_utf8(bytes).expect("what is taken is UTF-8");
    let pairs: Pairs = serde_json::from_str(text).expect("what is taken is JSON");
    assert!(!pairs.twice(), "a name stands twice in {text}");
}

/// Our reading: the members that decisions are made on.
pub(crate) fn ours(envelope: &Envelope<'_>) -> Reading {
    let raw = |text: &str| serde_json::from_str(text).map(tree).expect("a slice is JSON");
    let text = |text: &str| Tree::Text(text.to_owned());
    let subject = envelope.subject.as_deref().map(text);
    let method = &*envelope.method;
    // What stands beside an answer means nothing to anybody.
    if envelope.kind == Kind::Response {
        return Reading { id: envelope.id.map(|id| raw(id.as_str())), ..Reading::default() };
    }
    let of = |wanted: bool| subject.clone().filter(|_| wanted);
    Reading {
        id: envelope.id.map(|id| raw(id.as_str())),
        method: Some(text(method)),
        name: of(matches!(method, "tools/call" | "prompts/get")),
        arguments: envelope.tool.as_ref().map(|tool| raw(tool.arguments)),
        uri: of(method == "resources/read"),
        task: of(method.starts_with("tasks/")),
        version: envelope.meta_version.as_deref().map(text),
        token: envelope.progress_token.map(raw),
        state: envelope.request_state.map(raw),
    }
}

/// Of another's reading, what is looked at in a message of this method.
pub(crate) fn kept(envelope: &Envelope<'_>, mut theirs: Reading) -> Reading {
    let method = match &theirs.method {
        Some(Tree::Text(method)) => method.clone(),
        _ => String::new(),
    };
    if theirs.method.is_none() {
        return Reading { id: theirs.id, ..Reading::default() };
    }
    let call = method == "tools/call";
    theirs.arguments = match theirs.arguments {
        None | Some(Tree::Null) => Some(Tree::Members(Vec::new())),
        some => some,
    };
    let keep = |slot: &mut Option<Tree>, wanted: bool| {
        if !wanted {
            *slot = None;
        }
    };
    keep(&mut theirs.name, call || method == "prompts/get");
    keep(&mut theirs.arguments, call);
    keep(&mut theirs.uri, method == "resources/read");
    keep(&mut theirs.task, method.starts_with("tasks/"));
    // Of these only the right type means anything, to us and to a server.
    keep(&mut theirs.version, envelope.meta_version.is_some());
    keep(&mut theirs.state, envelope.request_state.is_some());
    theirs
}

fn tree(value: serde_json::Value) -> Tree {
    use serde_json::Value;
    match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(value),
        Value::Number(number) => Tree::Number(double(&number.to_string())),
        Value::String(text) => Tree::Text(text),
        Value::Array(items) => Tree::List(items.into_iter().map(tree).collect()),
        Value::Object(pairs) => members(pairs.into_iter().map(|(name, value)| (name, tree(value)))),
    }
}

fn double(literal: &str) -> f64 {
    literal.parse().expect("a JSON number")
}

/// Of equal names the last.
fn members(pairs: impl Iterator<Item = (String, Tree)>) -> Tree {
    let sorted: std::collections::BTreeMap<String, Tree> = pairs.collect();
    Tree::Members(sorted.into_iter().collect())
}

impl Tree {
    fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, wanted| match tree {
            Self::Members(pairs) => pairs.iter().find(|(name, _)| name == wanted).map(|(_, v)| v),
            _ => None,
        })
    }
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The members that matter, by a look-up of the parser's own.
fn reading(at: impl Fn(&[&str]) -> Option<Tree>) -> Reading {
    Reading {
        id: at(&["id"]),
        method: at(&["method"]),
        name: at(&["params", "name"]),
        arguments: at(&["params", "arguments"]),
        uri: at(&["params", "uri"]),
        task: at(&["params", "taskId"]),
        version: at(&["params", "_meta", VERSION]),
        token: at(&["params", "_meta", "progressToken"]),
        state: at(&["params", "requestState"]),
    }
}

pub(crate) fn of_tree(tree: &Tree) -> Reading {
    reading(|path| tree.at(path).cloned())
}

fn serde_reading(bytes: &[u8]) -> Option<Reading> {
    serde_json::from_slice(bytes).ok().map(tree).as_ref().map(of_tree)
}

fn simd_reading(bytes: &[u8]) -> Option<Reading> {
    let mut copy = bytes.to_vec();
    simd_json::to_borrowed_value(&mut copy).ok().map(|value| of_tree(&simd_tree(&value)))
}

fn simd_tree(value: &simd_json::BorrowedValue<'_>) -> Tree {
    if let Some(text) = value.as_str() {
        Tree::Text(text.to_owned())
    } else if let Some(value) = value.as_bool() {
        Tree::Bool(value)
    } else if let Some(items) = value.as_array() {
        Tree::List(items.iter().map(simd_tree).collect())
    } else if let Some(pairs) = value.as_object() {
        members(pairs.iter().map(|(name, value)| (name.to_string(), simd_tree(value))))
    } else {
        value.cast_f64().map_or(Tree::Null, Tree::Number)
    }
}

fn jiter_reading(bytes: &[u8]) -> Option<Reading> {
    // As lenient as it can be told to be.
    jiter::JsonValue::parse(bytes, true).ok().map(|value| of_tree(&jiter_tree(&value)))
}

fn jiter_tree(value: &jiter::JsonValue<'_>) -> Tree {
    use jiter::JsonValue;
    match value {
        JsonValue::Null => Tree::Null,
        JsonValue::Bool(value) => Tree::Bool(*value),
        JsonValue::Int(number) => Tree::Number(double(&number.to_string())),
        JsonValue::BigInt(number) => Tree::Number(double(&number.to_string())),
        JsonValue::Float(number) => Tree::Number(*number),
        JsonValue::Str(text) => Tree::Text(text.to_string()),
        JsonValue::Array(items) => Tree::List(items.iter().map(jiter_tree).collect()),
        JsonValue::Object(pairs) => {
            members(pairs.iter().map(|(name, value)| (name.to_string(), jiter_tree(value))))
        }
    }
}

/// Looks each member up in the text, and takes the first.
fn sonic_reading(bytes: &[u8]) -> Option<Reading> {
    let text = std::str::from_utf8(bytes).ok()?;
    sonic_rs::from_str::<sonic_rs::Value>(text).ok()?;
    Some(reading(|path| {
        let raw = sonic_rs::get(text, path).ok()?;
        sonic_rs::from_str(raw.as_raw_str()).ok().map(|value| sonic_tree(&value))
    }))
}

fn sonic_tree(value: &sonic_rs::Value) -> Tree {
    if let Some(text) = value.as_str() {
        Tree::Text(text.to_owned())
    } else if let Some(value) = value.as_bool() {
        Tree::Bool(value)
    } else if let Some(items) = value.as_array() {
        Tree::List(items.iter().map(sonic_tree).collect())
    } else if let Some(pairs) = value.as_object() {
        members(pairs.iter().map(|(name, value)| (name.to_owned(), sonic_tree(value))))
    } else {
        value.as_f64().map_or(Tree::Null, Tree::Number)
    }
}

/// Every pair of every object, in the order of the text.
pub(crate) enum Pairs {
    Leaf(Tree),
    List(Vec<Pairs>),
    Members(Vec<(String, Pairs)>),
}

#[derive(Clone, Copy)]
enum Pick {
    First,
    /// The last whose name is the same but for letter case, as Go reads structs.
    AnyCase,
}

fn read_pairs(bytes: &[u8], pick: Pick) -> Option<Reading> {
    let pairs: Pairs = serde_json::from_slice(bytes).ok()?;
    Some(reading(|path| pairs.at(path, pick).map(Pairs::tree)))
}

impl Pairs {
    fn at(&self, path: &[&str], pick: Pick) -> Option<&Self> {
        path.iter().try_fold(self, |value, wanted| {
            let Self::Members(pairs) = value else { return None };
            match pick {
                Pick::First => pairs.iter().find(|(name, _)| name == wanted),
                Pick::AnyCase => pairs.iter().rfind(|(name, _)| same_letters(name, wanted)),
            }
            .map(|(_, value)| value)
        })
    }

    fn tree(&self) -> Tree {
        match self {
            Self::Leaf(tree) => tree.clone(),
            Self::List(items) => Tree::List(items.iter().map(Self::tree).collect()),
            Self::Members(pairs) => {
                members(pairs.iter().map(|(name, value)| (name.clone(), value.tree())))
            }
        }
    }

    /// Whether a name stands twice in any object.
    pub(crate) fn twice(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::List(items) => items.iter().any(Self::twice),
            Self::Members(pairs) => {
                let mut names = std::collections::HashSet::new();
                pairs.iter().any(|(name, value)| !names.insert(name) || value.twice())
            }
        }
    }
}

/// Simple case folding: one character for one, the long s and the Kelvin sign included.
fn same_letters(left: &str, right: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    left.chars().map(fold).eq(right.chars().map(fold))
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Pairs;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Number(double(&value.to_string()))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Number(double(&value.to_string()))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Number(value)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Pairs, E> {
        Ok(Pairs::Leaf(Tree::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pairs, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Pairs::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Pairs>()? {
            // How `serde_json` hands a number of any size to a reader that asks for nothing else.
            if name == "$serde_json::private::Number" {
                let Pairs::Leaf(Tree::Text(literal)) = &value else { continue };
                return Ok(Pairs::Leaf(Tree::Number(double(literal))));
            }
            pairs.push((name, value));
        }
        Ok(Pairs::Members(pairs))
    }
}
