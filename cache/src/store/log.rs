//! The log of the store: segments, which records are appended to, and which make room as a whole.
//!
//! There are two queues of segments (S3-FIFO, Yang et al., SOSP 2023, by segments in place of
//! objects): new records go to the *young* queue, which has a tenth of the room, and those that came
//! again lately to the *old* one. The oldest segment of a queue makes room: its records that were used
//! go to the old queue, the others are gone. So what is asked for once flushes nothing that is in use.
//!
//! A closed segment has a *list* beside it, from which the index is made at a start; without one, or
//! with a damaged one, the segment's records are read instead. Bytes of a body are checked when they
//! are used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::{Disk, File};

use super::index::{Ghosts, Place, UNIT};
use super::known::Known;
use super::list::{Entry, read_list, scan, write_list};
use super::record::{BLOCK_BYTES, FRONT_BYTES, Front, Ids, Kind, read_url, write_removal};
use super::source::Source;
use crate::transfer::Quota;

/// Share of the room that the young queue has, and of the longest body.
const YOUNG_SHARE: u64 = 10;

/// Share of the room that bodies on their way may take, all together.
const COMING_SHARE: u64 = 5;

/// Least number of URLs of which is known that their records made room.
const GHOSTS_MIN: usize = 64;

/// A queue of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Young,
    Old,
}

#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    queue: Queue,
    /// Bytes up to the end of the last record.
    bytes: u64,
    /// Its records while it is open; those of a closed one are in its list.
    entries: Vec<Entry>,
    /// The lowest sequence of its objects.
    first: u64,
}

/// The segments of a store. One thread writes them.
#[derive(Debug)]
pub(super) struct Log {
    disk: Disk,
    folder: PathBuf,
    bytes_max: u64,
    /// What bodies on their way have of it.
    quota: Arc<Quota>,
    segment_bytes: u64,
    known: Arc<Mutex<Known>>,
    segments: BTreeMap<u32, Segment>,
    ghosts: Ghosts,
    /// The segment of each queue that is appended to.
    open: [Option<u32>; 2],
    /// The highest number that a segment or list has had.
    last_id: u32,
    sequence: u64,
}

impl Log {
    /// Opens the log in a folder, or begins one there.
    ///
    /// # Errors
    ///
    /// The folder or a file in it cannot be read or written.
    pub(super) fn open(disk: Disk, folder: &Path, bytes_max: u64) -> io::Result<Self> {
        // What others have asked for is for nobody's eyes.
        disk.make_directories(folder, Some(0o700))?;
        let segment_bytes = (bytes_max / 64).clamp(1 << 16, 32 << 20);
        let mut log = Self {
            disk,
            folder: folder.to_owned(),
            bytes_max,
            quota: Arc::new(Quota::new(bytes_max / COMING_SHARE)),
            segment_bytes,
            known: Arc::default(),
            segments: BTreeMap::new(),
            ghosts: Ghosts::default(),
            open: [None; 2],
            last_id: last_id(folder)?,
            sequence: 0,
        };
        let mut lists = Vec::new();
        for (id, queue) in names(folder)? {
            lists.push((id, log.load(id, queue)?));
        }
        log.know(lists);
        Ok(log)
    }

    /// Makes the index of what the segments have.
    fn know(&mut self, mut lists: Vec<(u32, Vec<Entry>)>) {
        let mut removed: HashMap<u64, u64> = HashMap::new();
        let all = lists.iter().flat_map(|(_, entries)| entries);
        for it in all.filter(|it| it.kind == Kind::Removal) {
            let last = removed.entry(it.hash).or_default();
            *last = it.sequence.max(*last);
        }
        let count = lists.iter().map(|it| it.1.len()).sum();
        self.known().index.reserve(count);
        // A later record replaces an earlier one to the same requests. The lists are merged where they
        // are, since with many objects a copy of all would be larger than the index.
        lists.iter_mut().for_each(|(_, it)| it.sort_unstable_by_key(|it| Reverse(it.sequence)));
        let next =
            |(at, list): (usize, &(u32, Vec<Entry>))| Some(Reverse((list.1.last()?.sequence, at)));
        let mut order: BinaryHeap<_> = lists.iter().enumerate().filter_map(next).collect();
        while let Some(Reverse((sequence, at))) = order.pop() {
            let Some(list) = lists.get_mut(at) else { continue };
            let Some(it) = list.1.pop() else { continue };
            order.extend(next((at, list)));
            self.sequence = sequence;
            let is_gone = removed.get(&it.hash).is_some_and(|at| sequence < *at);
            if it.kind == Kind::Object && !is_gone {
                let place = Place { segment: list.0, at: it.at, length: it.length };
                self.known().index.insert((it.hash, it.variant), place, (0, false));
            }
        }
    }

    /// Takes a segment in, and returns its records.
    fn load(&mut self, id: u32, queue: Queue) -> io::Result<Vec<Entry>> {
        let file = Arc::new(self.disk.open(&self.path(id, queue))?);
        let listed = std::fs::read(self.list_path(id)).ok().and_then(|it| read_list(&it));
        let is_listed = listed.is_some();
        let (entries, bytes) = match listed {
            Some(entries) => (entries, file.length()?),
            None => scan(&file)?,
        };
        let objects = entries.iter().filter(|it| it.kind == Kind::Object);
        let first = objects.map(|it| it.sequence).min().unwrap_or(u64::MAX);
        self.known().files.insert(id, Arc::clone(&file));
        let kept = if is_listed { Vec::new() } else { entries.clone() };
        self.segments.insert(id, Segment { file, queue, bytes, entries: kept, first });
        if !is_listed {
            self.close_segment(id)?;
        }
        Ok(entries)
    }

    /// Returns what readers share.
    pub(super) fn shared(&self) -> Arc<Mutex<Known>> {
        Arc::clone(&self.known)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, id: u32, queue: Queue) -> PathBuf {
        let name = match queue {
            Queue::Young => "young",
            Queue::Old => "old",
        };
        self.folder.join(format!("{name}-{id:08}"))
    }

    fn list_path(&self, id: u32) -> PathBuf {
        self.folder.join(format!("list-{id:08}"))
    }

    /// Returns the bytes of all segments.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.values().map(|it| it.bytes).sum()
    }

    fn bytes_of(&self, queue: Queue) -> u64 {
        self.segments.values().filter(|it| it.queue == queue).map(|it| it.bytes).sum()
    }

    /// Returns the next sequence.
    pub(super) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Appends an object's record, of which `begun` are front and head, where room was made for it before
    /// it got its sequence. Returns its place.
    ///
    /// # Errors
    ///
    /// It cannot be written: try later.
    pub(super) fn append_object(
        &mut self,
        begun: &[u8],
        body: &Source<'_>,
        hash: u64,
    ) -> io::Result<Place> {
        let queue = if self.ghosts.take(hash) { Queue::Old } else { Queue::Young };
        let place = self.append(begun, body, queue)?;
        let variant = begun.first_chunk().and_then(Front::read).map_or(0, |it| it.variant);
        self.known().index.insert((hash, variant), place, (0, false));
        Ok(place)
    }

    /// Returns the longest body that has room.
    pub(super) fn body_bytes_max(&self) -> u64 {
        self.bytes_max / YOUNG_SHARE
    }

    /// Returns the room that bodies on their way have.
    pub(super) fn quota(&self) -> Arc<Quota> {
        Arc::clone(&self.quota)
    }

    /// Appends the note that a URL's records are gone.
    ///
    /// # Errors
    ///
    /// It cannot be written: the records would be back after a start.
    pub(super) fn append_removal(&mut self, record: &[u8]) -> io::Result<()> {
        self.make_room(record.len() as u64)?;
        self.append(record, &Source::Bytes(&[]), Queue::Old).map(drop)
    }

    fn append(&mut self, begun: &[u8], body: &Source<'_>, queue: Queue) -> io::Result<Place> {
        let front = begun.first_chunk().and_then(Front::read);
        let front = front.ok_or_else(|| io::Error::other("no record"))?;
        let bytes = front.record_bytes();
        let id = self.open_segment(queue, bytes)?;
        let segment = self.segments.get_mut(&id).ok_or_else(|| io::Error::other("no segment"))?;
        let start = segment.bytes;
        write(&segment.file, start, begun, body)?;
        let units = |bytes: u64| u32::try_from(bytes.div_ceil(UNIT)).map_err(io::Error::other);
        let (at, length) = (units(start)?, units(bytes)?);
        let Front { hash, sequence, variant, kind, .. } = front;
        segment.entries.push(Entry { hash, sequence, variant, at, length, kind });
        segment.bytes = (u64::from(at) + u64::from(length)) * UNIT;
        if kind == Kind::Object {
            segment.first = segment.first.min(sequence);
        }
        Ok(Place { segment: id, at, length })
    }

    /// Returns the segment to append so many bytes to.
    fn open_segment(&mut self, queue: Queue, bytes: u64) -> io::Result<u32> {
        if let Some(id) = self.open.get(queue as usize).copied().flatten() {
            let used = self.segments.get(&id).map_or(u64::MAX, |it| it.bytes);
            if used == 0 || used.saturating_add(bytes) <= self.segment_bytes {
                return Ok(id);
            }
            self.close_open(queue)?;
        }
        self.last_id += 1;
        let id = self.last_id;
        let file = Arc::new(self.disk.create_new(&self.path(id, queue), disk::MODE)?);
        self.known().files.insert(id, Arc::clone(&file));
        let segment = Segment { file, queue, bytes: 0, entries: Vec::new(), first: u64::MAX };
        self.segments.insert(id, segment);
        if let Some(open) = self.open.get_mut(queue as usize) {
            *open = Some(id);
        }
        Ok(id)
    }

    fn close_open(&mut self, queue: Queue) -> io::Result<()> {
        match self.open.get_mut(queue as usize).and_then(Option::take) {
            Some(id) => self.close_segment(id),
            None => Ok(()),
        }
    }

    /// Makes a segment durable, and writes its list.
    fn close_segment(&mut self, id: u32) -> io::Result<()> {
        let Some(segment) = self.segments.get(&id) else { return Ok(()) };
        segment.file.sync_data()?;
        let path = self.list_path(id);
        let list = write_list(&segment.entries);
        self.disk.replace(&path, &path.with_extension("new"), disk::MODE, &list)?;
        self.forget_entries(id);
        Ok(())
    }

    fn forget_entries(&mut self, id: u32) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.entries = Vec::new();
        }
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut open = self.open.iter().flatten().filter_map(|it| self.segments.get(it));
        open.try_for_each(|it| it.file.sync_data())?;
        // A file without its name is lost.
        self.disk.sync(&self.folder)
    }

    /// Makes everything durable, with lists of all segments.
    ///
    /// # Errors
    ///
    /// The disk fails: the next start reads more.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.close_open(Queue::Young)?;
        self.close_open(Queue::Old)?;
        self.disk.sync(&self.folder)
    }

    /// Lets the oldest segments go until there is room for so many bytes, beside the bodies on their way.
    ///
    /// # Errors
    ///
    /// A segment cannot be read or removed: try later.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        // What is used is moved to the old queue, and loses a use each time; so a few rounds over all
        // segments free any room.
        for _ in 0..4 * self.segments.len() {
            if self.bytes() + bytes + self.quota.taken() <= self.bytes_max {
                break;
            }
            let young = self.bytes_of(Queue::Young);
            let is_young = self.bytes_max / YOUNG_SHARE <= young || self.bytes_of(Queue::Old) == 0;
            self.let_go(if is_young { Queue::Young } else { Queue::Old })?;
        }
        Ok(())
    }

    /// Lets the oldest segment of a queue go; its used records go to the old queue.
    fn let_go(&mut self, queue: Queue) -> io::Result<()> {
        let oldest = self.segments.iter().find(|(_, it)| it.queue == queue).map(|(id, _)| *id);
        let Some(id) = oldest else { return Ok(()) };
        if self.open.contains(&Some(id)) {
            self.close_open(queue)?;
        }
        let listed = std::fs::read(self.list_path(id)).ok().and_then(|it| read_list(&it));
        let Some(segment) = self.segments.get(&id) else { return Ok(()) };
        let file = Arc::clone(&segment.file);
        let entries = match listed {
            Some(entries) => entries,
            None => scan(&file)?.0,
        };
        let others = self.segments.iter().filter(|(other, _)| **other != id);
        let first = others.map(|(_, it)| it.first).min().unwrap_or(u64::MAX);
        for it in entries {
            self.part_with(&file, it, (id, first))?;
        }
        // What has moved is durable before what it stands for goes, and what went before is gone for good.
        if let Err(error) = self.sync() {
            tracing::debug!(%error, "a power cut may bring back what was replaced");
        }
        self.segments.remove(&id);
        self.known().files.remove(&id);
        self.disk.remove_file(&self.path(id, queue))?;
        match self.disk.remove_file(&self.list_path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves a record of a segment that goes if it is used, or notes what must not be back for it. `first` is the lowest
    /// sequence of objects in other segments.
    fn part_with(&mut self, file: &File, it: Entry, (id, first): (u32, u64)) -> io::Result<()> {
        let place = Place { segment: id, at: it.at, length: it.length };
        let uses = match it.kind {
            // It stays known while it is moved, so that whoever removes it then finds it.
            Kind::Object => self.known().index.uses(it.hash, place),
            // It is needed as long as there may be older records.
            Kind::Removal => (first < it.sequence).then_some((1, false)),
        };
        match uses {
            Some((0, replaces)) => {
                // What it has replaced must not be back after a start.
                if replaces && first < it.sequence {
                    self.note_removal(file, it)?;
                }
                self.known().index.take(it.hash, place);
                let max = self.known().index.len().max(GHOSTS_MIN);
                self.ghosts.add(it.hash, max);
            }
            Some((uses, replaces)) => {
                // What cannot be moved is gone: a full disk must not keep others from room.
                if let Err(error) = self.spare(file, it, (place, (uses - 1, replaces))) {
                    self.known().index.take(it.hash, place);
                    tracing::debug!(%error, "a stored object was not kept");
                }
            }
            // The note that it is removed is still to be written.
            None if it.kind == Kind::Object
                && first < it.sequence
                && self.known().is_gone(it.hash) =>
            {
                self.note_removal(file, it)?;
            }
            None => {}
        }
        Ok(())
    }

    /// Writes that the objects of a record's URL are gone, before it goes itself.
    fn note_removal(&mut self, file: &File, entry: Entry) -> io::Result<()> {
        let at = u64::from(entry.at) * UNIT;
        let mut front = [0; FRONT_BYTES];
        file.read_exact_at(&mut front, at)?;
        let bytes = Front::read(&front).map_or(0, |it| it.head_bytes as usize);
        let mut head = vec![0; bytes];
        file.read_exact_at(&mut head, at + FRONT_BYTES as u64)?;
        let Some(url) = read_url(&head) else { return Ok(()) };
        // Other variants of the URL that are newer stay: it has the sequence of what it stands for.
        let ids = Ids { sequence: entry.sequence, hash: entry.hash, variant: 0 };
        match super::record::write(Kind::Removal, ids, &write_removal(url), &[]) {
            Some(record) => self.append(&record, &Source::Bytes(&[]), Queue::Old).map(drop),
            None => Ok(()),
        }
    }

    /// Moves a record to the end of the old queue, under a new sequence.
    fn spare(
        &mut self,
        file: &File,
        entry: Entry,
        (old, uses): (Place, (u8, bool)),
    ) -> io::Result<()> {
        let at = u64::from(entry.at) * UNIT;
        let mut front = [0; FRONT_BYTES];
        file.read_exact_at(&mut front, at)?;
        let damaged = || io::Error::other("a record is damaged");
        let front = Front::read(&front).ok_or_else(damaged)?;
        let mut begun = vec![0; FRONT_BYTES + front.head_bytes as usize];
        file.read_exact_at(&mut begun, at)?;
        let sequence = if entry.kind == Kind::Object { self.next() } else { entry.sequence };
        let body = Source::File(file, at + begun.len() as u64, front.body_bytes);
        let begun = super::record::with_sequence(begun, sequence).ok_or_else(damaged)?;
        let place = self.append(&begun, &body, Queue::Old)?;
        let mut known = self.known();
        // The note of who has removed it meanwhile comes later, with a later sequence.
        if entry.kind == Kind::Object && known.index.take(entry.hash, old).is_some() {
            known.index.insert((entry.hash, entry.variant), place, uses);
        }
        drop(known);
        Ok(())
    }
}

/// Writes a record: a short one at once.
fn write(file: &File, start: u64, begun: &[u8], body: &Source<'_>) -> io::Result<()> {
    if let Source::Bytes(bytes) = body
        && bytes.len() <= BLOCK_BYTES
    {
        return file.write_all_at(&[begun, bytes].concat(), start);
    }
    let (body_at, mut copied, mut block) = (start + begun.len() as u64, 0, vec![0; BLOCK_BYTES]);
    while copied < body.bytes() {
        let left = usize::try_from(body.bytes() - copied).unwrap_or(BLOCK_BYTES);
        let block = block.get_mut(..left.min(BLOCK_BYTES)).unwrap_or_default();
        body.read(copied, block)?;
        file.write_all_at(block, body_at + copied)?;
        copied += block.len() as u64;
    }
    // The front comes last: without it there is no record.
    file.write_all_at(begun, start)
}

/// Returns the highest number of a segment or list in a folder; what belongs to no segment counts, too.
fn last_id(folder: &Path) -> io::Result<u32> {
    let mut last = 0;
    for file in std::fs::read_dir(folder)? {
        let name = file?.file_name();
        let name = name.to_string_lossy();
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        last = last.max(digits.parse().unwrap_or(0));
    }
    Ok(last)
}

/// Returns the segments in a folder, in order.
fn names(folder: &Path) -> io::Result<Vec<(u32, Queue)>> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let name = file?.file_name();
        let Some((queue, id)) = name.to_str().and_then(|it| it.split_once('-')) else { continue };
        let queue = match queue {
            "young" => Queue::Young,
            "old" => Queue::Old,
            _ => continue,
        };
        if let Ok(id) = id.parse() {
            names.push((id, queue));
        }
    }
    names.sort_unstable_by_key(|(id, _)| *id);
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record::write;

    fn record(log: &mut Log, kind: Kind, hash: u64, body: &[u8]) -> Vec<u8> {
        let sequence = log.next();
        write(kind, Ids { sequence, hash, variant: 0 }, b"\x01\0\0\0u", body).unwrap()
    }

    fn put(log: &mut Log, hash: u64, bytes: usize) {
        log.make_room(FRONT_BYTES as u64 + 5 + bytes as u64).unwrap();
        let record =
            record(log, Kind::Object, hash, &vec![u8::try_from(hash % 251).unwrap(); bytes]);
        let (begun, body) = record.split_at(record.len() - bytes);
        log.append_object(begun, &Source::Bytes(body), hash).unwrap();
    }

    /// Returns the bodies of a URL, each a byte and its length.
    fn bodies(log: &mut Log, hash: u64) -> Vec<(u8, usize)> {
        let mut found = Vec::new();
        let used = log.known().used(hash);
        for (place, file) in used {
            let mut bytes = vec![0; usize::try_from(u64::from(place.length) * UNIT).unwrap()];
            let (count, _) = file.read_up_to(&mut bytes, u64::from(place.at) * UNIT);
            bytes.truncate(count);
            let front = Front::read(bytes.first_chunk().unwrap()).unwrap();
            let body = &bytes[FRONT_BYTES + 5..usize::try_from(front.record_bytes()).unwrap()];
            assert!(front.is_body(body) && front.hash == hash);
            assert_eq!(read_url(&bytes[FRONT_BYTES..]), Some("u"));
            found.push((body[0], body.len()));
        }
        found
    }

    fn open(folder: &Path, bytes_max: u64) -> Log {
        Log::open(Disk::Hasty, folder, bytes_max).unwrap()
    }

    #[test]
    fn what_was_appended_is_there_after_any_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 1 << 30);
        for hash in 1..200 {
            put(&mut log, hash, 1_000 + usize::try_from(hash).unwrap());
        }
        let removal = record(&mut log, Kind::Removal, 5, b"");
        log.known().index.take_all(5);
        log.append_removal(&removal).unwrap();
        put(&mut log, 6, 77);
        for is_closed in [false, true, true] {
            if is_closed {
                log.close().unwrap();
            }
            drop(log);
            log = open(folder.path(), 1 << 30);
            assert_eq!((bodies(&mut log, 5), bodies(&mut log, 7)), (vec![], vec![(7, 1_007)]));
            assert_eq!(bodies(&mut log, 6), [(6, 77)], "the later one");
            assert_eq!(log.known().index.len(), 198);
        }
        // The next sequence is higher than all before.
        assert_eq!(log.next(), 202);
    }

    #[test]
    fn a_torn_end_costs_the_record_that_it_tears() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 1 << 30);
        (1..4).for_each(|hash| put(&mut log, hash, 100));
        let path = log.path(1, Queue::Young);
        drop(log);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(std::fs::metadata(&path).unwrap().len() - 1).unwrap();
        let mut log = open(folder.path(), 1 << 30);
        assert_eq!([1, 2, 3].map(|hash| bodies(&mut log, hash).len()), [1, 1, 0]);
        put(&mut log, 3, 50);
        assert_eq!(bodies(&mut log, 3), [(3, 50)]);
    }

    #[test]
    fn what_is_used_stays_and_the_room_is_kept_to() {
        let folder = tempfile::tempdir().unwrap();
        let bytes_max = 8 << 20;
        let mut log = open(folder.path(), bytes_max);
        let used: Vec<u64> = (1..100).collect();
        used.iter().for_each(|hash| put(&mut log, *hash, 10_000));
        for hash in 1_000..5_000 {
            put(&mut log, hash, 10_000);
            used.iter().for_each(|it| drop(log.known().used(*it)));
            assert!(log.bytes() <= bytes_max, "{}", log.bytes());
        }
        assert!(used.iter().all(|hash| bodies(&mut log, *hash).len() == 1));
        let there = (1_000..5_000).filter(|hash| !log.known().used(*hash).is_empty()).count();
        assert!((500..800).contains(&there), "{there}");
        let files: u64 = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().metadata().unwrap().len())
            .sum();
        assert!(files <= bytes_max + bytes_max / 50, "{files}");
        // One that comes again soon after it made room goes to the old queue at once.
        let ghost = (1_000..5_000).rev().find(|hash| log.known().used(*hash).is_empty()).unwrap();
        put(&mut log, ghost, 10_000);
        let (place, _) = log.known().used(ghost)[0].clone();
        assert_eq!(log.segments[&place.segment].queue, Queue::Old);
    }

    #[test]
    fn what_was_replaced_does_not_come_back_when_its_segment_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 8 << 20);
        put(&mut log, 1, 1_000);
        for hash in 2..3_000 {
            if hash == 100 {
                put(&mut log, 1, 2_000);
            }
            put(&mut log, hash, 10_000);
            log.known().used(1);
        }
        drop(log);
        assert_eq!(bodies(&mut open(folder.path(), 8 << 20), 1), [(1, 2_000)]);
    }

    #[test]
    fn what_was_replaced_is_not_back_once_its_successor_made_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 8 << 20);
        // The first is used, and moves to the old queue; the second is not, and goes.
        put(&mut log, 1, 1_000);
        for hash in 2..1_000 {
            put(&mut log, hash, 10_000);
            if hash < 900 {
                log.known().used(1);
            }
        }
        put(&mut log, 1, 2_000);
        (1_000..2_500).for_each(|hash| put(&mut log, hash, 10_000));
        assert_eq!(bodies(&mut log, 1), []);
        drop(log);
        assert_eq!(bodies(&mut open(folder.path(), 8 << 20), 1), []);
    }

    #[test]
    fn no_number_of_a_segment_is_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 1 << 20);
        put(&mut log, 1, 100);
        let first = log.last_id;
        log.let_go(Queue::Young).unwrap();
        put(&mut log, 2, 100);
        assert!(first < log.last_id);
        log.close().unwrap();
        let last = log.last_id;
        drop(log);
        assert_eq!(open(folder.path(), 1 << 20).last_id, last);
    }

    #[test]
    fn a_removal_lasts_as_long_as_what_it_removes() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 4 << 20);
        put(&mut log, 1, 1_000);
        let removal = record(&mut log, Kind::Removal, 1, b"");
        log.known().index.take_all(1);
        log.append_removal(&removal).unwrap();
        for hash in 2..2_000 {
            put(&mut log, hash, 10_000);
            if hash % 100 == 0 {
                drop(log);
                log = open(folder.path(), 4 << 20);
                assert_eq!(bodies(&mut log, 1), [], "at {hash}");
            }
        }
    }
}
