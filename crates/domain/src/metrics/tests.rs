use std::collections::BTreeSet;

use super::*;

const COLOUR: Label = Label { name: "colour", values: &["red", "blue"] };
const SIZE: Label = Label { name: "size", values: &["s", "m", "l"] };

fn lines(family: &dyn Family) -> Vec<(String, Vec<&'static str>, Option<f64>, f64)> {
    let mut all = Vec::new();
    family.samples(&mut |sample| {
        let values = sample.values.to_vec();
        all.push((sample.suffix.to_owned(), values, sample.bound, sample.value));
    });
    all
}

#[test]
fn a_counter_counts_each_series_by_itself_and_foreign_places_nowhere() {
    let counter: Counter<2> = Counter::new("sluice_x_total", &[COLOUR, SIZE], "x").sparse();
    counter.add([1, 2], 3);
    counter.add([1, 2], 1);
    counter.add([0, 0], 1);
    counter.add([2, 0], 9);
    counter.add([0, 3], 9);
    let plain = |values: [&'static str; 2], value| (String::new(), values.to_vec(), None, value);
    assert_eq!(lines(&counter), [plain(["red", "s"], 1.0), plain(["blue", "l"], 4.0)]);
    let whole: Counter<1> = Counter::new("sluice_y_total", &[COLOUR], "y");
    assert_eq!(lines(&whole).len(), 2, "a series that can be counted is there from the start");
}

#[test]
fn what_nobody_told_is_not_shown() {
    let told: Told<1> = Told::new("sluice_x", Kind::Gauge, &[COLOUR], "x");
    assert!(lines(&told).is_empty());
    told.tell([1], 0.0);
    told.tell([2], 1.0);
    assert_eq!(lines(&told), [(String::new(), vec!["blue"], None, 0.0)]);
    told.count([0], 7_usize);
    assert_eq!(lines(&told).first().map(|line| line.3), Some(7.0));
}

#[test]
fn buckets_hold_what_is_below_them_and_the_last_holds_all() {
    let times: Histogram<1> = Histogram::new("sluice_x_seconds", &[COLOUR], &[10, 100], "x");
    for micros in [0, 10, 11, 100, 101, 5_000_000] {
        times.micros([1], micros);
    }
    times.micros([2], 1);
    let told: Vec<(String, Option<f64>, f64)> =
        lines(&times).into_iter().map(|(suffix, _, bound, value)| (suffix, bound, value)).collect();
    let bucket = |bound, count| ("_bucket".to_owned(), Some(bound), count);
    let expected = [
        bucket(0.000_01, 2.0),
        bucket(0.000_1, 4.0),
        bucket(f64::INFINITY, 6.0),
        ("_sum".to_owned(), None, 5.000_222),
        ("_count".to_owned(), None, 6.0),
    ];
    assert_eq!(told, expected);
}

/// What Prometheus asks of names, and what keeps the list small.
#[test]
fn the_list_is_as_prometheus_wants_it_and_bounded() {
    let mut names = BTreeSet::new();
    for family in ALL {
        let meta = family.meta();
        let name = meta.name;
        assert!(names.insert(name), "{name} is there twice");
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(name.starts_with("sluice_") && plain(name), "{name}");
        assert_eq!(name.ends_with("_total"), meta.kind == Kind::Counter, "{name}");
        assert!(meta.kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(meta.labels.iter().all(|label| plain(label.name)), "{name}");
        let values = meta.labels.iter().flat_map(|label| label.values);
        assert!(values.clone().all(|value| !value.contains(['"', '\\', '\n'])), "{name}");
        assert!(!meta.help.contains(['\\', '\n', '|']) && !meta.help.is_empty(), "{name}");
        let series: usize = meta.labels.iter().map(|label| label.values.len()).product();
        assert!(series <= 300, "{name} can have {series} series");
    }
}

#[test]
fn the_page_and_the_exposition_say_what_the_list_says() {
    BUILD.tell([0], 1.0);
    LIMITS.micros([], 30);
    let (page, text) = (page(), exposition());
    for family in ALL {
        let meta = family.meta();
        let row = format!("| `{}` | {} | ", meta.name, meta.kind.as_str());
        assert!(page.contains(&row) && page.contains(meta.help), "{row}");
        let mut told = false;
        family.samples(&mut |_| told = true);
        let head = format!(
            "# HELP {} {}\n# TYPE {} {}\n",
            meta.name,
            meta.help,
            meta.name,
            meta.kind.as_str()
        );
        assert_eq!(text.contains(&head), told, "{head}");
    }
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("\nsluice_build_info{{version=\"{version}\"}} 1\n")), "{text}");
    assert!(text.contains("\nsluice_limits_seconds_bucket{le=\"0.00005\"} "), "{text}");
    assert!(text.contains("\nsluice_limits_seconds_bucket{le=\"+Inf\"} "), "{text}");
}
