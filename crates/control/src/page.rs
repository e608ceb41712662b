//! Keyset pages: a bounded number of items after a key, and the key to go on from.

/// Which page of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// The key of the last item of the page before.
    pub after: Option<K>,
    pub limit: u32,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOf<T, K> {
    pub items: Vec<T>,
    /// Where the next page begins; none on the last.
    pub next: Option<K>,
}

impl<K> Page<K> {
    /// The first `limit` items.
    pub const fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }

    /// One more than wanted, to see whether there is a next page.
    pub(crate) fn one_more(&self) -> i64 {
        i64::from(self.limit.max(1)) + 1
    }

    /// Cuts what was read with [`Self::one_more`] to the page.
    pub(crate) fn cut<T>(&self, mut found: Vec<T>, key: impl Fn(&T) -> K) -> PageOf<T, K> {
        let limit = usize::try_from(self.limit.max(1)).unwrap_or(usize::MAX);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = if more { found.last().map(key) } else { None };
        PageOf { items: found, next }
    }
}

impl<T, K> PageOf<T, K> {
    /// Turns the items into something else.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PageOf<U, K> {
        PageOf { items: self.items.into_iter().map(change).collect(), next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_next() {
        let page = Page::<i64>::first(2);
        assert_eq!(page.cut(vec![5, 4, 3], |n| *n).next, Some(4));
        assert_eq!(page.cut(vec![5, 4], |n| *n).next, None);
        assert_eq!(page.cut(Vec::<i64>::new(), |n| *n).items, Vec::<i64>::new());
    }
}
