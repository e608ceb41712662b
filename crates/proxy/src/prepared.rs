//! Charges of a route's tools, made ready for the counters: the names of counters are long, and most calls
//! of a tool charge the same ones with the same amounts.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use sluice_domain::Charge;
use sluice_limits::Prepared;

/// Tools whose charges are kept; charges of others are made ready for each call.
const MAX_TOOLS: usize = 1_024;

type Kept = (Vec<Charge>, Arc<Prepared>);

/// See the module's head. Lives with its route, so a changed policy begins anew.
#[derive(Default)]
pub(crate) struct PreparedCharges(RwLock<HashMap<String, Kept>>);

impl PreparedCharges {
    /// What `make` gives for these charges of this tool. The first charges of a tool are kept: where amounts
    /// come from arguments, others may follow, and are made ready each time.
    pub(crate) fn get(
        &self,
        tool: &str,
        charges: &[Charge],
        make: impl FnOnce() -> Arc<Prepared>,
    ) -> Arc<Prepared> {
        let known = {
            let kept = self.0.read();
            match kept.get(tool) {
                Some((same, prepared)) if same == charges => return Arc::clone(prepared),
                known => known.is_some() || kept.len() >= MAX_TOOLS,
            }
        };
        let fresh = make();
        if !known {
            self.0.write().insert(tool.to_owned(), (charges.to_vec(), Arc::clone(&fresh)));
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use sluice_domain::{Amount, OnUnavailable, Reset, Scope, Window};
    use sluice_limits::Demand;

    use super::*;

    fn charge(amount: u32) -> Charge {
        Charge {
            rule: "/tools/t/limits/0".to_owned(),
            counter: "c".to_owned(),
            scope: Scope::Grant,
            window: Window::Hour,
            reset: Reset::Sliding,
            max: Amount::whole(10),
            amount: Amount::whole(amount),
            increment_from: None,
            on_unavailable: OnUnavailable::Deny,
        }
    }

    #[test]
    fn equal_charges_are_made_ready_once_and_others_are_never_taken_for_them() {
        let kept = PreparedCharges::default();
        let get = |tool: &str, charges: &[Charge]| {
            let demands = charges.iter().map(|charge| Demand::new(charge, "grant")).collect();
            kept.get(tool, charges, || Arc::new(Prepared::of(demands)))
        };
        let first = get("t", &[charge(1)]);
        assert!(Arc::ptr_eq(&first, &get("t", &[charge(1)])));
        for other in [vec![charge(2)], vec![charge(1), charge(1)], Vec::new()] {
            let made = get("t", &other);
            assert_eq!(made.demands().len(), other.len());
            assert_eq!(made.demands().first().map(|d| d.amount), other.first().map(|c| c.amount));
        }
        assert!(Arc::ptr_eq(&first, &get("t", &[charge(1)])), "others do not displace it");
        assert!(!Arc::ptr_eq(&first, &get("u", &[charge(1)])), "another tool has its own");
    }

    #[test]
    fn the_tools_that_are_kept_are_bounded() {
        let kept = PreparedCharges::default();
        for n in 0..=MAX_TOOLS {
            kept.get(&format!("tool-{n}"), &[charge(1)], || Arc::new(Prepared::of(Vec::new())));
        }
        assert_eq!(kept.0.read().len(), MAX_TOOLS);
    }
}
