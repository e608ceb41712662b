//! Every example of the documentation page is run.

use sluice_policy::{CallFile, CaseOutcome, CasesFile, check, compile, json_schema, run_tests};

use crate::support::now;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboard/docs/policy.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The ```` ```json ```` blocks with these words after `json`.
fn blocks<'p>(page: &'p str, words: &str) -> Vec<&'p str> {
    let fence = format!("```json{words}\n");
    page.split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split("\n```").next().expect("an end"))
        .collect()
}

#[test]
fn every_document_is_valid_without_a_warning_and_every_case_comes_out() {
    let page = page();
    let documents = blocks(&page, " example");
    assert!(documents.len() >= 12, "{}", documents.len());
    let all = page.matches("```json").count();
    let others = blocks(&page, " cases").len() + blocks(&page, " fragment").len();
    assert_eq!(documents.len() + others, all, "every block says what it is");
    let validator = jsonschema::draft202012::new(&json_schema()).expect("a schema");
    for document in &documents {
        let checked = check(document, None);
        assert!(checked.ok, "{document}: {:#?}", checked.problems);
        assert_eq!(checked.problems, [], "{document}");
        let value = serde_json::from_str(document).expect("JSON");
        assert!(validator.is_valid(&value), "{document}");
    }
    let mut run = 0;
    for cases in blocks(&page, " cases") {
        let file = CasesFile::parse(cases).unwrap_or_else(|error| panic!("{cases}: {error}"));
        // A block of cases is about the document before it.
        let before = page.split(cases).next().expect("a start");
        let inline = file.policy.as_ref().map(|raw| raw.get());
        let text =
            inline.or_else(|| blocks(before, " example").last().copied()).expect("a document");
        let policy = compile(text).unwrap_or_else(|problems| panic!("{text}: {problems:#?}"));
        let report = run_tests(&policy, &file, now());
        assert_eq!(report.failed, 0, "{cases}: {:#?}", report.results);
        run += report.passed;
    }
    assert!(run >= 30, "{run} cases");
}

#[test]
fn the_calls_of_the_page_are_read_and_decided() {
    let page = page();
    let policy = compile(r#"{"version":"1","default":"deny","tools":{"pay":{}}}"#);
    let policy = policy.expect("a policy");
    let fragments = blocks(&page, " fragment");
    assert!(!fragments.is_empty());
    for fragment in fragments {
        let call = CallFile::parse(fragment).unwrap_or_else(|error| panic!("{fragment}: {error}"));
        let decision = call.decide(&policy, now()).expect("a decision");
        assert_eq!(decision.outcome(), CaseOutcome::Allow, "{fragment}");
    }
}

#[test]
fn the_page_names_every_operator_and_fact_of_the_language() {
    let page = page();
    for op in sluice_policy::Op::ALL {
        assert!(page.contains(&format!("| `{op}` |")), "{op}");
    }
    for fact in sluice_policy::Context::ALL {
        assert!(page.contains(&format!("| `{}` |", fact.as_str())), "{}", fact.as_str());
    }
    for part in [
        "hide",
        "all_tools",
        "require",
        "deny_if",
        "approve_if",
        "limits",
        "approval",
        "mode",
        "increment_from",
        "on_unavailable",
    ] {
        assert!(page.contains(&format!("`{part}")), "{part}");
    }
    assert_eq!(CaseOutcome::Allow.as_str(), "allow");
}
