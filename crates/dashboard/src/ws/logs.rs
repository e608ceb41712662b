//! `/w/{ws}/logs`: the calls, newest first; every filter stands in the address.

pub(crate) mod export;
pub(crate) mod live;
pub(crate) mod rule;
pub(crate) mod saved;

use askama::Template;
use axum::extract::Query;
use axum::response::Response;
use chrono::{DateTime, NaiveDateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{CallsOf, LOOKED_AT, Page, SavedFilter, ServerName, Viewer};
use sluice_domain::{CallId, CallRecord, Code, Outcome};

use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::next::encode;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Export, Field, Pager, Select};

const ON_PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    server: String,
    #[serde(default)]
    grant: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    rule: String,
    /// `tools`: only calls of tools, which the overview counts.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    q: String,
    #[serde(default)]
    after: String,
}

/// What `datetime-local` sends, taken as UTC, or RFC 3339.
pub(crate) fn time(text: &str) -> Option<DateTime<Utc>> {
    let exact = || DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc());
    let local = |format| NaiveDateTime::parse_from_str(text, format).ok().map(|at| at.and_utc());
    exact().or_else(|| local("%Y-%m-%dT%H:%M")).or_else(|| local("%Y-%m-%dT%H:%M:%S"))
}

/// A filter's value; one that cannot be read is noted.
fn read<T>(
    text: &str,
    what: &str,
    read: impl Fn(&str) -> Option<T>,
    odd: &mut Vec<String>,
) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    let value = read(text);
    if value.is_none() {
        let text: String = text.chars().take(60).collect();
        odd.push(format!("{what} `{text}`"));
    }
    value
}

impl Input {
    /// Reads the filters; what cannot be read is told, not ignored.
    fn filter(&self) -> (CallsOf, Vec<String>) {
        let mut odd = Vec::new();
        let filter = CallsOf {
            server: read(&self.server, "the server", |text| text.parse().ok(), &mut odd),
            grant: read(&self.grant, "the grant", |text| text.parse().ok(), &mut odd),
            policy: read(&self.policy, "the policy", |text| text.parse().ok(), &mut odd),
            tool: Some(self.tool.trim().to_owned()),
            outcome: read(&self.outcome, "the outcome", |text| text.parse().ok(), &mut odd),
            code: read(&self.code, "the code", |text| text.parse().ok(), &mut odd),
            rule: Some(self.rule.clone()),
            from: read(&self.from, "the start", time, &mut odd),
            to: read(&self.to, "the end", time, &mut odd),
            q: Some(self.q.trim().chars().take(200).collect()),
            newer: None,
            tool_calls: self.kind == "tools",
        };
        let kind = |text: &str| (text == "tools").then_some(());
        let _ = read(&self.kind, "the kind", kind, &mut odd);
        (filter, odd)
    }

    fn pairs(&self) -> [(&'static str, &str); 11] {
        [
            ("server", &self.server),
            ("grant", &self.grant),
            ("policy", &self.policy),
            ("tool", &self.tool),
            ("outcome", &self.outcome),
            ("code", &self.code),
            ("rule", &self.rule),
            ("kind", &self.kind),
            ("from", &self.from),
            ("to", &self.to),
            ("q", &self.q),
        ]
    }

    fn is_filtered(&self) -> bool {
        self.pairs().iter().any(|(_, value)| !value.is_empty())
    }

    /// The filters as a query, with the page to begin after.
    fn query(&self, after: Option<CallId>) -> String {
        let set = self.pairs().into_iter().filter(|(_, value)| !value.is_empty());
        let mut parts: Vec<String> =
            set.map(|(key, value)| format!("{key}={}", encode(value))).collect();
        parts.extend(after.map(|id| format!("after={id}")));
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

/// One call of the list.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) call: CallRecord,
    pub(crate) server: String,
}

impl Row {
    /// The tool, or the method of what was no tool call.
    pub(crate) fn what(&self) -> &str {
        match &self.call.tool {
            Some(tool) => tool,
            None if self.call.method.is_empty() => "unreadable request",
            None => &self.call.method,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/logs.html")]
struct LogsPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    odd: Option<String>,
    fields: Vec<Field>,
    selects: Vec<Select>,
    hidden: Vec<(&'static str, String, String)>,
    filtered: bool,
    saved: Vec<Saved>,
    /// The name to keep the filters under.
    name: Field,
    problem: Option<String>,
    /// The form to keep them is open.
    saving: bool,
    query: String,
    rows: Vec<Row>,
    empty: Empty,
    pager: Pager,
    path: String,
    /// Where new rows with these filters are told.
    live: String,
    export: Export,
    first_page: bool,
}

/// The name that a server has or had.
pub(crate) fn name_of(names: &[ServerName], call: &CallRecord) -> String {
    let found = names.iter().find(|one| one.id == call.server);
    found.map_or_else(|| "unknown server".to_owned(), |one| one.name.clone())
}

fn selects(input: &Input, names: &[ServerName]) -> Vec<Select> {
    let mut servers = vec![(String::new(), "All servers".to_owned())];
    servers.extend(names.iter().map(|one| {
        let deleted = if one.deleted { " (deleted)" } else { "" };
        (one.id.to_string(), format!("{}{deleted}", one.name))
    }));
    let mut outcomes = vec![("", "Any outcome")];
    outcomes.extend(Outcome::ALL.iter().map(|one| (one.as_str(), one.as_str())));
    let mut codes = vec![("", "Any code")];
    codes.extend(Code::ALL.iter().map(|one| (one.as_str(), one.as_str())));
    vec![
        Select::new("server", "Server", servers, &input.server),
        Select::new("outcome", "Outcome", outcomes, &input.outcome),
        Select::new("code", "Code", codes, &input.code),
    ]
}

fn fields(input: &Input) -> Vec<Field> {
    let search = |name: &str, label: &str, value: &str| {
        Field::new("search", name, label).value(value).max(200)
    };
    vec![
        search("q", "Search", &input.q).placeholder("tool, message, request id"),
        search("tool", "Tool", &input.tool),
        Field { kind: "datetime-local", ..search("from", "From (UTC)", &input.from) },
        Field { kind: "datetime-local", ..search("to", "To (UTC)", &input.to) },
    ]
}

fn empty(desk: &Desk<Viewer>, filtered: bool) -> Empty {
    if filtered {
        return Empty {
            title: "0 calls match".to_owned(),
            text: ticks(
                "No call in the log has all of this. Widen the times, or take a filter away.",
            ),
            action: Some((desk.path("/logs"), "Show every call".to_owned())),
        };
    }
    Empty {
        title: "No call yet".to_owned(),
        text: ticks(
            "Every call of an agent is one row here: what was called, by which grant, what became of it, and why. Create a grant and send the first one.",
        ),
        action: Some((desk.path("/servers"), "Choose a server".to_owned())),
    }
}

/// Filters without a field of their own: name, value, and the address without it.
fn chips(input: &Input, path: &str) -> Vec<(&'static str, String, String)> {
    let set: Vec<(&str, &str)> =
        input.pairs().into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let without = |name: &str| {
        let rest = set.iter().filter(|(key, _)| *key != name);
        let rest: Vec<String> =
            rest.map(|(key, value)| format!("{key}={}", encode(value))).collect();
        format!("{path}?{}", rest.join("&"))
    };
    let chip = |name: &&'static str| {
        let value = set.iter().find(|(key, _)| key == name)?.1.to_owned();
        Some((*name, value, without(name)))
    };
    ["grant", "policy", "rule", "kind"].iter().filter_map(chip).collect()
}

/// What was typed to keep the filters, and what was wrong with it.
struct Saving {
    name: String,
    faults: Faults,
}

/// A saved filter as a link, and where to delete it.
#[derive(Debug)]
struct Saved {
    name: String,
    href: String,
    delete: String,
    current: bool,
}

/// How far a page looked that holds fewer calls than it could.
fn looked_to(id: CallId, shown: usize) -> String {
    let made = id.uuid().get_timestamp().map_or((0, 0), |made| made.to_unix());
    let at = i64::try_from(made.0).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let at = at.map(|at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string()).unwrap_or_default();
    let calls = count(shown, "call fits", Some("calls fit"));
    format!("{calls} in the {LOOKED_AT} newest that were looked at, back to {at}")
}

/// Nothing fits in what one page looks at; there is more.
fn nothing_yet(older: String) -> Empty {
    Empty {
        title: "0 calls fit so far".to_owned(),
        text: ticks(
            "There are more calls than one page looks at. A server, grant, tool or time range makes the search shorter.",
        ),
        action: Some((older, "Search older calls".to_owned())),
    }
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    show(desk, input, Saving { name: String::new(), faults: Faults::none() }).await
}

async fn saved(desk: &Desk<Viewer>, query: &str) -> Result<Vec<Saved>, Response> {
    let found = desk.control.saved_filters(desk.viewer()).await.map_err(refuse)?;
    let link = |one: SavedFilter| Saved {
        href: desk.path(&format!("/logs?{}", one.query)),
        delete: desk.path(&format!("/logs/filters/{}/delete", one.id)),
        current: one.query == query.trim_start_matches('?'),
        name: one.name,
    };
    Ok(found.into_iter().map(link).collect())
}

async fn show(desk: Desk<Viewer>, input: Input, saving: Saving) -> Answer {
    let (filter, odd) = input.filter();
    let after: Option<CallId> = input.after.parse().ok();
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let page = desk
        .control
        .calls(desk.viewer(), &filter, Page { after, limit: ON_PAGE })
        .await
        .map_err(refuse)?;
    let path = desk.path("/logs");
    let shown = page.items.len();
    let looked_to = page.next.filter(|_| shown < ON_PAGE as usize).map(|id| looked_to(id, shown));
    let words = match (shown, page.next.is_some()) {
        _ if looked_to.is_some() => looked_to.clone().unwrap_or_default(),
        (0, _) => "0 calls".to_owned(),
        (_, true) => format!("{shown} calls on this page, newest first"),
        (1, false) => "1 call".to_owned(),
        (_, false) => format!("{shown} calls, newest first"),
    };
    let query = input.query(None);
    let name = Field::new("text", "name", "Name").value(&saving.name).max(80).required();
    let page = LogsPage {
        saved: saved(&desk, &query).await?,
        name: name.error(saving.faults.at("/name")),
        problem: saving.faults.rest(&["/name"]),
        saving: saving.faults.status != StatusCode::OK,
        query: query.clone(),
        frame: desk.frame("logs").await?,
        now: desk.now,
        odd: (!odd.is_empty())
            .then(|| format!("Not understood, and so not applied: {}.", odd.join(", "))),
        fields: fields(&input),
        selects: selects(&input, &names),
        hidden: chips(&input, &path),
        filtered: input.is_filtered(),
        empty: match page.next {
            Some(next) => nothing_yet(format!("{path}{}", input.query(Some(next)))),
            None => empty(&desk, input.is_filtered()),
        },
        pager: Pager {
            words,
            previous: after.map(|_| format!("{path}{}", input.query(None))),
            next: page.next.map(|next| format!("{path}{}", input.query(Some(next)))),
        },
        rows: page
            .items
            .into_iter()
            .map(|call| Row { server: name_of(&names, &call), call })
            .collect(),
        first_page: after.is_none(),
        export: Export::of(&path, &query),
        live: format!("{path}/live{}", input.query(None)),
        path,
    };
    Ok(page::private(status(&saving.faults), &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_keeps_every_filter() {
        let input = Input {
            tool: "a b".to_owned(),
            outcome: "denied".to_owned(),
            q: "x&y".to_owned(),
            ..Input::default()
        };
        assert_eq!(input.query(None), "?tool=a%20b&outcome=denied&q=x%26y");
        assert!(input.query(Some(CallId::new())).contains("&after="));
        assert_eq!(Input::default().query(None), "");
    }

    #[test]
    fn a_page_that_looked_at_a_part_says_how_far() {
        let at = DateTime::parse_from_rfc3339("2026-11-30T18:45:01Z").expect("a time").to_utc();
        assert_eq!(
            looked_to(CallId::floor(at), 1),
            "1 call fits in the 10000 newest that were looked at, back to 2026-11-30 18:45:01 UTC"
        );
        let older = nothing_yet("/w/acme/logs?q=x&after=1".to_owned());
        assert!(older.to_string().contains("Search older calls"));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        let input =
            Input { outcome: "odd".to_owned(), from: "yesterday".to_owned(), ..Input::default() };
        let (filter, odd) = input.filter();
        assert_eq!((filter.outcome, filter.from), (None, None));
        assert_eq!(odd, ["the outcome `odd`", "the start `yesterday`"]);
        assert!(time("2026-11-30T18:45").is_some() && time("2026-11-30T18:45:00Z").is_some());
    }
}
