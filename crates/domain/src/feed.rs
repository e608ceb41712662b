//! The words of the change feed and of what a policy is for.

use crate::words::words;

words!(
    /// What kind of thing changed.
    ChangeKind, "kind of change" {
        Workspace = "workspace",
        Member = "member",
        Server = "server",
        Tools = "tools",
        Policy = "policy",
        Grant = "grant",
        Approval = "approval",
        ApiToken = "api_token",
        User = "user",
    }
);

words!(
    /// Who makes the versions of a policy.
    PolicyKind, "kind of policy" {
        /// The server's policy of the recommended-rule button.
        Button = "button",
        /// Any other.
        Custom = "custom",
    }
);

words!(
    /// What a file of configuration holds.
    ObjectKind, "kind of object" {
        Workspace = "workspace",
        Server = "server",
        Policy = "policy",
        Grant = "grant",
    }
);

words!(
    /// As what somebody did something.
    ActorKind, "kind of actor" {
        /// A member, logged in.
        User = "user",
        /// A REST token.
        ApiToken = "api_token",
        /// Whoever has the machine: the commands.
        Operator = "operator",
        /// The gateway itself.
        System = "system",
    }
);
