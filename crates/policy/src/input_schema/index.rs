//! Where the parts of a schema document are: by identifier, by anchor, by pointer.

use std::collections::HashMap;

use serde_json::Value;
use url::Url;

/// What a document is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Seven,
    Nineteen,
    Twenty,
}

/// The draft that `$schema` names; none for one that is not known here.
pub(super) fn draft(document: &Value) -> Option<Draft> {
    let Some(named) = document.get("$schema") else { return Some(Draft::Twenty) };
    let named = named.as_str()?.trim_end_matches('#').trim_end_matches('/');
    let bare = named.strip_prefix("https://").or_else(|| named.strip_prefix("http://"))?;
    match bare {
        "json-schema.org/draft/2020-12/schema" | "json-schema.org/schema" => Some(Draft::Twenty),
        "json-schema.org/draft/2019-09/schema" => Some(Draft::Nineteen),
        "json-schema.org/draft-07/schema" | "json-schema.org/draft-06/schema" => Some(Draft::Seven),
        _ => None,
    }
}

/// The part of a document that a pointer leads to, and the base that its references are relative to.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) value: &'a Value,
    pub(super) base: Url,
    /// From the document's root; tells places apart.
    pub(super) pointer: String,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Index<'a> {
    draft: Draft,
    root: Place<'a>,
    /// By address without a fragment.
    resources: HashMap<String, Place<'a>>,
    /// By address and name.
    anchors: HashMap<(String, String), Place<'a>>,
    /// How many times each dynamic anchor is set.
    dynamic: HashMap<String, usize>,
}

/// What holds data, not schemas.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

impl<'a> Index<'a> {
    pub(super) fn new(document: &'a Value, draft: Draft) -> Self {
        // Any base that nothing else has.
        let base = Url::parse("json-schema://document/").expect("it is an address");
        let root = Place { value: document, base, pointer: String::new() };
        let mut index = Self {
            draft,
            root: root.clone(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        };
        index.resources.insert(address(&root.base), root.clone());
        index.walk(&root);
        index
    }

    pub(super) fn root(&self) -> Place<'a> {
        let base = self.based(&self.root);
        Place { base, ..self.root.clone() }
    }

    /// The base inside a place: its own identifier, if it has one.
    fn based(&self, place: &Place<'a>) -> Url {
        let own = place.value.get("$id").and_then(Value::as_str);
        let beside_ref = self.draft == Draft::Seven && place.value.get("$ref").is_some();
        match own.filter(|id| !beside_ref && !id.starts_with('#')) {
            Some(id) => place.base.join(id).map_or_else(|_| place.base.clone(), without_fragment),
            None => place.base.clone(),
        }
    }

    fn walk(&mut self, place: &Place<'a>) {
        match place.value {
            Value::Object(members) => {
                let base = self.based(place);
                if base != place.base {
                    let own = Place { base: base.clone(), ..place.clone() };
                    self.resources.entry(address(&base)).or_insert(own);
                }
                self.note_anchors(place, &base);
                for (name, value) in members {
                    if DATA.contains(&name.as_str()) {
                        continue;
                    }
                    let pointer = format!("{}/{}", place.pointer, escaped(name));
                    self.walk(&Place { value, base: base.clone(), pointer });
                }
            }
            Value::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    let pointer = format!("{}/{at}", place.pointer);
                    self.walk(&Place { value, base: place.base.clone(), pointer });
                }
            }
            _ => {}
        }
    }

    fn note_anchors(&mut self, place: &Place<'a>, base: &Url) {
        let text = |name: &str| place.value.get(name).and_then(Value::as_str);
        let old = text("$id").and_then(|id| id.strip_prefix('#'));
        let dynamic = text("$dynamicAnchor").filter(|_| self.draft == Draft::Twenty);
        if let Some(name) = dynamic {
            *self.dynamic.entry(name.to_owned()).or_default() += 1;
        }
        let anchor = text("$anchor").filter(|_| self.draft > Draft::Seven);
        for name in [anchor, dynamic, old.filter(|_| self.draft == Draft::Seven)] {
            let Some(name) = name else { continue };
            let own = Place { base: base.clone(), ..place.clone() };
            self.anchors.entry((address(base), name.to_owned())).or_insert(own);
        }
    }

    /// Where a reference leads; none if that is not in the document.
    pub(super) fn find(&self, base: &Url, reference: &str) -> Option<Place<'a>> {
        let target = base.join(reference).ok()?;
        let resource = self.resources.get(&address(&target))?;
        let Some(fragment) = target.fragment().filter(|fragment| !fragment.is_empty()) else {
            return Some(resource.clone());
        };
        let fragment = percent_decoded(fragment)?;
        if fragment.starts_with('/') {
            return self.follow(resource, &fragment);
        }
        self.anchors.get(&(address(&target), fragment)).cloned()
    }

    /// Whether a dynamic reference can only lead where a plain one does: nothing else sets its anchor.
    pub(super) fn is_plain(&self, reference: &str) -> bool {
        let name = reference.rsplit_once('#').map_or("", |(_, name)| name);
        self.dynamic.get(name).is_none_or(|times| *times <= 1)
    }

    fn follow(&self, from: &Place<'a>, pointer: &str) -> Option<Place<'a>> {
        let mut place = from.clone();
        for token in pointer.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            let value = match place.value {
                Value::Object(members) => members.get(&name)?,
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            let pointer = format!("{}/{}", place.pointer, escaped(&name));
            place = Place { value, base: place.base, pointer };
            place.base = self.based(&place);
        }
        Some(place)
    }

    /// A part of a place.
    pub(super) fn inside(&self, place: &Place<'a>, path: &[&str]) -> Option<Place<'a>> {
        let names: Vec<String> = path.iter().map(|name| escaped(name)).collect();
        self.follow(place, &format!("/{}", names.join("/")))
    }
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

fn address(url: &Url) -> String {
    without_fragment(url.clone()).to_string()
}

pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let pair = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
    }
    String::from_utf8(out).ok()
}
