//! The sets: bitmaps of the changes in each set, and of the tombstones. Lists are made from them
//! and the live serials ([`Collection::with_live`](collection::Collection::with_live)).
//!
//! Source: OAI-PMH §2.6; ours.
//!
//! A set is a compressed bitmap of serials. The bitmap may also contain superseded serials, so a
//! serial is listed only if it is live or a tombstone. A deleted record has no type any more, so
//! tombstones are in every set by type: a superfluous deletion does no harm, but a missing one is
//! never corrected.
//!
//! Types have arbitrary names, so only the largest have a set of their own (`bitmaps`). Records of
//! other types are in the set of all types.
//!
//! # Differences from the standard
//!
//! * If the type of an object changes, the old set lists no deletion, which the standard does not
//!   demand; the object is in the new set.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use collection::{Change, Oid, Scanned, Subset, Version};
use oai::repository::set::SetSpec;
use roaring::RoaringTreemap;
use soif::digest::Md5;

use super::bitmaps::NamedBitmaps;

/// The sets of all changes up to a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sets {
    /// The version up to which the log has been read.
    pub(super) reached: Version,
    /// Serials of tombstones, by the hash of the object's OID.
    pub(super) gone: HashMap<u64, u64>,
    /// The serials in `gone`, as a bitmap.
    pub(super) tombstones: RoaringTreemap,
    /// Changes of each gatherer, tombstones included.
    pub(super) gatherers: NamedBitmaps,
    /// Records of each type.
    pub(super) types: NamedBitmaps,
    /// Records in each language, for the daemon's description.
    pub(super) languages: NamedBitmaps,
    /// Records with any type.
    pub(super) typed: RoaringTreemap,
}

/// The parts of a change that the sets need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    serial: u64,
    oid: u64,
    gatherer: String,
    /// The type; empty without one.
    kind: String,
    /// The language; empty without one.
    language: String,
    is_gone: bool,
}

impl Member {
    /// Reads a change; `None` if no list shows it.
    pub(super) fn of(scanned: &Scanned) -> Option<Self> {
        let serial = scanned.serial;
        let none = String::new;
        let (oid, kind, language, is_gone) = match &scanned.change {
            Change::Update(record) => {
                let text = |name| record.text(name).map(|it| it.trim().to_owned());
                let (kind, language) = (text("Type"), text("Language"));
                (Oid::of(record)?, kind.unwrap_or_default(), language.unwrap_or_default(), false)
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) => (oid.clone(), none(), none(), true),
            // This tombstone has no object: it only carries a notice.
            Change::Suppress(oid, notice) if *oid != notice.carrier() => {
                (oid.clone(), none(), none(), true)
            }
            Change::Suppress(..) | Change::Refresh(..) | Change::Confirm { .. } => return None,
        };
        Some(Self { serial, oid: hash(&oid), gatherer: oid.gatherer, kind, language, is_gone })
    }
}

/// Returns the hash of an OID. It is the same in all releases, because it is saved.
pub(super) fn hash(oid: &Oid) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = Md5::of(&oid.key()).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The objects of views, by their names.
pub type Subsets = BTreeMap<String, Subset>;

/// The live serials, and the last serial up to which deletions are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveView<'a> {
    pub(super) live: &'a RoaringTreemap,
    pub(super) horizon: u64,
    /// The deletions to list in place of the tombstones.
    pub(super) tombstones: Option<&'a RoaringTreemap>,
    /// The views that are sets.
    pub(super) views: Option<&'a Subsets>,
}

impl<'a> LiveView<'a> {
    /// Returns a view of all, without sets by view.
    pub(super) fn new(live: &'a RoaringTreemap, horizon: u64) -> Self {
        Self { live, horizon, tombstones: None, views: None }
    }

    fn view(self, name: &str) -> Option<&'a Subset> {
        self.views?.get(name)
    }
}

impl Sets {
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

    /// Drops superseded and forgotten changes, and makes the largest bitmaps sets.
    pub(super) fn prune(&mut self, present: LiveView<'_>) {
        let LiveView { live, horizon, .. } = present;
        self.gone.retain(|_, serial| horizon < *serial);
        self.tombstones.remove_range(..=horizon);
        self.gatherers.keep(&(live | &self.tombstones));
        self.types.keep(live);
        self.languages.keep(live);
        self.typed &= live;
    }

    /// Returns the sets with records, in order: those after `after`, or all.
    pub(super) fn list(&self, present: LiveView<'_>, after: Option<&SetSpec>) -> Vec<SetSpec> {
        let has = |it: &RoaringTreemap| !it.is_disjoint(present.live);
        let tombstones = present.tombstones.unwrap_or(&self.tombstones);
        let has_any = |it: &RoaringTreemap| has(it) || !it.is_disjoint(tombstones);
        let gatherers = self.gatherers.sets.iter().filter(|(_, it)| has_any(it));
        let types = self.types.sets.iter().filter(|(_, it)| has(it));
        let mut all: Vec<SetSpec> =
            gatherers.map(|(id, _)| SetSpec::Gatherer(id.clone())).collect();
        all.splice(0..0, (!all.is_empty()).then_some(SetSpec::Gatherers));
        let types: Vec<SetSpec> = types.map(|(name, _)| SetSpec::Type(name.clone())).collect();
        all.extend((!types.is_empty()).then_some(SetSpec::Types));
        all.extend(types);
        let views = present.views.into_iter().flatten().filter(|(_, it)| has(&it.members));
        let views: Vec<SetSpec> = views.map(|(name, _)| SetSpec::View(name.clone())).collect();
        all.extend((!views.is_empty()).then_some(SetSpec::Views));
        all.extend(views);
        all.retain(|it| after < Some(it));
        all
    }

    /// Returns the number of live records of each type, and in each language.
    pub(super) fn counts(&self, present: LiveView<'_>) -> [Vec<(String, u64)>; 2] {
        [&self.types, &self.languages].map(|it| {
            let sets = it.sets.iter();
            sets.map(|(name, set)| (name.clone(), set.intersection_len(present.live))).collect()
        })
    }

    /// Returns the bitmap of a set, with superseded serials; `None` if there is no such set.
    fn bitmap<'a>(
        &'a self,
        present: LiveView<'a>,
        set: Option<&SetSpec>,
    ) -> Option<&'a RoaringTreemap> {
        match set {
            None | Some(SetSpec::Gatherers | SetSpec::Views) => Some(present.live),
            Some(SetSpec::View(name)) => Some(&*present.view(name)?.members),
            Some(SetSpec::Gatherer(id)) => self.gatherers.sets.get(id),
            Some(SetSpec::Type(name)) => self.types.sets.get(name),
            Some(SetSpec::Types) => Some(&self.typed),
        }
    }

    /// Returns at most `limit` serials of a list, from the first in the range on.
    pub(super) fn select(
        &self,
        present: LiveView<'_>,
        set: Option<&SetSpec>,
        range: RangeInclusive<u64>,
        limit: usize,
    ) -> Vec<u64> {
        let Some(bitmap) = self.bitmap(present, set) else { return Vec::new() };
        let (first, last) = (*range.start(), *range.end());
        let mut living = bitmap.iter();
        living.advance_to(first);
        let mut living = living.filter(|it| present.live.contains(*it)).peekable();
        // Intersect first: a gatherer may have none of very many tombstones.
        let tombstones = self.tombstones_of(present, set, bitmap);
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

    /// Counts the serials of a list in the range.
    pub(super) fn count(
        &self,
        present: LiveView<'_>,
        set: Option<&SetSpec>,
        range: RangeInclusive<u64>,
    ) -> u64 {
        let Some(bitmap) = self.bitmap(present, set).filter(|_| !range.is_empty()) else {
            return 0;
        };
        let living = match set {
            None | Some(SetSpec::Gatherers | SetSpec::Views) => {
                bitmap.range_cardinality(range.clone())
            }
            Some(_) => (bitmap & present.live).range_cardinality(range.clone()),
        };
        let first = (*range.start()).max(present.horizon.saturating_add(1));
        if *range.end() < first {
            return living;
        }
        living + self.tombstones_of(present, set, bitmap).range_cardinality(first..=*range.end())
    }

    /// Returns the tombstones in a set, whose bitmap is `bitmap`.
    fn tombstones_of<'a>(
        &'a self,
        present: LiveView<'a>,
        set: Option<&SetSpec>,
        bitmap: &RoaringTreemap,
    ) -> Cow<'a, RoaringTreemap> {
        let tombstones = present.tombstones.unwrap_or(&self.tombstones);
        match set {
            Some(SetSpec::Gatherer(_)) => Cow::Owned(bitmap & tombstones),
            // What left it is there still.
            Some(SetSpec::View(name)) => {
                let left = present.view(name).map(|it| &*it.left & tombstones);
                Cow::Owned(left.unwrap_or_default())
            }
            _ => Cow::Borrowed(tombstones),
        }
    }

    /// Returns the sets for a record's header; a set that does not exist is replaced by the set
    /// above it.
    pub(super) fn of_record(&self, gatherer: &str, kind: Option<&str>) -> Vec<String> {
        let kind = kind.map(str::trim).filter(|it| !it.is_empty());
        let gatherer = match self.gatherers.sets.contains_key(gatherer) {
            true => SetSpec::Gatherer(gatherer.to_owned()),
            false => SetSpec::Gatherers,
        };
        let kind = kind.map(|it| match self.types.sets.contains_key(it) {
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
    fn live_records_are_counted_by_type_and_language() {
        let mut sets = Sets::default();
        for (serial, kind) in [(1, "PDF"), (2, "PDF"), (3, "HTML"), (4, "")] {
            sets.take(member(serial, serial, kind, false));
        }
        let live = RoaringTreemap::from_iter([1, 3, 4]);
        let [types, languages] = sets.counts(LiveView::new(&live, 0));
        let counts = |it: &[(&str, u64)]| -> Vec<(String, u64)> {
            it.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        assert_eq!(types, counts(&[("HTML", 1), ("PDF", 1)]));
        assert_eq!(languages, counts(&[("en", 2)]));
    }

    fn present(live: &RoaringTreemap, horizon: u64) -> LiveView<'_> {
        LiveView::new(live, horizon)
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

    /// Returns the serials of a list, found by a scan of all changes: the last change of each
    /// object, if it is in the list.
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
                None | Some(SetSpec::Gatherers | SetSpec::Views) => true,
                Some(SetSpec::View(_)) => false,
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
    fn only_sets_with_records_are_listed() {
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
    fn a_header_names_existing_sets() {
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
