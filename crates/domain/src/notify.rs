//! The words for how people are told of parked calls, and for what happened to those.

use crate::words::words;

words!(
    /// What a message is sent to.
    EndpointKind, "kind of endpoint" {
        /// A program: a signed JSON body.
        Webhook = "webhook",
        /// A Slack channel, by its incoming webhook.
        Slack = "slack",
        /// A Microsoft Teams channel, by its incoming webhook.
        Teams = "teams",
    }
);

words!(
    /// Where a message stands.
    DeliveryStatus, "delivery status" {
        /// It is to be sent, perhaps again.
        Waiting = "waiting",
        /// It was taken by the other side.
        Sent = "sent",
        /// It was given up, and can be sent anew by hand.
        Dead = "dead",
    }
);

words!(
    /// What happened to a parked call.
    ApprovalEventKind, "approval event" {
        /// A call was parked.
        Asked = "asked",
        /// A message about it was sent to people.
        Notified = "notified",
        /// A person opened it.
        Shown = "shown",
        /// A person looked at its secrets.
        Revealed = "revealed",
        /// A person approved it.
        Approved = "approved",
        /// A person refused it.
        Denied = "denied",
        /// Nobody decided for some time, and others were told.
        Escalated = "escalated",
        /// A person lets the same call pass for a while.
        Excepted = "excepted",
        /// Its time was over.
        Expired = "expired",
        /// The call was handed to the server.
        Released = "released",
        /// The server answered.
        Ran = "ran",
        /// It was released and never reached the server; the approval is good again.
        NotRun = "not_run",
        /// It was released, and nobody knows whether it ran.
        Unknown = "unknown",
    }
);

words!(
    /// What an endpoint can be told of.
    Notice, "event" {
        Asked = "approval.asked",
        Escalated = "approval.escalated",
        Decided = "approval.decided",
        Expired = "approval.expired",
        Ran = "approval.ran",
        Unknown = "approval.outcome_unknown",
        /// Somebody pressed the test button.
        Test = "test",
    }
);
