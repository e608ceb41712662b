//! The words for what a mailed link does.

use crate::words::words;

words!(
    /// What a link that was mailed to a person does.
    LinkPurpose, "purpose of a link" {
        /// Confirms that the address is theirs.
        Verify = "verify",
        /// Signs them in.
        SignIn = "sign_in",
        /// Sets a new password.
        Reset = "reset",
    }
);
