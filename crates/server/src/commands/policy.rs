//! `sluice policy …`: the policy language without any server or network.

mod compare;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sluice_policy::{
    CallFile, CasesFile, CasesReport, CompiledPolicy, Decision, Problem, ProblemSeverity,
    check_bytes, compile, json_schema, run_tests,
};

use crate::clock;

/// The largest file that is read.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
const FINE: u8 = 0;
/// The thing checked is bad.
const BAD: u8 = 1;
/// Usage, or a file that cannot be read.
const USAGE: u8 = 2;

/// `sluice policy …`
#[derive(Debug, Args)]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    task: PolicyTask,
}

#[derive(Debug, Subcommand)]
enum PolicyTask {
    /// Prints the JSON Schema of a policy document.
    Schema,
    /// Tells everything that is wrong or odd about a document.
    Check {
        /// A policy document; `-` for standard input.
        file: PathBuf,
        /// One JSON object instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Decides one call and says why. Counters count as empty, the tool as known and unchanged.
    Eval {
        /// A policy document; `-` for standard input.
        file: PathBuf,
        /// The call: {"tool", "arguments", "context"?}; `-` for standard input.
        #[arg(long, value_name = "CALL.json")]
        call: PathBuf,
        /// One JSON object instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Says what one document would do otherwise than another to calls of a log: who would be refused,
    /// by which rules, and what cannot be told because the log does not keep it.
    Compare {
        /// The document as it is; `-` for standard input.
        before: PathBuf,
        /// The document as it would be.
        after: PathBuf,
        /// Calls as the log exports them (`calls.ndjson`), one JSON object a line.
        #[arg(long, value_name = "CALLS.ndjson")]
        calls: PathBuf,
        /// One JSON object instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Runs files of policy tests: {"policy": document or path, "cases": […]}.
    Test {
        /// Files of tests; `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// One JSON array instead of lines.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and gives its exit code.
pub(crate) fn run(command: PolicyCommand) -> u8 {
    let answer = match command.task {
        PolicyTask::Schema => Ok(Answer { text: pretty(&json_schema()), code: FINE }),
        PolicyTask::Check { file, json } => check(&file, json),
        PolicyTask::Eval { file, call, json } => eval(&file, &call, json),
        PolicyTask::Compare { before, after, calls, json } => {
            compare::compare(&before, &after, &calls, json)
        }
        PolicyTask::Test { files, json } => test(&files, json),
    };
    match answer {
        Ok(answer) => {
            print(&mut std::io::stdout().lock(), &answer.text);
            answer.code
        }
        Err(failed) => {
            print(&mut std::io::stderr().lock(), &failed.text);
            failed.code
        }
    }
}

/// Text and the exit code that goes with it.
struct Answer {
    text: String,
    code: u8,
}

fn usage(text: impl std::fmt::Display) -> Answer {
    Answer { text: format!("sluice: {text}\n"), code: USAGE }
}

/// Whoever reads may stop early (`| head`); there is nothing to do about it.
fn print(out: &mut dyn std::io::Write, text: &str) {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn read(file: &Path) -> Result<Vec<u8>, Answer> {
    let refused = |error: std::io::Error| usage(format!("cannot read {}: {error}", file.display()));
    let source: Box<dyn std::io::Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(refused)?)
    };
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(usage(format!("{} is larger than 16 MiB", file.display())));
    }
    Ok(bytes)
}

/// What was read once is not there for a second reader.
fn one_input<'f>(files: impl IntoIterator<Item = &'f Path>) -> Result<(), Answer> {
    if files.into_iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(usage("standard input can be read once: give a file in place of one `-`"));
    }
    Ok(())
}

fn check(file: &Path, json: bool) -> Result<Answer, Answer> {
    let checked = check_bytes(&read(file)?, None);
    let code = if checked.ok { FINE } else { BAD };
    if json {
        let normalised = checked.normalised;
        let out = json!({"ok": checked.ok, "problems": checked.problems, "normalised": normalised});
        return Ok(Answer { text: pretty(&out), code });
    }
    let mut text = lines(file, &checked.problems);
    let count = |severity| checked.problems.iter().filter(|p| p.severity == severity).count();
    let (errors, warnings) = (count(ProblemSeverity::Error), count(ProblemSeverity::Warning));
    if errors + warnings == 0 {
        text.push_str("No problems.\n");
    } else {
        writeln!(text, "{}, {}.", many(errors, "error"), many(warnings, "warning")).ok();
    }
    Ok(Answer { text, code })
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `file:line:column: error: words (code at /pointer); did you mean …?`
fn lines(file: &Path, problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        let severity = match problem.severity {
            ProblemSeverity::Error => "error",
            ProblemSeverity::Warning => "warning",
        };
        let place = if problem.pointer.is_empty() { "the root" } else { &problem.pointer };
        let Problem { line, column, message, code, .. } = problem;
        let name = file.display();
        write!(out, "{name}:{line}:{column}: {severity}: {message} ({code} at {place})").ok();
        if let Some(suggestion) = &problem.suggestion {
            write!(out, "; did you mean `{suggestion}`?").ok();
        }
        out.push('\n');
    }
    out
}

/// A policy that can be used, or its problems.
fn policy(file: &Path, bytes: &[u8]) -> Result<CompiledPolicy, Answer> {
    let bad = |problems: &[Problem]| Answer { text: lines(file, problems), code: BAD };
    let text = std::str::from_utf8(bytes).map_err(|_| bad(&check_bytes(bytes, None).problems))?;
    compile(text).map_err(|problems| bad(&problems))
}

fn eval(file: &Path, call_file: &Path, json: bool) -> Result<Answer, Answer> {
    one_input([file, call_file])?;
    let policy = policy(file, &read(file)?)?;
    let shown = call_file.display();
    let bytes = read(call_file)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage(format!("{shown} is not UTF-8")))?;
    let refused = |error| usage(format!("{shown}: {error}"));
    let call = CallFile::parse(text).map_err(refused)?;
    let decision = call.decide(&policy, clock::now()).map_err(refused)?;
    let text = if json { pretty(&decision_json(&decision)) } else { decision_text(&decision) };
    Ok(Answer { text, code: FINE })
}

fn decision_json(decision: &Decision) -> Value {
    let charges = decision.charges.iter().map(|charge| {
        json!({
            "counter": charge.counter, "scope": charge.scope, "window": charge.window,
            "amount": charge.amount
        })
    });
    let mut out = json!({
        "outcome": decision.outcome(),
        "code": decision.code,
        "rule": decision.rule,
        "message": decision.message,
        "charges": charges.collect::<Vec<_>>(),
        "trace": decision.trace,
    });
    if decision.observed {
        out["observed"] = json!(true);
    }
    out
}

fn decision_text(decision: &Decision) -> String {
    let mut out = format!("{} ({})", decision.outcome().as_str(), decision.code);
    if !decision.rule.is_empty() {
        write!(out, " by {}", decision.rule).ok();
    }
    if decision.observed {
        out.push_str(", only observed: the call goes through");
    }
    out.push('\n');
    if !decision.message.is_empty() {
        writeln!(out, "{}", decision.message).ok();
    }
    for charge in &decision.charges {
        let (amount, counter) = (charge.amount, &charge.counter);
        let (window, scope) = (charge.window, charge.scope);
        writeln!(out, "charges {amount} to `{counter}` (window {window}, scope {scope})").ok();
    }
    out.push_str("Why:\n");
    for step in decision.trace.iter() {
        let (kind, result, rule) = (step.kind().as_str(), step.result().as_str(), step.rule());
        writeln!(out, "  {kind:<12} {result:<8} {}", rule.unwrap_or_default()).ok();
        for condition in step.conditions() {
            let (path, wanted) = (condition.path(), condition.wanted());
            let found = condition.found().map_or("nothing", |found| found.kind.as_str());
            let result = condition.result().as_str();
            writeln!(out, "    {path} {wanted}? {result} (found {found})").ok();
        }
    }
    out
}

fn test(files: &[PathBuf], json: bool) -> Result<Answer, Answer> {
    one_input(files.iter().map(PathBuf::as_path))?;
    let mut code = FINE;
    let mut text = String::new();
    let mut list = Vec::new();
    let (mut passed, mut failed) = (0, 0);
    for file in files {
        let report = test_file(file)?;
        (passed, failed) = (passed + report.passed, failed + report.failed);
        if report.failed > 0 {
            code = BAD;
        }
        for result in &report.results {
            let word = if result.passed { "ok" } else { "FAILED" };
            writeln!(text, "{}: {}: {word}", file.display(), result.name).ok();
            for difference in &result.differences {
                writeln!(text, "    {difference}").ok();
            }
        }
        list.push(json!({
            "file": file.display().to_string(), "passed": report.passed,
            "failed": report.failed, "results": report.results
        }));
    }
    writeln!(text, "{} passed, {failed} failed.", many(passed, "case")).ok();
    Ok(Answer { text: if json { pretty(&Value::Array(list)) } else { text }, code })
}

fn test_file(file: &Path) -> Result<CasesReport, Answer> {
    let shown = file.display();
    let bytes = read(file)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage(format!("{shown} is not UTF-8")))?;
    let cases = CasesFile::parse(text).map_err(|error| usage(format!("{shown}: {error}")))?;
    let raw = cases.policy.as_ref().map(|raw| raw.get());
    let raw = raw.ok_or_else(|| usage(format!("{shown} names no policy: add the key `policy`")))?;
    let policy = match serde_json::from_str::<Value>(raw) {
        Ok(Value::String(path)) => {
            let beside = file.parent().unwrap_or(Path::new("")).join(path);
            policy(&beside, &read(&beside)?)?
        }
        _ => policy(file, raw.as_bytes())?,
    };
    Ok(run_tests(&policy, &cases, clock::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    const POLICY: &str = r#"{"version":"1","default":"deny","tools":{"pay":{
        "require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}],
        "limits":[{"counter":"pay","window":"day","max":500,"increment_from":"args.amount"}]}}}"#;

    fn answer(result: Result<Answer, Answer>) -> (String, u8) {
        let (Ok(answer) | Err(answer)) = result;
        (answer.text, answer.code)
    }

    #[test]
    fn check_answers_in_the_contract_s_shape() {
        let folder =
            folder(&[("good.json", POLICY), ("bad.json", r#"{"version":"1","defalt":1}"#)]);
        let (text, code) = answer(check(&folder.path().join("good.json"), true));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((code, &value["ok"], &value["problems"]), (FINE, &json!(true), &json!([])));
        assert_eq!(value["normalised"]["tools"]["pay"]["limits"][0]["max"], json!(500));
        let (text, code) = answer(check(&folder.path().join("bad.json"), true));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((code, &value["ok"]), (BAD, &json!(false)));
        let first = &value["problems"][1];
        assert_eq!(first["code"], "unknown_key");
        assert_eq!((&first["line"], &first["column"]), (&json!(1), &json!(16)));
        assert_eq!(first["suggestion"], "default");
        assert_eq!(answer(check(&folder.path().join("none.json"), true)).1, USAGE);
    }

    #[test]
    fn eval_prints_the_decision_and_never_fails_for_its_outcome() {
        let folder = folder(&[
            ("policy.json", POLICY),
            ("fine.json", r#"{"tool":"pay","arguments":{"amount":1.50}}"#),
            ("much.json", r#"{"tool":"pay","arguments":{"amount":"5"}}"#),
            ("odd.json", r#"{"tool":"pay","arguments":{"amount":1,"amount":2}}"#),
        ]);
        let run = |call: &str| {
            let place = |name: &str| folder.path().join(name);
            answer(eval(&place("policy.json"), &place(call), true))
        };
        let (text, code) = run("fine.json");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["outcome", "code", "rule", "message", "charges", "trace"]);
        assert_eq!((code, &value["outcome"]), (FINE, &json!("allow")));
        let charge = json!({"counter": "pay", "scope": "grant", "window": "day", "amount": 1.5});
        assert_eq!(value["charges"], json!([charge]));
        let (text, code) = run("much.json");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((code, &value["code"]), (FINE, &json!("require_failed")));
        assert_eq!(value["rule"], "/tools/pay/require/0");
        assert_eq!(run("odd.json").1, USAGE);
    }

    #[test]
    fn tests_pass_and_fail_by_their_policy() {
        let folder = folder(&[
            ("policy.json", POLICY),
            (
                "good.json",
                r#"{"policy":"policy.json","cases":[
                    {"tool":"pay","arguments":{"amount":1},"expect":"allow"},
                    {"tool":"x","expect":{"outcome":"deny","code":"default_deny"}}]}"#,
            ),
            ("bad.json", r#"{"policy":"policy.json","cases":[{"tool":"x","expect":"allow"}]}"#),
        ]);
        let place = |name: &str| folder.path().join(name);
        let (text, code) = answer(test(&[place("good.json")], false));
        assert_eq!(code, FINE, "{text}");
        assert!(text.ends_with("2 cases passed, 0 failed.\n"), "{text}");
        let (text, code) = answer(test(&[place("good.json"), place("bad.json")], true));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((code, &value[1]["failed"]), (BAD, &json!(1)));
    }
}
