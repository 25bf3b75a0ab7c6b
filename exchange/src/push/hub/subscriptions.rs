//! All subscriptions, with the order of the next notifications.
//!
//! The search for the next notification looks only at pending ones, and leases are looked at only
//! when the first of them may end. So a hub with many subscribers answers as fast as a small one.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::Key;
use super::subscription::Subscription;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: BTreeMap<Key, Subscription>,
    /// Pending notifications that are not under way, by time.
    due: BTreeSet<(u64, Key)>,
    /// A time before which no lease ends.
    ends_ms: u64,
}

/// Moves a pending notification from the time `before` to the time `after`. `None` means that no
/// notification is pending.
fn note(due: &mut BTreeSet<(u64, Key)>, key: &Key, before: Option<u64>, after: Option<u64>) {
    if before == after {
        return;
    }
    if let Some(due_ms) = before {
        due.remove(&(due_ms, key.clone()));
    }
    due.extend(after.map(|due_ms| (due_ms, key.clone())));
}

impl Subscriptions {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Subscription> {
        self.all.get(key)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.all.contains_key(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Subscription)> {
        self.all.iter()
    }

    /// Returns the subscriptions with pending notifications, by time.
    pub(super) fn due(&self) -> impl Iterator<Item = (u64, &Key, &Subscription)> {
        self.due.iter().filter_map(|(due_ms, key)| Some((*due_ms, key, self.all.get(key)?)))
    }

    pub(super) fn insert(&mut self, key: Key, subscription: Subscription) {
        self.remove(&key);
        self.ends_ms = self.ends_ms.min(subscription.lease_until_ms);
        note(&mut self.due, &key, None, subscription.due());
        self.all.insert(key, subscription);
    }

    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let gone = self.all.remove(key);
        note(&mut self.due, key, gone.as_ref().and_then(Subscription::due), None);
        gone.is_some()
    }

    /// Changes a subscription, and returns the result of `change`; `None` if there is no such
    /// subscription.
    pub(super) fn change<T>(
        &mut self,
        key: &Key,
        change: impl FnOnce(&mut Subscription) -> T,
    ) -> Option<T> {
        let subscription = self.all.get_mut(key)?;
        let before = subscription.due();
        let changed = change(subscription);
        self.ends_ms = self.ends_ms.min(subscription.lease_until_ms);
        note(&mut self.due, key, before, subscription.due());
        Some(changed)
    }

    pub(super) fn change_topic(&mut self, topic: &str, mut change: impl FnMut(&mut Subscription)) {
        let first = Key { topic: Arc::from(topic), callback: Arc::from("") };
        let from_it_on = self.all.range_mut((Included(first), Unbounded));
        for (key, subscription) in from_it_on.take_while(|(key, _)| &*key.topic == topic) {
            let before = subscription.due();
            change(subscription);
            note(&mut self.due, key, before, subscription.due());
        }
    }

    pub(super) fn change_all(&mut self, change: impl FnMut(&mut Subscription)) {
        self.all.values_mut().for_each(change);
        self.count_anew();
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Key, &Subscription) -> bool) {
        self.all.retain(|key, it| stays(key, it));
        self.count_anew();
    }

    /// Removes subscriptions whose lease has ended; returns their number.
    pub(super) fn expire(&mut self, now_ms: u64) -> usize {
        if now_ms < self.ends_ms {
            return 0;
        }
        let before = self.len();
        self.retain(|_, it| now_ms < it.lease_until_ms);
        before - self.len()
    }

    fn count_anew(&mut self) {
        let due = self.all.iter().filter_map(|(key, it)| Some((it.due()?, key.clone())));
        self.due = due.collect();
        self.ends_ms = self.all.values().map(|it| it.lease_until_ms).min().unwrap_or(u64::MAX);
    }
}
