//! `/w/{ws}/limits`: every counter with what is used and left, the nearest to its edge first.

use askama::Template;
use axum::extract::Query;
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{
    CounterForm, LimitView, LimitsOf, MOST_LOOKED_AT, NEAR_PERCENT, Nearest, PolicyManager,
    ServerName, Viewer,
};
use sluice_web::Form;

use super::limit_rows::{LimitRows, trouble};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::count;
use crate::ui::{Empty, Pager, Select, text::ticks};

const ON_PAGE: usize = 100;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    server: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    grant: String,
    /// `1`: only those near their edge.
    #[serde(default)]
    near: String,
    /// From 1.
    #[serde(default)]
    page: Option<usize>,
}

#[derive(Debug, Template)]
#[template(path = "ws/limits.html")]
struct LimitsPage {
    frame: WsFrame,
    state: String,
    trouble: Option<String>,
    partial: Option<String>,
    path: String,
    server: Select,
    /// Filters without a field of their own: name, value, and the address without it.
    chips: Vec<(&'static str, String, String)>,
    rows: LimitRows,
    empty: Empty,
    pager: Pager,
}

impl Input {
    /// What the address asks for; an id that is none is somebody's mistyped address.
    fn of(&self) -> Result<LimitsOf, axum::response::Response> {
        fn id<T: std::str::FromStr>(
            text: &str,
            what: &'static str,
        ) -> Result<Option<T>, axum::response::Response> {
            if text.is_empty() {
                Ok(None)
            } else {
                text.parse().map(Some).map_err(|_| absent(what))
            }
        }
        Ok(LimitsOf {
            server: id(&self.server, "server")?,
            policy: id(&self.policy, "policy")?,
            grant: id(&self.grant, "grant")?,
        })
    }

    /// The filters as a query, without one of them.
    fn query(&self, without: &str) -> String {
        let all = [
            ("server", &self.server),
            ("policy", &self.policy),
            ("grant", &self.grant),
            ("near", &self.near),
        ];
        let set = all.iter().filter(|(name, value)| *name != without && !value.is_empty());
        let parts: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

fn state(nearest: &Nearest) -> String {
    let all = count(nearest.rows.len(), "counter", None);
    match nearest.near() {
        _ if nearest.fault.is_some() => format!("{all}; how they stand is not known at the moment"),
        _ if nearest.rows.is_empty() => "What agents may use, and what they have used".to_owned(),
        0 => format!("{all}, none near its edge"),
        near => {
            let near = count(near, "of them is", Some("of them are"));
            format!("{all}, {near} used to {NEAR_PERCENT}% or more")
        }
    }
}

fn empty(desk: &Desk<Viewer>) -> Empty {
    Empty {
        title: "No limit is in use".to_owned(),
        text: ticks(
            "A limit says how often a tool may be called, or how much of an argument may be used: \
             “`execute_code` may run 10 times a minute per grant.” Put one into a policy, and give \
             a grant that policy.",
        ),
        action: Some((desk.path("/policies"), "Open the policies".to_owned())),
    }
}

fn choice(servers: &[ServerName], chosen: &str) -> Select {
    let mut options = vec![(String::new(), "All servers".to_owned())];
    let live = servers.iter().filter(|server| !server.deleted);
    options.extend(live.map(|server| (server.id.to_string(), server.name.clone())));
    Select::new("server", "Server", options, chosen)
}

fn pager(path: &str, query: &str, at: usize, all: usize) -> Pager {
    let join = if query.is_empty() { "?" } else { "&" };
    let to = |page: usize| format!("{path}{query}{join}page={page}");
    let (first, last) = (at * ON_PAGE, all.min((at + 1) * ON_PAGE));
    Pager {
        words: format!("{}–{last} of {all}", first.min(last) + usize::from(last > first)),
        previous: (at > 0).then(|| to(at)),
        next: (last < all).then(|| to(at + 2)),
    }
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let of = input.of()?;
    let mut nearest = desk.control.nearest_limits(desk.viewer(), of).await.map_err(refuse)?;
    if input.near == "1" {
        nearest.rows.retain(LimitView::is_near);
    }
    let servers = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let (path, query) = (desk.path("/limits"), input.query(""));
    let all = nearest.rows.len();
    let at = input.page.unwrap_or(1).clamp(1, all.div_ceil(ON_PAGE).max(1)) - 1;
    let chips = [("policy", &input.policy), ("grant", &input.grant), ("near", &input.near)];
    let chips = chips.into_iter().filter(|(_, value)| !value.is_empty());
    let page = LimitsPage {
        state: state(&nearest),
        trouble: trouble(&desk.control, nearest.fault.is_some()),
        partial: nearest.partial.then(|| {
            format!(
                "There are more counters than the {MOST_LOOKED_AT} that were looked at. Choose a \
                 server to see all of its own."
            )
        }),
        server: choice(&servers, &input.server),
        chips: chips
            .map(|(name, value)| (name, value.clone(), format!("{path}{}", input.query(name))))
            .collect(),
        pager: pager(&path, &query, at, all),
        rows: LimitRows::new(
            &desk,
            nearest.rows.into_iter().skip(at * ON_PAGE).take(ON_PAGE).collect(),
            &servers,
            format!("{path}{query}"),
        ),
        empty: empty(&desk),
        frame: desk.frame("limits").await?,
        path,
    };
    Ok(page::private(StatusCode::OK, &page))
}

#[derive(Debug, Deserialize)]
pub(crate) struct ResetInput {
    counter: String,
    window: String,
    reset: String,
    scope: String,
    server: String,
    #[serde(default)]
    grant: String,
    #[serde(default)]
    session: String,
    /// The page that it was sent from.
    #[serde(default)]
    back: String,
}

pub(crate) async fn reset(desk: Desk<PolicyManager>, Form(input): Form<ResetInput>) -> Answer {
    let set = |text: &String| (!text.is_empty()).then(|| text.clone());
    let form = CounterForm {
        window: input.window,
        reset: Some(input.reset),
        scope: input.scope,
        server: input.server.parse().ok(),
        grant: input.grant.parse().ok(),
        session: set(&input.session),
        counter: input.counter.clone(),
    };
    let held = desk.control.reset_counter(&desk.who, form).await.map_err(refuse)?;
    let limits = desk.path("/limits");
    let ours = [limits.clone(), desk.path("/grants/")];
    let to = if ours.iter().any(|page| input.back.starts_with(page)) { input.back } else { limits };
    Ok(flash::done(&to, &format!("Set `{}` back to nothing; it held {held}.", input.counter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_hundred_lead_on_and_back() {
        let words = |at, all| pager("/l", "?grant=g", at, all);
        let only = words(0, 7);
        assert_eq!((only.words.as_str(), only.previous, only.next), ("1–7 of 7", None, None));
        let middle = words(1, 250);
        assert_eq!(middle.words, "101–200 of 250");
        assert_eq!(middle.previous.as_deref(), Some("/l?grant=g&page=1"));
        assert_eq!(middle.next.as_deref(), Some("/l?grant=g&page=3"));
        assert_eq!(words(2, 250).next, None);
        assert_eq!(words(0, 0).words, "0–0 of 0");
    }
}
