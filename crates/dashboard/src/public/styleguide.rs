//! `/styleguide`: every part on one page.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};

use crate::filters;
use crate::frame::PublicFrame;
use crate::page;
use crate::ui::text::ticks;
use crate::ui::{
    Bars, BarsDay, Code, Diff, Empty, Field, Flash, JsonText, LineMark, Pager, Select, Sentence,
    Sentences, Steps, Tab, Tabs, TokenBox, Tone, Trace, TraceRow, TraceState,
};
use crate::visitor::Visitor;

#[derive(Debug, Template)]
#[template(path = "public/styleguide.html")]
struct StyleguidePage {
    frame: PublicFrame,
    at: DateTime<Utc>,
    later: DateTime<Utc>,
    fields: Vec<Field>,
    select: Select,
    flashes: Vec<Flash>,
    tabs: Tabs,
    pager: Pager,
    empty: Empty,
    code: Code,
    json: JsonText,
    diff: Diff,
    sentences: Sentences,
    trace: Trace,
    steps: Steps,
    token: TokenBox,
    bars: Bars,
}

const BEFORE: &str = "{\n  \"version\": \"1\",\n  \"default\": \"deny\",\n  \"tools\": {}\n}";
const AFTER: &str = "{\n  \"version\": \"1\",\n  \"default\": \"deny\",\n  \"tools\": {\n    \"read_file\": {}\n  }\n}";

fn fields() -> Vec<Field> {
    vec![
        Field::text("sg-name", "Name").required().hint("Up to 60 characters."),
        Field::new("url", "sg-url", "Upstream URL")
            .value("ftp://files.example")
            .error(Some("`ftp:` is not spoken here. Give an `https://` address.".to_owned())),
        Field::area("sg-note", "Note", 2).placeholder("Why it was approved"),
    ]
}

fn trace() -> Trace {
    let row = |state, text: &str, pointer: &str| TraceRow {
        state,
        html: ticks(text),
        pointer: pointer.to_owned(),
    };
    Trace {
        rows: vec![
            row(TraceState::Passed, "`executePython` is in the server's list", ""),
            row(
                TraceState::Stopped,
                "10 calls a minute were used up",
                "/tools/executePython/limits/0",
            ),
            row(TraceState::Skipped, "Approval", "/tools/executePython/approve_if/0"),
        ],
    }
}

fn bars() -> Bars {
    let days = ["Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Mon"];
    let day = |(at, label): (i64, &str)| BarsDay {
        label: label.to_owned(),
        href: "#charts".to_owned(),
        allowed: 400 + at * 211 % 700,
        limited: at * 37 % 90,
        denied: at * 13 % 50,
        other: at % 3 * 9,
    };
    Bars { title: "Calls a day".to_owned(), days: (0..).zip(days).map(day).collect() }
}

fn tabs() -> Tabs {
    let tab = |label: &str, current, count| Tab {
        href: "#tabs".to_owned(),
        label: label.to_owned(),
        current,
        count,
    };
    Tabs {
        label: "Server".to_owned(),
        tabs: vec![
            tab("Tools", true, Some(12)),
            tab("Policies", false, Some(1)),
            tab("Logs", false, None),
        ],
    }
}

pub(crate) async fn get(visitor: Visitor) -> Response {
    let at = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let sentence =
        |text: &str, pointer: &str| Sentence { html: ticks(text), pointer: pointer.to_owned() };
    page::public(&StyleguidePage {
        frame: visitor.frame("", ""),
        at,
        later: at + TimeDelta::minutes(7),
        fields: fields(),
        select: Select::new("sg-role", "Role", [("viewer", "Viewer"), ("admin", "Admin")], "admin"),
        flashes: vec![
            Flash::new(Tone::Good, "Connected `files`: 12 tools were read."),
            Flash::new(Tone::Warn, "Two tools changed since they were reviewed."),
            Flash::new(
                Tone::Bad,
                "The server answered 401. Add its API key under Settings → Upstream authentication.",
            ),
        ],
        tabs: tabs(),
        pager: Pager {
            words: "26–50 of 214 tools".to_owned(),
            previous: Some("#p".to_owned()),
            next: Some("#n".to_owned()),
        },
        empty: Empty {
            title: "No grants yet".to_owned(),
            text: ticks("A grant is a token for one agent and one server."),
            action: Some(("#grants".to_owned(), "Create grant".to_owned())),
        },
        code: Code::text("curl", "curl https://sluice.example/healthz"),
        json: JsonText::new("Policy", AFTER, &[(5, LineMark::Error), (3, LineMark::Warning)]),
        diff: Diff::new("Change", BEFORE, AFTER),
        sentences: Sentences {
            rows: vec![
                sentence(
                    "`execute_code` may run 10 times a minute per grant.",
                    "/tools/execute_code/limits/0",
                ),
                sentence("Every other tool is denied.", "/default"),
            ],
        },
        trace: trace(),
        steps: Steps::at(
            1,
            &[("Connect a server", "files"), ("Apply a rule", "read_file"), ("Create a grant", "")],
        ),
        token: TokenBox {
            title: "Grant token".to_owned(),
            token: "slg_0000000000000000000000000000000000000000000".to_owned(),
            done: "#stored".to_owned(),
        },
        bars: bars(),
    })
}
