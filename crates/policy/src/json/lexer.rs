//! Tokens of JSON text. Knows no nesting but that of `skip`.

use super::text::{Text, hex4};
use super::words::plain;

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

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from here on.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    #[inline]
    pub(crate) fn space(&mut self) {
        // Most texts have none.
        if matches!(self.peek(), Some(0..=b' ')) {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                self.at += 1;
            }
        }
    }

    #[inline]
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

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, kind: SyntaxKind) -> Result<(), SyntaxError> {
        self.space();
        if self.take(byte) { Ok(()) } else { Err(self.error(kind)) }
    }

    /// A string, with its opening quote next.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text<'a>, SyntaxError> {
        if !self.take(b'"') {
            return Err(self.error(SyntaxKind::Key));
        }
        let start = self.at;
        let end = start + plain(&self.text.as_bytes()[start..]);
        self.at = end;
        if self.take(b'"') {
            return Ok(Text { raw: &self.text[start..end], escaped: false });
        }
        self.string_with_escapes(start)
    }

    /// A string from its first backslash on, or what is wrong with it.
    #[cold]
    fn string_with_escapes(&mut self, start: usize) -> Result<Text<'a>, SyntaxError> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    let raw = self.since(start);
                    self.at += 1;
                    return Ok(Text { raw, escaped: true });
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.error(SyntaxKind::Control)),
                None => return Err(self.error(SyntaxKind::End)),
            }
            self.at += plain(&self.text.as_bytes()[self.at..]);
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

    /// Steps over one value of a text that was checked: only strings and brackets are looked at.
    pub(crate) fn pass(&mut self) -> Result<(), SyntaxError> {
        self.space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{' | b'[') => {
                self.at += 1;
                self.leave(1)
            }
            _ => {
                let bytes = &self.text.as_bytes()[self.at..];
                let end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                self.at += bytes.iter().position(end).unwrap_or(bytes.len());
                Ok(())
            }
        }
    }

    /// Steps over the rest of as many lists and objects, of a text that was checked.
    pub(crate) fn leave(&mut self, levels: usize) -> Result<(), SyntaxError> {
        let (mut open, mut quoted, mut escaped) = (levels, false, false);
        for (index, byte) in self.text.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'"' => quoted = !quoted,
                b'\\' => escaped = true,
                _ if quoted => {}
                b'{' | b'[' => open += 1,
                b'}' | b']' => {
                    open -= 1;
                    if open == 0 {
                        self.at += index + 1;
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        self.at = self.text.len();
        Err(self.error(SyntaxKind::End))
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
        match lexer.peek() {
            Some(b'}') => {
                lexer.at += 1;
                return Ok(None);
            }
            Some(b',') if !self.first => {
                lexer.at += 1;
                lexer.space();
            }
            _ if !self.first => return Err(lexer.error(SyntaxKind::ObjectEnd)),
            _ => {}
        }
        self.first = false;
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
