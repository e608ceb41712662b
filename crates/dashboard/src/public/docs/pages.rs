//! Which page of the handbook tells of which page of the dashboard, and the pictures it shows.

/// A route, or the beginning of several, and the handbook's page. The longest that fits counts.
const OF: &[(&str, &str)] = &[
    ("/account", "roles"),
    ("/approve", "approvals"),
    ("/attacks", "catalogue"),
    ("/categories", "catalogue"),
    ("/forgot", "roles"),
    ("/guides", "catalogue"),
    ("/join", "roles"),
    ("/login", "roles"),
    ("/report", "catalogue"),
    ("/risk", "catalogue"),
    ("/signup", "quickstart"),
    ("/start", "quickstart"),
    ("/tools", "catalogue"),
    ("/w", "dashboard"),
    ("/w/{ws}/api-tokens", "api"),
    ("/w/{ws}/approvals", "approvals"),
    ("/w/{ws}/audit", "security"),
    ("/w/{ws}/find", "dashboard"),
    ("/w/{ws}/grants", "grants"),
    ("/w/{ws}/limits", "limits"),
    ("/w/{ws}/logs", "logs"),
    ("/w/{ws}/members", "roles"),
    ("/w/{ws}/notifications", "approvals"),
    ("/w/{ws}/policies", "editor"),
    ("/w/{ws}/security", "security"),
    ("/w/{ws}/servers", "servers"),
    ("/w/{ws}/servers/{id}/grants", "grants"),
    ("/w/{ws}/servers/{id}/policies", "editor"),
    ("/w/{ws}/settings", "dashboard"),
    ("/w/{ws}/tools", "servers"),
    ("/workspaces", "quickstart"),
];

/// Pages that tell of themselves, and what is no page.
#[cfg(test)]
const NONE: &[&str] = &[
    "/",
    "/docs",
    "/docs.md",
    "/docs.json",
    "/docs/{page}",
    "/styleguide",
    "/theme",
    "/logout",
    "/cards/{server}/{tool}",
    "/static/{version}/{name}",
    "/favicon.ico",
    "/llms.txt",
    "/robots.txt",
    "/sitemap.xml",
    "/sitemaps/{part}",
];

fn of(route: &str) -> Option<&'static str> {
    let fits = |start: &str| {
        route
            .strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    };
    let found = OF.iter().filter(|(start, _)| fits(start)).max_by_key(|(start, _)| start.len());
    found.map(|(_, slug)| *slug)
}

/// The page that tells of a section of a workspace.
pub(crate) fn of_section(section: &str) -> &'static str {
    let route = match section {
        "overview" => "/w".to_owned(),
        section => format!("/w/{{ws}}/{section}"),
    };
    of(&route).unwrap_or("dashboard")
}

/// A picture of a real page, in both themes; made by `e2e/pages.mjs`.
#[derive(Debug)]
pub(super) struct Picture {
    /// Of the files, without theme and ending.
    name: &'static str,
    pub(super) alt: &'static str,
}

impl Picture {
    pub(super) fn light(&self) -> String {
        crate::assets::url(&format!("docs-{}-light.webp", self.name))
    }

    pub(super) fn dark(&self) -> String {
        crate::assets::url(&format!("docs-{}-dark.webp", self.name))
    }
}

const PICTURES: &[(&str, Picture)] = &[
    (
        "dashboard",
        Picture {
            name: "overview",
            alt: "The overview: today's numbers, the week's calls as bars, and reasons of refusals",
        },
    ),
    (
        "servers",
        Picture {
            name: "server",
            alt: "A server's tools, each with risk, reason, standing and the button of its rule",
        },
    ),
    (
        "editor",
        Picture {
            name: "editor",
            alt: "The policy editor: tools with their fate on one side, sentences and JSON on the other",
        },
    ),
    (
        "grants",
        Picture {
            name: "grant",
            alt: "A grant's page: its latest calls, its limits and its policy",
        },
    ),
    (
        "logs",
        Picture {
            name: "logs",
            alt: "The log: every call with its outcome and what the agent was told",
        },
    ),
    (
        "limits",
        Picture {
            name: "limits",
            alt: "Counters with what is used and left, the nearest to their edge first",
        },
    ),
    (
        "approvals",
        Picture {
            name: "approvals",
            alt: "The inbox: a call that waits for a person, with its arguments and risk",
        },
    ),
    (
        "roles",
        Picture {
            name: "members",
            alt: "Members of a workspace with their roles, and the form that invites",
        },
    ),
    (
        "security",
        Picture { name: "audit", alt: "The audit log: who changed what, when and from where" },
    ),
];

/// What a page of the handbook shows above its text.
pub(super) fn picture(slug: &str) -> Option<&'static Picture> {
    PICTURES.iter().find(|(of, _)| *of == slug).map(|(_, picture)| picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public::docs::pages;

    #[test]
    fn each_page_of_the_dashboard_is_told_of_in_the_handbook() {
        for route in crate::paths() {
            if NONE.contains(&route) {
                continue;
            }
            let slug = of(route).unwrap_or_else(|| panic!("no page of the handbook for {route}"));
            assert!(pages().iter().any(|page| page.slug == slug), "{route}: no page {slug}");
        }
        // And what the workspace's navigation leads to is told of by name.
        let page = pages().iter().find(|page| page.slug == "dashboard").expect("it is there");
        let text = &page.markdown;
        for word in crate::desk::SECTIONS {
            assert!(text.contains(&format!("**{word}**")), "dashboard.md does not name {word}");
        }
    }

    #[test]
    fn pictures_are_there_in_both_themes_and_small() {
        for (slug, picture) in PICTURES {
            assert!(pages().iter().any(|page| page.slug == *slug), "{slug}");
            for theme in ["light", "dark"] {
                let name = format!("docs-{}-{theme}.webp", picture.name);
                let size = crate::assets::size(&name).unwrap_or_else(|| panic!("no {name}"));
                assert!(size <= 60 * 1024, "{name} has {size} bytes");
            }
        }
    }
}
