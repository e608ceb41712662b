//! The methods of the MCP specification, all versions.

use crate::fold;

/// Part of MCP that a method belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodGroup {
    Lifecycle,
    Tools,
    Resources,
    Prompts,
    Tasks,
    Other,
}

/// What the specification says of a method that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// A request.
    Request(MethodGroup),
    /// A notification.
    Notification(MethodGroup),
    /// Not in the specification as something a client sends.
    Unknown,
}

/// Looks a method up, exactly as it is written.
pub fn classify_method(method: &str) -> MethodKind {
    use MethodGroup::{Lifecycle, Other, Prompts, Resources, Tasks, Tools};
    match method {
        "initialize" | "ping" | "server/discover" => MethodKind::Request(Lifecycle),
        "tools/list" | "tools/call" => MethodKind::Request(Tools),
        "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe" => MethodKind::Request(Resources),
        "prompts/list" | "prompts/get" => MethodKind::Request(Prompts),
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tasks/update" => {
            MethodKind::Request(Tasks)
        }
        "completion/complete" | "logging/setLevel" | "subscriptions/listen" => {
            MethodKind::Request(Other)
        }
        "notifications/initialized"
        | "notifications/cancelled"
        | "notifications/progress"
        | "notifications/roots/list_changed" => MethodKind::Notification(Lifecycle),
        "notifications/tasks/status" | "notifications/tasks" => MethodKind::Notification(Tasks),
        _ => MethodKind::Unknown,
    }
}

/// A method that a lenient upstream could run as `tools/call` though it is not written so.
pub fn folds_to_tools_call(method: &str) -> bool {
    method != "tools/call" && fold::same_folded(method, "tools/call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_matched_exactly() {
        assert_eq!(classify_method("tools/call"), MethodKind::Request(MethodGroup::Tools));
        assert_eq!(
            classify_method("notifications/initialized"),
            MethodKind::Notification(MethodGroup::Lifecycle)
        );
        for odd in ["Tools/Call", "tools/call ", "acme/run", "", "notifications/"] {
            assert_eq!(classify_method(odd), MethodKind::Unknown, "{odd}");
        }
        assert!(folds_to_tools_call("Tools/Call") && folds_to_tools_call("tool\u{17f}/call"));
        assert!(folds_to_tools_call("tools/call ") && !folds_to_tools_call("tools/list"));
    }
}
