//! Short guides for the public pages.

/// One guide, in Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    pub slug: &'static str,
    pub title: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    pub markdown: &'static str,
}

/// The guides, in reading order.
pub fn guides() -> &'static [Guide] {
    &[]
}
