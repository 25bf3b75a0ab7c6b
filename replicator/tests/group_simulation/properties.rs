//! Properties of a group that have to hold in the end, or always.

use std::collections::BTreeSet;
use std::time::Duration;

use replicator::group::Group;
use replicator::group::charter::{Charter, GroupTree};
use replicator::group::held::Tag;
use replicator::group::links::UPDATE_BYTES;
use replicator::id::MemberId;
use replicator::topology::{self, Bounds, Connectivity, Costs, Topology};
use replicator::version::Namespace;

use super::member::Conduct;
use super::world::{World, pair};

/// Returns whether links connect the members without those that are gone.
pub(crate) fn is_connected_without(
    members: &BTreeSet<usize>,
    links: &BTreeSet<[usize; 2]>,
    gone: &BTreeSet<usize>,
) -> bool {
    let left: BTreeSet<usize> = members.difference(gone).copied().collect();
    let Some(first) = left.first() else { return true };
    let (mut seen, mut queue) = (BTreeSet::from([*first]), vec![*first]);
    while let Some(at) = queue.pop() {
        for [a, b] in links {
            for (from, to) in [(a, b), (b, a)] {
                if *from == at && left.contains(to) && seen.insert(*to) {
                    queue.push(*to);
                }
            }
        }
    }
    seen == left
}

type Soundness = Result<(), String>;

fn flaw(is_sound: bool, text: impl FnOnce() -> String) -> Soundness {
    if is_sound { Ok(()) } else { Err(text()) }
}

impl World {
    /// Returns the members that are up, honest, and may be in the group.
    pub(crate) fn honest(&self) -> Vec<usize> {
        let denied = &self.denied;
        let is_honest = |it: &usize| {
            let member = &self.members[*it];
            member.is_up() && member.conduct == Conduct::Honest && !denied.contains(&member.id)
        };
        (0..self.members.len()).filter(is_honest).collect()
    }

    pub(crate) fn group(&self, member: usize) -> &Group {
        self.members[member].group.as_ref().expect("it is up")
    }

    /// Runs until the group is sound, at most for `patience`.
    #[track_caller]
    pub(crate) fn settle_down(&mut self, patience: Duration) {
        let end = self.now + patience;
        loop {
            self.run(self.now + Duration::from_secs(5));
            self.watch();
            match self.check() {
                Ok(()) => return,
                Err(flaw) => assert!(self.now < end, "after {patience:?}: {flaw}"),
            }
        }
    }

    /// Runs for `time`; the group may be unsound only for moments.
    #[track_caller]
    pub(crate) fn stay_sound(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.settle_down(Duration::from_secs(30));
        }
    }

    /// Checks that the sequences that members hear never go back.
    pub(crate) fn watch(&mut self) {
        for observer in self.honest() {
            for about in 0..self.members.len() {
                let id = self.members[about].id;
                let Some((sequence, _)) = self.group(observer).row_mark(id) else { continue };
                let seen =
                    self.seen.entry((observer, self.members[observer].life, id)).or_default();
                assert!(*seen <= sequence, "{id} goes back for {observer}");
                *seen = sequence;
            }
        }
    }

    pub(crate) fn check(&self) -> Soundness {
        let honest = self.honest();
        let Some(first) = honest.first() else { return Ok(()) };
        let charter = self.charter(*first).ok_or_else(|| format!("{first} has no charter"))?;
        for it in &honest {
            let own = self.charter(*it);
            flaw(own == Some(charter), || {
                let number = |it: &Charter| (it.epoch(), it.revision(), it.leader());
                let (own, one) = (own.map(|it| number(it)), number(charter));
                format!("{it} has the charter {own:?}, {first} {one:?}")
            })?;
        }
        self.check_members(charter, &honest)?;
        self.check_links(charter, &honest)?;
        self.check_trees(charter, &honest)?;
        self.check_held(charter, &honest)?;
        self.check_estimates(charter, &honest)
    }

    fn check_members(&self, charter: &Charter, honest: &[usize]) -> Soundness {
        let leaders = honest.iter().filter(|it| self.group(**it).is_leader()).count();
        flaw(leaders == 1, || format!("{leaders} lead"))?;
        for it in honest {
            let member = charter.body().member(self.members[*it].id);
            flaw(member.is_some(), || format!("{it} is not in the group"))?;
            flaw(member.is_some_and(|it| it.silent.is_none()), || format!("{it} is silent"))?;
            let settled = member.is_some_and(|member| {
                member.address == self.members[*it].settings.address
                    && member.site == self.members[*it].settings.site
            });
            flaw(settled, || format!("{it} differs from its settings"))?;
            let life = self.members[*it].incarnation();
            for other in honest.iter().filter(|other| *other != it) {
                let heard = self.group(*other).row_mark(self.members[*it].id).map(|it| it.0 >> 32);
                flaw(heard == Some(life), || {
                    format!("{other} has heard {heard:?} of {it}, which is in {life}")
                })?;
            }
        }
        for it in self.members.iter().filter(|it| !it.is_up()) {
            let member = charter.body().member(it.id);
            let is_silent = member.is_none_or(|it| it.silent.is_some());
            flaw(is_silent, || format!("{} is down and not silent", it.id))?;
        }
        let denied = self.denied.iter().find(|it| charter.body().member(**it).is_some());
        flaw(denied.is_none(), || format!("{denied:?} is denied and in the group"))
    }

    fn index_of(&self, charter: &Charter, at: usize) -> usize {
        self.places[&charter.body().members[at].id()]
    }

    fn links(&self, charter: &Charter) -> BTreeSet<[usize; 2]> {
        let ends = |it: topology::Link| [it.a(), it.b()].map(|it| self.index_of(charter, it));
        charter.body().topology.links().map(ends).map(|[a, b]| pair(a, b)).collect()
    }

    fn check_links(&self, charter: &Charter, honest: &[usize]) -> Soundness {
        let links = self.links(charter);
        let blocked = links.intersection(&self.blocked).next();
        flaw(blocked.is_none(), || format!("there is no link {blocked:?}"))?;
        let unlinked = links.iter().find(|[a, b]| {
            [a, b].iter().all(|it| honest.contains(it)) && !self.members[*a].links.contains_key(b)
        });
        flaw(unlinked.is_none(), || format!("the link {unlinked:?} is not up"))?;
        let spare = match charter.body().connectivity {
            Connectivity::Tree => 0,
            Connectivity::Two => 1,
            Connectivity::Three => 2,
        };
        let all: BTreeSet<usize> = honest.iter().copied().collect();
        let is_lie = self.members.iter().any(|it| it.is_up() && it.conduct == Conduct::Liar);
        for a in honest {
            for b in honest {
                let gone: BTreeSet<usize> = [*a, *b].into_iter().take(spare).collect();
                // The liar already counts as lost.
                let gone = if is_lie { BTreeSet::new() } else { gone };
                flaw(is_connected_without(&all, &links, &gone), || {
                    format!("without {gone:?} the group falls apart: {links:?}")
                })?;
            }
        }
        Ok(())
    }

    fn check_trees(&self, charter: &Charter, honest: &[usize]) -> Soundness {
        let wanted = |it: usize| {
            let member = &self.members[it];
            let writer = member.identity.public();
            let own = member.settings.trees.iter().map(move |(name, kind)| GroupTree {
                writer,
                name: name.clone(),
                kind: *kind,
            });
            own.chain(member.settings.carried.iter().map(|it| it.tree.clone()))
        };
        let listed: BTreeSet<&GroupTree> = charter.body().trees.iter().map(|it| &it.tree).collect();
        for it in honest {
            let lacking = wanted(*it).find(|it| !listed.contains(it));
            flaw(lacking.is_none(), || format!("{lacking:?} of {it} is not listed"))?;
        }
        let all: BTreeSet<GroupTree> = (0..self.members.len()).flat_map(wanted).collect();
        let extra = listed.iter().find(|it| !all.contains(it));
        flaw(extra.is_none(), || format!("{extra:?} is listed, and nobody wants it"))
    }

    /// Checks that each member knows the versions that all others hold.
    fn check_held(&self, charter: &Charter, honest: &[usize]) -> Soundness {
        let trees: Vec<Namespace> =
            charter.body().trees.iter().map(|it| it.tree.namespace()).collect();
        for by in honest {
            for it in honest.iter().filter(|it| *it != by) {
                let seen = self.group(*by).held_by(self.members[*it].id);
                let seen = seen.ok_or_else(|| format!("{by} has not heard what {it} holds"))?;
                for tree in &trees {
                    let (held, seen) =
                        (self.members[*it].held.get(tree), seen.number(Tag::of(tree)));
                    flaw(held.copied() == seen, || {
                        format!("{it} holds {held:?} of {tree}, not {seen:?} as {by} has heard")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Checks that the estimates of links are right, and the topology follows them.
    fn check_estimates(&self, charter: &Charter, honest: &[usize]) -> Soundness {
        if self.members.iter().any(|it| it.conduct == Conduct::Liar) {
            return Ok(());
        }
        let leader = self.places[&charter.leader()];
        let rows = self.group(leader).all_rows();
        for from in honest {
            let id = self.members[*from].id;
            let row = rows.iter().find(|it| MemberId(it.from) == id);
            let row = row.ok_or_else(|| format!("nothing is known of the links of {from}"))?;
            for to in honest.iter().filter(|it| *it != from) {
                let entry = row.entries.iter().find(|it| MemberId(it.to) == self.members[*to].id);
                let (round_trip, bandwidth) = self.pairs[&pair(*from, *to)];
                let is_near = |found: f64, least: f64, most: f64| {
                    least * 0.999 <= found && found <= most * 1.001
                };
                let is_so = match entry {
                    None => self.blocked.contains(&pair(*from, *to)),
                    Some(it) => match (it.round_trip(), it.bandwidth()) {
                        (Some(found), Some(bytes)) => {
                            let least = round_trip.as_secs_f64();
                            is_near(found.as_secs_f64(), least, least * 1.5)
                                && is_near(bytes as f64, bandwidth as f64, bandwidth as f64)
                        }
                        _ => self.blocked.contains(&pair(*from, *to)),
                    },
                };
                flaw(is_so, || format!("{from} says {entry:?} of its link to {to}"))?;
            }
        }
        self.check_cost(charter)
    }

    /// Checks that the cost of the links is near the least.
    fn check_cost(&self, charter: &Charter) -> Soundness {
        let body = charter.body();
        let count = body.members.len();
        let mut costs = Costs::new(count);
        for a in 0..count {
            for b in 0..a {
                let pair = pair(self.index_of(charter, a), self.index_of(charter, b));
                let is_there = [a, b].iter().all(|it| body.members[*it].silent.is_none());
                if is_there && !self.blocked.contains(&pair) {
                    let (round_trip, bandwidth) = self.pairs[&pair];
                    costs.set(a, b, topology::cost(round_trip, bandwidth, UPDATE_BYTES));
                }
            }
        }
        let cost = |it: &Topology| {
            it.links().map(|it| u64::from(costs.get(it.a(), it.b()))).sum::<u64>() as f64
        };
        let best = cost(&Topology::new(&costs, body.connectivity, Bounds::DEFAULT));
        let this = cost(&body.topology);
        // Estimates are up to half too high, and a topology stays unless another is better by 15 %.
        flaw(this <= best * 1.5 / 0.85, || format!("the links cost {this}, not {best}"))
    }
}
