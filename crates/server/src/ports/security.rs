//! The security log's queue: bounded, never in anybody's way.

use sluice_domain::SecurityEvent;
use sluice_proxy::SecurityLog;
use tokio::sync::mpsc;

/// Takes events until it is full; what comes then is counted, not kept: whoever floods the gateway
/// with bad tokens must not fill the memory or the disk with it.
#[derive(Debug, Clone)]
pub(crate) struct SecurityQueue(pub(crate) mpsc::Sender<SecurityEvent>);

impl SecurityLog for SecurityQueue {
    fn record(&self, event: SecurityEvent) {
        metrics::counter!("sluice_security_events_total", "kind" => event.kind.as_str())
            .increment(1);
        if self.0.try_send(event).is_err() {
            metrics::counter!("sluice_log_refused_total", "log" => "security").increment(1);
        }
    }
}
