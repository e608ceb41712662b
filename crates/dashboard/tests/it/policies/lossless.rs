//! Whatever is valid is read into the builder's forms and written back with the same meaning. The
//! documents are those that the policy language itself is tried on.

use sluice_policy::{Document, compile};

use crate::browser::{Browser, Page};
use crate::generate;
use crate::random::Random;
use crate::world::World;

const DOCUMENTS: u64 = 30;

fn meaning(text: &str) -> Document {
    let compiled = compile(text);
    compiled.unwrap_or_else(|errors| panic!("{errors:?}: {text}")).document().clone()
}

/// The places that have a button to edit them.
fn parts(page: &Page) -> Vec<String> {
    let buttons = page.body.split(" value=\"edit:").skip(1);
    buttons.filter_map(|rest| rest.split('"').next()).map(crate::browser::unescape).collect()
}

/// Opens each part of an entry in its form and puts it back untouched; says how many there were.
async fn through_the_forms(browser: &mut Browser, new: &str, open: &str, text: &str) -> usize {
    let wanted = meaning(text);
    let page = browser.get(new).await;
    let typed = [("document", text), ("press", open)];
    let opened = browser.go_on(&page, new, new, &typed).await;
    let parts = parts(&opened);
    let mut page = opened;
    for part in &parts {
        let edit = format!("edit:{part}");
        let form = browser.go_on(&page, new, new, &[("press", &edit)]).await;
        assert!(form.body.contains("value=\"put\""), "{part} has a form: {text}");
        page = browser.go_on(&form, new, new, &[("press", "put")]).await;
        let written = page.value("document");
        assert_eq!(meaning(&written), wanted, "{part}\n{text}\n{written}");
    }
    if opened_approval(&page) {
        let form = browser.go_on(&page, new, new, &[("press", "approval")]).await;
        let page = browser.go_on(&form, new, new, &[("press", "put")]).await;
        assert_eq!(meaning(&page.value("document")), wanted, "its approval\n{text}");
    }
    parts.len()
}

/// The open entry says how its approvals go.
fn opened_approval(page: &Page) -> bool {
    let removes = page.body.split(" value=\"remove:").skip(1);
    removes.filter_map(|rest| rest.split('"').next()).any(|place| place.ends_with("/approval"))
}

#[tokio::test]
async fn any_valid_document_goes_through_the_forms_without_loss() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let new = format!("{server}/policies/new");
    let (mut documents, mut tried) = (0, 0);
    for seed in 0..DOCUMENTS {
        let document = generate::document(&mut Random::new(seed));
        let text = document.to_string();
        if compile(&text).is_err() {
            continue;
        }
        documents += 1;
        let names = document["tools"].as_object().into_iter().flat_map(|tools| tools.keys());
        let entries = names.map(|name| format!("open:tool:{name}"));
        for open in entries.chain(["open:all".to_owned()]) {
            tried += through_the_forms(&mut browser, &new, &open, &text).await;
        }
    }
    assert!(documents > 15 && tried > 50, "{documents} documents, {tried} parts");
}
