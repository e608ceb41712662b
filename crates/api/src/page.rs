//! Pages of a list: `?limit=&cursor=` in, `{"items": […], "next_cursor": …}` out.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sluice_control::codes;
use sluice_control::{Fault, Page, PageOf};
use sluice_web::{Cursor, Problem};
use utoipa::{IntoParams, ToSchema};

/// Where a page begins and how long it is.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// 1 to 1,000; 50 when left out.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub(crate) cursor: Option<String>,
}

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 1_000;

impl PageQuery {
    pub(crate) fn page<K: DeserializeOwned>(&self) -> Result<Page<K>, Problem> {
        page(self.limit, self.cursor.as_deref())
    }
}

/// The page that a query asks for.
pub(crate) fn page<K: DeserializeOwned>(
    limit: Option<u32>,
    cursor: Option<&str>,
) -> Result<Page<K>, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let detail = format!("a page has 1 to {MAX_LIMIT} items");
        return Err(Problem::invalid(Fault::new("/limit", codes::OUT_OF_RANGE, detail)));
    }
    Ok(Page { after: Cursor::read(cursor)?, limit })
}

/// A page of items, and where the next begins.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// `null` on the last page.
    pub(crate) next_cursor: Option<String>,
}

impl<T> List<T> {
    /// Everything there is, on one page.
    pub(crate) fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

/// Shapes a page of `control`.
pub(crate) fn list<R, K: Serialize, T>(page: PageOf<R, K>, view: impl FnMut(R) -> T) -> List<T> {
    let next_cursor = page.next.as_ref().map(Cursor::write);
    List { items: page.items.into_iter().map(view).collect(), next_cursor }
}
