//! Tests of former members: which requests bring them back.

use super::*;

impl TestNet {
    /// Sets at the founder whether a member is denied.
    fn deny_or_not(&mut self, seed: u8, is_denied: bool) {
        let now = self.now;
        let founder = self.groups.get_mut(&id(1)).unwrap();
        let mut settings = founder.settings.clone();
        let deny = &mut settings.access.as_mut().unwrap().deny;
        deny.clear();
        deny.extend(is_denied.then(|| Rule::Member(id(seed))));
        founder.handle_settings(settings, now);
        self.run(MINUTE);
    }

    /// Delivers all earlier requests of a member again, as if `by` forwarded them.
    fn replay(&mut self, by: u8, of: u8) -> usize {
        let requests = self.joins.iter().filter(|it| it.0 == id(of)).cloned();
        let requests: Vec<(MemberId, Arc<[u8]>)> = requests.collect();
        for (_, bytes) in &requests {
            let mut passed = bytes.to_vec();
            passed[0] = 1;
            self.deliver(id(by), id(1), &Message::Join(passed.into()));
            self.act(id(1));
        }
        self.run(MINUTE / 4);
        requests.len()
    }

    fn has(&self, seed: u8) -> bool {
        self.charter().body().member(id(seed)).is_some()
    }
}

#[test]
fn an_old_request_brings_nobody_back() {
    let mut net = TestNet::new(5);
    net.run(3 * MINUTE);
    net.kill(id(5));
    // The member that forwards the requests again needs a link to the leader.
    let links = net.links.clone();
    let by = (2..5).find(|it| links.contains(&(id(1).min(id(*it)), id(1).max(id(*it))))).unwrap();
    net.deny_or_not(5, true);
    net.deny_or_not(5, false);
    let gone = net.charter().body().gone(id(5)).unwrap();
    assert!(!net.has(5) && gone != 0);
    assert_ne!(net.replay(by, 5), 0);
    assert!(!net.has(5), "its earlier requests do not count");
    // A new leader knows the former member's sequence as well.
    net.kill(id(1));
    net.run(6 * MINUTE);
    assert_eq!(net.charter().body().gone(id(5)), Some(gone));
    // The member comes back itself, with its saved state.
    let saved = net.saved[&id(5)].clone();
    let back = Group::open(identity(5), settings(5, None), Some(&saved), None, net.now).unwrap();
    net.groups.insert(id(5), back);
    net.run(3 * MINUTE);
    assert!(net.has(5) && net.charter().body().gone.is_empty());
}

#[test]
fn a_denied_member_is_refused_and_learns_nothing_else() {
    let mut net = TestNet::new(5);
    net.run(3 * MINUTE);
    assert_eq!(net.refused, []);
    net.deny_or_not(5, true);
    net.run(2 * MINUTE);
    assert!(net.refused.contains(&(id(5), Reason::Denied)));
    assert!(net.refused.iter().all(|it| it.0 == id(5)));
    let lists = |by: u8| net.groups[&id(by)].charter().unwrap().body().member(id(5)).is_some();
    assert!(!lists(1) && lists(5), "it is not shown the charter without it");
    // It may come back.
    net.deny_or_not(5, false);
    net.run(4 * MINUTE);
    assert!(net.has(5));
}

#[test]
fn a_former_member_that_has_lost_its_disk_asks_with_a_greater_sequence() {
    let mut net = TestNet::new(5);
    net.run(3 * MINUTE);
    let old = net.saved[&id(4)].clone();
    for _ in 0..3 {
        let saved = net.saved[&id(4)].clone();
        net.kill(id(4));
        let again = Group::open(identity(4), settings(4, None), Some(&saved), None, net.now);
        net.groups.insert(id(4), again.unwrap());
        net.run(MINUTE);
    }
    for is_disk_lost in [true, false] {
        net.kill(id(4));
        net.deny_or_not(4, true);
        net.deny_or_not(4, false);
        let gone = net.charter().body().gone(id(4)).unwrap();
        assert!(2 << 32 < gone && !net.has(4));
        net.alarms.clear();
        // It starts without a saved state, or with an old one.
        let invitation = net.groups[&id(1)].invitation(None);
        let saved = (!is_disk_lost).then_some(old.as_slice());
        let back = Group::open(identity(4), settings(4, None), saved, invitation, net.now);
        net.groups.insert(id(4), back.unwrap());
        net.run(3 * MINUTE);
        assert!(net.has(4));
        assert!(gone < net.charter().body().member(id(4)).unwrap().request);
        assert!(net.alarms.contains(&Alarm::Forgotten));
    }
}
