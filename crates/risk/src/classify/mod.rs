//! Puts the cues of a definition together into a rating.
//!
//! The name's verb leads, the description's first sentence confirms or corrects it, parameters and
//! output speak where both are silent. Where cues disagree the graver one wins. Annotations and
//! claims of harmlessness can only raise.

mod choices;
mod evidence;
pub(crate) mod facts;
mod fallback;
mod modifiers;
mod names;
mod objects;
pub(crate) mod schema;
mod sentences;

use sluice_domain::{Category, ToolDefinition};

use crate::lexicon::{self, Act};
use crate::rating::{Confidence, Cue, Rating, Reason, Signal};
use crate::text::cut;
use evidence::{Evidence, Weight};
use facts::Facts;
use names::Name;
use schema::Parameter;
use sentences::Opening;

/// Rates one tool from its own definition alone.
pub fn classify(tool: &ToolDefinition) -> Rating {
    let description = tool.description.as_deref().unwrap_or_default();
    let name = names::read(&tool.name, Cue::NameVerb, "name");
    let opening = sentences::read(description);
    let parameters = schema::parameters(tool.input_schema.as_ref());
    let speaks_sql = name_or_opening_speaks_sql(&name, &opening);
    let members = schema::members(tool.output_schema.as_ref());
    let mut facts =
        facts::read(&parameters, speaks_sql, schema::is_told(tool.input_schema.as_ref()));
    facts.note_answer(&members);
    let title = tool.title.as_deref().map(|title| names::read(title, Cue::TitleVerb, "title"));
    let sources = Sources {
        tool,
        title: title.as_ref().and_then(|it| it.evidence.clone()),
        choice: choices::read(&parameters),
        name: &name,
        opening: &opening,
        facts: &facts,
        members: &members,
        speaks_sql,
    };
    let mut verdict = sources.verdict();
    sources.heed_annotations(&mut verdict);
    let sends = verdict.reasons.iter().find(|it| it.act == Act::Send);
    let (severity, modifiers) = modifiers::weigh(&modifiers::Seen {
        tool,
        category: verdict.category,
        name: &name,
        facts: &facts,
        sends,
    });
    Rating {
        category: verdict.category,
        severity,
        base: verdict.category.base_severity(),
        confidence: verdict.confidence,
        reasons: reasons(&verdict, &tool.name),
        modifiers,
        signals: facts.signals,
    }
}

/// Whether the tool's own texts name SQL, so that a `query` is SQL.
pub(crate) fn speaks_sql(tool: &ToolDefinition) -> bool {
    let name = names::read(&tool.name, Cue::NameVerb, "name");
    name_or_opening_speaks_sql(
        &name,
        &sentences::read(tool.description.as_deref().unwrap_or_default()),
    )
}

fn name_or_opening_speaks_sql(name: &Name, opening: &Opening) -> bool {
    name.any(is_sql_word).is_some() || opening.any(is_sql_word).is_some()
}

/// Languages and stores whose queries can change things.
fn is_sql_word(word: &str) -> bool {
    matches!(
        word,
        "sql"
            | "postgresql"
            | "postgres"
            | "mysql"
            | "mariadb"
            | "sqlite"
            | "cypher"
            | "clickhouse"
            | "snowflake"
            | "bigquery"
            | "duckdb"
            | "mssql"
            | "oracle"
            | "redshift"
            | "athena"
            | "influxdb"
            | "trino"
            | "presto"
            | "cassandra"
            | "cql"
    )
}

fn reasons(verdict: &Verdict, name: &str) -> Vec<Reason> {
    if verdict.reasons.is_empty() {
        return vec![Reason {
            cue: Cue::Nothing,
            place: "name".to_owned(),
            quote: crate::text::quote(name),
        }];
    }
    verdict.reasons.iter().map(Evidence::reason).collect()
}

struct Sources<'a> {
    tool: &'a ToolDefinition,
    name: &'a Name,
    title: Option<Evidence>,
    opening: &'a Opening,
    choice: Option<Evidence>,
    facts: &'a Facts,
    members: &'a [Parameter<'a>],
    speaks_sql: bool,
}

struct Verdict {
    category: Category,
    confidence: Confidence,
    reasons: Vec<Evidence>,
}

impl Sources<'_> {
    fn verdict(&self) -> Verdict {
        let words = self.words();
        let mut reasons: Vec<Evidence> = words.iter().cloned().collect();
        let mut act = words.as_ref().map(|it| it.act);
        let mut strong = words.as_ref().is_some_and(Evidence::is_strong);
        for extra in [self.choice.clone(), self.input(act), self.money(act), self.saves(act)]
            .into_iter()
            .flatten()
        {
            if act.is_none_or(|act| extra.act > act) {
                act = Some(extra.act);
                strong |= extra.is_strong();
                reasons.insert(0, extra);
            }
        }
        let Some(act) = act else {
            return self.last_resort();
        };
        let agreed = reasons.len() == 1 && self.agrees(act);
        let confidence = match (strong, agreed) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, true) if self.opening.evidence.is_some() => Confidence::Medium,
            (false, _) => Confidence::Low,
        };
        Verdict { category: act.category(), confidence, reasons }
    }

    /// Name and first sentence (and title, where the name is silent) put together.
    fn words(&self) -> Option<Evidence> {
        let first = self.first_words()?;
        let graver =
            self.opening.second.clone().filter(|it| {
                !first.act.mutates() && first.weight < Weight::Strong && it.act.mutates()
            });
        Some(graver.unwrap_or(first))
    }

    fn first_words(&self) -> Option<Evidence> {
        let spoken = self.opening.evidence.clone();
        let Some(name) = self.name.evidence.clone() else {
            let title = self.title.clone().filter(Evidence::is_strong);
            return match (spoken, title) {
                (Some(spoken), Some(title)) if title.act > spoken.act => Some(title),
                (Some(spoken), _) => Some(spoken),
                (None, title) => title,
            };
        };
        let Some(spoken) = spoken else { return Some(name) };
        // What comes after the first sentence is a remark, `Runs in a sandbox.`: it may only raise.
        if self.opening.belated {
            return Some(if spoken.act > name.act { spoken } else { name });
        }
        match (name.weight, spoken.weight) {
            (Weight::Strong, Weight::Strong) if name.act.mutates() => {
                let graver = matches!(spoken.act, Act::Delete | Act::Pay) && spoken.act > name.act;
                Some(if graver { spoken } else { name })
            }
            (Weight::Strong, Weight::Strong) => {
                Some(if spoken.act.mutates() && !runs_a_query(self, &spoken) {
                    spoken
                } else {
                    name
                })
            }
            (Weight::Strong, _) => Some(name),
            (_, Weight::Strong) => {
                let reads_anyway = !spoken.act.mutates() && name.act.mutates();
                let reporting = matches!(spoken.word.as_str(), "return" | "provide");
                Some(if reads_anyway && reporting && self.name.read_noun.is_none() {
                    name
                } else {
                    spoken
                })
            }
            (left, right) if right > left => Some(spoken),
            (left, right) if left > right => Some(name),
            _ if spoken.act > name.act => Some(spoken),
            _ => Some(name),
        }
    }

    /// What the parameters alone show.
    fn input(&self, act: Option<Act>) -> Option<Evidence> {
        let spot = |spot: &facts::Spot, act: Act| {
            Some(Evidence::new(
                act,
                Weight::Strong,
                &spot.quote,
                Cue::Parameter,
                &spot.place,
                &spot.quote,
            ))
        };
        let silent = act.is_none();
        if let Some(request) = &self.facts.request {
            return spot(request, Act::Execute);
        }
        if let Some(command) = self.facts.command.as_ref().filter(|_| act != Some(Act::Compute)) {
            return spot(command, Act::Execute);
        }
        if let Some(sql) = self.facts.sql.as_ref().filter(|_| matches!(act, None | Some(Act::Read)))
        {
            return spot(sql, Act::Execute);
        }
        let queries = |it: &Option<Evidence>| {
            it.as_ref().is_some_and(|it| lexicon::is_one_of("query run execute", &it.word))
        };
        let asks = matches!(act, None | Some(Act::Read))
            && (queries(&self.name.evidence) || queries(&self.opening.evidence));
        if let Some(quote) = self.shows_sql().filter(|_| asks) {
            return Some(Evidence::new(
                Act::Execute,
                Weight::Strong,
                "sql",
                Cue::DescriptionPhrase,
                "description",
                quote,
            ));
        }
        if let Some(code) = self.facts.code.as_ref().filter(|_| silent) {
            return spot(code, Act::Execute);
        }
        None
    }

    /// A reader that writes its result to a path of the caller's choice.
    fn saves(&self, act: Option<Act>) -> Option<Evidence> {
        let spot =
            self.facts.save_path.as_ref().filter(|_| act.is_some_and(|act| !act.mutates()))?;
        Some(Evidence::new(
            Act::Write,
            Weight::Strong,
            &spot.quote,
            Cue::Parameter,
            &spot.place,
            &spot.quote,
        ))
    }

    /// SQL in the description's examples, where the schema does not say how the query is passed.
    fn shows_sql(&self) -> Option<&str> {
        let description = self
            .tool
            .description
            .as_deref()
            .filter(|_| self.facts.signals.contains(&Signal::NoSchema))?;
        if self.speaks_sql {
            return self
                .opening
                .any(is_sql_word)
                .and_then(|word| description.get(word.range.clone()));
        }
        let start = cut(description, 1_500);
        let at = start.find("SELECT ").filter(|at| start[*at..].contains(" FROM "))?;
        Some(cut(&start[at..], 40))
    }

    /// A change that concerns money.
    fn money(&self, act: Option<Act>) -> Option<Evidence> {
        let mutates = act.is_none_or(Act::mutates) && act != Some(Act::Delete);
        let amount = self
            .facts
            .amount
            .as_ref()
            .filter(|_| self.facts.currency.is_some() || self.facts.recipient.is_some())?;
        mutates.then(|| {
            Evidence::new(
                Act::Pay,
                Weight::Strong,
                &amount.quote,
                Cue::Parameter,
                &amount.place,
                &amount.quote,
            )
        })
    }

    fn agrees(&self, act: Act) -> bool {
        let same = |it: &Option<Evidence>| {
            it.as_ref().is_some_and(|it| it.act.category() == act.category())
        };
        same(&self.name.evidence)
            && (same(&self.opening.evidence) || self.opening.evidence.is_none())
    }

    /// A hint can make a reader a writer, never the other way.
    fn heed_annotations(&self, verdict: &mut Verdict) {
        let hint = |name: &str| {
            self.tool
                .annotations
                .as_ref()
                .and_then(|it| it.get(name))
                .and_then(serde_json::Value::as_bool)
        };
        let writes = hint("readOnlyHint") == Some(false)
            || hint("destructiveHint") == Some(true) && hint("readOnlyHint").is_none();
        if writes && verdict.category == Category::Read {
            let name = if hint("readOnlyHint") == Some(false) {
                "readOnlyHint"
            } else {
                "destructiveHint"
            };
            let place = format!("annotations.{name}");
            let value = (name != "readOnlyHint").to_string();
            verdict.category = Category::Write;
            verdict.confidence = Confidence::Medium;
            verdict.reasons.insert(
                0,
                Evidence::new(Act::Write, Weight::Fair, name, Cue::Annotation, &place, &value),
            );
        }
    }
}

/// `Executes a search query` reads, unless the query is code of its own.
fn runs_a_query(sources: &Sources<'_>, spoken: &Evidence) -> bool {
    spoken.act == Act::Execute
        && sources.facts.sql.is_none()
        && !sources.speaks_sql
        && sources.opening.has(&[
            "query",
            "queries",
            "search",
            "report",
            "aggregation",
            "analysis",
            "scan",
            "check",
            "lookup",
        ])
}
