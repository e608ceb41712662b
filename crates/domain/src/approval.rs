//! The words for where a parked call stands.

use crate::words::words;

words!(
    /// Where an approval stands.
    ApprovalStatus, "approval status" {
        /// Nobody decided yet.
        Pending = "pending",
        /// Approved and not yet run.
        Approved = "approved",
        /// Refused by a person.
        Denied = "denied",
        /// Nobody decided, or nobody came for it, in time.
        Expired = "expired",
        /// Released; the upstream's answer is awaited.
        Running = "running",
        /// Ran once; used up.
        Used = "used",
        /// Released, and nobody knows whether it ran; never run again.
        Unknown = "unknown",
    }
);
