//! The takedown list, in a file that is separate from the log.
//!
//! The file is SOIF: notices as they were signed, with their scope and the source that brought
//! them. It lies outside of the collection's folder. So restoring the folder from a backup does not
//! restore objects that were taken down since the backup. Notices are appended; once most of the
//! file is superseded, it is rewritten. Records that a power cut has cut off, or that do not match
//! their signature, are skipped.
//!
//! A notice is added in memory first, and removed again if the write fails. So readers of the list
//! never wait for the disk. All writers of the list hold the writer's lock.
//!
//! Source: ours.

mod file;
mod judge;
mod reading;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use disk::{Disk, File};
use serde::{Deserialize, Serialize};
use soif::{Record, RecordRef};

use crate::change::Oid;
use crate::error::Error;
use crate::notice::{Notice, Subject};

pub(crate) use file::Mark;
pub use file::has_list;
use file::{ListFile, Writing};
use judge::SourceTrust;
pub(crate) use judge::Verdict;

/// The file's usual name, in the data folder of a daemon.
pub const FILE_NAME: &str = "suppressed.soif";
/// Maximum number of holders that are listed with a notice.
pub(crate) const HELD_BY_MAX: usize = 100;
/// Size from which the file is rewritten once more than half of it is superseded, in bytes (1 MiB).
const REWRITE_BYTES_MIN: u64 = 1 << 20;

const NOTICE: &str = "SUPPRESSION";
/// Template of the records with keys of other signers, which earlier releases kept.
const PIN: &str = "KEY";
/// Template of the first record of a rewritten list, which has the number of the rewrite.
const LIST: &str = "LIST";
const WRITING: &str = "Writing";
const SCOPE: &str = "Scope";
const FROM: &str = "From-Source";
const OVERRULED: &str = "Overruled";
/// Replaces the span of a notice that is not in the file (yet).
const NOWHERE: (u64, u64) = (u64::MAX, u64::MAX);
const HELD_BY: &str = "Held-By";

/// The objects for which a notice counts; the widest scope last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// For the objects of the signing gatherer.
    Own,
    /// For all objects: the notice is of a source whose takedowns count for all objects.
    All,
    /// For all objects: the notice is of an administrator of this collection. It overrules other
    /// notices on the same subject.
    Here,
}

impl Scope {
    /// Returns its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::All => "all",
            Self::Own => "own",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        [Self::Here, Self::All, Self::Own].into_iter().find(|it| it.name() == name)
    }
}

/// A notice on the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    /// The notice, as it was signed.
    pub notice: Notice,
    /// The objects for which it counts.
    pub scope: Scope,
    /// The source that brought it; empty if it was given here.
    pub from: String,
    /// The sources that held the objects when the notice took them down; at most 100.
    pub held_by: Vec<String>,
    /// Whether the notice is in force: not lifted, and not overruled here.
    pub active: bool,
}

impl Suppression {
    /// Returns the suppression of a notice by an administrator of this collection.
    pub(crate) fn here(notice: Notice) -> Self {
        let (from, held_by, active) = (String::new(), Vec::new(), !notice.lifted);
        Self { notice, scope: Scope::Here, from, held_by, active }
    }

    /// Returns whether this notice suppresses the object.
    #[must_use]
    pub fn covers(&self, oid: &Oid) -> bool {
        self.active
            && (self.scope != Scope::Own || self.notice.by == oid.gatherer)
            && self.notice.subject.covers(oid)
    }

    /// Returns whether this notice replaces `old`: it is later, or the same with a wider scope.
    fn supersedes(&self, old: &Self) -> bool {
        old.notice.at < self.notice.at || (self.notice == old.notice && old.scope < self.scope)
    }

    /// Returns a prefix of the keys (see [`Oid::key`]) of all objects that this may suppress.
    pub(crate) fn keys_from(&self) -> Vec<u8> {
        let subject = &self.notice.subject;
        let mut from = subject.beginning().as_bytes().to_vec();
        if !subject.is_pattern() {
            from.push(0);
            let own = if self.scope == Scope::Own { self.notice.by.as_str() } else { "" };
            let of = if subject.gatherer.is_empty() { own } else { &subject.gatherer };
            from.extend_from_slice(of.as_bytes());
        }
        from
    }

    fn record(&self) -> Record {
        let mut record = Record::new(NOTICE, soif::NO_URL);
        self.notice.write(&mut record);
        record.push(SCOPE, self.scope.name());
        if !self.from.is_empty() {
            record.push(FROM, self.from.as_str());
        }
        if !self.active && !self.notice.lifted {
            record.push(OVERRULED, "yes");
        }
        for holder in self.held_by.iter().take(HELD_BY_MAX) {
            record.push(HELD_BY, holder.as_str());
        }
        record
    }

    fn read(record: &RecordRef<'_>) -> Option<Self> {
        let notice = Notice::read(record).filter(Notice::is_genuine)?;
        let scope = Scope::by_name(&record.text(SCOPE)?)?;
        let from = record.text(FROM).unwrap_or_default().into_owned();
        let holders = record.attributes().filter(|(name, _)| *name == HELD_BY);
        let held_by = holders.map(|(_, it)| String::from_utf8_lossy(it).into_owned()).collect();
        let active = !notice.lifted && record.text(OVERRULED).is_none();
        Some(Self { notice, scope, from, held_by, active })
    }
}

/// Counts of notices and refused records since the opening.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takedowns {
    /// Notices in force.
    pub active: u64,
    /// Records refused since the start, because they are suppressed.
    pub refused: u64,
    /// Notices since the start that were altered, wrongly signed, or dated ahead.
    pub forged: u64,
    /// The last of these notices: its object, and the reason.
    pub last_forged: Option<String>,
    /// Notices since the start that were not taken because they exceed a limit.
    pub surplus: u64,
    /// The last of these notices: its source, and the limit.
    pub last_surplus: Option<String>,
    /// Parts of the list that could not be read when the collection was opened.
    pub damaged: u64,
}

/// A notice that is not in the file yet, and the list's state before it was added.
#[derive(Debug)]
struct Staged {
    position: usize,
    before: Option<(Suppression, (u64, u64))>,
    /// The notices that it overruled.
    overruled: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) notices: usize,
    /// Number of notices with a pattern that are in force.
    pub(crate) patterns: usize,
}

#[derive(Debug)]
pub(crate) struct Suppressed {
    file: ListFile,
    pub(crate) list: Vec<Suppression>,
    /// The start and end of each notice in the file, in bytes.
    spans: Vec<(u64, u64)>,
    staged: Vec<Staged>,
    /// A number that rises with each notice that is added or removed.
    pub(crate) revision: u64,
    /// Positions in the list by signer's key and subject.
    positions: HashMap<(String, Subject), usize>,
    /// Positions of the notices without a pattern, by URL.
    exact: HashMap<String, Vec<usize>>,
    /// Positions of the notices with a pattern.
    patterns: Vec<usize>,
    /// The sources' shares of the list, by source; the empty name is for local notices.
    pub(crate) shares: HashMap<String, Share>,
    pub(crate) trust: SourceTrust,
    pub(crate) counts: Takedowns,
}

impl Suppressed {
    /// Reads the list at `path`; a missing file is an empty list.
    ///
    /// # Errors
    ///
    /// The file system reports an error. Then the collection must not be opened, since suppressed
    /// objects could come back.
    pub(crate) fn open(disk: &Disk, path: PathBuf) -> Result<Self, Error> {
        let mut opened = Self {
            file: ListFile::new(disk, path),
            list: Vec::new(),
            spans: Vec::new(),
            staged: Vec::new(),
            revision: 0,
            positions: HashMap::new(),
            exact: HashMap::new(),
            patterns: Vec::new(),
            shares: HashMap::new(),
            trust: SourceTrust::default(),
            counts: Takedowns::default(),
        };
        let found = opened.file.read(false)?;
        if let Some(bytes) = &found {
            opened.file.mark.end = bytes.len() as u64;
            opened.take_in(bytes, false);
        }
        let damaged = opened.counts.damaged;
        opened.file.is_torn = damaged != 0;
        if damaged != 0 || found.is_none() {
            opened.take_copy(damaged)?;
        }
        Ok(opened)
    }

    /// Adds a notice in memory; `None` if it is not new.
    fn put(&mut self, mut new: Suppression, span: (u64, u64)) -> Option<Staged> {
        let subject = new.notice.subject.clone();
        let key = (new.notice.key.clone(), subject.clone());
        let known = self.positions.get(&key).copied();
        if let Some(old) = known.and_then(|it| self.list.get(it)) {
            if !new.supersedes(old) {
                return None;
            }
            // A notice that comes again, or a later one, does not narrow the scope.
            new.scope = new.scope.max(old.scope);
            // A notice that comes again does not undo an administrator's lift.
            new.active &= old.active || new.notice != old.notice;
        }
        self.revision += 1;
        let mut overruled = Vec::new();
        if new.scope == Scope::Here && new.notice.lifted {
            for (position, other) in self.list.iter_mut().enumerate() {
                if other.active && other.notice.subject == subject && Some(position) != known {
                    other.active = false;
                    overruled.push(position);
                }
            }
        }
        self.count(&new, true);
        let position = known.unwrap_or(self.list.len());
        let before = match (self.list.get_mut(position), self.spans.get_mut(position)) {
            (Some(old), Some(at)) => {
                let old = (std::mem::replace(old, new), std::mem::replace(at, span));
                self.count(&old.0, false);
                Some(old)
            }
            _ => {
                self.list.push(new);
                self.spans.push(span);
                self.positions.insert(key, position);
                if subject.is_pattern() {
                    self.patterns.push(position);
                } else {
                    self.exact.entry(subject.url).or_default().push(position);
                }
                None
            }
        };
        Some(Staged { position, before, overruled })
    }

    /// Adds a notice to its source's share, or removes it.
    fn count(&mut self, it: &Suppression, more: bool) {
        let share = self.shares.entry(it.from.clone()).or_default();
        let pattern = usize::from(it.notice.subject.is_pattern() && !it.notice.lifted);
        if more {
            share.notices += 1;
            share.patterns += pattern;
        } else {
            share.notices = share.notices.saturating_sub(1);
            share.patterns = share.patterns.saturating_sub(pattern);
        }
    }

    /// Adds a notice, to be written to the file; false if it is not new.
    pub(crate) fn stage(&mut self, new: Suppression) -> bool {
        let staged = self.put(new, NOWHERE);
        let is_new = staged.is_some();
        self.staged.extend(staged);
        is_new
    }

    /// Removes the notices that could not be written.
    pub(crate) fn withdraw(&mut self) {
        while let Some(Staged { position, before, overruled }) = self.staged.pop() {
            self.revision += 1;
            for other in overruled {
                if let Some(other) = self.list.get_mut(other) {
                    other.active = true;
                }
            }
            if let Some((before, span)) = before {
                self.count(&before, true);
                let now = self.list.get_mut(position).map(|it| std::mem::replace(it, before));
                if let (Some(now), Some(at)) = (now, self.spans.get_mut(position)) {
                    *at = span;
                    self.count(&now, false);
                }
                continue;
            }
            // A new notice is the last one in every index.
            let Some(new) = self.list.pop() else { continue };
            self.spans.pop();
            self.count(&new, false);
            let subject = new.notice.subject;
            if subject.is_pattern() {
                self.patterns.pop();
            } else if let Some(positions) = self.exact.get_mut(&subject.url) {
                positions.pop();
            }
            self.positions.remove(&(new.notice.key, subject));
        }
    }

    /// Returns the bytes to append; `None` if there are none.
    pub(crate) fn writing(&mut self) -> Option<Writing> {
        let positions: BTreeSet<usize> = self.staged.iter().map(|it| it.position).collect();
        if positions.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for position in positions {
            let Some(it) = self.list.get(position) else { continue };
            let start = bytes.len() as u64;
            soif::write_record(&mut bytes, &it.record());
            spans.push((position, start, bytes.len() as u64));
        }
        let writing = self.file.append(bytes);
        for (position, start, end) in spans {
            if let Some(span) = self.spans.get_mut(position) {
                *span = (writing.at + start, writing.at + end);
            }
        }
        Some(writing)
    }

    /// Returns the rewritten list, and the notices' spans in it; `None` while the file is short, or
    /// mostly not superseded, or has damage that may still be repaired by hand.
    pub(crate) fn rewriting(&self) -> Option<(Writing, Vec<(u64, u64)>)> {
        let live: u64 = self.spans.iter().map(|(start, end)| end.saturating_sub(*start)).sum();
        let end = self.file.mark.end;
        let is_spoiled = self.file.is_to_rewrite;
        if !is_spoiled && (end < REWRITE_BYTES_MIN || end / 2 < live || self.counts.damaged != 0) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut head = Record::new(LIST, soif::NO_URL);
        head.push(WRITING, (self.file.mark.writing + 1).to_string());
        soif::write_record(&mut bytes, &head);
        // The order is kept, since a lift overrules the notices before it.
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|it| self.spans.get(*it).copied());
        let mut spans = self.spans.clone();
        for position in order {
            let (Some(it), Some(span)) = (self.list.get(position), spans.get_mut(position)) else {
                continue;
            };
            let start = bytes.len() as u64;
            soif::write_record(&mut bytes, &it.record());
            *span = (start, bytes.len() as u64);
        }
        Some((self.file.replace(bytes), spans))
    }

    /// Takes over the state after a write, with the notices' `spans` if the file was rewritten.
    pub(crate) fn written(
        &mut self,
        writing: &Writing,
        file: File,
        spans: Option<Vec<(u64, u64)>>,
    ) {
        self.file.written(writing, file);
        self.staged.clear();
        self.spans = spans.unwrap_or_else(|| std::mem::take(&mut self.spans));
    }

    /// Makes a copy of the file, if there is none.
    pub(crate) fn copy_if_missing(&self) {
        if self.counts.damaged == 0 {
            self.file.copy_if_missing();
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        self.file.mark
    }

    /// Returns the notices from byte `from` of the file on, and those that are not in the file.
    pub(crate) fn after(&self, from: u64) -> Vec<Suppression> {
        let all = self.list.iter().zip(&self.spans);
        all.filter(|(_, (start, _))| from <= *start).map(|(it, _)| it.clone()).collect()
    }

    /// Returns the notice that suppresses the object; `None` if there is none.
    pub(crate) fn covering(&self, oid: &Oid) -> Option<&Suppression> {
        if self.list.is_empty() {
            return None;
        }
        let exact = self.exact.get(&oid.url).into_iter().flatten();
        let mut positions = exact.chain(&self.patterns);
        positions.find_map(|it| self.list.get(*it).filter(|it| it.covers(oid)))
    }

    /// Returns whether the notice is its signer's latest on its subject.
    pub(crate) fn is_latest(&self, notice: &Notice) -> bool {
        self.latest(notice).is_some_and(|it| it.notice == *notice)
    }

    /// Returns the latest notice by the signer of `notice` on its subject.
    pub(crate) fn latest(&self, notice: &Notice) -> Option<&Suppression> {
        let key = (notice.key.clone(), notice.subject.clone());
        self.positions.get(&key).and_then(|it| self.list.get(*it))
    }

    /// Returns the notices on exactly this subject, by any signer.
    pub(crate) fn on_subject<'a>(
        &'a self,
        subject: &'a Subject,
    ) -> impl Iterator<Item = &'a Suppression> {
        self.list.iter().filter(move |it| it.notice.subject == *subject)
    }

    pub(crate) fn takedowns(&self) -> Takedowns {
        let active = self.list.iter().filter(|it| it.active).count() as u64;
        Takedowns { active, ..self.counts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use net::identity::Identity;

    use super::*;
    use crate::change::Stamp;
    use crate::notice::Author;

    fn suppression(url: &str, scope: Scope, lifted: bool, at: u64) -> Suppression {
        let secret = if scope == Scope::Here { 9 } else { 1 };
        let identity = Identity::of(&[secret; 32]).unwrap();
        let author = Author { id: identity.id(), identity };
        let reason = "because ".repeat(120);
        let subject = Subject::parse(url).unwrap();
        let notice = Notice::sign(&author, subject, lifted, &reason, Stamp(at));
        let from = if scope == Scope::Here { "" } else { "s" }.to_owned();
        Suppression { notice, scope, from, held_by: vec!["h".to_owned()], active: !lifted }
    }

    fn write(list: &mut Suppressed) {
        let writing = list.writing().unwrap();
        let file = writing.run().unwrap();
        list.written(&writing, file, None);
    }

    #[test]
    fn a_file_of_superseded_notices_is_rewritten_without_a_change_of_meaning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let open = || Suppressed::open(&Disk::System, path.clone()).unwrap();
        let mut list = open();
        // The notice is overruled, then received again from a trusted source, and lifted here
        // before a newer notice comes.
        for it in [
            suppression("http://h/a", Scope::Own, false, 1),
            suppression("http://h/b", Scope::Own, false, 1),
            suppression("http://h/a", Scope::Here, true, 1),
            suppression("http://h/b", Scope::Here, true, 1),
            suppression("http://h/a", Scope::All, false, 1),
            suppression("http://h/b", Scope::Own, false, 2),
        ] {
            assert!(list.stage(it));
            write(&mut list);
        }
        assert!(!list.stage(suppression("http://h/a", Scope::Own, false, 1)));
        let overruled = |it: &Suppressed| -> Vec<bool> {
            let on = |url| Oid::new(&suppression(url, Scope::Own, false, 1).notice.by, url);
            ["http://h/a", "http://h/b"].map(|url| it.covering(&on(url)).is_none()).to_vec()
        };
        assert_eq!(overruled(&list), [true, false]);
        for at in 2..5 {
            (0..500).for_each(|n| {
                assert!(list.stage(suppression(
                    &format!("http://h/{n}*"),
                    Scope::Own,
                    n % 2 == 0,
                    at
                )));
            });
            write(&mut list);
            assert_eq!(list.rewriting().is_some(), at == 4, "{at}");
        }
        let before = list.mark();
        let (writing, spans) = list.rewriting().unwrap();
        let file = writing.run().unwrap();
        list.written(&writing, file, Some(spans));
        assert!(list.mark().end < before.end / 2);
        assert_eq!((list.mark().writing, list.after(list.mark().end)), (1, Vec::new()));
        // The next append continues from this state.
        list.stage(suppression("http://h/c", Scope::Own, false, 9));
        write(&mut list);
        let after = list.after(writing.at + list.mark().end - 1_500);
        assert_eq!(after.last().map(|it| it.notice.at), Some(Stamp(9)));
        let again = open();
        let sorted = |it: &Suppressed| {
            let mut all = it.list.clone();
            all.sort_by_key(|it| it.notice.signature.clone());
            all
        };
        assert_eq!((again.mark(), again.counts.damaged), (list.mark(), 0));
        assert_eq!(sorted(&again), sorted(&list));
        assert_eq!(overruled(&again), [true, false]);
        let patterns = |it: &Suppressed| it.shares.values().map(|it| it.patterns).sum::<usize>();
        assert_eq!((patterns(&again), patterns(&list)), (250, 250));
    }

    #[test]
    fn a_damaged_part_is_restored_from_the_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let open = || Suppressed::open(&Disk::System, path.clone()).unwrap();
        let mut list = open();
        for at in 1..4 {
            list.stage(suppression(&format!("http://h/{at}"), Scope::Here, at == 2, at));
            write(&mut list);
        }
        let (before, bytes) = (list.list.clone(), fs::read(&path).unwrap());
        let check = |spoil: &dyn Fn()| {
            spoil();
            let mut again = open();
            let mut found = again.list.clone();
            found.sort_by_key(|it| it.notice.at);
            assert_eq!((&found, again.counts.damaged), (&before, 0));
            // Some bytes do not matter.
            let Some((writing, spans)) = again.rewriting() else { return false };
            let file = writing.run().unwrap();
            again.written(&writing, file, Some(spans));
            assert!(again.rewriting().is_none());
            let last = open();
            assert_eq!((last.list.len(), last.counts.damaged, last.mark()), (3, 0, again.mark()));
            assert!(last.rewriting().is_none());
            true
        };
        let mut mended = 0;
        for at in (0..bytes.len()).step_by(97) {
            mended += u64::from(check(&|| {
                let mut bytes = fs::read(&path).unwrap();
                let at = at % bytes.len();
                // A letter in the other case may mean the same, so another byte is used.
                bytes[at] = if bytes[at] == b'%' { b'&' } else { b'%' };
                fs::write(&path, bytes).unwrap();
            }));
        }
        assert!(10 < mended, "{mended}");
        assert!(check(&|| fs::remove_file(&path).unwrap()));
        // Only damage in both files loses notices.
        fs::write(&path, "what was that?").unwrap();
        fs::write(path.with_extension("soif.copy"), "and that?").unwrap();
        assert_ne!(open().counts.damaged, 0);
    }

    #[test]
    fn a_withdrawal_restores_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let mut list = Suppressed::open(&Disk::System, dir.path().join(FILE_NAME)).unwrap();
        list.stage(suppression("http://h/a", Scope::Own, false, 1));
        list.stage(suppression("http://h/*", Scope::Own, false, 1));
        write(&mut list);
        let (before, revision) = (list.list.clone(), list.revision);
        list.stage(suppression("http://h/a", Scope::Here, true, 2));
        list.stage(suppression("http://h/*", Scope::Own, true, 2));
        list.stage(suppression("http://h/*", Scope::Own, false, 3));
        list.stage(suppression("http://h/b*", Scope::Own, false, 1));
        assert!(!list.list.first().unwrap().active);
        list.withdraw();
        assert_eq!((&list.list, list.patterns.len()), (&before, 1));
        assert_ne!(list.revision, revision);
        let share = list.shares.get("s").unwrap();
        assert_eq!((share.notices, share.patterns), (2, 1));
        assert!(list.writing().is_none());
        assert!(list.stage(suppression("http://h/b*", Scope::Own, false, 1)));
    }
}
