//! Tokens of JSON text. Knows no nesting but that of `skip`.

use std::borrow::Cow;

/// Lists and objects inside each other; more is refused.
pub(crate) const MAX_DEPTH: usize = 128;

/// Why a text is not JSON as we accept it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxKind {
    #[error("the text ends too early")]
    End,
    #[error("a value is expected here")]
    Value,
    #[error("a key in double quotes is expected here")]
    Key,
    #[error("`:` is expected after a key")]
    Colon,
    #[error("`,` or `}}` is expected here")]
    ObjectEnd,
    #[error("`,` or `]` is expected here")]
    ListEnd,
    #[error("not a JSON number")]
    Number,
    #[error("not a JSON escape")]
    Escape,
    #[error("half of a surrogate pair, which is no character")]
    Surrogate,
    #[error("a control character inside a string; write it as an escape")]
    Control,
    #[error("more than 128 lists and objects inside each other")]
    Depth,
    #[error("something follows the end of the value")]
    Trailing,
    #[error("the text starts with a byte order mark")]
    ByteOrderMark,
    #[error("a key appears twice in one object")]
    Duplicate,
}

/// A mistake and the byte it was found at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) kind: SyntaxKind,
}

/// A string as written between its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) raw: &'a str,
    pub(crate) escaped: bool,
}

impl<'a> Text<'a> {
    /// The characters meant. Only for text that `Lexer::string` accepted.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether both mean the same characters, whatever their escapes.
    pub(crate) fn same(self, other: Text<'_>) -> bool {
        if self.escaped || other.escaped {
            self.decode() == other.decode()
        } else {
            self.raw == other.raw
        }
    }
}

fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let letter = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or("");
        match letter {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (character, used) = unicode(rest.as_bytes());
                out.push(character);
                rest = rest.get(used..).unwrap_or("");
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}

/// The character of `XXXX` or `XXXX\uYYYY`, and how many bytes it took.
fn unicode(bytes: &[u8]) -> (char, usize) {
    let first = hex4(bytes).unwrap_or(0);
    if let Some(character) = char::from_u32(first) {
        return (character, 4);
    }
    let second = bytes.get(6..).and_then(hex4).unwrap_or(0);
    let code = 0x1_0000 + ((first.wrapping_sub(0xD800)) << 10) + (second.wrapping_sub(0xDC00));
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.iter().try_fold(0, |sum, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(sum * 16 + digit)
    })
}

/// Reads tokens from the front of a text.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// An error here; at the end of the text it is always "too early".
    pub(crate) fn error(&self, kind: SyntaxKind) -> SyntaxError {
        let kind = if self.peek().is_none() { SyntaxKind::End } else { kind };
        SyntaxError { at: self.at, kind }
    }

    pub(crate) fn expect(&mut self, byte: u8, kind: SyntaxKind) -> Result<(), SyntaxError> {
        self.space();
        if self.take(byte) { Ok(()) } else { Err(self.error(kind)) }
    }

    /// A string, with its opening quote next.
    pub(crate) fn string(&mut self) -> Result<Text<'a>, SyntaxError> {
        if !self.take(b'"') {
            return Err(self.error(SyntaxKind::Key));
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let raw = self.since(start);
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.error(SyntaxKind::Control)),
                Some(_) => self.at += 1,
                None => return Err(self.error(SyntaxKind::End)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        match rest.first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let first = hex4(&rest[1..]).ok_or_else(|| self.error(SyntaxKind::Escape))?;
                let width = match first {
                    0xD800..0xDC00 => {
                        let low = rest.get(5..7).filter(|lead| lead == b"\\u");
                        let low = low.and_then(|_| hex4(&rest[7..]));
                        low.filter(|low| (0xDC00..0xE000).contains(low))
                            .ok_or_else(|| self.error(SyntaxKind::Surrogate))?;
                        12
                    }
                    0xDC00..0xE000 => return Err(self.error(SyntaxKind::Surrogate)),
                    _ => 6,
                };
                self.at += width;
            }
            _ => return Err(self.error(SyntaxKind::Escape)),
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error(SyntaxKind::Number)) } else { Ok(()) }
    }

    /// A number, digit by digit as RFC 8259 section 6 has it.
    pub(crate) fn number(&mut self) -> Result<&'a str, SyntaxError> {
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.error(SyntaxKind::Number));
            }
        } else {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(self.since(start))
    }

    /// `true`, `false` or `null`.
    pub(crate) fn word(&mut self) -> Result<&'static str, SyntaxError> {
        for word in ["true", "false", "null"] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(word);
            }
        }
        Err(self.error(SyntaxKind::Value))
    }

    /// Steps over one value without building anything.
    pub(crate) fn skip(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b'{') => {
                let mut members = self.object(depth)?;
                while members.next(self)?.is_some() {
                    self.skip(depth + 1)?;
                }
                Ok(())
            }
            Some(b'[') => {
                let mut items = self.list(depth)?;
                while items.next(self)? {
                    self.skip(depth + 1)?;
                }
                Ok(())
            }
            _ => self.word().map(drop),
        }
    }

    /// Opens an object whose `{` is next.
    pub(crate) fn object(&mut self, depth: usize) -> Result<Members, SyntaxError> {
        self.open(depth).map(|()| Members { first: true })
    }

    /// Opens a list whose `[` is next.
    pub(crate) fn list(&mut self, depth: usize) -> Result<Items, SyntaxError> {
        self.open(depth).map(|()| Items { first: true })
    }

    fn open(&mut self, depth: usize) -> Result<(), SyntaxError> {
        if depth >= MAX_DEPTH {
            return Err(self.error(SyntaxKind::Depth));
        }
        self.at += 1;
        Ok(())
    }
}

/// The members of an object that is being read.
#[derive(Debug)]
pub(crate) struct Members {
    first: bool,
}

impl Members {
    /// The next key and where it starts, with the lexer left before its value; `None` after `}`.
    pub(crate) fn next<'a>(
        &mut self,
        lexer: &mut Lexer<'a>,
    ) -> Result<Option<(Text<'a>, usize)>, SyntaxError> {
        lexer.space();
        if self.first {
            self.first = false;
            if lexer.take(b'}') {
                return Ok(None);
            }
        } else {
            if lexer.take(b'}') {
                return Ok(None);
            }
            lexer.expect(b',', SyntaxKind::ObjectEnd)?;
            lexer.space();
        }
        let start = lexer.at;
        let key = lexer.string()?;
        lexer.expect(b':', SyntaxKind::Colon)?;
        Ok(Some((key, start)))
    }
}

/// The elements of a list that is being read.
#[derive(Debug)]
pub(crate) struct Items {
    first: bool,
}

impl Items {
    /// Whether another element follows, with the lexer left before it.
    pub(crate) fn next(&mut self, lexer: &mut Lexer<'_>) -> Result<bool, SyntaxError> {
        lexer.space();
        if lexer.take(b']') {
            // `[1,]` never comes here: after a comma the element is read first.
            return Ok(false);
        }
        if !self.first {
            lexer.expect(b',', SyntaxKind::ListEnd)?;
        }
        self.first = false;
        Ok(true)
    }
}
