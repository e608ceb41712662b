//! Short guides for the public pages.

/// One guide, in Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    pub slug: &'static str,
    pub title: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// Begins with a paragraph; the title is the page's.
    pub markdown: &'static str,
}

/// The guides, in reading order.
pub fn guides() -> &'static [Guide] {
    GUIDES
}

const GUIDES: &[Guide] = &[
    Guide {
        slug: "least-privilege",
        title: "Least privilege for MCP",
        summary: "Give every agent the few tools its job needs, and rule their arguments.",
        markdown: include_str!("../guides/least-privilege.md"),
    },
    Guide {
        slug: "code-and-ci-agents",
        title: "Governing code and CI agents",
        summary: "What coding agents may read, run and push, on a laptop and in a pipeline.",
        markdown: include_str!("../guides/code-and-ci-agents.md"),
    },
    Guide {
        slug: "agent-sandbox",
        title: "An agent's sandbox",
        summary: "Tools that run code: what the sandbox must do, and what the gateway adds.",
        markdown: include_str!("../guides/agent-sandbox.md"),
    },
    Guide {
        slug: "payments",
        title: "Agents that pay",
        summary: "Caps, daily sums, recipients and a person's word before money moves.",
        markdown: include_str!("../guides/payments.md"),
    },
    Guide {
        slug: "databases",
        title: "Agents and databases",
        summary: "SELECT only, whose rows, and what to do about text in them.",
        markdown: include_str!("../guides/databases.md"),
    },
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sluice_policy::check;

    use super::*;

    fn blocks(markdown: &str) -> impl Iterator<Item = Value> {
        markdown
            .split("```json\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .map(|text| serde_json::from_str(text).expect(text))
    }

    #[test]
    fn every_policy_in_a_guide_is_sound() {
        let mut seen = 0;
        for guide in guides() {
            for block in blocks(guide.markdown) {
                let document = if block.get("version").is_some() {
                    block
                } else {
                    // A rule or a limit on its own.
                    let key = if block.get("counter").is_some() { "limits" } else { "require" };
                    json!({"version": "1", "default": "deny", "tools": {"t": {key: [block]}}})
                };
                let checked = check(&document.to_string(), None);
                assert!(checked.ok, "{}: {:?}", guide.slug, checked.problems);
                seen += 1;
            }
        }
        assert!(seen >= 6);
    }
}
