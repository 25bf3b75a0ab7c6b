//! Tests of faults known from other systems and of administrators' changes, one world each.

use std::time::Duration;

use fastrand::Rng;
use replicator::group::access::{Access, Rule};
use replicator::id::MemberId;

use crate::world::{Event, World};
use crate::{JOINED, MINUTE, PATIENCE};

const HOUR: Duration = Duration::from_hours(1);
const DAY_MINUTES: u32 = 24 * 60;

/// Makes a group that all members have joined.
fn settled(seed: u64, count: usize) -> World {
    let mut world = World::new(Rng::with_seed(seed), count);
    world.join_before(JOINED);
    world.run(JOINED);
    world.settle_down(PATIENCE);
    world
}

impl World {
    fn leader(&self) -> usize {
        let charter = self.charter(self.honest()[0]).unwrap();
        self.places[&charter.leader()]
    }

    /// Has the leader's administrator withdraw all invitations.
    fn revoke_all(&mut self) {
        let leader = self.leader();
        let invited = self.charter(leader).unwrap().body().invitations.clone();
        for it in invited {
            self.call(leader, |group, now| group.revoke(it.id(), now).unwrap());
        }
    }

    /// Has the leader's administrator make one invitation for members that never were in the group.
    fn invite(&mut self, members: &[usize], secret: [u8; 32]) {
        let leader = self.leader();
        let mut key = None;
        for it in members {
            let line = self.members[*it].invitation.as_mut().unwrap();
            line.secret = Some(secret);
            key = line.public();
        }
        self.call(leader, |group, now| {
            group.invite(key.unwrap(), HOUR * 24, now).unwrap();
        });
    }

    fn has(&self, member: usize) -> bool {
        let charter = self.charter(self.honest()[0]).unwrap();
        charter.body().member(self.members[member].id).is_some()
    }

    /// Has the leader's administrator change the access list.
    fn settle_access(&mut self, change: impl FnOnce(&mut Access)) {
        let leader = self.leader();
        let mut access = self.charter(leader).unwrap().body().access.clone();
        change(&mut access);
        // The next leader has the list from the charter or from its own settings.
        for it in &mut self.members {
            it.settings.access = it.settings.access.is_some().then(|| access.clone());
        }
        self.members[leader].settings.access = Some(access);
        for member in self.honest() {
            let settings = self.members[member].settings.clone();
            self.call(member, |group, now| group.handle_settings(settings, now));
        }
    }
}

/// memberlist: after a restart of all members, their messages were older than the remembered ones.
#[test]
fn members_are_heard_after_a_restart_of_all() {
    for seed in 0..8 {
        let mut world = settled(seed, 5);
        for round in 0..4 {
            world.restart_all();
            world.run(world.now + MINUTE / 2 * round);
            world.watch();
        }
        world.run(world.now + MINUTE);
        world.settle_down(PATIENCE);
        let charter = world.charter(0).unwrap();
        assert!(charter.body().members.iter().all(|it| it.silent.is_none()));
    }
}

/// chitchat: a dead member came back to life by the knowledge of others.
#[test]
fn a_dead_member_stays_silent_whatever_others_know() {
    for seed in 0..6 {
        let mut world = settled(seed, 5);
        let charter = world.charter(0).unwrap();
        let leads: Vec<MemberId> = charter.deputies().iter().map(MemberId::of).collect();
        let leader = world.leader();
        let is_other = |it: &usize| *it != leader && !leads.contains(&world.members[*it].id);
        let others: Vec<usize> = (0..5).filter(is_other).collect();
        let [dead, witness] = others[..] else { panic!("two deputies") };
        // The witness alone hears the other for longer, and then brings rows that nobody else has.
        let mut sides = vec![0; 5];
        (sides[dead], sides[witness]) = (1, 1);
        world.schedule(world.now, Event::Part { sides });
        world.run(world.now + MINUTE * 6);
        world.crash(dead);
        world.members[dead].is_gone = true;
        if seed % 2 == 0 {
            for it in (0..5).filter(|it| ![dead, witness].contains(it)) {
                world.crash(it);
                world.start(it);
            }
        }
        world.run(world.now + MINUTE);
        let silent = |world: &World| {
            let charter = world.charter(leader).unwrap();
            charter.body().member(world.members[dead].id).unwrap().silent
        };
        assert!(silent(&world).is_some());
        world.schedule(world.now, Event::Part { sides: vec![0; 5] });
        let mut is_heard = false;
        for _ in 0..300 {
            world.run(world.now + MINUTE / 60);
            assert!(silent(&world).is_some(), "not for a moment");
            let heard = world.group(leader).row_mark(world.members[dead].id);
            is_heard |= heard.is_some_and(|it| silent(&world) <= Some(it.0));
        }
        assert!(is_heard, "the witness's rows have come");
        world.settle_down(PATIENCE);
    }
}

/// A member that was not running cannot know how long others were silent.
#[test]
fn a_member_that_was_paused_does_not_take_over() {
    for seed in 0..8 {
        let mut world = settled(seed, 5);
        let leader = world.leader();
        let charter = world.charter(leader).unwrap();
        let (epoch, deputy) = (charter.epoch(), MemberId::of(&charter.deputies()[0]));
        let deputy = world.places[&deputy];
        for minutes in [1, 4, 30] {
            let until = world.now + MINUTE * minutes;
            world.schedule(world.now, Event::Pause { member: deputy, until });
            world.run(until);
            for _ in 0..120 {
                world.run(world.now + MINUTE / 60);
                assert!(!world.group(deputy).is_leader(), "after {minutes} minutes");
            }
            world.settle_down(PATIENCE);
            assert_eq!((world.leader(), world.charter(deputy).unwrap().epoch()), (leader, epoch));
        }
    }
}

/// A member that is away for days stays in the group; after a month it has to ask again.
#[test]
fn a_member_away_for_a_month_has_to_ask_again() {
    for (seed, days) in [(0, 29), (1, 31), (2, 29), (3, 31), (4, 31)] {
        let mut world = settled(seed, 4);
        let away = (world.leader() + 1) % 4;
        world.crash(away);
        world.run(world.now + MINUTE * 6);
        world.settle_down(PATIENCE);
        let id = world.members[away].id;
        let others: Vec<usize> = (0..4).filter(|it| *it != away).collect();
        // The others stop, so that the days need not be simulated.
        for it in &others {
            world.crash(*it);
            world.members[*it].age(id, days * DAY_MINUTES);
        }
        others.iter().for_each(|it| world.start(*it));
        world.run(world.now + MINUTE * 5);
        world.settle_down(PATIENCE);
        assert_eq!(world.has(away), days < 30, "after {days} days");
        // No new member may join, and no invitation is valid.
        world.settle_access(|it| *it = Access::default());
        world.revoke_all();
        world.run(world.now + MINUTE);
        if 30 <= days {
            world.denied.insert(id);
        }
        world.start(away);
        world.run(world.now + MINUTE * 5);
        world.settle_down(PATIENCE);
        assert_eq!(world.has(away), days < 30, "after {days} days");
        // The access list allows the member.
        world.denied.clear();
        world.settle_access(|it| it.allow = vec![Rule::Member(id)]);
        world.run(world.now + MINUTE * 6);
        world.settle_down(PATIENCE);
        assert!(world.has(away));
    }
}

/// iroh-gossip: separated parts did not look for each other.
#[test]
fn parts_find_each_other_after_hours() {
    for seed in 0..2 {
        let mut world = settled(seed, 6);
        // A deputy is in the part without the leader.
        let leader = world.leader();
        let deputy = MemberId::of(&world.charter(leader).unwrap().deputies()[0]);
        let mut sides: Vec<u8> = (0..6).map(|it| u8::from(it % 2 == 0)).collect();
        sides[world.places[&deputy]] = 1 - sides[leader];
        world.schedule(world.now, Event::Part { sides });
        world.run(world.now + HOUR * 4);
        let leads = |it: &usize| world.group(*it).is_leader();
        assert_eq!((0..6).filter(leads).count(), 2, "each part has a leader");
        world.schedule(world.now, Event::Part { sides: vec![0; 6] });
        world.settle_down(PATIENCE);
        world.stay_sound(MINUTE);
    }
}

#[test]
fn a_returning_leader_follows_the_new_one() {
    for seed in 0..8 {
        let mut world = settled(seed, 6);
        let old = world.leader();
        let epoch = world.charter(old).unwrap().epoch();
        world.crash(old);
        world.run(world.now + MINUTE * 6);
        world.settle_down(PATIENCE);
        let new = world.leader();
        assert_ne!(new, old);
        world.start(old);
        world.run(world.now + MINUTE);
        world.settle_down(PATIENCE);
        assert_eq!((world.leader(), world.charter(old).unwrap().epoch()), (new, epoch + 1));
    }
}

/// Two members have the same invitation, and the leader may be down or cut off when they come.
#[test]
fn one_of_two_members_with_the_same_invitation_is_admitted() {
    for seed in 0..6 {
        let mut world = World::new(Rng::with_seed(seed), 7);
        for member in 1..5 {
            world.schedule(JOINED / 2, Event::Start { member });
        }
        world.run(JOINED);
        world.settle_down(PATIENCE);
        let rivals = [world.members[5].id, world.members[6].id];
        world.settle_access(|it| {
            it.allow.retain(|it| !rivals.iter().any(|id| *it == Rule::Member(*id)));
        });
        world.run(world.now + MINUTE / 10);
        world.settle_down(PATIENCE);
        world.invite(&[5, 6], [55; 32]);
        let from = world.now;
        let soon = world.moment(from, from + MINUTE / 4);
        match seed % 3 {
            0 => world.schedule(soon, Event::CrashLeader { until: soon + MINUTE * 4 }),
            1 => {
                let sides = (0..7).map(|it| u8::from(it % 2 == 0)).collect();
                world.schedule(soon, Event::Part { sides });
                world.schedule(soon + MINUTE * 4, Event::Part { sides: vec![0; 7] });
            }
            _ => {}
        }
        for member in [5, 6] {
            let at = world.moment(from, from + MINUTE / 4);
            world.schedule(at, Event::Start { member });
        }
        world.run(from + MINUTE * 12);
        // A refused member keeps asking, ever less often.
        let mut came: Vec<usize> = Vec::new();
        for _ in 0..20 {
            came = [5, 6].into_iter().filter(|it| world.has(*it)).collect();
            if came.len() == 1 {
                break;
            }
            world.run(world.now + MINUTE);
        }
        let [came] = came[..] else { panic!("{came:?} came in world {seed}") };
        world.denied.insert(world.members[11 - came].id);
        world.settle_down(PATIENCE);
        let charter = world.charter(0).unwrap();
        let used = charter
            .body()
            .invitations
            .iter()
            .find_map(|it| it.used_by.filter(|it| *it == world.members[came].id));
        assert_eq!(used, Some(world.members[came].id), "in world {seed}");
    }
}

#[test]
fn a_denied_member_stays_out_even_if_it_was_a_deputy() {
    for seed in 0..8 {
        let mut world = settled(seed, 6);
        // In every second world the denied member is a deputy, which may think that it leads.
        let deputy = world.charter(0).unwrap().deputies()[0];
        let deputy = world.places[&MemberId::of(&deputy)];
        let leader = world.leader();
        let other = (0..6).find(|it| *it != leader && *it != deputy).unwrap();
        let denied = if seed % 2 == 0 { deputy } else { other };
        let id = world.members[denied].id;
        world.denied.insert(id);
        world.settle_access(|it| it.deny.push(Rule::Member(id)));
        world.run(world.now + MINUTE);
        world.settle_down(PATIENCE);
        world.run(world.now + MINUTE * 10);
        world.stay_sound(MINUTE * 2);
        world.restart_all();
        world.run(world.now + MINUTE);
        world.settle_down(PATIENCE);
        assert!(!world.has(denied));
    }
}
