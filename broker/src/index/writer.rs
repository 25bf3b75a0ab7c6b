//! From the collection's change log to the index.
//!
//! Changes are taken in chunks; a chunk is one commit, whose payload says which serial of which
//! epoch it reaches. After a crash the index is therefore exactly some earlier state of the log,
//! and knows which.
//!
//! Duplicates: of the objects with one content (MD5, when there is any content) the one with the smallest (address, gatherer)
//! answers for all: it carries the words of the others' addresses, their hosts and their gatherers,
//! so that it is found where they would be. The others are flagged. Whenever a chunk touches such
//! a group, the group is done again from what the index itself knows of it; nothing else has
//! to be kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use collection::{Change, Oid, Scanned, Version};
use query::record::gatherer_name;
use soif::Record;
use soif::digest::Md5;
use tantivy::indexer::UserOperation;
use tantivy::{DocAddress, IndexWriter, Searcher, TantivyError, Term};

use super::document::{Other, Place, content, document, oid_key};
use super::lookup;
use super::schema::{Fields, LAYOUT};
use crate::answer::DUPLICATES_MAX;

/// Operations that go to the writer together.
const GROUP_OPERATIONS: usize = 128;
/// Bytes of attribute values above which a group goes to the writer as it is.
const GROUP_BYTES: usize = 1 << 20;
/// Most bytes of attribute values in one chunk.
const CHUNK_BYTES_MAX: usize = 32 << 20;

/// What to do with the objects of a chunk: `None` deletes. In the order of [`Oid::key`].
#[derive(Debug, Default)]
pub(super) struct Chunk {
    objects: BTreeMap<Vec<u8>, (Oid, Option<Record>)>,
    /// Bytes of attribute values.
    bytes: usize,
}

impl Chunk {
    /// Adds a change; a later one of the same object replaces an earlier one. What only confirms
    /// objects is none of the index's business.
    pub(super) fn add(&mut self, scanned: Scanned) {
        match scanned.change {
            Change::Update(record) => {
                if let Some(oid) = Oid::of(&record) {
                    self.bytes += value_bytes(&record);
                    self.objects.insert(oid.key(), (oid, Some(record)));
                }
            }
            Change::Delete(oid) | Change::Suppress(oid, _) => {
                self.objects.insert(oid.key(), (oid, None));
            }
            Change::Refresh(_) | Change::Confirm { .. } => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether it is time to write it.
    pub(super) fn is_full(&self, changes_max: usize) -> bool {
        changes_max <= self.objects.len() || CHUNK_BYTES_MAX <= self.bytes
    }
}

/// Renders the payload of a commit: layout, version, of an index that is being built anew how far it was to get,
/// and a digest of all that, since the engine's list of segments, which has it, has no checksum.
pub(super) fn payload(version: Version, goal: u64) -> String {
    let goal = if version.serial < goal { format!(" {goal}") } else { String::new() };
    let said = format!("{LAYOUT} {version}{goal}");
    let digest = Md5::of(said.as_bytes());
    format!("{said} {digest}")
}

/// Reads a payload: the version, and the goal; `None` when it is of another layout, or not what was written.
pub(super) fn read_payload(written: &str) -> Option<(Version, u64)> {
    let (said, _digest) = written.rsplit_once(' ')?;
    let mut words = said.split(' ').skip(1);
    let version = words.next()?.parse().ok()?;
    let goal = words.next().map_or(Some(0), |it| it.parse().ok())?;
    (written == payload(version, goal)).then_some((version, goal))
}

/// How writing a chunk has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Committed,
    /// Given up: the writer has to be dropped with what it was given.
    Cancelled,
}

/// Writes chunks.
pub(super) struct Applier<'a> {
    pub(super) fields: &'a Fields,
    pub(super) writer: &'a mut IndexWriter,
    /// See [`payload`].
    pub(super) goal: u64,
    /// The last commit; `None` while an index is built anew.
    pub(super) searcher: Option<Searcher>,
    /// Reads a live object from the collection, which may be ahead of the chunk.
    pub(super) get: &'a dyn Fn(&Oid) -> Option<Record>,
    /// Whether to give up.
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

/// Operations that go to one thread of the writer together. A small chunk is one group, so that its commit
/// makes one segment and not one for each thread.
#[derive(Default)]
struct Group {
    operations: Vec<UserOperation>,
    /// Bytes of attribute values.
    bytes: usize,
}

impl Group {
    /// Adds an object, in place of what the index has of it; `None` only removes.
    fn add(&mut self, fields: &Fields, oid: &Oid, record: Option<&Record>, place: &Place) {
        let term = Term::from_field_text(fields.oid, &oid_key(oid));
        self.operations.push(UserOperation::Delete(term));
        if let Some(record) = record {
            self.bytes += value_bytes(record);
            self.operations.push(UserOperation::Add(document(fields, oid, record, place)));
        }
    }

    /// Sends the group if it has so many operations or more than so many bytes.
    fn send(
        &mut self,
        writer: &IndexWriter,
        operations: usize,
        bytes: usize,
    ) -> tantivy::Result<()> {
        if operations <= self.operations.len() || bytes < self.bytes {
            self.bytes = 0;
            writer.run(std::mem::take(&mut self.operations))?;
        }
        Ok(())
    }
}

/// Bytes of a record's values.
fn value_bytes(record: &Record) -> usize {
    record.attributes().iter().map(|it| it.value.len()).sum()
}

/// A member of a group of the same content.
struct Member {
    oid: Oid,
    /// Where it is in the last commit; `None` when the chunk brings it.
    address: Option<DocAddress>,
}

/// What the index knows of a group besides the chunk.
#[derive(Default)]
struct Known {
    /// The first few members, in the order of [`Oid::key`].
    members: BTreeMap<Vec<u8>, Member>,
    /// Those that are not flagged: one, unless the index has just been told of several.
    unflagged: Vec<Oid>,
}

impl Applier<'_> {
    /// Writes a chunk and commits it as `version`.
    ///
    /// # Errors
    ///
    /// The engine failed; the writer has to be made anew, the index is at its last commit.
    pub(super) fn write(&mut self, chunk: &Chunk, version: Version) -> tantivy::Result<Written> {
        self.try_write(chunk, version).map_err(|error| match error {
            // All that the engine says is that a thread of the writer has ended; it is the commit that
            // asks the threads why.
            TantivyError::ErrorInThread(_) => self.writer.prepare_commit().err().unwrap_or(error),
            error => error,
        })
    }

    fn try_write(&mut self, chunk: &Chunk, version: Version) -> tantivy::Result<Written> {
        let (places, extra) = self.settle(chunk)?;
        let alone = Place::default();
        let mut group = Group::default();
        for (key, (oid, record)) in &chunk.objects {
            if (self.cancelled)() {
                return Ok(Written::Cancelled);
            }
            group.add(self.fields, oid, record.as_ref(), places.get(key).unwrap_or(&alone));
            group.send(self.writer, GROUP_OPERATIONS, GROUP_BYTES)?;
        }
        for (oid, record, place) in &extra {
            if (self.cancelled)() {
                return Ok(Written::Cancelled);
            }
            group.add(self.fields, oid, Some(record), place);
            group.send(self.writer, GROUP_OPERATIONS, GROUP_BYTES)?;
        }
        group.send(self.writer, 1, 0)?;
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&payload(version, self.goal));
        commit.commit()?;
        Ok(Written::Committed)
    }

    /// Finds the places of the chunk's objects among those of the same content, by [`Oid::key`],
    /// and which other objects have to be written again for it.
    #[expect(clippy::type_complexity, reason = "two lists that only `write` takes")]
    fn settle(
        &self,
        chunk: &Chunk,
    ) -> tantivy::Result<(HashMap<Vec<u8>, Place>, Vec<(Oid, Record, Place)>)> {
        let (mut places, mut extra) = (HashMap::new(), Vec::new());
        let mut coming: HashMap<String, Vec<&Vec<u8>>> = HashMap::new();
        let mut touched = BTreeSet::new();
        for (key, (oid, record)) in &chunk.objects {
            if (self.cancelled)() {
                break;
            }
            touched.extend(self.content_before(oid)?);
            if let Some(content) = record.as_ref().and_then(content) {
                touched.insert(content.clone());
                coming.entry(content).or_default().push(key);
            }
        }
        for group in touched {
            if (self.cancelled)() {
                break;
            }
            let known = self.known(chunk, &group)?;
            let coming = coming.get(&group).map(Vec::as_slice).unwrap_or_default();
            if known.members.is_empty() && coming.len() < 2 {
                continue;
            }
            self.settle_group(chunk, &group, known, coming, &mut places, &mut extra)?;
        }
        Ok((places, extra))
    }

    fn settle_group(
        &self,
        chunk: &Chunk,
        group: &str,
        known: Known,
        coming: &[&Vec<u8>],
        places: &mut HashMap<Vec<u8>, Place>,
        extra: &mut Vec<(Oid, Record, Place)>,
    ) -> tantivy::Result<()> {
        let mut members = known.members;
        for key in coming {
            if let Some((oid, _)) = chunk.objects.get(*key) {
                members.insert((*key).clone(), Member { oid: oid.clone(), address: None });
                places.insert((*key).clone(), Place { duplicate: true, others: Vec::new() });
            }
        }
        let still_here =
            |oid: &Oid| (self.get)(oid).filter(|record| content(record).as_deref() == Some(group));
        // Who is in the index but has left the group in the collection has a change on its way.
        let mut first = None;
        while let Some((key, member)) = members.pop_first() {
            if member.address.is_none() {
                first = Some((key, member.oid, None));
                break;
            }
            if let Some(record) = still_here(&member.oid) {
                first = Some((key, member.oid, Some(record)));
                break;
            }
        }
        let Some((key, oid, record)) = first else { return Ok(()) };
        let mut others = Vec::new();
        for (key, member) in members.into_iter().take(DUPLICATES_MAX) {
            others.push(self.other(chunk, &key, member)?);
        }
        let place = Place { duplicate: false, others };
        match record {
            None => drop(places.insert(key, place)),
            Some(record) => extra.push((oid.clone(), record, place)),
        }
        for flagged in known.unflagged.into_iter().filter(|it| *it != oid) {
            if let Some(record) = still_here(&flagged) {
                extra.push((flagged, record, Place { duplicate: true, others: Vec::new() }));
            }
        }
        Ok(())
    }

    fn other(&self, chunk: &Chunk, key: &[u8], member: Member) -> tantivy::Result<Other> {
        let coming = chunk.objects.get(key).and_then(|(_, record)| record.as_ref());
        let gatherer = match (coming, member.address, &self.searcher) {
            (Some(record), _, _) => gatherer_name(record),
            (None, Some(address), Some(searcher)) => {
                lookup::stored(searcher, self.fields, address)?.gatherer
            }
            _ => member.oid.gatherer.clone(),
        };
        Ok(Other { url: member.oid.url, gatherer_id: member.oid.gatherer, gatherer })
    }

    /// The content that the last commit knows of an object.
    fn content_before(&self, oid: &Oid) -> tantivy::Result<Option<String>> {
        let Some(searcher) = &self.searcher else { return Ok(None) };
        let found = lookup::having(searcher, self.fields.oid, &oid_key(oid), 1)?;
        found.first().map_or(Ok(None), |address| lookup::content(searcher, *address))
    }

    /// What the last commit knows of a group, without the chunk's objects.
    fn known(&self, chunk: &Chunk, group: &str) -> tantivy::Result<Known> {
        let mut known = Known::default();
        let Some(searcher) = &self.searcher else { return Ok(known) };
        for address in lookup::having(searcher, self.fields.content, group, usize::MAX)? {
            let Some(oid) = lookup::oid(searcher, address)? else { continue };
            let key = oid.key();
            if chunk.objects.contains_key(&key) {
                continue;
            }
            if !lookup::is_duplicate(searcher, address)? {
                known.unflagged.push(oid.clone());
            }
            known.members.insert(key, Member { oid, address: Some(address) });
            // One more than is named, as the first may turn out to have left.
            if DUPLICATES_MAX + 2 < known.members.len() {
                known.members.pop_last();
            }
        }
        Ok(known)
    }
}
