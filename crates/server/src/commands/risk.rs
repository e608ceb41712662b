//! `sluice risk classify`: rates the tools of a file without any server or network.

use std::io::{BufWriter, Read as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sluice_domain::ToolDefinition;
use sluice_risk::{classify, findings, recommended};

use crate::failure::{Failure, Outcome};

/// The largest file that is read.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// `sluice risk …`
#[derive(Debug, Args)]
pub(crate) struct RiskCommand {
    #[command(subcommand)]
    task: RiskTask,
}

#[derive(Debug, Subcommand)]
enum RiskTask {
    /// Rates every tool of a `tools/list` result or of an array of tools: one JSON line a tool.
    Classify {
        /// A JSON file: a `tools/list` result, the JSON-RPC answer around it, or an array; `-` for standard input.
        #[arg(value_name = "TOOLS.json")]
        file: PathBuf,
    },
}

pub(crate) fn run(command: RiskCommand) -> Outcome {
    let RiskTask::Classify { file } = command.task;
    let shown = file.display();
    let text =
        read(&file).with_context(|| format!("cannot read {shown}")).map_err(Failure::settings)?;
    let tools = tools(&text)
        .with_context(|| format!("{shown} holds no list of tools"))
        .map_err(|error| Failure::settings(error).remedy(FORMS))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = tools.iter().try_for_each(|tool| writeln!(out, "{}", line(tool)));
    match written.and_then(|()| out.flush()) {
        // Whoever reads may stop early: `| head`.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::bad(error)),
        _ => Ok(()),
    }
}

const FORMS: &str =
    "give {\"tools\": […]}, a JSON-RPC answer with such a result, or an array of tools";

fn read(file: &PathBuf) -> anyhow::Result<String> {
    let source: Box<dyn std::io::Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let mut text = String::new();
    source.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(anyhow!("it is larger than {} MiB", MOST_BYTES / 1024 / 1024));
    }
    Ok(text)
}

/// The tools in input order, duplicates kept.
fn tools(text: &str) -> anyhow::Result<Vec<ToolDefinition>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_json::from_str(text).context("it is not JSON")?;
    let list = match &value {
        Value::Array(list) => Some(list),
        other => [other.get("tools"), other.get("result").and_then(|result| result.get("tools"))]
            .into_iter()
            .flatten()
            .find_map(Value::as_array),
    };
    let list = list.ok_or_else(|| anyhow!("there is no `tools` array in it"))?;
    list.iter().enumerate().map(|(index, entry)| tool(index, entry)).collect()
}

/// What can be read of one entry; a member of the wrong type counts as absent, so that one odd tool
/// does not hide the ratings of the others.
pub(super) fn tool(index: usize, entry: &Value) -> anyhow::Result<ToolDefinition> {
    let name = entry
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| anyhow!("entry {index} has no `name`"))?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let object = |key: &str| entry.get(key).filter(|member| member.is_object()).cloned();
    Ok(ToolDefinition {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        input_schema: object("inputSchema"),
        output_schema: object("outputSchema"),
        annotations: object("annotations"),
    })
}

fn line(tool: &ToolDefinition) -> Value {
    let rating = classify(tool);
    json!({
        "name": tool.name,
        "category": rating.category,
        "severity": rating.severity,
        "reasons": rating.reasons,
        "signals": rating.signals,
        "findings": findings(tool),
        "rule": recommended(&tool.name, rating.category).fragment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        tools(text).expect("tools").into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn every_form_of_a_list_is_read_in_order_with_duplicates() {
        let list = r#"[{"name":"b"},{"name":"a"},{"name":"b"}]"#;
        for text in [
            list.to_owned(),
            format!(r#"{{"tools":{list}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{list}}}}}"#),
            format!("\u{feff}{list}"),
        ] {
            assert_eq!(names(&text), ["b", "a", "b"], "{text}");
        }
        assert_eq!(names("[]"), Vec::<String>::new());
    }

    #[test]
    fn what_holds_no_tools_is_refused() {
        for text in ["", "{", "{}", "3", r#"{"tools":{}}"#, r#"[{"title":"x"}]"#, "[1]", "null"] {
            assert!(tools(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_line_has_exactly_the_members_of_the_contract() {
        let text = r#"[{"name":"executePython","description":"Runs Python code.","inputSchema":
            {"type":"object","properties":{"code":{"type":"string"}}},"title":7}]"#;
        let tool = tools(text).expect("tools").remove(0);
        let line = line(&tool);
        let keys: Vec<&str> =
            line.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["name", "category", "severity", "reasons", "signals", "findings", "rule"]
        );
        assert_eq!(line["category"], "Execute");
        assert_eq!(line["severity"], "High");
        assert_eq!(line["signals"][0], "accepts freeform code");
        assert_eq!(
            line["rule"]["tools"]["executePython"]["limits"][0]["counter"],
            "executepython_rate"
        );
        assert_eq!(line["findings"], json!([]));
        let reason = &line["reasons"][0];
        assert!(
            reason["cue"].is_string() && reason["where"].is_string() && reason["quote"].is_string()
        );
    }
}
