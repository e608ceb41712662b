//! Paths: `args.items[*].id`, `args["odd.key"]`, and the context of a call.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::json::{Lexer, quote};
use crate::suggest::nearest;

/// What a condition looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Path {
    /// A value of the arguments: a key first, then keys and elements.
    Arguments(Vec<Segment>),
    /// A fact about the call.
    Context(Context),
}

/// One step into the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A member of an object.
    Key(String),
    /// An element of a list, from 0.
    Index(u32),
    /// Every element of a list: `[*]`.
    Each,
}

macro_rules! contexts {
    ($($(#[$meta:meta])* $name:ident = $word:literal, $number:literal, $help:literal;)+) => {
        /// The facts about a call that a condition may look at.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Context { $($(#[$meta])* $name),+ }

        impl Context {
            /// Every fact, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The path as written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What it is, for people.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help),+ }
            }

            /// Whether it is a number; otherwise it is a string.
            pub const fn is_number(self) -> bool {
                match self { $(Self::$name => $number),+ }
            }
        }
    };
}

contexts! {
    ToolName = "tool.name", false, "the tool's name as called";
    ToolCategory = "tool.category", false, "Read, Write, Execute, Destructive or Financial";
    ToolSeverity = "tool.severity", false, "Low, Medium, High or Critical";
    GrantLabel = "grant.label", false, "the grant's label";
    ClientName = "session.client_name", false, "what the client calls itself: its own claim, not proof";
    HourUtc = "call.hour_utc", true, "the hour of the call in UTC, 0 to 23";
    WeekdayUtc = "call.weekday_utc", false, "the day of the call in UTC, \"mon\" to \"sun\"";
}

/// The most steps of one path.
pub(crate) const MAX_SEGMENTS: usize = 64;
/// The highest element a path can name.
const MAX_INDEX_DIGITS: usize = 9;

const PLAIN: &str = r"[A-Za-z_$][A-Za-z0-9_$-]*";
/// One `\u` escape or a surrogate pair of them, without the first backslash.
const UNICODE: &str = r"u(?:[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}|[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})";

/// The same grammar as [`Path::parse`], for the JSON Schema.
pub(crate) fn pattern() -> String {
    let words: Vec<String> =
        Context::ALL.iter().map(|context| context.as_str().replace('.', r"\.")).collect();
    format!("^(?:{}|{})$", words.join("|"), arguments_pattern(r"|\[\*\]"))
}

/// The paths that name one argument.
pub(crate) fn argument_pattern() -> String {
    format!("^{}$", arguments_pattern(""))
}

fn arguments_pattern(each: &str) -> String {
    let quoted = format!(r#"\["(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|{UNICODE}))*"\]"#);
    let index = format!(r"\[(?:0|[1-9][0-9]{{0,{}}})\]", MAX_INDEX_DIGITS - 1);
    let key = format!(r"\.{PLAIN}|{quoted}");
    format!("args(?:{key})(?:{key}|{index}{each}){{0,{}}}", MAX_SEGMENTS - 1)
}

impl Path {
    /// Reads a path; the error says what is wrong, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(context) = Context::ALL.iter().find(|context| context.as_str() == text) {
            return Ok(Self::Context(*context));
        }
        let Some(rest) = text.strip_prefix("args") else {
            return Err(format!(
                "a path starts with `args.`, or is one of {}",
                Context::ALL
                    .iter()
                    .map(|c| format!("`{}`", c.as_str()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        };
        let segments = segments(rest)?;
        match segments.first() {
            Some(Segment::Key(_)) if segments.len() <= MAX_SEGMENTS => {
                Ok(Self::Arguments(segments))
            }
            Some(Segment::Key(_)) => Err(format!("a path has at most {MAX_SEGMENTS} steps")),
            _ => {
                Err("`args` is followed by the name of an argument, as in `args.amount`".to_owned())
            }
        }
    }

    /// What was probably meant.
    pub(crate) fn suggest(text: &str) -> Option<String> {
        let words = Context::ALL.iter().map(|context| context.as_str());
        if let Some(word) = nearest(text, words) {
            return Some(word.to_owned());
        }
        let plain =
            format!("args.{}", text.trim_start_matches("arguments.").trim_start_matches("$."));
        Self::parse(&plain).is_ok().then_some(plain)
    }

    /// Whether `[*]` occurs.
    pub fn has_each(&self) -> bool {
        matches!(self, Self::Arguments(segments) if segments.contains(&Segment::Each))
    }
}

fn segments(rest: &str) -> Result<Vec<Segment>, String> {
    let mut out = Vec::new();
    let mut rest = rest;
    while !rest.is_empty() {
        let (segment, after) = if let Some(after) = rest.strip_prefix('.') {
            plain_key(after)?
        } else if let Some(after) = rest.strip_prefix('[') {
            bracket(after)?
        } else {
            return Err(format!("`.` or `[` is expected before `{}`", short(rest)));
        };
        out.push(segment);
        rest = after;
    }
    Ok(out)
}

fn plain_key(rest: &str) -> Result<(Segment, &str), String> {
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-')))
        .unwrap_or(rest.len());
    let key = &rest[..end];
    if key.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("write `[{key}]` for an element of a list, `[\"{key}\"]` for a key"));
    }
    if key.is_empty() || key.starts_with('-') {
        return Err(format!(
            "a name is expected at `{}`; odd names are written `[\"like this\"]`",
            short(rest)
        ));
    }
    Ok((Segment::Key(key.to_owned()), &rest[end..]))
}

fn bracket(rest: &str) -> Result<(Segment, &str), String> {
    let closed = |after: &str| after.starts_with(']');
    if let Some(after) = rest.strip_prefix("*]") {
        return Ok((Segment::Each, after));
    }
    if rest.starts_with('"') {
        let mut lexer = Lexer::new(rest);
        let key = lexer.string().map_err(|error| format!("in `[{}`: {error}", short(rest)))?;
        let after = &rest[lexer.at..];
        if closed(after) {
            return Ok((Segment::Key(key.decode().into_owned()), &after[1..]));
        }
    } else if let Some(end) = rest.find(']') {
        let digits = &rest[..end];
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if plain && digits.len() <= MAX_INDEX_DIGITS && (digits == "0" || !digits.starts_with('0'))
        {
            let index = digits.parse().map_err(|_| "the index is too large".to_owned())?;
            return Ok((Segment::Index(index), &rest[end + 1..]));
        }
    }
    Err(format!("`[{}` is not `[0]`, `[*]` or `[\"key\"]`", short(rest)))
}

fn short(text: &str) -> String {
    text.chars().take(20).collect()
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(context) => f.write_str(context.as_str()),
            Self::Arguments(segments) => {
                f.write_str("args")?;
                segments.iter().try_for_each(|segment| write!(f, "{segment}"))
            }
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => match plain_key(key) {
                Ok((_, "")) => write!(f, ".{key}"),
                _ => write!(f, "[{}]", quote(key)),
            },
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Each => f.write_str("[*]"),
        }
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_read_and_shown() {
        for text in [
            "args.a.b",
            "args.items[0].id",
            "args.items[*].id",
            r#"args["odd.key"]"#,
            r#"args["a\"b\\"][*][10]"#,
            "args.$ref.x-y_z",
            "tool.name",
            "call.weekday_utc",
        ] {
            assert_eq!(Path::parse(text).map(|path| path.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "args",
            "args.",
            "args[0]",
            "args[*]",
            "args.a[",
            "args.a[]",
            "args.a[01]",
            "args.a..b",
            "args.a[-1]",
            "args.0",
            "arg.a",
            "args.a b",
            "args['a']",
            "argsa",
            "args.a[1234567890]",
            "tool",
            "tool.Name",
            r#"args["a]"#,
            r#"args["\ud800"]"#,
            r#"args["\x"]"#,
            "args.a.",
        ] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
        assert_eq!(Path::suggest("tool.nme"), Some("tool.name".to_owned()));
        assert_eq!(Path::suggest("amount"), Some("args.amount".to_owned()));
    }

    proptest! {
        #[test]
        fn the_schema_pattern_and_the_parser_agree(text in r#"(args|tool\.name|arg)([.\[\]"*\\u0-3adg_$-]|\["|"\]|\.a|\[1\]|\\ud83d|\\ude00){0,6}"#) {
            static PATTERN: std::sync::LazyLock<regex::Regex> =
                std::sync::LazyLock::new(|| regex::Regex::new(&pattern()).expect("a pattern"));
            prop_assert_eq!(PATTERN.is_match(&text), Path::parse(&text).is_ok(), "{}", text);
        }
    }
}
