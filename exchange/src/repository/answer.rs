//! Answers: from a request to its response, over a collection.
//!
//! Source: OAI-PMH §2.7 (datestamps), §3.2 (`responseDate`), §3.5 (flow control), §4 (verbs).
//!
//! A list by date is a range of serials. The log gives the first and the last serial of the dates,
//! the sets select the serials to list, and only the records of the page are read.

use std::borrow::Cow;

use collection::{Change, Collection, Error, ORIGIN_VERSION, Oid, Scanned, Stamp, Stored, Version};
use oai::crosswalk::Dissemination;
use oai::repository::oap::Totals;
use oai::repository::set::SetSpec;
use oai::repository::token::LogPosition;
use oai::repository::{
    Answer, Ask, Facts, ListFrom, ListPage, PAGE_SETS_MAX, SetsFrom, ask, refusal,
};
use oai::response::{Header, Record};
use oai::{Datestamp, Granularity, Identifier, Listed, identifier};

use super::current_sets::{CurrentSets, Unready};
use super::origin;
use super::sets::{self, LiveView, Sets};
use super::views::{Seen, Views};

#[derive(Clone, Debug, Default)]
pub(super) struct Answered {
    /// The text of the response.
    pub(super) text: String,
    /// Number of records, or headers alone, in it.
    pub(super) records: u64,
    /// Whether the response has only errors.
    pub(super) is_fault: bool,
    /// Number of records of the whole list, and of the repository; `None` if unknown, or if the response is no list.
    pub(super) sizes: Option<(u64, u64)>,
}

impl Answered {
    fn from_text(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// The state of the repository for one request.
#[derive(Debug)]
pub(super) struct Responder<'a> {
    pub(super) collection: &'a Collection,
    pub(super) current: &'a CurrentSets,
    pub(super) facts: &'a Facts,
    /// Whether lists get the attributes of Adly's paper.
    pub(super) oap: bool,
    /// What the client may see.
    seen: Seen,
    /// The version of lists, which include all changes up to it.
    version: Version,
    date: Datestamp,
}

impl<'a> Responder<'a> {
    /// Fixes the state at `now`. Answers have all changes with a datestamp up to the
    /// `responseDate`, which is the second before `now`, or an earlier one during a commit. No
    /// change with such a datestamp comes later. They are for a client that is limited to the view `limit`, if it is.
    pub(super) fn open(
        (collection, current): (&'a Collection, &'a CurrentSets),
        (views, limit): (&Views, Option<&str>),
        facts: &'a Facts,
        oap: bool,
        now: Stamp,
    ) -> Result<Self, Unready> {
        let settled = collection.settle(Stamp((now.0 / 1_000 * 1_000).saturating_sub(1)));
        // The last completely settled second.
        let secs = i64::try_from((settled.0 + 1) / 1_000).unwrap_or(i64::MAX) - 1;
        let date = Datestamp::at(secs, Granularity::Second);
        // Taken after the settlement, so that no earlier change is missing.
        let version = collection.version();
        let seen = views.seen(version, limit)?;
        Ok(Self { collection, current, facts, oap, seen, version, date })
    }

    /// Calls `look` with the sets, and the live serials that the client may see.
    fn with<T>(&self, look: impl FnOnce(&Sets, LiveView<'_>) -> T) -> Result<T, Unready> {
        let look = |sets: &Sets, all: LiveView<'_>| self.seen.with(all, |it| look(sets, it));
        self.current.with(self.version, look)
    }

    /// Returns the number of records that the client may see.
    pub(super) fn len(&self) -> u64 {
        self.seen.count(self.collection.len())
    }

    /// Answers a query. Blocks. [`Unready`] means to refuse the request for now.
    pub(super) fn answer(&self, query: &str) -> Result<Answered, Unready> {
        let state = LogPosition {
            epoch: self.version.epoch.0,
            serial: self.version.serial,
            horizon: self.collection.horizon(),
        };
        let (request, ask) = match ask(self.facts, &state, query) {
            Ok(found) => found,
            Err(refused) => {
                let text = refusal(&self.facts.base_url, self.date, &refused);
                return Ok(Answered { is_fault: true, ..Answered::from_text(text) });
            }
        };
        let answer =
            Answer { facts: self.facts, request: &request, date: self.date, epoch: state.epoch };
        match ask {
            Ask::Identify => {
                let totals = Totals { elements: self.len(), list: self.total()? };
                Ok(Answered::from_text(answer.identify(self.earliest()?, &totals)))
            }
            Ask::Formats(None) => Ok(Answered::from_text(answer.formats(true))),
            Ask::Formats(Some(item)) => {
                let is_known = self.find(&item, |_change| ())?.is_some();
                let text = answer.formats(is_known);
                Ok(Answered { is_fault: !is_known, ..Answered::from_text(text) })
            }
            Ask::Sets(from) => self.sets(&answer, &from),
            Ask::Record { item, prefix } => {
                let record = self.find(&item, |it| self.record(&it, Some(&prefix)))?.flatten();
                let records = u64::from(record.is_some());
                let text = answer.record(record.as_ref());
                Ok(Answered { records, is_fault: records == 0, ..Answered::from_text(text) })
            }
            Ask::List(from) => self.list(answer, from),
        }
    }

    /// Counts the records of a list of everything; `None` while the sets are made.
    fn total(&self) -> Result<Option<u64>, Unready> {
        let all = 0..=u64::MAX;
        match self.with(|sets, present| sets.count(present, None, all)) {
            Ok(total) => Ok(Some(total)),
            Err(Unready::Making) => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    fn earliest(&self) -> Result<Datestamp, Error> {
        let first = self.collection.first_stamp()?;
        Ok(first.map_or(self.date, datestamp))
    }

    fn sets(&self, answer: &Answer<'_>, from: &SetsFrom) -> Result<Answered, Unready> {
        self.seen.knows_views()?;
        let mut listed = self.with(|sets, present| sets.list(present, from.after.as_ref()))?;
        let more = PAGE_SETS_MAX < listed.len();
        listed.truncate(PAGE_SETS_MAX);
        let is_fault = listed.is_empty();
        Ok(Answered { is_fault, ..Answered::from_text(answer.sets(from, &listed, more)) })
    }

    /// Calls `look` with the last change of an item, which may be a tombstone. Returns `None` if
    /// there is no change.
    fn find<T>(
        &self,
        item: &Identifier,
        look: impl FnOnce(Scanned) -> T,
    ) -> Result<Option<T>, Unready> {
        let oid = Oid::new(&item.gatherer, &item.url);
        if oid.url != item.url {
            return Ok(None);
        }
        // Make the sets current, so that the header names all of the record's sets. While the sets
        // are made, it names fewer.
        match self.with(|_sets, _present| ()) {
            Err(failed @ Unready::Failed(_)) => return Err(failed),
            Ok(()) | Err(Unready::Making) => {}
        }
        if let Some(Stored { record, serial, stamp }) = self.collection.get(&oid)? {
            if self.seen.is_limited() && self.version.serial < serial {
                return Err(Unready::Making);
            }
            if self.seen.has(serial).is_none() {
                return Ok(None);
            }
            return Ok(Some(look(Scanned { serial, stamp, change: Change::Update(record) })));
        }
        let tombstone = self.with(|sets, present| {
            let gone = sets.gone.get(&sets::hash(&oid)).copied();
            gone.filter(|it| present.horizon < *it && self.seen.has(*it).is_some())
        })?;
        let Some(found) = self.collection.pick(tombstone.into_iter().collect()).next() else {
            return Ok(None);
        };
        let found = found?;
        Ok((found.change.oid().as_ref() == Some(&oid)).then(|| look(found)))
    }

    fn list(&self, answer: Answer<'_>, from: ListFrom) -> Result<Answered, Unready> {
        let begins = from.reached.map_or(0, |it| it.serial) + 1;
        let first = match (from.reached, from.chosen.from_secs) {
            (None, Some(secs)) => self.collection.first_since(stamp(secs))?.max(begins),
            _ => begins,
        };
        let end = match from.chosen.until_secs {
            Some(secs) => self.collection.first_since(stamp(secs.saturating_add(1)))?,
            None => u64::MAX,
        };
        let last = end.saturating_sub(1).min(self.version.serial);
        // A damaged range may contain a deletion, which no other part of the list would show.
        self.collection.is_whole(first, last)?;
        let set = from.chosen.set.clone();
        if matches!(set, Some(SetSpec::Views | SetSpec::View(_))) {
            self.seen.knows_views()?;
        }
        let size = match from.reached {
            Some(reached) => reached.size,
            None => {
                Some(self.with(|sets, present| sets.count(present, set.as_ref(), first..=last))?)
            }
        };
        let listed = from.chosen.listed;
        let prefix = from.chosen.prefix.clone();
        let total = self.oap.then(|| self.len());
        let mut part = answer.list(from, size, self.version.serial, total);
        let mut first = first;
        let limit = usize::try_from(self.facts.page_records).unwrap_or(usize::MAX);
        let more = loop {
            // Select one serial more than the page takes, to see whether another part follows.
            let mut serials = self.with(|sets, present| {
                sets.select(present, set.as_ref(), first..=last, limit.saturating_add(1))
            })?;
            let Some(beyond) = serials.last().map(|it| it + 1) else { break false };
            let next = if limit < serials.len() { serials.pop() } else { None };
            let prefix = (listed == Listed::Records).then_some(prefix.as_str());
            let whole = self.fill(&mut part, serials, prefix)?;
            match (whole, next) {
                (false, _) => break true,
                (true, Some(next)) if part.is_empty() => first = next,
                (true, Some(_)) => break true,
                // Records that changed meanwhile have moved beyond the end of this list.
                (true, None) => first = beyond,
            }
        };
        let (records, sizes) = (part.len(), part.size().map(|it| (it, self.len())));
        let text = part.finish(more);
        Ok(Answered { text, records, is_fault: records == 0, sizes })
    }

    /// Adds the records of these changes; returns false if some had no room.
    fn fill(
        &self,
        part: &mut ListPage<'_>,
        serials: Vec<u64>,
        prefix: Option<&str>,
    ) -> Result<bool, Error> {
        for scanned in self.collection.pick(serials) {
            let scanned = scanned?;
            if part.is_full() {
                return Ok(false);
            }
            if let Some(record) = self.record(&scanned, prefix) {
                part.push(scanned.serial, &record);
            }
        }
        Ok(true)
    }

    /// Returns the record of a change, with metadata in the format `prefix` or, if that is `None`,
    /// without. Returns `None` if the change has no object, or the format is unknown.
    fn record(&self, scanned: &Scanned, prefix: Option<&str>) -> Option<Record> {
        let oid = scanned.change.oid()?;
        let mut identifier = String::with_capacity(64 + oid.url.len());
        identifier::write(&mut identifier, &self.facts.id, &oid.gatherer, &oid.url).ok()?;
        let datestamp = Some(datestamp(scanned.stamp));
        let is_there = self.seen.has(scanned.serial)?;
        let Change::Update(record) = &scanned.change else {
            return Some(self.deleted(identifier, datestamp, &oid));
        };
        if !is_there {
            return Some(self.deleted(identifier, datestamp, &oid));
        }
        let kind = record.text("Type");
        let mut sets = self.current.of_record(&oid.gatherer, kind.as_deref());
        sets.extend(self.seen.of(scanned.serial).map(|it| SetSpec::View(it.clone()).to_string()));
        let header = Header { identifier, datestamp, sets, deleted: false };
        let Some(prefix) = prefix else { return Some(Record { header, ..Record::default() }) };
        let metadata = match Dissemination::by_prefix(prefix)? {
            soif @ Dissemination::Soif => {
                soif.write(&self.with_version(record, scanned), &self.facts.base_url)
            }
            other @ Dissemination::OaiDc => other.write(record, &self.facts.base_url),
        };
        let about = origin::provenance(record, scanned.stamp).into_iter().collect();
        Some(Record { header, metadata: Some(metadata), about })
    }

    /// Returns the header of a deleted record.
    fn deleted(&self, identifier: String, datestamp: Option<Datestamp>, oid: &Oid) -> Record {
        let sets = self.current.of_record(&oid.gatherer, None);
        let header = Header { identifier, datestamp, sets, deleted: true };
        Record { header, ..Record::default() }
    }

    /// Adds the version that a record has in its origin's feed, so that a client that gets the
    /// record from several sources keeps the newer one.
    fn with_version<'r>(
        &self,
        record: &'r soif::Record,
        scanned: &Scanned,
    ) -> Cow<'r, soif::Record> {
        if record.get(ORIGIN_VERSION).is_some() {
            return Cow::Borrowed(record);
        }
        let mut record = record.clone();
        let version = Version { epoch: self.collection.version().epoch, serial: scanned.serial };
        record.push(ORIGIN_VERSION, version.to_string());
        Cow::Owned(record)
    }
}

/// Returns the second of a commit.
pub(crate) fn datestamp(stamp: Stamp) -> Datestamp {
    let secs = i64::try_from(stamp.0 / 1_000).unwrap_or(i64::MAX);
    Datestamp::at(secs, Granularity::Second)
}

/// Returns the stamp of the first moment of a second, or the first possible stamp for a time before
/// 1970.
fn stamp(secs: i64) -> Stamp {
    Stamp(u64::try_from(secs).unwrap_or(0).saturating_mul(1_000))
}
