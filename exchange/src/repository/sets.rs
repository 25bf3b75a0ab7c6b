//! Which changes are in which set, and which are tombstones: what a list is made of, besides which changes
//! live ([`Collection::with_live`](collection::Collection::with_live)).
//!
//! Source: OAI-PMH §2.6; ours.
//!
//! A set is a compressed bitmap of serials. It may have serials too many, of changes that have been
//! superseded since: what is listed is always also among those that live, or the tombstones. What is deleted
//! has no type any more, so tombstones are in every set by type: a deletion too many is no harm, one that
//! is missing is never made good.
//!
//! # Differences from the standard
//!
//! * An object whose type has changed leaves its old set without a word, as in the standard; it is in the new one.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use collection::{Change, Oid, Scanned, Version};
use oai::repository::set::SetSpec;
use roaring::RoaringTreemap;
use soif::digest::Md5;

/// Most sets of each kind; records of others are in no set of that kind.
pub(super) const SETS_MAX: usize = 10_000;

/// Longest name of a type or id of a gatherer that makes a set, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// What is known of the changes up to a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sets {
    /// Up to where the log was read.
    pub(super) reached: Version,
    /// The serial of the tombstone of each deleted object, by the hash of its identifier.
    pub(super) gone: HashMap<u64, u64>,
    /// The same serials.
    pub(super) tombstones: RoaringTreemap,
    /// What each gatherer has brought, tombstones included.
    pub(super) gatherers: BTreeMap<String, RoaringTreemap>,
    /// What is of each type.
    pub(super) types: BTreeMap<String, RoaringTreemap>,
}

/// What a change means to the sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    serial: u64,
    oid: u64,
    gatherer: String,
    /// Empty of a record without one.
    kind: String,
    is_gone: bool,
}

impl Member {
    /// Reads a change; `None` of one that no list shows.
    pub(super) fn of(scanned: &Scanned) -> Option<Self> {
        let serial = scanned.serial;
        let (oid, kind, is_gone) = match &scanned.change {
            Change::Update(record) => {
                let kind = record.text("Type").map(|it| it.trim().to_owned());
                (Oid::of(record)?, kind.unwrap_or_default(), false)
            }
            Change::Delete(oid) => (oid.clone(), String::new(), true),
            // One that is only carried is of no object.
            Change::Suppress(oid, notice) if *oid != notice.carrier() => {
                (oid.clone(), String::new(), true)
            }
            Change::Suppress(..) | Change::Refresh(_) | Change::Confirm { .. } => return None,
        };
        Some(Self { serial, oid: hash(&oid), gatherer: oid.gatherer, kind, is_gone })
    }
}

/// The hash of an identifier; the same for good.
pub(super) fn hash(oid: &Oid) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = Md5::of(&oid.key()).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Where a list is looked for: what lives, and before which serial deletions are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present<'a> {
    pub(super) live: &'a RoaringTreemap,
    pub(super) horizon: u64,
}

impl Sets {
    /// Takes in a change that comes after those before.
    pub(super) fn take(&mut self, member: Member) {
        if let Some(before) = self.gone.remove(&member.oid) {
            self.tombstones.remove(before);
        }
        if member.is_gone {
            self.gone.insert(member.oid, member.serial);
            self.tombstones.insert(member.serial);
        }
        add(&mut self.gatherers, member.gatherer, member.serial);
        if !member.kind.is_empty() {
            add(&mut self.types, member.kind, member.serial);
        }
    }

    /// Drops what is superseded and what is forgotten.
    pub(super) fn prune(&mut self, present: Present<'_>) {
        let Present { live, horizon } = present;
        self.gone.retain(|_, serial| horizon < *serial);
        self.tombstones.remove_range(..=horizon);
        let kept = live | &self.tombstones;
        self.gatherers.values_mut().for_each(|it| *it &= &kept);
        self.types.values_mut().for_each(|it| *it &= live);
        self.gatherers.retain(|_, it| !it.is_empty());
        self.types.retain(|_, it| !it.is_empty());
    }

    /// Returns the sets that have a record, after that one.
    pub(super) fn list(&self, present: Present<'_>, after: Option<&SetSpec>) -> Vec<SetSpec> {
        let has = |it: &RoaringTreemap| !it.is_disjoint(present.live);
        let has_any = |it: &RoaringTreemap| has(it) || !it.is_disjoint(&self.tombstones);
        let gatherers = self.gatherers.iter().filter(|(_, it)| has_any(it));
        let types = self.types.iter().filter(|(_, it)| has(it));
        let mut all: Vec<SetSpec> =
            gatherers.map(|(id, _)| SetSpec::Gatherer(id.clone())).collect();
        all.splice(0..0, (!all.is_empty()).then_some(SetSpec::Gatherers));
        let types: Vec<SetSpec> = types.map(|(name, _)| SetSpec::Type(name.clone())).collect();
        all.extend((!types.is_empty()).then_some(SetSpec::Types));
        all.extend(types);
        all.retain(|it| after < Some(it));
        all
    }

    /// What a set has, and serials too many; `None` if there is no such set.
    fn bitmap<'a>(
        &'a self,
        present: Present<'a>,
        set: Option<&SetSpec>,
    ) -> Option<Cow<'a, RoaringTreemap>> {
        match set {
            None | Some(SetSpec::Gatherers) => Some(Cow::Borrowed(present.live)),
            Some(SetSpec::Gatherer(id)) => self.gatherers.get(id).map(Cow::Borrowed),
            Some(SetSpec::Type(name)) => self.types.get(name).map(Cow::Borrowed),
            Some(SetSpec::Types) => {
                let mut all = RoaringTreemap::new();
                self.types.values().for_each(|it| all |= it);
                Some(Cow::Owned(all))
            }
        }
    }

    /// Returns at most `limit` serials of a list, from the first in the range on.
    pub(super) fn select(
        &self,
        present: Present<'_>,
        set: Option<&SetSpec>,
        range: RangeInclusive<u64>,
        limit: usize,
    ) -> Vec<u64> {
        let Some(bitmap) = self.bitmap(present, set) else { return Vec::new() };
        let (first, last) = (*range.start(), *range.end());
        let mut living = bitmap.iter();
        living.advance_to(first);
        let mut living = living.filter(|it| present.live.contains(*it)).peekable();
        let mut gone = self.tombstones.iter();
        gone.advance_to(first.max(present.horizon.saturating_add(1)));
        let of_gatherer = match set {
            Some(SetSpec::Gatherer(_)) => Some(&bitmap),
            _ => None,
        };
        let mut gone = gone.filter(|it| of_gatherer.is_none_or(|set| set.contains(*it))).peekable();
        let mut found = Vec::with_capacity(limit.min(1 << 14));
        while found.len() < limit {
            let next = match (living.peek(), gone.peek()) {
                (Some(a), Some(b)) if b < a => gone.next(),
                (Some(_), _) => living.next(),
                (None, _) => gone.next(),
            };
            match next.filter(|it| *it <= last) {
                Some(serial) => found.push(serial),
                None => break,
            }
        }
        found
    }

    /// Returns how many serials a list has in the range.
    pub(super) fn count(
        &self,
        present: Present<'_>,
        set: Option<&SetSpec>,
        range: RangeInclusive<u64>,
    ) -> u64 {
        let Some(bitmap) = self.bitmap(present, set).filter(|_| !range.is_empty()) else {
            return 0;
        };
        let living = match set {
            None | Some(SetSpec::Gatherers) => bitmap.range_cardinality(range.clone()),
            Some(_) => (&*bitmap & present.live).range_cardinality(range.clone()),
        };
        let first = (*range.start()).max(present.horizon.saturating_add(1));
        if *range.end() < first {
            return living;
        }
        let gone = match set {
            Some(SetSpec::Gatherer(_)) => Cow::Owned(&*bitmap & &self.tombstones),
            _ => Cow::Borrowed(&self.tombstones),
        };
        living + gone.range_cardinality(first..=*range.end())
    }
}

fn add(sets: &mut BTreeMap<String, RoaringTreemap>, name: String, serial: u64) {
    if let Some(set) = sets.get_mut(&name) {
        set.insert(serial);
    } else if name.len() <= NAME_BYTES_MAX && sets.len() < SETS_MAX {
        sets.insert(name, RoaringTreemap::from_iter([serial]));
    }
}

/// The sets that a record's header names.
pub(super) fn of_record(gatherer: &str, kind: Option<&str>) -> Vec<String> {
    let fits = |it: &&str| !it.is_empty() && it.len() <= NAME_BYTES_MAX;
    let gatherer = Some(gatherer).filter(fits).map(|it| SetSpec::Gatherer(it.to_owned()));
    let kind = kind.map(str::trim).filter(fits).map(|it| SetSpec::Type(it.to_owned()));
    gatherer.into_iter().chain(kind).map(|it| it.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(serial: u64, oid: u64, kind: &str, is_gone: bool) -> Member {
        let gatherer = if oid.is_multiple_of(2) { "even" } else { "odd" }.to_owned();
        Member { serial, oid, gatherer, kind: kind.to_owned(), is_gone }
    }

    fn present(live: &RoaringTreemap, horizon: u64) -> Present<'_> {
        Present { live, horizon }
    }

    fn specs() -> [Option<SetSpec>; 8] {
        let of = |name: &str| SetSpec::Type(name.to_owned());
        let by = |name: &str| SetSpec::Gatherer(name.to_owned());
        [
            None,
            Some(SetSpec::Gatherers),
            Some(by("odd")),
            Some(by("none")),
            Some(SetSpec::Types),
            Some(of("PDF")),
            Some(of("Text")),
            Some(of("none")),
        ]
    }

    /// What the lists must have, by going through all changes: the last one of each object, if it fits.
    fn model(
        log: &[Member],
        set: Option<&SetSpec>,
        range: RangeInclusive<u64>,
        horizon: u64,
    ) -> Vec<u64> {
        let known = |name: &str| log.iter().any(|it| it.kind == name);
        let mut found: Vec<u64> = log
            .iter()
            .filter(|it| {
                let last = log.iter().rfind(|other| other.oid == it.oid);
                last.is_some_and(|last| last.serial == it.serial)
            })
            .filter(|it| range.contains(&it.serial) && (!it.is_gone || horizon < it.serial))
            .filter(|it| match set {
                None | Some(SetSpec::Gatherers) => true,
                Some(SetSpec::Gatherer(id)) => it.gatherer == *id,
                Some(SetSpec::Types) => it.is_gone || !it.kind.is_empty(),
                Some(SetSpec::Type(name)) => known(name) && (it.is_gone || it.kind == *name),
            })
            .map(|it| it.serial)
            .collect();
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn a_list_has_the_last_change_of_each_object(
            log in prop::collection::vec((1_u64..9, prop::sample::select(vec!["", "PDF", "Text"]), any::<bool>()), 0..40),
            first in 0_u64..45, last in 0_u64..45, limit in 0_usize..50, horizon in 0_u64..30,
            pruned in any::<bool>(),
        ) {
            let log: Vec<Member> = log
                .iter()
                .zip(1..)
                .map(|((oid, kind, gone), serial)| member(serial, *oid, if *gone { "" } else { kind }, *gone))
                .collect();
            let mut sets = Sets::default();
            let mut live = RoaringTreemap::new();
            for it in &log {
                sets.take(it.clone());
                for old in log.iter().filter(|old| old.oid == it.oid && old.serial < it.serial) {
                    live.remove(old.serial);
                }
                if !it.is_gone {
                    live.insert(it.serial);
                }
            }
            for set in specs() {
                let all = model(&log, set.as_ref(), first..=last, horizon);
                let page: Vec<u64> = all.iter().copied().take(limit).collect();
                let now = present(&live, horizon);
                prop_assert_eq!(sets.select(now, set.as_ref(), first..=last, limit), page);
                prop_assert_eq!(sets.count(now, set.as_ref(), first..=last), all.len() as u64);
            }
            if pruned {
                sets.prune(present(&live, horizon));
                for set in [None, Some(SetSpec::Gatherer("odd".to_owned()))] {
                    let all = model(&log, set.as_ref(), first..=last, horizon);
                    let found = sets.select(present(&live, horizon), set.as_ref(), first..=last, 99);
                    prop_assert_eq!(found, all);
                }
            }
        }
    }

    #[test]
    fn sets_are_those_that_have_something() {
        let mut sets = Sets::default();
        let live = RoaringTreemap::from_iter([2, 5]);
        for it in [
            member(1, 1, "PDF", false),
            member(2, 2, "Text", false),
            member(3, 3, "", true),
            member(4, 1, "", true),
            member(5, 4, "", false),
        ] {
            sets.take(it);
        }
        let names = |after: Option<&SetSpec>| -> Vec<String> {
            sets.list(present(&live, 0), after).iter().map(ToString::to_string).collect()
        };
        let all = ["gatherer", "gatherer:even", "gatherer:odd", "type", "type:Text"];
        assert_eq!(names(None), all);
        assert_eq!(names(Some(&SetSpec::Gatherer("odd".to_owned()))), ["type", "type:Text"]);
        assert!(Sets::default().list(present(&live, 0), None).is_empty());
    }

    #[test]
    fn sets_are_bounded() {
        let mut many = BTreeMap::new();
        for n in 0..=SETS_MAX {
            add(&mut many, n.to_string(), 1);
        }
        add(&mut many, "x".repeat(201), 1);
        assert_eq!(many.len(), SETS_MAX);
        assert_eq!(of_record("g", Some(" C++ ")), ["gatherer:g", "type:C~2B~2B"]);
        assert_eq!(of_record("g", Some("")), ["gatherer:g"]);
    }
}
