//! How well the classifier and the scan do on texts of our own that they were not made from, held as
//! floors wherever the project is built. Vendors' labels are measured by `cargo xtask risk-report`.

use sluice_domain::{Category, ToolDefinition};
use sluice_risk::{classify, findings};

const TOOLS: &str = include_str!("texts/tools.txt");
const POISONED: &str = include_str!("texts/poisoned.txt");
const HONEST: &str = include_str!("texts/honest.txt");

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn tool(name: &str, description: &str) -> ToolDefinition {
    serde_json::from_value(serde_json::json!({"name": name, "description": description}))
        .expect("a tool")
}

fn share(part: usize, all: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).expect("a small set"));
    number(part) / number(all)
}

#[test]
fn categories_and_reading_hold_their_floors() {
    let rows: Vec<(Category, &str, &str)> = lines(TOOLS)
        .map(|line| {
            let mut parts = line.splitn(3, '|').map(str::trim);
            let mut part = || parts.next().unwrap_or_else(|| panic!("three parts: {line}"));
            (part().parse().unwrap_or_else(|_| panic!("a category: {line}")), part(), part())
        })
        .collect();
    let (mut right, mut read_right, mut missed, mut changing) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for (label, name, description) in &rows {
        let rating = classify(&tool(name, description));
        right += usize::from(rating.category == *label);
        let (reads, should) = (rating.category == Category::Read, *label == Category::Read);
        read_right += usize::from(reads == should);
        changing += usize::from(!should);
        missed += usize::from(reads && !should);
        if rating.category != *label {
            wrong.push(format!("{label}, rated {}: {name}", rating.category));
        }
    }
    assert!(rows.len() >= 250, "{}", rows.len());
    let told = wrong.join("\n");
    assert!(share(right, rows.len()) >= 0.96, "{right} of {}:\n{told}", rows.len());
    assert!(share(read_right, rows.len()) >= 0.98, "{read_right} of {}:\n{told}", rows.len());
    assert!(share(missed, changing) < 0.03, "{missed} of {changing} called Read:\n{told}");
}

#[test]
fn hidden_orders_are_found_and_honest_words_are_left_alone() {
    let is_found = |text: &&str| !findings(&tool("tool", &text.replace("\\n", "\n"))).is_empty();
    let (poisoned, honest) = (lines(POISONED).count(), lines(HONEST).count());
    assert!(poisoned >= 100 && honest >= 160, "{poisoned} {honest}");
    let missed: Vec<&str> = lines(POISONED).filter(|it| !is_found(it)).collect();
    let alarms: Vec<&str> = lines(HONEST).filter(is_found).collect();
    assert!(share(alarms.len(), honest) <= 0.01, "false alarms:\n{}", alarms.join("\n"));
    let recall = 1.0 - share(missed.len(), poisoned);
    assert!(recall >= 0.72, "recall {recall:.2}; missed:\n{}", missed.join("\n"));
}
