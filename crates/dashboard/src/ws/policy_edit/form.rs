//! The form of one rule, limit or approval block: fields that the tool's schema offers, operators that
//! fit their type, and what is wrong beside the field that it is about.

use std::fmt;

use askama::Template;
use sluice_policy::Op;

use super::input::Input;
use super::limit::{ApprovalForm, LimitForm};
use super::offer::{Kind, Offer, fits};
use super::review::{SCOPES, WINDOWS};
use super::rule::{Row, RuleForm, Wrong, kinds};
use crate::filters;
use crate::ui::{Entry, Field, Select};

/// A row of conditions.
#[derive(Debug)]
struct RowView {
    index: usize,
    /// How it goes with the row above.
    join: Option<Select>,
    not: bool,
    path: Option<Select>,
    /// A path that the schema does not offer.
    path_text: Option<Field>,
    op: Option<Select>,
    value: Option<Entry>,
    json: Option<Field>,
}

/// The form of a rule.
#[derive(Debug, Template)]
#[template(path = "ws/policy_rule_form.html")]
pub(super) struct RuleView {
    place: String,
    list: Select,
    name: Field,
    on_deny: Field,
    rows: Vec<RowView>,
    problem: Option<String>,
}

impl askama::filters::HtmlSafe for RuleView {}

/// The form of a limit.
#[derive(Debug, Template)]
#[template(path = "ws/policy_limit_form.html")]
pub(super) struct LimitView {
    place: String,
    max: Field,
    window: Select,
    window_text: Option<Field>,
    scope: Select,
    increment: Select,
    increment_text: Option<Field>,
    counter: Field,
    reset: Select,
    on_unavailable: Select,
    problem: Option<String>,
}

impl askama::filters::HtmlSafe for LimitView {}

/// The form of an approval block.
#[derive(Debug, Template)]
#[template(path = "ws/policy_approval_form.html")]
pub(super) struct ApprovalView {
    hold: Field,
    expires: Field,
    approvers: Field,
    quorum: Field,
    self_allowed: Select,
    problem: Option<String>,
}

impl askama::filters::HtmlSafe for ApprovalView {}

/// The form that is open.
#[derive(Debug)]
pub(super) enum PartForm {
    Rule(Box<RuleView>),
    Limit(Box<LimitView>),
    Approval(Box<ApprovalView>),
}

impl fmt::Display for PartForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(form) => form.fmt(f),
            Self::Limit(form) => form.fmt(f),
            Self::Approval(form) => form.fmt(f),
        }
    }
}

impl askama::filters::HtmlSafe for PartForm {}

/// What is wrong, by field; what belongs to no field that is shown goes to the head of the form.
struct Faulty<'w> {
    wrong: &'w [Wrong],
    shown: Vec<String>,
}

impl Faulty<'_> {
    fn at(&mut self, name: &str) -> Option<String> {
        self.shown.push(name.to_owned());
        let here = self.wrong.iter().filter(|(field, _)| field == name);
        let words: Vec<&str> = here.map(|(_, words)| words.as_str()).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn rest(&self) -> Option<String> {
        let rest = self.wrong.iter().filter(|(field, _)| !self.shown.contains(field));
        let words: Vec<&str> = rest.map(|(_, words)| words.as_str()).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

impl PartForm {
    pub(super) fn new(input: &Input, offers: &[Offer], wrong: &[Wrong]) -> Option<Self> {
        let mut faulty = Faulty { wrong, shown: Vec::new() };
        if let Some(form) = &input.rule {
            return Some(Self::Rule(Box::new(rule(form, offers, &mut faulty))));
        }
        if let Some(form) = &input.limit {
            return Some(Self::Limit(Box::new(limit(form, offers, &mut faulty))));
        }
        input.approval.as_ref().map(|form| Self::Approval(Box::new(approval(form, &mut faulty))))
    }
}

fn text(name: &str, label: &str, value: &str, faulty: &mut Faulty<'_>) -> Field {
    Field::text(name, label).value(value).error(faulty.at(name))
}

fn choice<V: AsRef<str>, L: AsRef<str>>(
    name: &str,
    label: &str,
    options: impl IntoIterator<Item = (V, L)>,
    chosen: &str,
    faulty: &mut Faulty<'_>,
) -> Select {
    let mut select = Select::new(name, label, options, chosen);
    select.error = faulty.at(name);
    select
}

const KINDS: [(&str, &str); 3] = [
    ("require", "Refuse the call unless"),
    ("deny_if", "Refuse the call when"),
    ("approve_if", "Ask a person when"),
];

fn rule(form: &RuleForm, offers: &[Offer], faulty: &mut Faulty<'_>) -> RuleView {
    let rows = form.rows.iter().enumerate().map(|(index, one)| row(index, one, offers, faulty));
    let rows = rows.collect();
    let name = text("r_name", "Name of the rule", &form.name, faulty).max(64);
    let on_deny = text("r_on_deny", "What the agent reads", &form.on_deny, faulty);
    RuleView {
        place: form.place.clone(),
        list: choice("r_list", "What the rule does", KINDS, &form.list, faulty),
        name: name.hint("Small letters, digits, `-` and `_`."),
        on_deny: on_deny.hint("In place of the sentence that Sluice makes of the conditions."),
        rows,
        problem: faulty.rest(),
    }
}

fn row(index: usize, row: &Row, offers: &[Offer], faulty: &mut Faulty<'_>) -> RowView {
    let name = |part: &str| format!("c{index}_{part}");
    let joins = [("and", "and"), ("or", "or, instead of the line above,")];
    let join = (index > 0).then(|| {
        let chosen = if row.or { "or" } else { "and" };
        Select::new(&name("join"), "", joins, chosen)
    });
    let join = join.map(|mut join| {
        "How it goes with the condition above".clone_into(&mut join.label);
        join
    });
    if let Some(json) = &row.json {
        let field = Field::area(&name("json"), "Condition", 4).value(json).code();
        let field = field.hint("Nested deeper than rows can show; as JSON.");
        let json = Some(field.error(faulty.at(&name("json"))));
        let (path, path_text, op, value) = (None, None, None, None);
        return RowView { index, join, not: false, path, path_text, op, value, json };
    }
    let offered = offers.iter().any(|offer| offer.path == row.path);
    let mut paths: Vec<(&str, String)> =
        offers.iter().map(|offer| (offer.path.as_str(), label(offer))).collect();
    paths.push(("other", "another path …".to_owned()));
    let chosen = if offered { row.path.as_str() } else { "other" };
    let wrong = faulty.at(&name("path"));
    let mut path = Select::new(&name("path"), "Field", paths, chosen);
    let path_text = (!offered).then(|| {
        let typed = if row.path == "other" { "" } else { row.path.as_str() };
        let field = Field::text(&name("path_text"), "Path").value(typed).code().depends();
        field.placeholder("args.items[0].id").error(wrong.clone())
    });
    path.error = wrong.filter(|_| offered);
    let kinds = kinds(offers, &row.path);
    let ops = Op::ALL.iter().filter(|op| fits(**op, kinds) || op.as_str() == row.op);
    let ops: Vec<(&str, &str)> = ops.map(|op| (op.as_str(), op.help())).collect();
    let op = choice(&name("op"), "Operator", ops, &row.op, faulty);
    let value = value(&name("value"), row, offers, kinds, faulty);
    RowView {
        index,
        join,
        not: row.not,
        path: Some(path),
        path_text,
        op: Some(op),
        value: Some(value),
        json: None,
    }
}

fn label(offer: &Offer) -> String {
    let words: Vec<&str> = offer
        .kinds
        .iter()
        .map(|kind| match kind {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Boolean => "true or false",
            Kind::List => "list",
            Kind::Object => "object",
        })
        .collect();
    if words.is_empty() {
        offer.path.clone()
    } else {
        format!("{} ({})", offer.path, words.join(", "))
    }
}

fn value(
    name: &str,
    row: &Row,
    offers: &[Offer],
    kinds: &[Kind],
    faulty: &mut Faulty<'_>,
) -> Entry {
    let op = row.op.parse::<Op>().ok();
    let compares = matches!(op, Some(Op::Eq | Op::Neq));
    if op == Some(Op::Exists) {
        let words = [("true", "yes: it is given"), ("false", "no: it is not given")];
        let chosen = if row.value == "false" { "false" } else { "true" };
        return Entry::Select(choice(name, "Given", words, chosen, faulty));
    }
    if compares && kinds == [Kind::Boolean] && ["", "true", "false"].contains(&row.value.as_str()) {
        let words = [("true", "true"), ("false", "false")];
        return Entry::Select(choice(name, "Value", words, &row.value, faulty));
    }
    let offer = offers.iter().find(|offer| offer.path == row.path);
    let choices = offer.map(|offer| offer.choices.as_slice()).unwrap_or_default();
    if compares && !choices.is_empty() && (row.value.is_empty() || choices.contains(&row.value)) {
        let words = choices.iter().map(|word| (word.as_str(), word.as_str()));
        return Entry::Select(choice(name, "Value", words, &row.value, faulty));
    }
    let field = text(name, "Value", &row.value, faulty).code().depends();
    Entry::Field(match op {
        Some(Op::In | Op::NotIn) => field.hint("Several, between commas; or a JSON list."),
        Some(Op::Regex) => field.hint("Matches anywhere; `^` and `$` tie it to the ends."),
        Some(Op::Eq | Op::Neq | Op::Contains) if kinds != [Kind::Text] => field.hint(
            "Numbers, `true`, `null` and lists as in JSON; a text that looks like one in quotes.",
        ),
        _ => field,
    })
}

fn limit(form: &LimitForm, offers: &[Offer], faulty: &mut Faulty<'_>) -> LimitView {
    let named = WINDOWS.iter().any(|(word, _)| *word == form.window);
    let windows = WINDOWS.into_iter().chain([("other", "another length …")]);
    let chosen = if named { form.window.as_str() } else { "other" };
    let wrong = faulty.at("l_window");
    let mut window = Select::new("l_window", "In", windows, chosen);
    let window_text = (!named).then(|| {
        let typed = if form.window == "other" { "" } else { form.window.as_str() };
        let field = Field::text("l_window_text", "Length").value(typed).depends();
        field.hint("Such as `90s`, `15m`, `6h`, `2d`; 1 second to 31 days.").error(wrong.clone())
    });
    window.error = wrong.filter(|_| named);
    let numbers = offers.iter().filter(|offer| {
        offer.path.starts_with("args")
            && !offer.path.contains("[*]")
            && (offer.kinds.is_empty() || offer.kinds.contains(&Kind::Number))
    });
    let mut sources = vec![("", "each call counts 1".to_owned())];
    sources
        .extend(numbers.map(|offer| (offer.path.as_str(), format!("the value of {}", offer.path))));
    let listed = sources.iter().any(|(path, _)| *path == form.increment_from);
    sources.push(("other", "the value of another argument …".to_owned()));
    let chosen = if listed { form.increment_from.as_str() } else { "other" };
    let wrong = faulty.at("l_increment_from");
    let mut increment = Select::new("l_increment_from", "Counts", sources, chosen);
    let increment_text = (!listed).then(|| {
        let typed = if form.increment_from == "other" { "" } else { form.increment_from.as_str() };
        let field = Field::text("l_increment_text", "Argument").value(typed).code().depends();
        field.placeholder("args.amount").error(wrong.clone())
    });
    increment.error = wrong.filter(|_| listed);
    let resets = [
        ("sliding", "in any span of that length"),
        ("calendar", "from one UTC border to the next"),
    ];
    let missing = [("deny", "refuse calls"), ("allow", "let calls through")];
    let scopes = SCOPES.map(|(scope, words)| (scope.as_str(), words));
    LimitView {
        place: form.place.clone(),
        max: text("l_max", "At most", &form.max, faulty).depends(),
        window,
        window_text,
        scope: choice("l_scope", "Counted", scopes, &form.scope, faulty),
        increment,
        increment_text,
        counter: text("l_counter", "Counter", &form.counter, faulty)
            .depends()
            .hint("Limits with the same counter, window and scope are counted together.")
            .code(),
        reset: choice("l_reset", "Held to", resets, &form.reset, faulty),
        on_unavailable: choice(
            "l_on_unavailable",
            "While nobody counts",
            missing,
            &form.on_unavailable,
            faulty,
        ),
        problem: faulty.rest(),
    }
}

fn approval(form: &ApprovalForm, faulty: &mut Faulty<'_>) -> ApprovalView {
    let selves = [("", "as usual (yes)"), ("true", "yes"), ("false", "no")];
    ApprovalView {
        hold: text("p_hold", "Held open for", &form.hold, faulty).hint("`0s` to `10m`; 50 s where nothing is said."),
        expires: text("p_expires", "Void after", &form.expires, faulty).hint("`1m` to `7d`; 30 minutes where nothing is said."),
        approvers: text("p_approvers", "Who may decide", &form.approvers, faulty)
            .hint("`role:admin`, `role:policy_manager` or `member:ann@example.com`, between commas; admins and policy managers where nothing is said."),
        quorum: text("p_quorum", "How many must approve", &form.quorum, faulty).hint("1 to 5."),
        self_allowed: choice("p_self", "May the member who made the grant decide?", selves, &form.self_allowed, faulty),
        problem: faulty.rest(),
    }
}
