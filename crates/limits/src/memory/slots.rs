//! The counters of a shard. Each has a place that is its own for as long as it lives, so that a call that
//! asks for the same counters as the last one need not search for them.

use std::collections::HashMap;
use std::sync::Arc;

use sluice_domain::WorkspaceId;

use super::shard::Counter;
use crate::plan::Ask;

/// A counter's name, which is one of a workspace's.
pub(crate) type Name = (WorkspaceId, Arc<str>);

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: HashMap<Name, usize>,
    held: Vec<Option<(Name, Counter)>>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of the counter that is asked for: where it was found the last time, if it is there still.
    pub(super) fn place(&self, workspace: WorkspaceId, ask: &Ask) -> Option<usize> {
        let guess = ask.hint.get();
        if let Some(Some((name, _))) = self.held.get(guess)
            && name.0 == workspace
            && (Arc::ptr_eq(&name.1, &ask.name) || name.1 == ask.name)
        {
            return Some(guess);
        }
        let place = self.places.get(&(workspace, Arc::clone(&ask.name))).copied()?;
        ask.hint.set(place);
        Some(place)
    }

    pub(super) fn at(&mut self, place: usize) -> Option<&mut Counter> {
        self.held.get_mut(place)?.as_mut().map(|(_, counter)| counter)
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Counter> {
        let place = *self.places.get(name)?;
        self.held.get(place)?.as_ref().map(|(_, counter)| counter)
    }

    pub(super) fn get_mut(&mut self, name: &Name) -> Option<&mut Counter> {
        let place = *self.places.get(name)?;
        self.at(place)
    }

    /// Stores a counter; its place, and whether it is new.
    pub(super) fn put(&mut self, name: Name, counter: Counter) -> (usize, bool) {
        if let Some(place) = self.places.get(&name).copied() {
            self.held[place] = Some((name, counter));
            return (place, false);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            self.held.len() - 1
        });
        self.places.insert(name.clone(), place);
        self.held[place] = Some((name, counter));
        (place, true)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(place) = self.places.remove(name) {
            self.held[place] = None;
            self.free.push(place);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Counter)> {
        self.held.iter().flatten().map(|(name, counter)| (name, counter))
    }
}

#[cfg(test)]
mod tests {
    use sluice_domain::Amount;

    use super::*;
    use crate::buckets::Buckets;
    use crate::plan::Hint;
    use crate::span::Span;

    fn ask(name: &str) -> Ask {
        Ask {
            name: name.into(),
            span: Span::Month,
            max: Amount::ONE,
            amount: Amount::ONE,
            hint: Hint::default(),
        }
    }

    fn counter(epoch: i64) -> Counter {
        Counter { span: Span::Month, buckets: Buckets { epoch, filled: Vec::new() } }
    }

    fn epoch(slots: &mut Slots, workspace: WorkspaceId, ask: &Ask) -> Option<i64> {
        let place = slots.place(workspace, ask)?;
        slots.at(place).map(|counter| counter.buckets.epoch)
    }

    #[test]
    fn a_place_that_was_given_to_another_counter_is_not_taken_for_the_own_one() {
        let (mut slots, ours, others) = (Slots::default(), WorkspaceId::new(), WorkspaceId::new());
        let (one, two) = (ask("one"), ask("two"));
        slots.put((ours, Arc::clone(&one.name)), counter(1));
        assert_eq!(epoch(&mut slots, ours, &one), Some(1));
        assert_eq!(epoch(&mut slots, others, &one), None, "another workspace's");
        slots.remove(&(ours, Arc::clone(&one.name)));
        slots.put((ours, Arc::clone(&two.name)), counter(2));
        assert_eq!(epoch(&mut slots, ours, &one), None, "its place is another's now");
        slots.put((ours, "one".into()), counter(3));
        assert_eq!(epoch(&mut slots, ours, &one), Some(3), "by its name, in its new place");
        assert_eq!(epoch(&mut slots, ours, &two), Some(2));
        assert_eq!(slots.held.len(), 2, "places are used again");
    }
}
