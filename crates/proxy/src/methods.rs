//! Which methods pass, by the server's settings.

use sluice_domain::{Access, Code, Methods, Outcome, ServerSettings};
use sluice_mcp::{
    Envelope, Kind, MethodGroup, MethodKind, classify_method, folds_to_tools_call, member_text,
    string_value,
};

use crate::exchange::Refusal;

/// Why the method may not pass, if it may not.
pub(crate) fn refusal(settings: &ServerSettings, envelope: &Envelope<'_>) -> Option<Refusal> {
    let method = &*envelope.method;
    let (group, fits) = match classify_method(method) {
        MethodKind::Request(group) => (group, envelope.kind == Kind::Request),
        MethodKind::Notification(group) => (group, envelope.kind == Kind::Notification),
        MethodKind::Unknown => {
            let any = settings.methods == Methods::Any && !folds_to_tools_call(method);
            (MethodGroup::Other, any)
        }
    };
    let (resources, prompts) = concerns(group, envelope);
    let on = !(resources && settings.resources == Access::Deny
        || prompts && settings.prompts == Access::Deny);
    let message = "Method not found";
    (!(fits && on))
        .then(|| Refusal::new(Outcome::Denied, Code::MethodNotAllowed, "(method)", message))
}

/// Whether a request is about resources, and about prompts.
fn concerns(group: MethodGroup, envelope: &Envelope<'_>) -> (bool, bool) {
    let param = |path: &[&str]| {
        path.iter().try_fold(envelope.params?, |text, name| member_text(text, name))
    };
    match (group, &*envelope.method) {
        (MethodGroup::Resources, _) => (true, false),
        (MethodGroup::Prompts, _) => (false, true),
        (_, "completion/complete") => match param(&["ref", "type"]).and_then(string_value) {
            Some(kind) if kind == "ref/prompt" => (false, true),
            Some(kind) if kind == "ref/resource" => (true, false),
            // What it completes cannot be told.
            _ => (true, true),
        },
        (_, "subscriptions/listen") => {
            let wants = |name: &str| {
                let wanted = param(&["notifications", name]);
                wanted.is_some_and(|wanted| !matches!(wanted, "false" | "null" | "[]"))
            };
            let resources = wants("resourcesListChanged") || wants("resourceSubscriptions");
            (resources, wants("promptsListChanged"))
        }
        _ => (false, false),
    }
}
