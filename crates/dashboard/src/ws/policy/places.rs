//! Where the parts of a document stand in its text: for links from a rule to its line, and for
//! changes that leave everything else as it was typed.

use std::collections::HashMap;
use std::ops::Range;

/// A value's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1; of the key, where the value has one.
    pub(crate) line: usize,
    /// Where the key begins, or the value that has none.
    first: usize,
    start: usize,
    end: usize,
}

impl Place {
    /// The value.
    pub(crate) fn value(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The value with its key.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.first..self.end
    }
}

/// Places by JSON Pointer.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<String, Place>);

/// Levels of a document that have places: `/tools/t/limits/0/max` is the deepest one asked for.
const DEEP: usize = 5;

impl Places {
    /// The places of a text that is JSON. Of a text that is not, some, and maybe odd ones.
    pub(crate) fn of(text: &str) -> Self {
        let mut reader = Reader { text, line: 1, ..Reader::default() };
        while reader.step() {}
        Self(reader.found)
    }

    pub(crate) fn get(&self, pointer: &str) -> Option<Place> {
        self.0.get(pointer).copied()
    }

    /// The line of the part, or of the nearest part around it: short forms have no place of their own.
    pub(crate) fn line(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.0.get(pointer) {
                return place.line;
            }
            let Some((around, _)) = pointer.rsplit_once('/') else { return 1 };
            pointer = around;
        }
    }
}

/// One key as a segment of a JSON Pointer.
pub(crate) fn segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A list or an object whose end has not come yet.
struct Open {
    /// The length of its pointer.
    base: usize,
    /// The position in a list.
    index: Option<usize>,
}

#[derive(Default)]
struct Reader<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    path: String,
    /// Start and line of the key that was read last.
    key: Option<(usize, usize)>,
    open: Vec<Open>,
    found: HashMap<String, Place>,
}

impl Reader<'_> {
    fn step(&mut self) -> bool {
        let Some(byte) = self.text.as_bytes().get(self.at).copied() else { return false };
        match byte {
            b'\n' => self.line += 1,
            b'{' | b'[' => {
                self.begin();
                let list = byte == b'[';
                self.open.push(Open { base: self.path.len(), index: list.then_some(0) });
                if list {
                    self.path.push_str("/0");
                }
            }
            b'}' | b']' => {
                if let Some(open) = self.open.pop() {
                    self.path.truncate(open.base);
                    self.end(self.at + 1);
                }
            }
            b',' => self.next(),
            b'"' => {
                self.string();
                return true;
            }
            b':' | b' ' | b'\t' | b'\r' => {}
            _ => {
                let stops = |b: &u8| b",]}\"".contains(b) || b.is_ascii_whitespace();
                let rest = &self.text.as_bytes()[self.at..];
                let end = self.at + rest.iter().position(stops).unwrap_or(rest.len()).max(1);
                self.begin();
                self.end(end);
                self.at = end;
                return true;
            }
        }
        self.at += 1;
        true
    }

    fn next(&mut self) {
        let Some(open) = self.open.last_mut() else { return };
        self.path.truncate(open.base);
        if let Some(index) = &mut open.index {
            *index += 1;
            self.path.push('/');
            self.path.push_str(&index.to_string());
        }
    }

    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end) {
            end += match byte {
                b'"' => break,
                b'\\' => 2,
                _ => 1,
            };
        }
        let end = (end + 1).min(bytes.len());
        let is_key =
            self.open.last().is_some_and(|o| o.index.is_none() && o.base == self.path.len());
        if is_key {
            let token = self.text.get(self.at..end).unwrap_or_default();
            let key: String = serde_json::from_str(token).unwrap_or_default();
            self.path.push('/');
            self.path.push_str(&segment(&key));
            self.key = Some((self.at, self.line));
        } else {
            self.begin();
            self.end(end);
        }
        self.at = end;
    }

    fn begin(&mut self) {
        let (first, line) = self.key.take().unwrap_or((self.at, self.line));
        if self.open.len() <= DEEP {
            let place = Place { line, first, start: self.at, end: self.at };
            self.found.entry(self.path.clone()).or_insert(place);
        }
    }

    fn end(&mut self, end: usize) {
        if self.open.len() <= DEEP
            && let Some(place) = self.found.get_mut(&self.path)
            && place.end == place.start
        {
            place.end = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"hide\": [\"a\", \"b\\\"]\"],\n  \"tools\": {\n    \"x/y~z\": {\"limits\": [\n      {\"max\": 10, \"w\": [1, {}]}\n    ]},\n    \"\": {}\n  }\n}";

    #[test]
    fn every_part_has_its_line_and_its_text() {
        let places = Places::of(TEXT);
        for (pointer, line, text) in [
            ("/hide/1", 2, "\"b\\\"]\""),
            ("/tools/x~1y~0z/limits/0/max", 5, "10"),
            ("/tools/x~1y~0z/limits/0", 5, "{\"max\": 10, \"w\": [1, {}]}"),
            ("/tools/", 7, "{}"),
            ("", 1, TEXT),
        ] {
            let place = places.get(pointer).expect(pointer);
            assert_eq!((place.line, &TEXT[place.value()]), (line, text), "{pointer}");
        }
        let hide = places.get("/hide").expect("hide");
        assert_eq!(&TEXT[hide.whole()], "\"hide\": [\"a\", \"b\\\"]\"]");
        assert_eq!(places.line("/tools/x~1y~0z/deny_if/0"), 4, "the nearest part around it");
        assert_eq!(places.line("/mode"), 1);
    }

    #[test]
    fn a_text_that_is_not_json_does_no_harm() {
        for text in [
            "",
            "\"",
            "\"\\",
            "{\"a\":",
            "]}],,",
            "[[[[[[[[",
            "{\"é\\",
            "ü{\"a\" \"b\" 1",
            "{\"a\":tru\u{1F600}e}",
        ] {
            let places = Places::of(text);
            assert_eq!(places.line("/a/b"), places.line("/a"), "{text}");
        }
    }
}
