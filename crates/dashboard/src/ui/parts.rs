//! Tabs, pagers, flashes, sentences, traces, steps and the box that shows a token once.

use askama::Template;

use sluice_risk::catalogue::BridgeCommand;

use super::text::ticks;
use super::{Code, Html};

macro_rules! part {
    ($($(#[$about:meta])* $name:ident $path:literal { $($(#[$meta:meta])* $field:ident: $kind:ty),* $(,)? })+) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, Template)]
        #[template(path = $path)]
        pub(crate) struct $name { $($(#[$meta])* pub(crate) $field: $kind),* }
        impl askama::filters::HtmlSafe for $name {}
    )+ };
}

part! {
    Tabs "parts/tabs.html" { label: String, tabs: Vec<Tab> }
    /// Links to a list as files.
    Export "parts/export.html" { csv: String, ndjson: String }
    Pager "parts/pager.html" {
        /// "1–50 of 214" or "50 calls on this page".
        words: String,
        previous: Option<String>,
        next: Option<String>,
    }
    /// The same for a list that no time orders.
    Pages "parts/pages.html" { words: String, previous: Option<String>, next: Option<String> }
    Empty "parts/empty.html" {
        title: String,
        text: Html,
        /// (address, words) of the one thing to do next.
        action: Option<(String, String)>,
    }
    Flash "parts/flash.html" { tone: Tone, text: Html }
    Sentences "parts/sentences.html" { rows: Vec<Sentence> }
    Trace "parts/trace.html" { rows: Vec<TraceRow> }
    Steps "parts/steps.html" { steps: Vec<Step> }
    /// How to reach a server that speaks stdio.
    Bridge "parts/bridge.html" {
        install: Option<Code>,
        env: Vec<String>,
        command: Code,
        url: String,
    }
    TokenBox "parts/token.html" {
        title: String,
        token: String,
        /// Where "I stored it" leads.
        done: String,
    }
}

impl Export {
    /// The files of the list at `path`, with its filters: `query` begins with `?` or is empty.
    pub(crate) fn of(path: &str, query: &str) -> Self {
        let file = |ending| format!("{path}.{ending}{query}");
        Self { csv: file("csv"), ndjson: file("ndjson") }
    }
}

impl From<BridgeCommand> for Bridge {
    fn from(bridge: BridgeCommand) -> Self {
        Self {
            install: bridge.install.map(|text| Code::wrapped("Shell", &text)),
            env: bridge.env,
            command: Code::wrapped("Shell", &bridge.command),
            url: bridge.upstream_url,
        }
    }
}

/// One tab: a link.
#[derive(Debug, Clone)]
pub(crate) struct Tab {
    pub(crate) href: String,
    pub(crate) label: String,
    pub(crate) current: bool,
    pub(crate) count: Option<usize>,
}

/// How loud a flash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Warn,
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "",
            Self::Warn => " flash-warn",
            Self::Bad => " flash-bad",
        }
    }

    fn icon(self) -> Html {
        super::icon(if self == Self::Good { "check" } else { "alert" })
    }
}

impl Flash {
    /// A flash whose text may hold code between backticks.
    pub(crate) fn new(tone: Tone, text: &str) -> Self {
        Self { tone, text: ticks(text) }
    }
}

/// A rule in words, with where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub(crate) html: Html,
    pub(crate) pointer: String,
}

/// What a step of a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceState {
    Passed,
    Stopped,
    Skipped,
}

impl TraceState {
    fn class(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Stopped => "stop",
            Self::Skipped => "skip-step",
        }
    }

    fn icon(self) -> Html {
        super::icon(match self {
            Self::Passed => "check",
            Self::Stopped => "cross",
            Self::Skipped => "arrow",
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Stopped => "Stopped here",
            Self::Skipped => "Not asked",
        }
    }
}

/// One step of a decision.
#[derive(Debug, Clone)]
pub(crate) struct TraceRow {
    pub(crate) state: TraceState,
    pub(crate) html: Html,
    pub(crate) pointer: String,
}

/// Where a step of a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepState {
    Done,
    Now,
    Later,
}

/// One step of a path.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) state: StepState,
}

impl Step {
    fn class(&self) -> &'static str {
        match self.state {
            StepState::Done => "done",
            StepState::Now => "now",
            StepState::Later => "later",
        }
    }
}

impl Steps {
    /// Steps in order, of which the first `done` are behind.
    pub(crate) fn at(done: usize, steps: &[(&str, &str)]) -> Self {
        let steps = steps
            .iter()
            .enumerate()
            .map(|(at, (title, text))| Step {
                title: (*title).to_owned(),
                text: (*text).to_owned(),
                state: match at.cmp(&done) {
                    std::cmp::Ordering::Less => StepState::Done,
                    std::cmp::Ordering::Equal => StepState::Now,
                    std::cmp::Ordering::Greater => StepState::Later,
                },
            })
            .collect();
        Self { steps }
    }

    /// The path from a public tool page to the log, of which the first `done` steps are behind.
    pub(crate) fn path(done: usize, server: &str, tool: &str) -> Self {
        Self::at(
            done,
            &[
                ("Account", "e-mail and password"),
                ("Workspace", "a name for it"),
                ("Server", server),
                ("Rule", tool),
                ("Grant", "for your agent"),
            ],
        )
    }

    /// The present step is done.
    pub(crate) fn advance(&mut self) {
        let now = self.steps.iter().position(|step| step.state == StepState::Now);
        if let Some(now) = now {
            self.steps[now].state = StepState::Done;
            if let Some(next) = self.steps.get_mut(now + 1) {
                next.state = StepState::Now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_open_step_is_the_one_to_take() {
        let html = Steps::at(1, &[("Sign up", ""), ("Connect", ""), ("Apply", "")]).to_string();
        assert!(html.contains("class=\"done\""));
        assert!(html.contains("class=\"now\" aria-current=\"step\""));
        assert_eq!(html.matches("aria-current").count(), 1);
    }

    #[test]
    fn an_empty_list_offers_the_next_step_and_no_page_buttons() {
        let empty = Empty {
            title: "No grants yet".to_owned(),
            text: ticks("A grant lets one agent use `files`."),
            action: Some(("/new".to_owned(), "Create grant".to_owned())),
        };
        let html = empty.to_string();
        assert!(html.contains("href=\"/new\"") && html.contains("<code>files</code>"), "{html}");
        let pager = Pager { words: String::new(), previous: None, next: None };
        assert!(!pager.to_string().contains("<a"));
    }

    #[test]
    fn a_flash_escapes_what_it_repeats() {
        let html = Flash::new(Tone::Bad, "No `<img src=x onerror=alert(1)>`").to_string();
        assert!(!html.contains("<img"), "{html}");
    }
}
