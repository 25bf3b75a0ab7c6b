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
//! Anybody may call a type anything, so that only the largest have a set of their own (`named`); what has a
//! type without one is in the set of all types.
//!
//! # Differences from the standard
//!
//! * An object whose type has changed leaves its old set without a word, as in the standard; it is in the new one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use collection::{Change, Oid, Scanned, Version};
use oai::repository::set::SetSpec;
use roaring::RoaringTreemap;
use soif::digest::Md5;

use super::named::Named;

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
    pub(super) gatherers: Named,
    /// What is of each type.
    pub(super) types: Named,
    /// What is in each language, for what the daemon says of itself.
    pub(super) languages: Named,
    /// What has a type, whether that has a set or not.
    pub(super) typed: RoaringTreemap,
}

/// What a change means to the sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    serial: u64,
    oid: u64,
    gatherer: String,
    /// Empty of a record without one.
    kind: String,
    /// Empty of a record without one.
    language: String,
    is_gone: bool,
}

impl Member {
    /// Reads a change; `None` of one that no list shows.
    pub(super) fn of(scanned: &Scanned) -> Option<Self> {
        let serial = scanned.serial;
        let none = String::new;
        let (oid, kind, language, is_gone) = match &scanned.change {
            Change::Update(record) => {
                let text = |name| record.text(name).map(|it| it.trim().to_owned());
                let (kind, language) = (text("Type"), text("Language"));
                (Oid::of(record)?, kind.unwrap_or_default(), language.unwrap_or_default(), false)
            }
            Change::Delete(oid) => (oid.clone(), none(), none(), true),
            // One that is only carried is of no object.
            Change::Suppress(oid, notice) if *oid != notice.carrier() => {
                (oid.clone(), none(), none(), true)
            }
            Change::Suppress(..) | Change::Refresh(_) | Change::Confirm { .. } => return None,
        };
        Some(Self { serial, oid: hash(&oid), gatherer: oid.gatherer, kind, language, is_gone })
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
        self.gatherers.add(member.gatherer, member.serial);
        if !member.kind.is_empty() {
            self.types.add(member.kind, member.serial);
            self.typed.insert(member.serial);
        }
        self.languages.add(member.language, member.serial);
    }

    /// Drops what is superseded and what is forgotten, and gives the largest sets a name.
    pub(super) fn prune(&mut self, present: Present<'_>) {
        let Present { live, horizon } = present;
        self.gone.retain(|_, serial| horizon < *serial);
        self.tombstones.remove_range(..=horizon);
        self.gatherers.keep(&(live | &self.tombstones));
        self.types.keep(live);
        self.languages.keep(live);
        self.typed &= live;
    }

    /// Returns the sets that have a record, after that one.
    pub(super) fn list(&self, present: Present<'_>, after: Option<&SetSpec>) -> Vec<SetSpec> {
        let has = |it: &RoaringTreemap| !it.is_disjoint(present.live);
        let has_any = |it: &RoaringTreemap| has(it) || !it.is_disjoint(&self.tombstones);
        let gatherers = self.gatherers.sets().iter().filter(|(_, it)| has_any(it));
        let types = self.types.sets().iter().filter(|(_, it)| has(it));
        let mut all: Vec<SetSpec> =
            gatherers.map(|(id, _)| SetSpec::Gatherer(id.clone())).collect();
        all.splice(0..0, (!all.is_empty()).then_some(SetSpec::Gatherers));
        let types: Vec<SetSpec> = types.map(|(name, _)| SetSpec::Type(name.clone())).collect();
        all.extend((!types.is_empty()).then_some(SetSpec::Types));
        all.extend(types);
        all.retain(|it| after < Some(it));
        all
    }

    /// Returns how many records there are of each type, and in each language.
    pub(super) fn counts(&self, present: Present<'_>) -> [Vec<(String, u64)>; 2] {
        [&self.types, &self.languages].map(|it| {
            let sets = it.sets().iter();
            sets.map(|(name, set)| (name.clone(), set.intersection_len(present.live))).collect()
        })
    }

    /// What a set has, and serials too many; `None` if there is no such set.
    fn bitmap<'a>(
        &'a self,
        present: Present<'a>,
        set: Option<&SetSpec>,
    ) -> Option<&'a RoaringTreemap> {
        match set {
            None | Some(SetSpec::Gatherers) => Some(present.live),
            Some(SetSpec::Gatherer(id)) => self.gatherers.sets().get(id),
            Some(SetSpec::Type(name)) => self.types.sets().get(name),
            Some(SetSpec::Types) => Some(&self.typed),
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
        // Not all tombstones, one after the other, for a gatherer that has none among them.
        let tombstones = self.tombstones_of(set, bitmap);
        let mut gone = tombstones.iter();
        gone.advance_to(first.max(present.horizon.saturating_add(1)));
        let mut gone = gone.peekable();
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
            Some(_) => (bitmap & present.live).range_cardinality(range.clone()),
        };
        let first = (*range.start()).max(present.horizon.saturating_add(1));
        if *range.end() < first {
            return living;
        }
        living + self.tombstones_of(set, bitmap).range_cardinality(first..=*range.end())
    }

    /// The tombstones in a set, whose bitmap is `bitmap`.
    fn tombstones_of(
        &self,
        set: Option<&SetSpec>,
        bitmap: &RoaringTreemap,
    ) -> Cow<'_, RoaringTreemap> {
        match set {
            Some(SetSpec::Gatherer(_)) => Cow::Owned(bitmap & &self.tombstones),
            _ => Cow::Borrowed(&self.tombstones),
        }
    }

    /// The sets that a record's header names: of its own those that there are, or the one above.
    pub(super) fn of_record(&self, gatherer: &str, kind: Option<&str>) -> Vec<String> {
        let kind = kind.map(str::trim).filter(|it| !it.is_empty());
        let gatherer = match self.gatherers.has(gatherer) {
            true => SetSpec::Gatherer(gatherer.to_owned()),
            false => SetSpec::Gatherers,
        };
        let kind = kind.map(|it| match self.types.has(it) {
            true => SetSpec::Type(it.to_owned()),
            false => SetSpec::Types,
        });
        std::iter::once(gatherer).chain(kind).map(|it| it.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(serial: u64, oid: u64, kind: &str, is_gone: bool) -> Member {
        let gatherer = if oid.is_multiple_of(2) { "even" } else { "odd" }.to_owned();
        let language = if kind.is_empty() { "" } else { "en" }.to_owned();
        Member { serial, oid, gatherer, kind: kind.to_owned(), language, is_gone }
    }

    #[test]
    fn what_lives_is_counted_by_type_and_language() {
        let mut sets = Sets::default();
        for (serial, kind) in [(1, "PDF"), (2, "PDF"), (3, "HTML"), (4, "")] {
            sets.take(member(serial, serial, kind, false));
        }
        let live = RoaringTreemap::from_iter([1, 3, 4]);
        let [types, languages] = sets.counts(Present { live: &live, horizon: 0 });
        let said = |it: &[(&str, u64)]| -> Vec<(String, u64)> {
            it.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        assert_eq!(types, said(&[("HTML", 1), ("PDF", 1)]));
        assert_eq!(languages, said(&[("en", 2)]));
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
    fn a_header_names_sets_that_there_are() {
        let mut sets = Sets::default();
        assert_eq!(sets.of_record("even", Some("C++")), ["gatherer", "type"]);
        let long = "x".repeat(201);
        sets.take(member(1, 2, "C++", false));
        sets.take(member(2, 4, &long, false));
        assert_eq!(sets.of_record("even", Some(" C++ ")), ["gatherer:even", "type:C~2B~2B"]);
        assert_eq!(sets.of_record("even", Some(&long)), ["gatherer:even", "type"]);
        assert_eq!(sets.of_record("even", Some(" ")), ["gatherer:even"]);
        let live = RoaringTreemap::from_iter([1, 2]);
        let typed = sets.select(present(&live, 0), Some(&SetSpec::Types), 0..=9, 9);
        assert_eq!(typed, [1, 2]);
    }
}
