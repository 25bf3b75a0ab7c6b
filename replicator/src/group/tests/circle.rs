//! Tests of groups that carry each other's trees, also in a circle.

use super::*;
use crate::group::charter::Carried;
use crate::group::state::SavedGroup;

/// The writer of the circulating tree.
const WRITER: u8 = 1;
/// The founder of the writer's group.
const FOUNDER: u8 = 10;

/// Several groups, with the members that carry trees between them.
struct Circle {
    worlds: Vec<TestNet>,
    /// Carrier, source group and target group.
    carriers: Vec<(u8, usize, usize)>,
    carried: Vec<Vec<Carried>>,
}

impl Circle {
    /// `groups` has the seeds of each group's members, its founder first.
    fn new(groups: &[&[u8]], carriers: &[(u8, usize, usize)]) -> Self {
        let worlds = groups.iter().map(|it| TestNet::of(it, 1)).collect();
        let carried = vec![Vec::new(); carriers.len()];
        let mut circle = Self { worlds, carriers: carriers.to_vec(), carried };
        circle.run(5 * MINUTE);
        circle
    }

    /// Runs all groups; carriers act as their shell would when a charter has changed.
    fn run(&mut self, time: Duration) {
        let end = self.worlds[0].now + time;
        while self.worlds[0].now < end {
            self.worlds.iter_mut().for_each(|it| it.run(Duration::from_millis(500)));
            for (position, (seed, from, into)) in self.carriers.iter().enumerate() {
                let group = |it: &usize| &self.worlds[*it].groups[&id(*seed)];
                let (from, machine) = (group(from), group(into));
                let carried: Vec<Carried> = machine.brought_from(from).collect();
                if carried == self.carried[position] {
                    continue;
                }
                let settings = Settings { carried: carried.clone(), ..machine.settings.clone() };
                self.carried[position] = carried;
                let net = &mut self.worlds[*into];
                let now = net.now;
                let machine = net.groups.get_mut(&id(*seed)).unwrap();
                machine.handle_settings(settings, now);
            }
        }
    }

    /// Returns the distance of the writer's tree in each group; `None` where the tree is missing.
    fn distances(&self) -> Vec<Option<u8>> {
        let is_it = |it: &&charter::Listed| it.tree.writer == identity(WRITER).public();
        let distance = |net: &TestNet| {
            let charter = net.charter();
            let listed = charter.body().trees.iter().find(is_it)?;
            listed.by.iter().map(|it| it.distance).min()
        };
        self.worlds.iter().map(distance).collect()
    }

    /// Makes the writer leave the first group, after a month.
    fn dismiss(&mut self) {
        self.worlds[0].kill(id(WRITER));
        self.run(5 * MINUTE);
        let net = &mut self.worlds[0];
        let mut state = SavedGroup::from_bytes(&net.saved[&id(FOUNDER)]).unwrap();
        *state.silences.get_mut(&id(WRITER)).unwrap() += 30 * 24 * 60;
        let settings = net.groups[&id(FOUNDER)].settings.clone();
        net.kill(id(FOUNDER));
        let now = net.now;
        let saved = Some(state.to_bytes());
        let again = Group::open(identity(FOUNDER), settings, saved.as_deref(), None, now).unwrap();
        net.groups.insert(id(FOUNDER), again);
        self.run(MINUTE / 4);
        assert_eq!(self.worlds[0].charter().body().member(id(WRITER)), None);
    }
}

#[test]
fn a_circulating_tree_does_not_outlive_its_writer() {
    let groups: [&[u8]; 3] = [&[FOUNDER, WRITER, 21, 23], &[20, 21, 22], &[30, 22, 23]];
    let mut circle = Circle::new(&groups, &[(21, 0, 1), (22, 1, 2), (23, 2, 0)]);
    assert_eq!(circle.distances(), [Some(0), Some(1), Some(2)]);
    circle.dismiss();
    circle.run(4 * MINUTE);
    assert_eq!(circle.distances(), [None; 3]);
    // Trees of present members stay.
    let trees = |it: &TestNet| it.charter().body().trees.len();
    let of_all = |it: &TestNet| it.charter().body().members.len();
    assert!(circle.worlds.iter().all(|it| of_all(it) < trees(it)));
    let before: Vec<_> = circle.worlds.iter().map(TestNet::charter).collect();
    circle.run(10 * MINUTE);
    let after: Vec<_> = circle.worlds.iter().map(TestNet::charter).collect();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.body().trees, after.body().trees, "no tree circulates");
    }
}

#[test]
fn a_tree_that_circulates_outside_its_writers_group_ends_as_well() {
    // The tree goes from the first group into a circle of three others, on two ways.
    let groups: [&[u8]; 4] =
        [&[FOUNDER, WRITER, 21, 25], &[20, 21, 22, 24], &[30, 22, 23], &[40, 23, 24, 25]];
    let carriers = [(21, 0, 1), (22, 1, 2), (23, 2, 3), (24, 3, 1), (25, 0, 3)];
    let mut circle = Circle::new(&groups, &carriers);
    assert_eq!(circle.distances(), [Some(0), Some(1), Some(2), Some(1)]);
    // One way is enough: the group at the end of the other way gets the tree through the circle.
    circle.worlds[0].kill(id(21));
    circle.carriers.remove(0);
    circle.carried.remove(0);
    circle.worlds[1].settle(21, |it| it.carried.clear());
    circle.run(3 * MINUTE);
    assert_eq!(circle.distances(), [Some(0), Some(2), Some(3), Some(1)]);
    circle.dismiss();
    circle.run(4 * MINUTE);
    assert_eq!(circle.distances(), [None; 4]);
}

#[test]
fn a_carrier_in_both_directions_does_not_keep_its_own_tree_alive() {
    let groups: [&[u8]; 2] = [&[FOUNDER, WRITER, 21], &[20, 21, 22]];
    let mut circle = Circle::new(&groups, &[(21, 0, 1), (21, 1, 0)]);
    assert_eq!(circle.distances(), [Some(0), Some(1)]);
    circle.dismiss();
    circle.run(MINUTE / 2);
    assert_eq!(circle.distances(), [None; 2]);
}
