//! Where something stands: JSON Pointers built only when needed, lines and columns.

/// A place in a document: the way to it from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    pub(crate) const ROOT: Place<'static> = Place { parent: None, step: Step::Root };

    pub(crate) fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    pub(crate) fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The JSON Pointer (RFC 6901).
    pub(crate) fn pointer(&self) -> String {
        let mut out = self.parent.map(Place::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => {
                out.push('/');
                out.push_str(&escape_pointer(key));
            }
            Step::Index(index) => {
                out.push('/');
                out.push_str(&index.to_string());
            }
        }
        out
    }
}

/// A key as a part of a JSON Pointer.
pub(crate) fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Turns byte offsets into lines and columns, both from 1; columns count characters.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    pub(crate) fn locate(&self, at: usize) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or("");
        let column = before.chars().count() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}
