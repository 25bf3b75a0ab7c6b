//! The writer: it applies the collection's change log to the index.
//!
//! Changes are written in chunks. Each chunk is one commit, whose payload has the version that the
//! commit covers. After a crash the index therefore has exactly an earlier state of the log, with a
//! known version.
//!
//! Duplicates are non-empty objects with the same MD5. The object with the smallest (URL, gatherer)
//! represents the group: its document also has the words of the others' URLs, their hosts and their
//! gatherers, so that searches for these find it. The others are flagged as duplicates. When a
//! chunk touches such a group, the roles of its members are computed again from the index alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use collection::{Change, Oid, Scanned, Version};
use query::record::gatherer_name;
use soif::Record;
use soif::digest::Md5;
use tantivy::indexer::UserOperation;
use tantivy::{DocAddress, IndexWriter, Searcher, TantivyError, Term};

use super::document::{Duplicate, GroupRole, content_digest, document, oid_key};
use super::lookup;
use super::schema::{Fields, LAYOUT};
use crate::answer::DUPLICATES_MAX;

/// Number of operations that go to the writer together.
const GROUP_OPERATIONS: usize = 128;
/// Bytes of attribute values above which a group goes to the writer at once.
const GROUP_BYTES: usize = 1 << 20;
/// Bytes of attribute values at which a chunk is full. Its records, their documents in the engine's
/// queue and the words of these are in memory at once.
/// With half of it, and half the memory of the writer, indexing long texts took a tenth more of the processor's time.
const CHUNK_BYTES_MAX: usize = 16 << 20;

/// A record, and the serial of the change that brought it.
pub(super) type Current = (Record, u64);

/// The objects of a chunk in the order of [`Oid::key`]; `None` deletes an object.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    objects: BTreeMap<Vec<u8>, (Oid, Option<Current>)>,
    /// Bytes of attribute values.
    bytes: usize,
}

impl Chunk {
    /// Adds a change, in place of an earlier one of the same object. Refreshes and confirmations
    /// change nothing in the index.
    pub(super) fn add(&mut self, scanned: Scanned) {
        match scanned.change {
            Change::Update(record) => {
                if let Some(oid) = Oid::of(&record) {
                    self.bytes += value_bytes(&record);
                    let current = Some((record, scanned.serial));
                    self.objects.insert(oid.key(), (oid, current));
                }
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                self.objects.insert(oid.key(), (oid, None));
            }
            Change::Refresh(..) | Change::Confirm { .. } => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn is_full(&self, changes_max: usize) -> bool {
        changes_max <= self.objects.len() || CHUNK_BYTES_MAX <= self.bytes
    }
}

/// Renders the payload of a commit: layout, version, the serial that a rebuild must reach, and a
/// digest of these. The digest is needed because the engine's list of segments, which holds the
/// payload, has no checksum.
pub(super) fn payload(version: Version, goal: u64) -> String {
    let goal = if version.serial < goal { format!(" {goal}") } else { String::new() };
    let text = format!("{LAYOUT} {version}{goal}");
    let digest = Md5::of(text.as_bytes());
    format!("{text} {digest}")
}

/// Reads a payload and returns its version and goal; `None` if it has another layout or is damaged.
pub(super) fn read_payload(written: &str) -> Option<(Version, u64)> {
    let (text, _digest) = written.rsplit_once(' ')?;
    let mut words = text.split(' ').skip(1);
    let version = words.next()?.parse().ok()?;
    let goal = words.next().map_or(Some(0), |it| it.parse().ok())?;
    (written == payload(version, goal)).then_some((version, goal))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Committed,
    /// The chunk was given up: the writer must be dropped with its uncommitted operations.
    Cancelled,
}

pub(super) struct Applier<'a> {
    pub(super) fields: &'a Fields,
    pub(super) writer: &'a mut IndexWriter,
    /// The serial that a rebuild must reach; see [`payload`].
    pub(super) goal: u64,
    /// The last commit; `None` while an index is built anew.
    pub(super) searcher: Option<Searcher>,
    /// Reads a live object from the collection, which may be newer than the chunk.
    pub(super) get: &'a dyn Fn(&Oid) -> Option<Current>,
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

/// Operations that go together to one thread of the writer. A small chunk is one group, so that its
/// commit makes one segment in total, not one for each thread.
#[derive(Default)]
struct Group {
    operations: Vec<UserOperation>,
    /// Bytes of attribute values.
    bytes: usize,
}

impl Group {
    /// Adds an object in place of its old document; without a record, only removes the old
    /// document.
    fn add(&mut self, fields: &Fields, oid: &Oid, current: Option<&Current>, role: &GroupRole) {
        let term = Term::from_field_text(fields.oid, &oid_key(oid));
        self.operations.push(UserOperation::Delete(term));
        if let Some((record, serial)) = current {
            self.bytes += value_bytes(record);
            let document = document(fields, oid, (record, *serial), role);
            self.operations.push(UserOperation::Add(document));
        }
    }

    /// Sends the group if it has at least `operations` operations or more than `bytes` bytes.
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

fn value_bytes(record: &Record) -> usize {
    record.attributes().iter().map(|it| it.value.len()).sum()
}

fn represented() -> GroupRole {
    GroupRole { represented: true, duplicates: Vec::new() }
}

/// A member of a group of the same content.
struct Member {
    oid: Oid,
    /// The member's document in the last commit; `None` if the member comes with the chunk.
    address: Option<DocAddress>,
}

/// The members of a group in the last commit, without the chunk's objects.
#[derive(Default)]
struct IndexedGroup {
    /// The first few members, in the order of [`Oid::key`].
    members: BTreeMap<Vec<u8>, Member>,
    /// Members that are not flagged as duplicates: usually one.
    unflagged: Vec<Oid>,
}

impl Applier<'_> {
    /// Writes a chunk and commits it as `version`.
    ///
    /// # Errors
    ///
    /// The engine failed; a new writer is needed, and the index is at its last commit.
    pub(super) fn write(&mut self, chunk: &Chunk, version: Version) -> tantivy::Result<Written> {
        self.try_write(chunk, version).map_err(|error| match error {
            // This error only says that a thread of the writer has ended; the commit returns the
            // cause.
            TantivyError::ErrorInThread(_) => self.writer.prepare_commit().err().unwrap_or(error),
            error => error,
        })
    }

    fn try_write(&mut self, chunk: &Chunk, version: Version) -> tantivy::Result<Written> {
        let (roles, rewrites) = self.assign_roles(chunk)?;
        let alone = GroupRole::default();
        let mut group = Group::default();
        let changes = chunk
            .objects
            .iter()
            .map(|(key, (oid, current))| (oid, current.as_ref(), roles.get(key).unwrap_or(&alone)));
        let rewrites = rewrites.iter().map(|(oid, current, role)| (oid, Some(current), role));
        for (oid, current, role) in changes.chain(rewrites) {
            if (self.cancelled)() {
                return Ok(Written::Cancelled);
            }
            group.add(self.fields, oid, current, role);
            group.send(self.writer, GROUP_OPERATIONS, GROUP_BYTES)?;
        }
        group.send(self.writer, 1, 0)?;
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&payload(version, self.goal));
        commit.commit()?;
        Ok(Written::Committed)
    }

    /// Returns the roles of the chunk's objects in their groups with the same content, by
    /// [`Oid::key`], and the other objects whose documents must be written again.
    #[expect(clippy::type_complexity, reason = "two lists that only `write` takes")]
    fn assign_roles(
        &self,
        chunk: &Chunk,
    ) -> tantivy::Result<(HashMap<Vec<u8>, GroupRole>, Vec<(Oid, Current, GroupRole)>)> {
        let (mut roles, mut rewrites) = (HashMap::new(), Vec::new());
        let mut coming: HashMap<String, Vec<&Vec<u8>>> = HashMap::new();
        let mut touched = BTreeSet::new();
        for (key, (oid, current)) in &chunk.objects {
            if (self.cancelled)() {
                break;
            }
            touched.extend(self.digest_before(oid)?);
            if let Some(digest) = current.as_ref().and_then(|it| content_digest(&it.0)) {
                touched.insert(digest.clone());
                coming.entry(digest).or_default().push(key);
            }
        }
        for group in touched {
            if (self.cancelled)() {
                break;
            }
            let indexed = self.indexed_group(chunk, &group)?;
            let coming = coming.get(&group).map(Vec::as_slice).unwrap_or_default();
            if indexed.members.is_empty() && coming.len() < 2 {
                continue;
            }
            self.assign_group_roles(chunk, &group, indexed, coming, &mut roles, &mut rewrites)?;
        }
        Ok((roles, rewrites))
    }

    fn assign_group_roles(
        &self,
        chunk: &Chunk,
        group: &str,
        indexed: IndexedGroup,
        coming: &[&Vec<u8>],
        roles: &mut HashMap<Vec<u8>, GroupRole>,
        rewrites: &mut Vec<(Oid, Current, GroupRole)>,
    ) -> tantivy::Result<()> {
        let mut members = indexed.members;
        for key in coming {
            if let Some((oid, _)) = chunk.objects.get(*key) {
                members.insert((*key).clone(), Member { oid: oid.clone(), address: None });
                roles.insert((*key).clone(), represented());
            }
        }
        let still_here = |oid: &Oid| {
            (self.get)(oid).filter(|it| content_digest(&it.0).as_deref() == Some(group))
        };
        // Skip indexed members that have left the group in the collection: a later change in the
        // log removes them from the index.
        let (key, oid, current) = loop {
            let Some((key, member)) = members.pop_first() else { return Ok(()) };
            if member.address.is_none() {
                break (key, member.oid, None);
            }
            if let Some(current) = still_here(&member.oid) {
                break (key, member.oid, Some(current));
            }
        };
        let members = members.into_iter().take(DUPLICATES_MAX);
        let duplicates = members.map(|(key, member)| self.duplicate(chunk, &key, member));
        let duplicates = duplicates.collect::<tantivy::Result<_>>()?;
        let role = GroupRole { represented: false, duplicates };
        match current {
            None => drop(roles.insert(key, role)),
            Some(current) => rewrites.push((oid.clone(), current, role)),
        }
        for flagged in indexed.unflagged.into_iter().filter(|it| *it != oid) {
            if let Some(current) = still_here(&flagged) {
                rewrites.push((flagged, current, represented()));
            }
        }
        Ok(())
    }

    fn duplicate(&self, chunk: &Chunk, key: &[u8], member: Member) -> tantivy::Result<Duplicate> {
        let coming = chunk.objects.get(key).and_then(|(_, current)| current.as_ref());
        let gatherer = match (coming, member.address, &self.searcher) {
            (Some((record, _)), _, _) => gatherer_name(record),
            (None, Some(address), Some(searcher)) => {
                lookup::stored(searcher, self.fields, address)?.gatherer
            }
            _ => member.oid.gatherer.clone(),
        };
        Ok(Duplicate { url: member.oid.url, gatherer_id: member.oid.gatherer, gatherer })
    }

    /// Returns the content digest of an object in the last commit.
    fn digest_before(&self, oid: &Oid) -> tantivy::Result<Option<String>> {
        let Some(searcher) = &self.searcher else { return Ok(None) };
        let found = lookup::having(searcher, self.fields.oid, &oid_key(oid), 1)?;
        found.first().map_or(Ok(None), |address| lookup::content_digest(searcher, *address))
    }

    /// Returns the members of a group in the last commit, without the chunk's objects.
    fn indexed_group(&self, chunk: &Chunk, group: &str) -> tantivy::Result<IndexedGroup> {
        let mut indexed = IndexedGroup::default();
        let Some(searcher) = &self.searcher else { return Ok(indexed) };
        for address in lookup::having(searcher, self.fields.content, group, usize::MAX)? {
            let Some(oid) = lookup::oid(searcher, address)? else { continue };
            let key = oid.key();
            if chunk.objects.contains_key(&key) {
                continue;
            }
            if !lookup::is_duplicate(searcher, address)? {
                indexed.unflagged.push(oid.clone());
            }
            indexed.members.insert(key, Member { oid, address: Some(address) });
            // Keep more members than a hit names, since the first ones may have left the group.
            if DUPLICATES_MAX + 2 < indexed.members.len() {
                indexed.members.pop_last();
            }
        }
        Ok(indexed)
    }
}
