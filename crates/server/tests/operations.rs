//! Holds what operators are given against the code: the page of metrics, the dashboard, the alerts, and the
//! settings that files of `deploy/` name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use sluice_domain::metrics::{self, Kind, Meta};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .expect("crates/server lies two deep")
}

/// All files below, by their ends.
fn files(below: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(below).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path, ends));
        } else if ends.is_empty()
            || path.extension().is_some_and(|end| ends.iter().any(|one| end == *one))
        {
            all.push(path);
        }
    }
    all
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What of the text is a word of these characters and begins so.
fn words(text: &str, begins: &str, of: fn(char) -> bool) -> BTreeSet<String> {
    text.split(|c: char| !of(c))
        .filter(|word| word.starts_with(begins) && word.len() > begins.len())
        .map(str::to_owned)
        .collect()
}

fn metric_names(text: &str) -> BTreeSet<String> {
    words(text, "sluice_", |c| c.is_ascii_lowercase() || c == '_')
}

/// Every metric, with what can follow its name.
fn known() -> BTreeMap<String, &'static Meta> {
    let mut all = BTreeMap::new();
    for family in metrics::ALL {
        let meta = family.meta();
        let ends: &[&str] = match meta.kind {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge => &[""],
        };
        all.extend(ends.iter().map(|end| (format!("{}{end}", meta.name), meta)));
    }
    all
}

/// What an expression asks of a metric's labels: `{outcome="failed",code=~"a|b"}` right after its name.
fn asked<'a>(text: &'a str, name: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut all = Vec::new();
    for after in text.split(&format!("{name}{{")).skip(1) {
        let inside = after.split('}').next().unwrap_or_default();
        for part in inside.split(',') {
            let (label, value) = part.split_once('=').expect("a label and its value");
            let value = value.trim_matches(['~', '"', '\\']);
            all.push((label.trim_end_matches('!'), value.split('|').collect()));
        }
    }
    all
}

/// Fails where a text names a metric, a label or a label's value that the code does not have.
fn hold_names(what: &str, text: &str) {
    let known = known();
    let told = metric_names(text);
    let unknown: Vec<&String> = told.iter().filter(|name| !known.contains_key(*name)).collect();
    assert_eq!(unknown, [""; 0], "{what} names metrics that do not exist");
    for name in told {
        for (label, values) in asked(text, &name) {
            let mut labels = known[&name].labels.iter();
            let Some(has) = labels.find(|one| one.name == label) else {
                assert_eq!(label, "le", "{what}: {name} has no such label");
                continue;
            };
            for value in values {
                assert!(has.values.contains(&value), "{what}: {name} has no {label} `{value}`");
            }
        }
    }
}

#[test]
fn the_page_of_metrics_is_made_from_the_list_and_names_no_other() {
    let page = read(&root().join("crates/dashboard/docs/metrics.md"));
    assert!(page.contains("\n<!-- every metric -->\n"), "the list has its place in the page");
    hold_names("the page", &page);
    let page = read(&root().join("crates/dashboard/docs/operate.md"));
    hold_names("/docs/operate", &page);
}

#[test]
fn the_dashboard_and_the_alerts_name_metrics_labels_and_values_that_exist() {
    for file in ["deploy/grafana/sluice.json", "deploy/prometheus/alerts.yml"] {
        let text = read(&root().join(file));
        assert!(metric_names(&text).len() > 4, "{file}");
        hold_names(file, &text);
    }
    let text = read(&root().join("deploy/grafana/sluice.json"));
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["targets"][0]["expr"].is_string()), "{panels:?}");
    let shown = metric_names(&text);
    for kind in ["gateway", "limits", "approval", "upstream"] {
        assert!(shown.contains(&format!("sluice_{kind}_seconds_bucket")), "{kind} latency");
    }
}

#[test]
fn every_setting_that_the_deployment_files_name_exists() {
    let help = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["serve", "--help"]).output();
    let help = String::from_utf8(help.expect("it starts").stdout).expect("text");
    let setting = |text: &str| {
        words(text, "SLUICE_", |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let known = setting(&help);
    assert!(known.len() > 20, "{known:?}");
    let mut named = files(&root().join("deploy"), &[]);
    named.extend([root().join("docker-compose.yml"), root().join("Dockerfile")]);
    named.push(root().join("crates/dashboard/docs/deploy.md"));
    for file in named {
        let told = setting(&read(&file));
        assert_eq!(told.difference(&known).collect::<Vec<_>>(), [""; 0], "{}", file.display());
    }
}

#[test]
fn containers_run_as_nobody_on_a_file_system_that_is_read_only_and_are_probed() {
    let manifest = read(&root().join("deploy/kubernetes/sluice.yaml"));
    let chart = files(&root().join("deploy/helm/sluice"), &[]);
    let chart: String = chart.iter().map(|file| read(file)).collect();
    for text in [&manifest, &chart] {
        for promise in [
            "runAsNonRoot: true",
            "readOnlyRootFilesystem: true",
            "allowPrivilegeEscalation: false",
            "drop: [ALL]",
            "path: /readyz",
            "path: /healthz",
            "kind: PodDisruptionBudget",
            "kind: HorizontalPodAutoscaler",
            "kind: NetworkPolicy",
            "kind: Job",
            "args: [migrate]",
        ] {
            assert!(text.contains(promise), "{promise}");
        }
    }
    let compose = read(&root().join("docker-compose.yml"));
    assert!(compose.contains("read_only: true") && compose.contains("cap_drop: [ALL]"));
    let image = read(&root().join("Dockerfile"));
    assert!(image.contains("\nUSER sluice\n") && image.contains("HEALTHCHECK"));
}

#[test]
fn proxies_in_front_neither_buffer_nor_repeat() {
    for file in ["deploy/nginx/sluice.conf", "deploy/nginx/compose.conf"] {
        let text = read(&root().join(file));
        for line in ["proxy_buffering off;", "proxy_next_upstream off;", "proxy_read_timeout 1h;"] {
            assert!(text.contains(line), "{file}: {line}");
        }
    }
    assert!(read(&root().join("deploy/caddy/Caddyfile")).contains("flush_interval -1"));
}
