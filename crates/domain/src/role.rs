//! Who may do what in a workspace.

use crate::words::words;

words!(
    /// A member's role. The order is the order of power: `Viewer < PolicyManager < Admin`.
    Role, "role" {
        /// Reads servers, tools, policies, grant labels, logs and approvals.
        Viewer = "viewer",
        /// Also writes policies, attaches them to existing grants and decides approvals.
        PolicyManager = "policy_manager",
        /// Also servers, credentials, grants, members, API tokens and settings.
        Admin = "admin",
    }
);

impl Role {
    /// Whether this role includes what `needed` may do.
    pub fn at_least(self, needed: Self) -> bool {
        self >= needed
    }
}
