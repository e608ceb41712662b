//! The dashboard as a person sees it: signed in, cookies kept.

use ::http::{Method, StatusCode, header};
use sluice_testkit::http::Answer;
use tokio::io::AsyncWriteExt as _;

use crate::world::World;

/// A signed-in browser.
#[derive(Debug)]
pub(crate) struct Pages<'a> {
    world: &'a World,
    cookies: String,
}

fn cookies(answer: &Answer) -> String {
    let set = answer.headers.get_all(header::SET_COOKIE).into_iter();
    let set = set.filter_map(|value| value.to_str().ok()?.split(';').next());
    set.collect::<Vec<_>>().join("; ")
}

impl<'a> Pages<'a> {
    /// Gives the world's admin a password, and signs in with it.
    pub(crate) async fn of(world: &'a World) -> Self {
        let mut reset = world.sluice.setup().command([
            "admin",
            "reset-password",
            "--email",
            "ann@example.com",
            "--password-stdin",
        ]);
        let mut reset = reset.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
        let mut typed = reset.stdin.take().expect("standard input is piped");
        typed.write_all(b"correct horse battery\n").await.expect("it reads");
        drop(typed);
        assert!(reset.wait().await.expect("it ends").success());
        let form = world.sluice.send(Method::GET, "/login", &[], "").await;
        let text = form.text();
        let (_, csrf) = text.split_once("name=\"csrf\" value=\"").expect("a token");
        let csrf = csrf.split('"').next().expect("its end");
        let body = format!("csrf={csrf}&email=ann%40example.com&password=correct+horse+battery");
        let before = cookies(&form);
        let host = format!("localhost:{}", world.sluice.address().port());
        let origin = format!("http://{host}");
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", before.as_str()),
            ("host", host.as_str()),
            ("origin", origin.as_str()),
        ];
        let entered = world.sluice.send(Method::POST, "/login", &headers, body).await;
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.text());
        Self { world, cookies: cookies(&entered) }
    }

    /// A page of the workspace.
    pub(crate) async fn get(&self, path: &str) -> String {
        let path = format!("/w/{}{path}", self.world.workspace);
        let headers = [("cookie", self.cookies.as_str()), ("accept", "text/html")];
        let page = self.world.sluice.send(Method::GET, &path, &headers, "").await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text());
        page.text()
    }
}
