//! Events of links, and the calls that measure them.

use std::time::Duration;

use super::super::job::Job;
use super::super::measuring::{Measured, Next};
use super::Core;
use crate::id::{GroupId, MemberId};
use crate::link::frame::Reason;
use crate::link::goodput::Sample;
use crate::link::{End, Event, Link};
use crate::message::Message;

impl Core {
    pub(super) fn handle_event(&mut self, event: Event) {
        let now = self.now();
        self.groups.set_clocks(now);
        match event {
            Event::Up(link) => self.handle_up(link, now),
            Event::Down(link, end) => {
                tracing::info!(member = %link.member(), %end, "a link is down");
                if matches!(end, End::There(_, Reason::Denied)) {
                    self.notes.add(end.to_string(), now);
                }
                self.handle_down(&link, now);
            }
            Event::Message(link, bytes) => {
                if self.links.has(&link) {
                    self.handle_bytes(&link, &bytes, now);
                }
            }
            Event::Goodput(link, sample) => {
                let (member, Sample { bytes, took }) = (link.member(), sample);
                self.groups.all_mut().for_each(|it| it.handle_transfer(member, bytes, took, now));
                self.set_window(link.member());
            }
            Event::Probed(link, found) => {
                if let Some(bandwidth) = found {
                    let member = link.member();
                    self.groups.all_mut().for_each(|it| it.handle_probe(member, bandwidth, now));
                    self.set_window(link.member());
                }
            }
            Event::RoundTrip(member, took) => {
                let next = self.measuring.handle_round_trip(member, took, now);
                self.measure_on(member, next, now);
            }
            Event::Room(_) => {}
            Event::Unreachable { neighbor, error, again } => {
                let address = &neighbor.address;
                tracing::debug!(%address, ?again, "no link");
                self.notes.add(format!("no link to {address}: {error}"), now);
                if let Some(key) = neighbor.key {
                    let member = MemberId::of(&key);
                    self.measuring.handle_unreachable(member);
                    self.groups.all_mut().for_each(|it| it.handle_link_down(member, now));
                }
            }
            Event::Refused { address, key, reason } => {
                let member = MemberId::of(&key);
                // The port differs each time.
                let at = address.ip();
                let what = format!("{member} at {at} was refused: {}", reason.text());
                self.notes.add(what, self.now());
            }
        }
    }

    fn handle_up(&mut self, link: Link, now: Duration) {
        let member = link.member();
        tracing::info!(%member, address = %link.address(), "a link is up");
        if self.links.is_up(member) {
            self.replica.handle_down(member, now);
        }
        let next = self.measuring.handle_linked(&link, now);
        let (is_member, site) = (self.groups.is_member(member), self.groups.site(member));
        self.links.insert(link, is_member, site, &self.own.config, now);
        self.groups.all_mut().for_each(|it| it.handle_link_up(member, now));
        if is_member {
            self.replica.handle_up(member, self.groups.window(member), now);
        }
        self.measure_on(member, next, now);
    }

    fn handle_down(&mut self, link: &Link, now: Duration) {
        let member = link.member();
        if self.links.remove(link) {
            self.groups.all_mut().for_each(|it| it.handle_link_down(member, now));
            self.replica.handle_down(member, now);
        }
    }

    fn handle_bytes(&mut self, link: &Link, bytes: &[u8], now: Duration) {
        let member = link.member();
        match Message::from_bytes(bytes) {
            Ok(Message::Group { group, bytes }) => {
                if let Some(answer) = self.groups.handle_message(link, group, &bytes, now) {
                    self.links.send(member, answer.to_bytes().into());
                }
            }
            Ok(message) if self.groups.is_member(member) => {
                if matches!(message, Message::Request(_) | Message::Chunk(_)) {
                    self.groups.all_mut().for_each(|it| it.handle_busy(now));
                }
                self.replica.handle_message(member, message, now);
            }
            // A stranger may ask to join, and send nothing else.
            Ok(_) => {}
            Err(error) => {
                self.notes.add(format!("{member} sent an invalid message: {error}"), now);
                link.close(Reason::Malformed);
            }
        }
    }

    pub(super) fn measure(&mut self, group: GroupId, member: MemberId, probe: bool, now: Duration) {
        let is_linked = self.links.is_up(member);
        let next = self.measuring.begin(group, member, probe, is_linked, now);
        self.measure_on(member, Some(next), now);
    }

    pub(super) fn handle_called(&mut self, member: MemberId, is_sent: bool, now: Duration) {
        let is_linked = self.links.is_up(member);
        let next = self.measuring.handle_called(member, is_sent, is_linked, now);
        self.measure_on(member, next, now);
    }

    /// Does the next step of measuring a member.
    fn measure_on(&mut self, member: MemberId, next: Option<Next>, now: Duration) {
        match next {
            None => {}
            Some(Next::Connect) => {
                if let Some(neighbor) = self.groups.neighbor(member) {
                    self.links.connect(neighbor);
                }
            }
            Some(Next::Call) => {
                if let Some(neighbor) = self.groups.neighbor(member) {
                    let calling = self.measuring.calling(member, neighbor.address);
                    self.jobs.start(Job::Call(calling));
                }
            }
            Some(Next::Take(Measured { groups, is_probing, shortest })) => {
                let shortest = self.groups.handle_round_trip(&groups, member, shortest, now);
                if is_probing {
                    self.links.probe(member, shortest);
                }
                self.set_window(member);
            }
        }
    }

    /// Takes in which members did not answer.
    pub(super) fn measure_late(&mut self, now: Duration) {
        for (member, groups) in self.measuring.poll_late(now) {
            let measuring = self.groups.all_mut().filter(|it| groups.contains(&it.id()));
            measuring.for_each(|it| it.handle_unanswered(member, now));
        }
    }

    fn set_window(&mut self, member: MemberId) {
        self.replica.set_window(member, self.groups.window(member));
    }
}
