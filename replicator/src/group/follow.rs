//! Adoption of charters: a member follows a new one and passes it on.
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use super::charter::{self, Body, Charter, Member};
use super::join::Reason;
use super::succession::Refusal;
use super::{Action, Alarm, Group, Message, Peer, lead};
use crate::estimate::Estimate;
use crate::id::MemberId;

impl Group {
    /// Adopts a charter that came from `from` (`None`: signed here or saved), and passes it on.
    pub(super) fn adopt(&mut self, charter: Charter, from: Option<MemberId>, now: Duration) {
        let charter = Arc::new(charter);
        let old = self.charter.replace(Arc::clone(&charter));
        let body = charter.body();
        self.peers.retain(|it, _| body.member(*it).is_some());
        for member in body.members.iter().filter(|it| it.id() != self.me) {
            let before = self.lead.silences.remove(&member.id()).unwrap_or_default();
            let estimate = Estimate::default();
            let new = || Peer {
                since: now,
                before,
                estimate,
                line: None,
                called: None,
                wanted: None,
                has_cross_traffic: false,
                failures: 0,
            };
            self.peers.entry(member.id()).or_insert_with(new);
        }
        self.rows.keep(|it| body.member(it).is_some());
        self.held.handle_charter(&charter);
        self.lead.handle_charter(&charter, now);
        self.watch_invitations(now);
        self.persist(now);
        self.queue.push_back(Action::NewCharter);
        self.close_denied(old.as_deref(), body);
        if let Some(old) = &old {
            self.note_leader(old, &charter);
        }
        self.note_self(old.as_deref(), &charter, now);
        if let Some(from) = from.and_then(|it| self.linked.get_mut(&it)) {
            from.charter_sent = Some(charter.hash());
        }
        let linked: Vec<MemberId> = self.linked.keys().copied().collect();
        for member in linked {
            self.offer_charter(member);
            // A new member knows nothing yet.
            if old.as_ref().is_none_or(|it| it.body().member(member).is_none()) {
                self.compare(member, false);
            }
        }
        self.due.review = now;
    }

    fn close_denied(&mut self, old: Option<&Charter>, body: &Body) {
        let was = |id: MemberId| old.and_then(|it| it.body().member(id));
        // A member that was denied before and still has a link needs the link for another group.
        let was_denied = |id: MemberId| old.is_some_and(|it| it.body().access.denies_member(id));
        let is_denied = |id: &MemberId| {
            let by_id = body.access.denies_member(*id) && !was_denied(*id);
            let by_address = || was(*id).is_some_and(|it| body.access.denies(&lead::caller(it)));
            body.member(*id).is_none() && (by_id || by_address())
        };
        let denied: Vec<MemberId> = self.linked.keys().copied().filter(is_denied).collect();
        self.queue.extend(denied.into_iter().map(Action::CloseLink));
    }

    fn note_leader(&mut self, old: &Charter, new: &Charter) {
        let (by, epoch) = (new.leader(), new.epoch());
        if old.leader() == self.me && by != self.me {
            self.queue.push_back(Action::Alarm(Alarm::Deposed { by, epoch }));
        }
        if old.leader() != self.me && by == self.me {
            self.queue.push_back(Action::Alarm(Alarm::TookOver(epoch)));
        }
    }

    /// Checks this member's entry in the new charter.
    fn note_self(&mut self, old: Option<&Charter>, new: &Charter, now: Duration) {
        let was_in = old.is_some_and(|it| it.body().member(self.me).is_some());
        match new.body().member(self.me) {
            Some(member) => {
                if !was_in {
                    self.queue.push_back(Action::Admitted);
                    self.due.announce = now;
                }
                let known = member.silent.unwrap_or_default().max(member.request);
                if self.sequence() < known {
                    self.queue.push_back(Action::Alarm(Alarm::Forgotten));
                }
                self.jump(known, now);
                let own = self.own.as_ref().map(|it| it.row.sequence);
                if member.silent.is_some_and(|it| own.is_some_and(|own| own <= it)) {
                    // Only a newer row shows that this member is alive.
                    self.own = None;
                    self.due.announce = now;
                }
            }
            None if was_in => self.queue.push_back(Action::Alarm(Alarm::Missing)),
            None => {}
        }
        self.note_gone(new, now);
        self.admission.reset();
        self.due.ask = now;
    }

    /// Raises this member's sequence above the last one known when it left, so that others admit it
    /// again.
    fn note_gone(&mut self, charter: &Charter, now: Duration) {
        let gone = charter.body().gone(self.me).unwrap_or_default();
        if self.sequence() < gone {
            self.queue.push_back(Action::Alarm(Alarm::Forgotten));
            self.jump(gone, now);
            self.admission.reset();
            self.due.ask = now;
        }
    }

    /// Sends the charter to a member that may not have it yet. Strangers get nothing.
    pub(super) fn offer_charter(&mut self, member: MemberId) {
        let Some(charter) = self.charter.clone() else { return };
        if charter.body().member(member).is_some() {
            self.send_charter(&charter, member);
        }
    }

    pub(super) fn send_charter(&mut self, charter: &Charter, to: MemberId) {
        let hash = Some(charter.hash());
        if let Some(linked) = self.linked.get_mut(&to).filter(|it| it.charter_sent != hash) {
            linked.charter_sent = hash;
            self.send(to, Message::Charter(charter.to_bytes()));
        }
    }

    pub(super) fn send(&mut self, to: MemberId, message: Message) {
        self.queue.push_back(Action::Send { to: vec![to], message });
    }

    pub(super) fn lied(&mut self, from: MemberId) {
        self.lies += 1;
        self.queue.push_back(Action::Alarm(Alarm::Lied(from)));
    }

    /// Takes in a charter that came over the link to `from`.
    pub fn handle_charter(&mut self, from: MemberId, bytes: &[u8], now: Duration) {
        let known = self.charter.clone();
        if known.as_ref().is_some_and(|it| *it.to_bytes() == *bytes) {
            let hash = known.map(|it| it.hash());
            self.linked.entry(from).and_modify(|it| it.charter_sent = hash);
            return;
        }
        let charter = match Charter::from_bytes(bytes, self.group, known.as_deref()) {
            Ok(charter) => charter,
            // The sender may be in two groups.
            Err(charter::CharterError::Foreign(_)) => return,
            Err(_) => return self.lied(from),
        };
        let Some(known) = known else {
            if charter.body().member(self.me).is_some() {
                self.adopt(charter, Some(from), now);
            } else {
                self.note_gone(&charter, now);
            }
            return;
        };
        match charter.succeeds(&known) {
            Ok(()) => self.adopt(charter, Some(from), now),
            Err(refusal) => self.handle_refusal(from, refusal, &charter, now),
        }
    }

    fn handle_refusal(
        &mut self,
        from: MemberId,
        refusal: Refusal,
        charter: &Charter,
        now: Duration,
    ) {
        let Some(known) = self.charter.clone() else { return };
        match refusal {
            // A member under another leader's charter has to learn who leads.
            Refusal::Stale => {
                let is_denied = |it: &Member| known.body().access.denies(&lead::caller(it));
                match charter.body().member(from).map(is_denied) {
                    Some(true) => self.refuse(from, from, Reason::Denied),
                    Some(false) => self.send_charter(&known, from),
                    None => {}
                }
            }
            Refusal::Revoked(by) => self.handle_revoked(by, charter, now),
            Refusal::Foreign | Refusal::Epoch => {}
        }
    }
}
