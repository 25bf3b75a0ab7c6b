//! Actions of the groups' state machines.

use std::time::Duration;

use super::super::groups::to_message;
use super::Core;
use crate::group::{Action, Alarm};
use crate::id::GroupId;
use crate::link::Neighbor;
use crate::link::frame::Reason;
use crate::version::Version;

impl Core {
    pub(super) fn handle_group_action(&mut self, id: GroupId, action: Action) {
        let now = self.now();
        let own = &self.own;
        let name = || own.group_name(id);
        match action {
            Action::Persist(bytes) => match self.own.files.put_group(id, &bytes) {
                Ok(()) => self.groups.handle_saved(id, &bytes, &self.own, &mut self.notes),
                Err(error) => {
                    self.notes.add(format!("the state of a group cannot be saved: {error}"), now);
                }
            },
            Action::Send { to, message } => {
                let message = to_message(id, &message).to_bytes();
                for member in to {
                    self.links.send(member, message.clone().into());
                }
            }
            Action::Connect { key, address } => {
                let neighbor = Neighbor { address: address.to_string(), key: Some(key) };
                self.links.connect(neighbor);
            }
            Action::Measure { member, probe } => self.measure(id, member, probe, now),
            Action::NewCharter => self.handle_charter(id, now),
            Action::CloseLink(member) => {
                if !self.groups.is_member(member) && self.links.close(member, Reason::Denied) {
                    let text = format!("group {} denies {member}: its link is closed", name());
                    self.notes.add(text, now);
                }
            }
            Action::Admitted => self.notes.add(format!("in group {}", name()), now),
            Action::Refused(reason) => {
                let text = format!("group {} does not let this member in: {reason}", name());
                self.notes.add(text, now);
            }
            Action::Alarm(alarm) => {
                self.notes.add(format!("group {}: {alarm}", name()), now);
                if let Alarm::Lied(member) = alarm {
                    self.links.close(member, Reason::Malformed);
                }
            }
        }
    }

    /// Applies a new charter: allowed keys, wanted links, replicated trees.
    fn handle_charter(&mut self, id: GroupId, now: Duration) {
        match self.groups.neighborhood(id) {
            Some(neighborhood) => self.replica.set_group(id, neighborhood, now),
            None => self.replica.remove_group(id, now),
        }
        self.links.let_in(self.groups.keys(), self.groups.denied());
        self.links.want(self.groups.neighbors());
        self.meet(now);
        self.restore(now);
        self.groups.carry(&self.own, now);
    }

    /// Begins to exchange content with linked new members, and ends it with former ones.
    fn meet(&mut self, now: Duration) {
        for (member, is_member) in self.links.set_members(|it| self.groups.is_member(it)) {
            if is_member {
                self.replica.handle_up(member, self.groups.window(member), now);
            } else {
                self.replica.handle_down(member, now);
            }
        }
    }

    /// Restores versions that were known before the start, once a group lists their namespaces.
    fn restore(&mut self, now: Duration) {
        let (writers, flood) = (self.groups.writers(), self.replica.flood());
        let due =
            self.spaces.take_known(|it| writers.contains_key(it), |it| flood.newest(it).is_some());
        for (of, bytes) in due {
            let Some(key) = writers.get(&of) else { continue };
            match Version::from_bytes(&bytes, key) {
                Ok(version) => {
                    let held = self.spaces.current(&of);
                    let is_held = held.is_some_and(|it| it.meta().number == version.number);
                    self.replica.restore(&version, is_held);
                }
                Err(error) => self.notes.add(format!("{of}: {error}"), now),
            }
        }
        self.replica.handle_timeout(now);
    }
}
