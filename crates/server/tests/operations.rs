//! Holds what operators are given against the code: the page of metrics, the dashboard, the alerts, and the
//! settings that files of `deploy/` name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Every metric of the code: its kind and its labels.
fn metrics() -> BTreeMap<String, (&'static str, Vec<String>)> {
    let mut all: BTreeMap<String, (&str, Vec<String>)> = BTreeMap::new();
    for krate in std::fs::read_dir(root().join("crates")).expect("a folder") {
        let source = krate.expect("an entry").path().join("src");
        for file in files(&source, &["rs"]) {
            let text = read(&file);
            for kind in ["counter", "gauge", "histogram"] {
                for rest in text.split(&format!("metrics::{kind}!(")).skip(1) {
                    let inside = rest.split(".increment").next().unwrap_or(rest);
                    let inside = inside.split(".set").next().unwrap_or(inside);
                    let inside = inside.split(".absolute").next().unwrap_or(inside);
                    let mut quoted = inside.split('"').skip(1).step_by(2);
                    let name = quoted.next().expect("a name").to_owned();
                    let labels: Vec<String> = inside
                        .split("=>")
                        .filter_map(|part| {
                            Some(part.trim_end().strip_suffix('"')?.rsplit('"').next()?.to_owned())
                        })
                        .filter(|label| *label != name)
                        .collect();
                    let known = all.entry(name.clone()).or_insert((kind, labels.clone()));
                    assert_eq!(*known, (kind, labels), "{name} is not the same everywhere");
                }
            }
        }
    }
    assert!(all.len() > 15, "{all:?}");
    all
}

#[test]
fn the_page_of_metrics_tells_each_with_its_kind_and_labels_and_no_other() {
    let page = read(&root().join("crates/dashboard/docs/metrics.md"));
    let metrics = metrics();
    for (name, (kind, labels)) in &metrics {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let row = format!("| `{name}` | {kind} | {labels} | ");
        assert!(page.contains(&row), "the page lacks: {row}");
    }
    let known: BTreeSet<String> = metrics.into_keys().collect();
    let told = metric_names(&page);
    assert_eq!(told.difference(&known).collect::<Vec<_>>(), [""; 0], "there is no such metric");
}

#[test]
fn the_dashboard_and_the_alerts_name_metrics_that_exist() {
    let known: BTreeSet<String> = metrics().into_keys().collect();
    for file in ["deploy/grafana/sluice.json", "deploy/prometheus/alerts.yml"] {
        let told = metric_names(&read(&root().join(file)));
        assert!(told.len() > 4, "{file}: {told:?}");
        assert_eq!(told.difference(&known).collect::<Vec<_>>(), [""; 0], "{file}");
    }
    let text = read(&root().join("deploy/grafana/sluice.json"));
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["targets"][0]["expr"].is_string()), "{panels:?}");
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
