//! Members that have gone, and what brings them back.

use super::*;

impl World {
    /// Has the founder's admin settle whether a member is denied.
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

    /// What somebody may have kept of all requests of a member, as if it passed them on.
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
    let mut world = World::new(5);
    world.run(3 * MINUTE);
    world.kill(id(5));
    // Somebody has to have a link to the leader.
    let links = world.links.clone();
    let by = (2..5).find(|it| links.contains(&(id(1).min(id(*it)), id(1).max(id(*it))))).unwrap();
    world.deny_or_not(5, true);
    world.deny_or_not(5, false);
    let gone = world.charter().body().gone(id(5)).unwrap();
    assert!(!world.has(5) && gone != 0);
    assert_ne!(world.replay(by, 5), 0);
    assert!(!world.has(5), "nothing that it said before counts");
    // Another leads, and knows it as well.
    world.kill(id(1));
    world.run(6 * MINUTE);
    assert_eq!(world.charter().body().gone(id(5)), Some(gone));
    // It comes itself, with what it had kept.
    let kept = world.kept[&id(5)].clone();
    let back = Group::open(identity(5), settings(5, None), Some(&kept), None, world.now).unwrap();
    world.groups.insert(id(5), back);
    world.run(3 * MINUTE);
    assert!(world.has(5) && world.charter().body().gone.is_empty());
}

#[test]
fn who_is_denied_is_told_and_learns_nothing_else() {
    let mut world = World::new(5);
    world.run(3 * MINUTE);
    assert_eq!(world.refused, []);
    world.deny_or_not(5, true);
    world.run(2 * MINUTE);
    assert!(world.refused.contains(&(id(5), Reason::Denied)));
    assert!(world.refused.iter().all(|it| it.0 == id(5)));
    let lists = |by: u8| world.groups[&id(by)].charter().unwrap().body().member(id(5)).is_some();
    assert!(!lists(1) && lists(5), "it is not shown the charter without it");
    // It may come back.
    world.deny_or_not(5, false);
    world.run(4 * MINUTE);
    assert!(world.has(5));
}

#[test]
fn who_has_gone_and_lost_its_disk_asks_above_what_was_known() {
    let mut world = World::new(5);
    world.run(3 * MINUTE);
    let old = world.kept[&id(4)].clone();
    for _ in 0..3 {
        let kept = world.kept[&id(4)].clone();
        world.kill(id(4));
        let again = Group::open(identity(4), settings(4, None), Some(&kept), None, world.now);
        world.groups.insert(id(4), again.unwrap());
        world.run(MINUTE);
    }
    for is_disk_lost in [true, false] {
        world.kill(id(4));
        world.deny_or_not(4, true);
        world.deny_or_not(4, false);
        let gone = world.charter().body().gone(id(4)).unwrap();
        assert!(2 << 32 < gone && !world.has(4));
        world.alarms.clear();
        // It begins at nothing, or with what it was long ago.
        let invitation = world.groups[&id(1)].invitation(None);
        let kept = (!is_disk_lost).then_some(old.as_slice());
        let back = Group::open(identity(4), settings(4, None), kept, invitation, world.now);
        world.groups.insert(id(4), back.unwrap());
        world.run(3 * MINUTE);
        assert!(world.has(4));
        assert!(gone < world.charter().body().member(id(4)).unwrap().request);
        assert!(world.alarms.contains(&Alarm::Forgotten));
    }
}
