//! Finds words in the handbook: whole pages, and the sections that have them.

use super::{DocPage, pages};

/// A place in the handbook that has every word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) href: String,
    /// Of its page.
    pub(crate) title: String,
    /// Of its section; empty: the page's beginning.
    pub(crate) section: String,
    /// The first line that has one of the words.
    pub(crate) line: String,
}

const MOST: usize = 30;
const LINE: usize = 160;

/// A section of a page: its anchor, its heading and its lines.
fn sections(page: &DocPage) -> Vec<(&str, &str, Vec<&str>)> {
    let mut named = page.text.sections.iter();
    let mut out = vec![("", "", Vec::new())];
    let mut code = false;
    for line in page.markdown.lines() {
        code ^= line.starts_with("```");
        if !code && line.starts_with("## ") {
            let (anchor, words) = named.next().map_or(("", ""), |(a, w)| (a.as_str(), w.as_str()));
            out.push((anchor, words, Vec::new()));
        } else if let Some((_, _, lines)) = out.last_mut() {
            lines.push(line);
        }
    }
    out
}

/// A line without its marks, cut.
fn words_of(line: &str) -> String {
    let plain: String = line.chars().filter(|c| !['*', '`', '|'].contains(c)).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.trim_start_matches("- ").chars().take(LINE).collect()
}

/// Places that have every word of the query; those that have one in their heading first.
pub(crate) fn find(query: &str) -> Vec<Hit> {
    let query: String = query.chars().take(100).collect::<String>().to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<(usize, Hit)> = Vec::new();
    for page in pages() {
        for (anchor, section, lines) in sections(page) {
            let heading = format!("{} {section}", page.text.title).to_lowercase();
            let body = lines.join("\n").to_lowercase();
            let has = |word: &&&str| heading.contains(**word) || body.contains(**word);
            if words.iter().filter(has).count() < words.len() {
                continue;
            }
            let in_heading = words.iter().filter(|word| heading.contains(**word)).count();
            let line = lines.iter().find(|line| {
                let line = line.to_lowercase();
                !line.starts_with('#') && words.iter().any(|word| line.contains(word))
            });
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            let hit = Hit {
                href: format!("/docs/{}{anchor}", page.slug),
                title: page.text.title.clone(),
                section: section.to_owned(),
                line: line.map(|line| words_of(line)).unwrap_or_default(),
            };
            hits.push((in_heading, hit));
        }
    }
    hits.sort_by_key(|(in_heading, _)| std::cmp::Reverse(*in_heading));
    hits.into_iter().take(MOST).map(|(_, hit)| hit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_be_there_and_headings_come_first() {
        let hits = find("rotate TOKEN");
        assert!(!hits.is_empty());
        let first = find("live log");
        assert!(first.iter().any(|hit| hit.href.contains('#')), "{first:?}");
        assert_eq!(find("  "), []);
        assert_eq!(find("rotate xyzzyx"), []);
        assert!(find("a").len() <= MOST);
        let live = find("follow live");
        let of_log = live.iter().position(|hit| hit.href.starts_with("/docs/logs"));
        assert!(of_log.is_some(), "{live:?}");
    }

    #[test]
    fn every_hit_leads_to_a_heading_that_is_there() {
        for page in pages() {
            let named = sections(page).into_iter().skip(1).map(|(anchor, ..)| anchor.to_owned());
            let known: Vec<String> = page.text.sections.iter().map(|(a, _)| a.clone()).collect();
            assert_eq!(named.collect::<Vec<_>>(), known, "{}", page.slug);
        }
    }
}
