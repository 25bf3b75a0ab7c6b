//! The list of what is suppressed, in a file of its own beside the log.
//!
//! The file is append-only SOIF: notices as they were signed, with where they hold, and the keys of
//! those who sign. It lies outside of the collection's folder, so that a folder put back from a
//! backup does not bring back what has been taken down since. A record that was torn by a power cut
//! is passed over, and so is one that no longer matches its signature.
//!
//! Source: ours.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use net::identity::{Pins, Seen};
use serde::{Deserialize, Serialize};
use soif::{Event, Limits, Mode, Reader, Record, RecordRef};

use crate::change::{GATHERER_ID, Oid};
use crate::disk::{Disk, File};
use crate::error::Error;
use crate::notice::{Notice, Subject};

/// The file's usual name, in the data folder of a daemon.
pub const FILE_NAME: &str = "suppressed.soif";
/// Most notices that are taken from others; what an administrator says here is always taken.
const NOTICES_MAX: usize = 100_000;
/// Most patterns among them: each is compared with every record that comes in.
const PATTERNS_MAX: usize = 1_000;
/// Most holders that are named with a notice.
const HELD_BY_MAX: usize = 100;

const NOTICE: &str = "SUPPRESSION";
const PIN: &str = "KEY";
const KEY: &str = "Key";
const SCOPE: &str = "Scope";
const HELD_BY: &str = "Held-By";

/// For which objects a notice counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Given here by an administrator: for all; it overrules what others say of the same subject.
    Here,
    /// From a source whose takedowns count for all.
    All,
    /// From the objects' own gatherer, for its objects.
    Own,
}

impl Scope {
    /// Returns the word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::All => "all",
            Self::Own => "own",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Here, Self::All, Self::Own].into_iter().find(|it| it.name() == name)
    }
}

/// A notice on the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    /// The notice, as it was signed.
    pub notice: Notice,
    /// For which objects it counts.
    pub scope: Scope,
    /// Who held objects that it took down, when it did; at most 100.
    pub held_by: Vec<String>,
    /// Whether it is in force: not lifted, and not overruled here.
    pub active: bool,
}

impl Suppression {
    /// Whether the object is suppressed by this.
    #[must_use]
    pub fn covers(&self, oid: &Oid) -> bool {
        self.active
            && (self.scope != Scope::Own || self.notice.by == oid.gatherer)
            && self.notice.subject.covers(oid)
    }

    fn record(&self) -> Record {
        let mut record = Record::new(NOTICE, soif::NO_URL);
        self.notice.write(&mut record);
        record.push(SCOPE, self.scope.name());
        for holder in self.held_by.iter().take(HELD_BY_MAX) {
            record.push(HELD_BY, holder.as_str());
        }
        record
    }

    fn read(record: &RecordRef<'_>) -> Option<Self> {
        let notice = Notice::read(record).filter(Notice::is_genuine)?;
        let scope = Scope::named(&record.text(SCOPE)?)?;
        let holders = record.attributes().filter(|(name, _)| *name == HELD_BY);
        let held_by = holders.map(|(_, it)| String::from_utf8_lossy(it).into_owned()).collect();
        Some(Self { active: !notice.lifted, notice, scope, held_by })
    }
}

/// What has been made of notices and records since the collection was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takedowns {
    /// Notices in force.
    pub active: u64,
    /// Records refused since the start, because they are suppressed.
    pub refused: u64,
    /// Notices since the start that were altered or signed by another than who they name.
    pub forged: u64,
    /// The last of those: what it was about and why it was not taken.
    pub last_forged: Option<String>,
    /// Parts of the list that could not be read when the collection was opened.
    pub damaged: u64,
}

/// What is to be done about a notice that a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is on the list and in force.
    Known,
    /// It is to be put on the list.
    Take(Scope),
    /// The tombstone is like any other.
    Plain,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Suppressed {
    disk: Disk,
    path: PathBuf,
    /// Open once there is something in it.
    file: Option<File>,
    /// How long the file is, in bytes.
    pub(crate) end: u64,
    pub(crate) list: Vec<Suppression>,
    /// Places in the list by signer's key and subject.
    places: HashMap<(String, Subject), usize>,
    /// Places of those without a pattern, by URL.
    exact: HashMap<String, Vec<usize>>,
    /// Places of those with one.
    patterns: Vec<usize>,
    pins: Pins,
    /// Sources whose takedowns count for all.
    pub(crate) trusted: BTreeSet<String>,
    pub(crate) counts: Takedowns,
}

impl Suppressed {
    /// Reads the list at `path`; a file that is not there is an empty one.
    ///
    /// # Errors
    ///
    /// The file system refused: what was taken down must not come back, so nothing may be opened.
    pub(crate) fn open(disk: &Disk, path: PathBuf) -> Result<Self, Error> {
        let mut opened = Self {
            disk: disk.clone(),
            path,
            file: None,
            end: 0,
            list: Vec::new(),
            places: HashMap::new(),
            exact: HashMap::new(),
            patterns: Vec::new(),
            pins: Pins::default(),
            trusted: BTreeSet::new(),
            counts: Takedowns::default(),
        };
        match fs::read(&opened.path) {
            Ok(bytes) => opened.take_in(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("cannot read", &opened.path, error)),
        }
        Ok(opened)
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.end = bytes.len() as u64;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|it| !it.is_empty()) {
            let mut done = 0;
            let outcome = Reader::over(rest, Mode::Strict, Limits::default(), |event| {
                if let Event::Record(record) = event {
                    self.take_record(&record);
                    done = record.offset() + record.source().len() as u64;
                }
            });
            let Err(error) = outcome else { break };
            self.counts.damaged += 1;
            let (path, byte) = (self.path.display(), at as u64 + done);
            tracing::error!(%path, byte, %error, "a part of the list of what is suppressed is lost");
            // A torn record may seem to reach into the next: go on right behind its beginning. Where
            // that is what is damaged, the next beginning is that of a whole one.
            let place = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
            let next = next_record(bytes, at + place(done));
            let is_before = done != 0 && at + place(error.offset) < next;
            let torn = if done == 0 { at } else { next };
            at = if is_before { next } else { next_record(bytes, torn + 1) };
        }
    }

    fn take_record(&mut self, record: &RecordRef<'_>) {
        let taken = match record.template() {
            PIN => (|| {
                let (id, key) = (record.text(GATHERER_ID)?, record.text(KEY)?);
                self.pins.see(&id, &key);
                Some(())
            })(),
            NOTICE => Suppression::read(record).map(|it| {
                self.insert(it);
            }),
            _ => None,
        };
        if taken.is_none() {
            self.counts.damaged += 1;
            let path = self.path.display();
            tracing::error!(%path, byte = record.offset(), "a notice is damaged and has no effect");
        }
    }

    /// Puts a notice on the list, in memory; false if it says nothing new.
    fn insert(&mut self, new: Suppression) -> bool {
        let place = (new.notice.key.clone(), new.notice.subject.clone());
        let known = self.places.get(&place).copied();
        if let Some(old) = known.and_then(|it| self.list.get(it))
            && new.notice.at <= old.notice.at
        {
            return false;
        }
        if new.scope == Scope::Here && new.notice.lifted {
            for other in self.list.iter_mut().filter(|it| it.notice.subject == place.1) {
                other.active = false;
            }
        }
        let subject = place.1.clone();
        if let Some(old) = known.and_then(|it| self.list.get_mut(it)) {
            *old = new;
        } else {
            let at = self.list.len();
            self.list.push(new);
            self.places.insert(place, at);
            if subject.is_pattern() {
                self.patterns.push(at);
            } else {
                self.exact.entry(subject.url).or_default().push(at);
            }
        }
        true
    }

    /// Adds notices durably.
    ///
    /// # Errors
    ///
    /// The file system refused; the list is as it was.
    pub(crate) fn add(&mut self, new: Suppression) -> Result<(), Error> {
        self.append(&new.record())?;
        self.insert(new);
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), Error> {
        let failed = |path: &Path, error| Error::io("cannot write", path, error);
        let path = self.path.clone();
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let opened = match self.disk.open(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        let made = self.disk.create(&path).map_err(|it| failed(&path, it))?;
                        let above = path.parent().unwrap_or_else(|| Path::new("."));
                        let above = self.disk.open_to_sync(above);
                        above.and_then(|it| it.sync_all()).map_err(|it| failed(&path, it))?;
                        Ok(made)
                    }
                    other => other,
                };
                opened.map_err(|it| failed(&path, it))?
            }
        };
        // After a torn record the next one begins on a line of its own.
        let mut bytes = Vec::new();
        if self.counts.damaged != 0 && self.file.is_none() {
            bytes.push(b'\n');
        }
        soif::write_record(&mut bytes, record);
        let written = file.write_all_at(&bytes, self.end).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // What is left of it would be passed over, and be called damage.
            let _ = file.set_len(self.end);
            return Err(failed(&path, error));
        }
        self.end += bytes.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    /// Says whether `key` is that of `id`; the first one seen is kept, durably.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub(crate) fn see_key(&mut self, id: &str, key: &str) -> Result<bool, Error> {
        match self.pins.see(id, key) {
            Seen::Same => Ok(true),
            Seen::Other => Ok(false),
            Seen::First => {
                let mut record = Record::new(PIN, soif::NO_URL);
                record.push(GATHERER_ID, id);
                record.push(KEY, key);
                self.append(&record).map(|()| true)
            }
        }
    }

    /// Returns what suppresses the object, if anything does.
    pub(crate) fn covering(&self, oid: &Oid) -> Option<&Suppression> {
        if self.list.is_empty() {
            return None;
        }
        let exact = self.exact.get(&oid.url).into_iter().flatten();
        let mut places = exact.chain(&self.patterns);
        places.find_map(|it| self.list.get(*it).filter(|it| it.covers(oid)))
    }

    /// Whether the notice is the last word of its signer on its subject.
    pub(crate) fn is_last_word(&self, notice: &Notice) -> bool {
        self.of(notice).is_some_and(|it| it.notice == *notice)
    }

    fn of(&self, notice: &Notice) -> Option<&Suppression> {
        let place = (notice.key.clone(), notice.subject.clone());
        self.places.get(&place).and_then(|it| self.list.get(*it))
    }

    /// Returns what is said of just this subject, by anybody.
    pub(crate) fn on<'a>(&'a self, subject: &'a Subject) -> impl Iterator<Item = &'a Suppression> {
        self.list.iter().filter(move |it| it.notice.subject == *subject)
    }

    /// Says what is to be done about a notice that `source` sends on the tombstone of `oid`.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub(crate) fn judge(
        &mut self,
        source: &str,
        notice: &Notice,
        oid: &Oid,
    ) -> Result<Verdict, Error> {
        if let Some(known) = self.of(notice).filter(|it| notice.at <= it.notice.at) {
            let same = known.notice == *notice && known.active && notice.is_at_home(oid);
            return Ok(if same { Verdict::Known } else { Verdict::Plain });
        }
        if !notice.is_at_home(oid) {
            return Ok(self.forged(oid, "it is about something else"));
        }
        if !notice.is_genuine() {
            return Ok(self.forged(oid, "its signature is wrong"));
        }
        if !self.see_key(&notice.by, &notice.key)? {
            return Ok(self.forged(oid, "it is signed with another key than before"));
        }
        let patterns = usize::from(notice.subject.is_pattern());
        if NOTICES_MAX <= self.list.len() || PATTERNS_MAX < self.patterns.len() + patterns {
            tracing::warn!(source, %oid, "there are too many notices; this one is not taken");
            return Ok(Verdict::Plain);
        }
        let is_own = *oid == notice.carrier() || oid.gatherer == notice.by;
        Ok(match () {
            () if self.trusted.contains(source) => Verdict::Take(Scope::All),
            () if is_own => Verdict::Take(Scope::Own),
            () => Verdict::Plain,
        })
    }

    fn forged(&mut self, oid: &Oid, why: &str) -> Verdict {
        self.counts.forged += 1;
        self.counts.last_forged = Some(format!("{oid}: {why}"));
        tracing::warn!(%oid, why, "a notice is not genuine; the object is deleted like any other");
        Verdict::Plain
    }

    pub(crate) fn takedowns(&self) -> Takedowns {
        let active = self.list.iter().filter(|it| it.active).count() as u64;
        Takedowns { active, ..self.counts.clone() }
    }
}

/// Returns where a record may begin after `from`.
fn next_record(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.windows(2).position(|it| it == b"\n@");
    found.map_or(bytes.len(), |it| from + it + 1)
}
