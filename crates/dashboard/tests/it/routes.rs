//! Every route as everybody. The routes come from the OpenAPI document and from the page router
//! itself; what each answers to whom stands in `routes/table.txt`, and a route without a row fails.
//!
//! `SLUICE_WRITE_ROUTES=1` writes the table anew, to be read line by line before it is kept.

mod probe;
mod scene;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::Method;
use sluice_testkit::db::FreshDatabase;

use self::probe::Who;
use self::scene::Scene;

const TABLE: &str = include_str!("routes/table.txt");
const TABLE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/routes/table.txt");

/// What is not checked against anybody: read by whoever wants to.
const PUBLIC: [&str; 29] = [
    "/",
    "/tools",
    "/tools.json",
    "/tools.md",
    "/tools/{server}",
    "/tools/{server}/{tool}",
    "/cards/{server}/{tool}",
    "/risk/{severity}",
    "/categories/{category}",
    "/attacks",
    "/attacks.md",
    "/attacks.json",
    "/attacks/{slug}",
    "/guides",
    "/guides.md",
    "/guides.json",
    "/guides/{slug}",
    "/docs",
    "/docs.md",
    "/docs.json",
    "/docs/{page}",
    "/report",
    "/styleguide",
    "/llms.txt",
    "/sitemap.xml",
    "/sitemaps/{part}",
    "/robots.txt",
    "/static/{version}/{name}",
    "/favicon.ico",
];

/// Where people come in: these have rules of their own, in tests of their own.
const ENTRANCES: [&str; 17] = [
    "/signup",
    "/login",
    "/login/code",
    "/login/passkey",
    "/login/passkey/question",
    "/login/with/{provider}",
    "/login/with/{provider}/callback",
    "/logout",
    "/forgot",
    "/join/{token}",
    "/account/link/{token}",
    "/account/verify",
    "/account/join/{id}",
    "/approve/{token}",
    "/start",
    "/theme",
    "/api/v1/openapi.json",
];

/// What a viewer may send although it is no GET: it changes nothing, or only what is the viewer's own.
const HARMLESS: [&str; 13] = [
    "/check",
    "/test",
    "/simulate",
    "/compare",
    "/preview-recommended",
    "/notification-preferences",
    "/notifications/mail",
    "/members/leave",
    "/logs/filters",
    "/logs/filters/{id}/delete",
    "/log-filters",
    "/log-filters/{id}",
    "/try",
];

/// One route with what it answers to each of [`Who`], and what is sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    method: Method,
    path: String,
    /// In the order of `Who::ALL`; 0: there is nothing to ask.
    answers: Vec<u16>,
    body: String,
}

impl Row {
    fn read(line: &str) -> Self {
        let (route, body) = line.split_once(" <- ").unwrap_or((line, ""));
        let mut words = route.split_whitespace();
        let mut word = || words.next().expect("a method and a path");
        let method = word().parse().expect("a method");
        let path = word().to_owned();
        let answers = words.map(|word| word.parse().unwrap_or(0)).collect();
        Self { method, path, answers, body: body.to_owned() }
    }

    fn key(&self) -> (String, String) {
        (self.path.clone(), self.method.to_string())
    }

    fn write(&self, out: &mut String) {
        let _ = write!(out, "{:<6} {:<58}", self.method.as_str(), self.path);
        for answer in &self.answers {
            let text = if *answer == 0 { "-".to_owned() } else { answer.to_string() };
            let _ = write!(out, " {text:>8}");
        }
        if !self.body.is_empty() {
            let _ = write!(out, " <- {}", self.body);
        }
        out.push('\n');
    }

    fn of(&self, who: Who) -> u16 {
        self.answers[Who::ALL.iter().position(|one| *one == who).expect("one of all")]
    }
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(Row::read).collect()
}

/// Every route that is served, in the order in which they are tried: who leaves and who signs out
/// does it in the end.
async fn served(scene: &Scene) -> Vec<(String, Method)> {
    let mut all = Vec::new();
    for (path, item) in &sluice_api::document().paths.paths {
        let path = format!("/api/v1{path}");
        let methods = [
            (Method::GET, item.get.is_some()),
            (Method::POST, item.post.is_some()),
            (Method::PUT, item.put.is_some()),
            (Method::PATCH, item.patch.is_some()),
            (Method::DELETE, item.delete.is_some()),
        ];
        all.extend(methods.into_iter().filter(|(_, is)| *is).map(|(m, _)| (path.clone(), m)));
    }
    all.push(("/api/v1/openapi.json".to_owned(), Method::GET));
    for path in sluice_dashboard::paths() {
        for method in scene.methods(path).await {
            all.push((path.to_owned(), method));
        }
    }
    all.sort_by_key(|(path, method)| (last(path), path.clone(), method.to_string()));
    all
}

/// What comes in the end, since it takes away who asks.
fn last(path: &str) -> u8 {
    match path {
        "/logout" => 2,
        path if path.ends_with("/leave") || path.ends_with("/end-others") => 1,
        _ => 0,
    }
}

async fn every_route_answers_as_its_row_says(fresh: FreshDatabase) {
    let mut scene = Scene::new(fresh).await;
    let known: BTreeMap<_, _> = rows().into_iter().map(|row| (row.key(), row)).collect();
    let mut found = Vec::new();
    for (path, method) in served(&scene).await {
        let body = known.get(&(path.clone(), method.to_string()));
        let body = body.map(|row| row.body.clone()).unwrap_or_default();
        found.push(tried(&mut scene, method, path, body).await);
    }
    scene.is_untouched().await;
    compare(&known, &found);
    for row in &found {
        follows_the_rules(row);
    }
    scene.world.fresh.remove().await;
}

/// What a route answers to everybody.
async fn tried(scene: &mut Scene, method: Method, path: String, body: String) -> Row {
    let mut row = Row { method, path, answers: Vec::new(), body };
    let first = scene.first.clone();
    for who in Who::ALL {
        // What may change is tried on things that are made for it.
        let changes = row.method != Method::GET && who.is_member();
        let things = if changes { &scene.spare } else { &first };
        let answer = scene.probe(who, &row.method, &row.path, &row.body, things).await;
        if changes && (200..400).contains(&answer) && last(&row.path) == 0 {
            scene.spare = scene.things().await;
        }
        row.answers.push(answer);
    }
    row
}

/// What holds whatever the table says.
fn follows_the_rules(row: &Row) {
    let path = row.path.as_str();
    if PUBLIC.contains(&path) || ENTRANCES.contains(&path) {
        return;
    }
    let (viewer, manager, admin) = (row.of(Who::Viewer), row.of(Who::Manager), row.of(Who::Admin));
    let shut_out = if path.starts_with("/api/") { 401 } else { 303 };
    for who in [Who::Nobody, Who::Ended, Who::Expired] {
        assert_eq!(row.of(who), shut_out, "{who:?} {row:?}");
    }
    if path.contains("{ws}") {
        assert_eq!(row.of(Who::Stranger), 404, "{row:?}");
    }
    if path.contains("{id}") {
        assert_eq!(row.of(Who::Foreign), 404, "{row:?}");
    }
    assert!(![401, 403, 404, 500].contains(&admin), "the control: {row:?}");
    assert!(viewer == 403 || manager != 403, "a manager may what a viewer may: {row:?}");
    let in_workspace = path.contains("{ws}");
    let harmless = HARMLESS.iter().any(|end| path.ends_with(end)) && !path.contains("endpoints");
    if in_workspace && row.method != Method::GET && !harmless {
        assert_eq!(viewer, 403, "a viewer changes nothing: {row:?}");
    }
}

fn compare(known: &BTreeMap<(String, String), Row>, found: &[Row]) {
    let mut text = String::from("#\n# method and path; then what is answered to\n#");
    for who in Who::ALL {
        let _ = write!(text, " {}", who.word());
    }
    text.push_str("\n# and what is sent.\n");
    for row in found {
        row.write(&mut text);
    }
    if std::env::var_os("SLUICE_WRITE_ROUTES").is_some() {
        std::fs::write(TABLE_FILE, text).expect("it is written");
        return;
    }
    let mut wrong = String::new();
    for row in found {
        match known.get(&row.key()) {
            None => wrong.push_str("without a row: "),
            Some(kept) if kept.answers != row.answers => {
                let _ = writeln!(wrong, "expected {:?}", kept.answers);
            }
            Some(_) => continue,
        }
        row.write(&mut wrong);
    }
    for (key, row) in known {
        if !found.iter().any(|one| one.key() == *key) {
            wrong.push_str("served no more: ");
            row.write(&mut wrong);
        }
    }
    assert!(wrong.is_empty(), "routes and {TABLE_FILE} differ:\n{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_as_its_row_says_on_sqlite() {
    every_route_answers_as_its_row_says(FreshDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_as_its_row_says_on_postgres() {
    every_route_answers_as_its_row_says(FreshDatabase::postgres().await).await;
}
