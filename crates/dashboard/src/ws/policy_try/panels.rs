//! The panels for trying a document: a made-up call, calls of the log, policy tests; and what came of it.

use askama::Template;
use sluice_control::{MAX_TRIALS, ToolView, Trial};
use sluice_domain::Outcome;
use sluice_policy::CasesReport;

use super::typed::{Argument, Takes, Typed, arguments};
use crate::faults::Faults;
use crate::filters;
use crate::trace;
use crate::ui::code::pretty;
use crate::ui::text::count;
use crate::ui::{Entry, Field, Select, Trace};
use crate::ws::policy::trials::{OnLog, outcome};

/// Tools that the page names.
const NAMED: usize = 12;

/// One argument's field.
fn entry(index: usize, argument: &Argument, typed: &str, error: Option<String>) -> Entry {
    let name = format!("a.{index}");
    let choice = |words: &[(String, String)]| {
        let mut options = vec![(String::new(), "not given".to_owned())];
        options.extend_from_slice(words);
        let mut select = Select::new(&name, &argument.name, options, typed);
        select.error.clone_from(&error);
        Entry::Select(select.hint(argument.about.clone()))
    };
    let same = |word: &String| (word.clone(), word.clone());
    match argument.takes {
        Takes::Boolean => choice(&["true", "false"].map(|word| same(&word.to_owned()))),
        Takes::Text if !argument.choices.is_empty() => {
            choice(&argument.choices.iter().map(same).collect::<Vec<_>>())
        }
        takes => {
            let field = match takes {
                Takes::Json => Field::area(&name, &argument.name, 3).code(),
                Takes::Text if typed.contains('\n') => Field::area(&name, &argument.name, 3),
                _ => Field::text(&name, &argument.name),
            };
            let mut field = field.value(typed).error(error);
            let json = if takes == Takes::Json { "As JSON. " } else { "" };
            field.hint = format!("{json}{}", argument.about);
            // An empty field leaves the argument out, to see what the policy says to that.
            Entry::Field(field)
        }
    }
}

/// The form of a made-up call.
#[derive(Debug, Template)]
#[template(path = "ws/try_call.html")]
pub(crate) struct CallForm {
    /// Deciding is what the page is for.
    primary: bool,
    tool: Field,
    name: String,
    tools: Vec<String>,
    more: bool,
    /// Fields of the schema; without them the arguments are JSON.
    fields: Option<Vec<Entry>>,
    /// The tool has a schema that fields can be made of.
    has_schema: bool,
    arguments: Field,
    grant_label: Field,
    client_name: Field,
}

impl askama::filters::HtmlSafe for CallForm {}

impl CallForm {
    /// `typed` gets what it lacks: a tool, and arguments to begin with.
    pub(crate) fn new(tools: &[ToolView], typed: &Typed, faults: &Faults) -> Self {
        let tool = tools.iter().find(|tool| tool.name == typed.tool);
        let offered = arguments(tool.and_then(|tool| tool.definition.input_schema.as_ref()));
        let field = |(index, argument): (usize, &Argument)| {
            let error = faults.at(&format!("/a.{index}"));
            entry(index, argument, typed.field(&argument.name), error)
        };
        let fields = (typed.as_form && !offered.is_empty())
            .then(|| offered.iter().enumerate().map(field).collect::<Vec<_>>());
        Self {
            primary: false,
            tool: Field::text("tool", "Tool").value(&typed.tool).required().max(256).code(),
            name: typed.tool.clone(),
            tools: tools.iter().take(NAMED).map(|tool| tool.name.clone()).collect(),
            more: tools.len() > NAMED,
            fields,
            has_schema: !offered.is_empty(),
            arguments: Field::area("arguments", "Arguments", 8)
                .value(&typed.arguments)
                .hint("A JSON object.")
                .code()
                .error(faults.at("/calls/0/arguments")),
            grant_label: Field::text("grant_label", "Grant label")
                .value(&typed.grant_label)
                .hint("For rules that ask for `grant.label`.")
                .max(80),
            client_name: Field::text("client_name", "Client name")
                .value(&typed.client_name)
                .hint("What the client calls itself: its own claim.")
                .max(80),
        }
    }
}

impl CallForm {
    pub(crate) const fn primary(mut self) -> Self {
        self.primary = true;
        self
    }
}

/// Which calls of the log.
#[derive(Debug, Template)]
#[template(source = "<div class=\"grid\">{{ calls }}{{ whose }}</div>", ext = "html")]
pub(crate) struct LogForm {
    calls: Select,
    whose: Select,
}

impl askama::filters::HtmlSafe for LogForm {}

impl LogForm {
    pub(crate) fn new(typed: &Typed) -> Self {
        let counts =
            ["100", "500", "1000"].map(|number| (number, format!("the last {number} calls")));
        let whose = [
            ("policy", "that this policy decided"),
            ("server", "of the server, whatever decided them"),
        ];
        let or = |text: &str, other: &'static str| {
            if text.is_empty() { other.to_owned() } else { text.to_owned() }
        };
        Self {
            calls: Select::new("calls", "On", counts, &or(&typed.calls, "500")),
            whose: Select::new("whose", "Which", whose, &or(&typed.whose, "policy")),
        }
    }
}

/// The field of policy tests.
pub(crate) fn tests_field(typed: &Typed, faults: &Faults) -> Field {
    let example = || {
        let one = serde_json::json!({"tool": typed.tool, "arguments": {}, "expect": "allow"});
        pretty(&serde_json::json!({"cases": [one]}))
    };
    Field::area("cases", "Tests", 8)
        .hint("The form that `sluice policy test` reads; see the policy docs. They look at the document alone: tools count as known and unchanged, and what the server itself refuses is left out.")
        .value(if typed.cases.is_empty() { example() } else { typed.cases.clone() })
        .code()
        .error(faults.at("/cases"))
}

/// What would become of the call.
#[derive(Debug)]
pub(crate) struct Decided {
    outcome: Outcome,
    trial: Trial,
    trace: Trace,
    /// What becomes of it, in words.
    words: String,
    approval: Option<String>,
}

impl Decided {
    pub(crate) fn new(trial: Trial) -> Self {
        let decision = &trial.decision;
        let outcome = outcome(decision.verdict, decision.code);
        let words = match outcome {
            Outcome::Allowed if decision.observed => {
                "It would be forwarded, since the policy only observes; otherwise it would not."
                    .to_owned()
            }
            Outcome::Allowed if decision.charges.is_empty() => "It would be forwarded.".to_owned(),
            Outcome::Allowed => "It would be forwarded, once its limits are charged.".to_owned(),
            Outcome::Waiting => "It would wait until a person decides.".to_owned(),
            Outcome::Hidden => "It would be refused as if the tool did not exist.".to_owned(),
            _ => "It would be refused.".to_owned(),
        };
        let approval = decision.approval.as_ref().map(|plan| {
            format!(
                "Held open {} s, void after {}, {} to decide{}.",
                plan.hold,
                count((plan.expires / 60) as usize, "minute", None),
                count(usize::from(plan.quorum), "person", Some("people")),
                if plan.self_allowed { "" } else { ", not the one who made the grant" },
            )
        });
        let trace = trace::of_steps(&decision.trace);
        Self { outcome, trial, trace, words, approval }
    }
}

/// What a page shows as the result.
#[derive(Debug, Template)]
#[template(path = "ws/tried.html")]
pub(crate) struct Tried {
    /// Where the policy's rules are; empty: it is not saved yet.
    pub(crate) path: String,
    pub(crate) shown: Shown,
}

impl askama::filters::HtmlSafe for Tried {}

/// The kinds of result.
#[derive(Debug, Default)]
pub(crate) enum Shown {
    #[default]
    Nothing,
    Call(Box<Decided>),
    Log(OnLog),
    Tests(CasesReport),
}

impl Tried {
    pub(crate) const fn is_something(&self) -> bool {
        !matches!(self.shown, Shown::Nothing)
    }
}

/// The same bound as for calls.
pub(crate) const MOST_TESTS: usize = MAX_TRIALS as usize;
