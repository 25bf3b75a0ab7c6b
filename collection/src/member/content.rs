//! The contents of an unpacked member: changes and notes as SOIF, written and read.
//!
//! Source: TR §3, §4: `@UPDATE`, `@REFRESH` and `@DELETE` sections. Neighboring changes of one kind
//! share a section; the order of the records is the order of the serials.
//!
//! # Differences from the TR
//!
//! A confirmed root is written in a refresh section as `@ROOT { root-url` with `Gatherer-Id` and
//! `Confirmed` (Unix milliseconds). Notes are written in a local member of their own as `@NOTE { -`
//! with `Key` and `Value`, and in a delete section if they are removed. A notice of suppression is
//! written as additional attributes of the object's record in a delete section.
//!
//! Sans-I/O.

use std::collections::HashSet;
use std::ops::Range;

use soif::{Event, Limits, Mode, Reader, Record, RecordRef, Section, plain_url};
use xxhash_rust::xxh3::xxh3_64;

use crate::change::{Change, GATHERER_ID, Note, ORIGIN_VERSION, Oid, Scanned, Stamp};
use crate::error::{Damage, Error};
use crate::notice::Notice;

/// Maximum number of changes, or notes, in a member.
pub(crate) const CHANGES_MAX: usize = 4096;
/// Maximum number of attributes in a member: more than the largest record may have, and far fewer
/// than would fit in a hostile member. In memory an attribute takes about twelve times its bytes.
const ATTRIBUTES_MAX: usize = 1 << 18;
/// Maximum number of members of a commit that are unpacked at a time.
const DRAFTS_MAX: usize = 64;
const ROOT: &str = "ROOT";
/// The attribute with the time at which a root was confirmed.
const CONFIRMED: &str = "Confirmed";
const NOTE: &str = "NOTE";

/// The plain bytes of a member under construction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// SOIF, which is complete once the section is closed.
    pub(crate) plain: Vec<u8>,
    /// A hash of each change's kind and object (or note's key), compared when the draft is read
    /// back.
    identities: Vec<u64>,
    /// Hashes of the objects of the changes.
    objects: HashSet<u64>,
    /// The open section.
    section: Option<Section>,
    /// Whether it holds notes.
    pub(crate) local: bool,
    /// Serials and stamps of the changes, if they come from a log.
    pub(crate) entries: Vec<(u64, Stamp)>,
    /// The commit of the last of these changes.
    pub(crate) commit: u64,
}

impl Draft {
    /// Returns how many changes or notes it holds.
    pub(crate) fn len(&self) -> usize {
        self.identities.len()
    }

    /// Returns whether a change fits: by number, by size, and with at most one change of each
    /// object. An empty draft takes any change.
    fn has_room(&self, bytes: usize, object: Option<u64>, bytes_max: usize) -> bool {
        let repeated = object.is_some_and(|it| self.objects.contains(&it));
        self.len() == 0
            || (self.len() < CHANGES_MAX && self.plain.len() + bytes <= bytes_max && !repeated)
    }

    fn push(&mut self, section: Section, record: &[u8], identity: u64, object: Option<u64>) {
        if self.section != Some(section) {
            if self.section.is_some() {
                soif::close_section(&mut self.plain);
            }
            soif::open_section(&mut self.plain, section);
            self.section = Some(section);
        }
        self.plain.extend_from_slice(record);
        self.identities.push(identity);
        self.objects.extend(object);
    }

    fn close(&mut self) {
        if self.section.take().is_some() {
            soif::close_section(&mut self.plain);
        }
    }
}

/// A builder that cuts changes and notes into members: as many changes as fit, in order.
#[derive(Debug)]
pub(crate) struct Drafter {
    done: Vec<Draft>,
    open: Draft,
    scratch: Vec<u8>,
    /// Maximum number of plain bytes of a member, unless one record is larger.
    member_bytes_max: usize,
    /// Maximum number of plain bytes of a record.
    record_bytes_max: usize,
}

impl Drafter {
    /// Makes a drafter without drafts.
    pub(crate) fn new(member_bytes_max: usize, record_bytes_max: usize) -> Self {
        Self {
            done: Vec::new(),
            open: Draft::default(),
            scratch: Vec::new(),
            member_bytes_max,
            record_bytes_max,
        }
    }

    /// Adds a change; it begins a new member if the open one is full.
    ///
    /// # Errors
    ///
    /// The reason that the change cannot be in a log.
    pub(crate) fn push(&mut self, change: &Change) -> Result<(), &'static str> {
        self.scratch.clear();
        let (section, object) = match change {
            Change::Update(record) => {
                let oid = Oid::of(record).ok_or("it lacks a URL or a Gatherer-Id")?;
                soif::write_record(&mut self.scratch, record);
                (Section::Update, Some(oid))
            }
            Change::Refresh(oid, _)
            | Change::Delete(oid)
            | Change::Withdraw(oid, _)
            | Change::Suppress(oid, _) => {
                if !oid.is_valid() {
                    return Err("its URL or gatherer is empty or has control characters");
                }
                let mut record = reference(oid);
                match change {
                    Change::Suppress(_, notice) => notice.write(&mut record),
                    Change::Withdraw(_, at) => record.push(ORIGIN_VERSION, at.to_string()),
                    Change::Refresh(_, Some(at)) => record.push(CONFIRMED, at.0.to_string()),
                    _ => {}
                }
                soif::write_record(&mut self.scratch, &record);
                let refresh = matches!(change, Change::Refresh(..));
                (if refresh { Section::Refresh } else { Section::Delete }, Some(oid.clone()))
            }
            Change::Confirm { gatherer, root, at } => {
                if !Oid::new(gatherer, root).is_valid() {
                    return Err("its root or gatherer is empty or has control characters");
                }
                let mut record = Record::new(ROOT, plain_url(root));
                record.push(GATHERER_ID, gatherer.as_str());
                record.push(CONFIRMED, at.0.to_string());
                soif::write_record(&mut self.scratch, &record);
                (Section::Refresh, None)
            }
        };
        if self.record_bytes_max < self.scratch.len() {
            return Err("its record is larger than a collection takes");
        }
        let object = object.map(|it| xxh3_64(&it.key()));
        self.add(section, identity(section, object.unwrap_or(0)), object);
        Ok(())
    }

    /// Adds a change of a log, with the number of its commit; see [`push`](Self::push).
    pub(crate) fn push_scanned(
        &mut self,
        scanned: &Scanned,
        commit: u64,
    ) -> Result<(), &'static str> {
        self.push(&scanned.change)?;
        self.open.entries.push((scanned.serial, scanned.stamp));
        self.open.commit = commit;
        Ok(())
    }

    /// Adds a note to a local member; see [`push`](Self::push).
    pub(crate) fn push_note(&mut self, note: &Note) -> Result<(), &'static str> {
        if note.key.is_empty() {
            return Err("its key is empty");
        }
        self.scratch.clear();
        let mut record = Record::new(NOTE, soif::NO_URL);
        record.push("Key", note.key.as_slice());
        let section = if note.value.is_some() { Section::Update } else { Section::Delete };
        if let Some(value) = &note.value {
            record.push("Value", value.as_slice());
        }
        soif::write_record(&mut self.scratch, &record);
        if self.record_bytes_max < self.scratch.len() {
            return Err("its value is larger than a collection takes");
        }
        self.add(section, identity(section, xxh3_64(&note.key)), None);
        self.open.local = true;
        Ok(())
    }

    fn add(&mut self, section: Section, identity: u64, object: Option<u64>) {
        if !self.open.has_room(self.scratch.len(), object, self.member_bytes_max) {
            self.cut();
        }
        self.open.push(section, &self.scratch, identity, object);
    }

    /// Ends the open member, if it holds anything.
    pub(crate) fn cut(&mut self) {
        if self.open.len() != 0 {
            let mut draft = std::mem::take(&mut self.open);
            draft.close();
            self.done.push(draft);
        }
    }

    /// Returns the length of the open member, in plain bytes.
    pub(crate) fn open_bytes(&self) -> usize {
        self.open.plain.len()
    }

    pub(crate) fn ready(&self) -> usize {
        self.done.len()
    }

    pub(crate) fn take(&mut self) -> Vec<Draft> {
        std::mem::take(&mut self.done)
    }
}

/// Cuts a batch into the members of one commit, and passes them on in order, some at a time. Notes
/// come first, so that the last member, which ends the commit, is one that is served. Refuses
/// changes that would be read back as another kind of change or of another object.
pub(crate) fn drafts(
    changes: &[Change],
    notes: &[Note],
    (member_bytes_max, record_bytes_max): (usize, usize),
    mut pass_on: impl FnMut(Vec<Draft>),
) -> Result<(), Error> {
    let mut drafter = Drafter::new(member_bytes_max, record_bytes_max);
    let mut passed = 0;
    let mut take = |drafter: &mut Drafter| {
        let drafts = drafter.take();
        for draft in &drafts {
            let at = draft.misread().map(|at| passed + at);
            if let Some((at, change)) = at.and_then(|at| Some((at, changes.get(at)?))) {
                return Err(refused(at, change, "SOIF cannot carry it"));
            }
            if !draft.local {
                passed += draft.len();
            }
        }
        pass_on(drafts);
        Ok(())
    };
    for (position, note) in notes.iter().enumerate() {
        let refuse = |reason| Error::Refused {
            position,
            object: format!("note {}", String::from_utf8_lossy(&note.key)),
            reason,
        };
        drafter.push_note(note).map_err(refuse)?;
    }
    drafter.cut();
    for (position, change) in changes.iter().enumerate() {
        drafter.push(change).map_err(|reason| refused(position, change, reason))?;
        if DRAFTS_MAX <= drafter.ready() {
            take(&mut drafter)?;
        }
    }
    drafter.cut();
    take(&mut drafter)
}

fn refused(position: usize, change: &Change, reason: &'static str) -> Error {
    let object = match change {
        Change::Update(record) => record.url.clone(),
        Change::Refresh(oid, _)
        | Change::Delete(oid)
        | Change::Withdraw(oid, _)
        | Change::Suppress(oid, _) => oid.to_string(),
        Change::Confirm { root, .. } => root.clone(),
    };
    Error::Refused { position, object, reason }
}

impl Draft {
    /// Returns the position of the first change that is read back with another kind or object;
    /// `None` if there is none.
    fn misread(&self) -> Option<usize> {
        let mut seen = 0;
        let mut wrong = None;
        let outcome = visit(&self.plain, |section, record| {
            let id = match record.template() {
                NOTE if self.local => xxh3_64(record.get("Key").unwrap_or_default()),
                ROOT if section == Section::Refresh => 0,
                _ => reference_of(record).map_or(1, |oid| xxh3_64(&oid.key())),
            };
            if wrong.is_none() && self.identities.get(seen) != Some(&identity(section, id)) {
                wrong = Some(seen);
            }
            seen += 1;
        });
        match outcome {
            Ok(()) if seen == self.identities.len() => wrong,
            Ok(()) | Err(_) => Some(wrong.unwrap_or(seen).min(self.len().saturating_sub(1))),
        }
    }
}

/// Mixes a change's kind and object into one number.
fn identity(section: Section, object: u64) -> u64 {
    object.rotate_left(8) ^ section as u64
}

/// Makes the record that names an object in a refresh or delete section.
fn reference(oid: &Oid) -> Record {
    let mut record = Record::new("FILE", oid.url.as_str());
    record.push(GATHERER_ID, oid.gatherer.as_str());
    record
}

fn reference_of(record: &RecordRef<'_>) -> Option<Oid> {
    let oid = Oid::new(record.text(GATHERER_ID)?.trim(), record.url());
    oid.is_valid().then_some(oid)
}

/// Calls `handle` with every record of a member and its section.
fn visit(plain: &[u8], mut handle: impl FnMut(Section, &RecordRef<'_>)) -> Result<(), Damage> {
    let mut section = None;
    let mut stray = false;
    let outcome =
        Reader::over(plain, Mode::Strict, Limits::default(), |event| match (event, section) {
            (Event::Open(opened), _) => section = Some(opened),
            (Event::Close(_), _) => section = None,
            (Event::Record(record), Some(section)) => handle(section, &record),
            (Event::Record(_), None) => stray = true,
        });
    match outcome {
        Ok(_) if !stray => Ok(()),
        Ok(_) | Err(_) => Err(Damage::Content),
    }
}

fn change_of(section: Section, record: &RecordRef<'_>) -> Option<Change> {
    Some(match section {
        Section::Update => {
            let record = record.to_record();
            Oid::of(&record)?;
            Change::Update(record)
        }
        Section::Refresh if record.template() == ROOT => Change::Confirm {
            gatherer: record.text(GATHERER_ID)?.trim().to_owned(),
            root: record.url().to_owned(),
            at: Stamp(record.number(CONFIRMED)?),
        },
        Section::Refresh => {
            Change::Refresh(reference_of(record)?, record.number(CONFIRMED).map(Stamp))
        }
        Section::Delete => match (reference_of(record)?, Notice::read(record)) {
            (oid, Some(notice)) => Change::Suppress(oid, Box::new(notice)),
            (oid, None) => match record.text(ORIGIN_VERSION).and_then(|it| it.parse().ok()) {
                Some(at) => Change::Withdraw(oid, at),
                None => Change::Delete(oid),
            },
        },
    })
}

/// Reads the changes of a member whose header announces `entries`; returns only those at the
/// positions in `wanted` (from 0).
///
/// # Errors
///
/// [`Damage::Content`]: the bytes do not match the header.
pub(crate) fn changes(
    plain: &[u8],
    entries: &[(u64, Stamp)],
    wanted: Range<usize>,
) -> Result<Vec<Scanned>, Damage> {
    let mut found = Vec::with_capacity(wanted.len().min(entries.len()));
    let (mut seen, mut attributes) = (0, 0);
    let mut whole = true;
    visit(plain, |section, record| {
        attributes += record.attributes().count();
        whole &= attributes <= ATTRIBUTES_MAX;
        if let Some(&(serial, stamp)) = entries.get(seen)
            && wanted.contains(&seen)
            && whole
        {
            match change_of(section, record) {
                Some(change) => found.push(Scanned { serial, stamp, change }),
                None => whole = false,
            }
        }
        seen += 1;
    })?;
    if whole && seen == entries.len() { Ok(found) } else { Err(Damage::Content) }
}

/// Reads the notes of a local member.
///
/// # Errors
///
/// [`Damage::Content`]: the bytes are not notes.
pub(crate) fn notes(plain: &[u8]) -> Result<Vec<Note>, Damage> {
    let mut found = Vec::new();
    let mut whole = true;
    visit(plain, |section, record| {
        let key = record.get("Key").filter(|_| record.template() == NOTE);
        let value = record.get("Value").map(<[u8]>::to_vec);
        match (key, section, value) {
            (Some(key), Section::Update, Some(value)) => {
                found.push(Note { key: key.to_vec(), value: Some(value) });
            }
            (Some(key), Section::Delete, None) => {
                found.push(Note { key: key.to_vec(), value: None });
            }
            _ => whole = false,
        }
    })?;
    if whole { Ok(found) } else { Err(Damage::Content) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Epoch, Version};

    fn delete(url: &str) -> Change {
        Change::Delete(Oid::new("g", url))
    }

    /// Cuts changes into members, and checks how many changes are in each.
    fn check(changes: &[Change], member_bytes_max: usize, expected: &[usize]) -> Vec<Draft> {
        let mut all = Vec::new();
        let pass_on = |drafts: Vec<Draft>| {
            assert!(drafts.len() <= DRAFTS_MAX);
            all.extend(drafts);
        };
        drafts(changes, &[], (member_bytes_max, 1 << 20), pass_on).unwrap();
        assert_eq!(all.iter().map(Draft::len).collect::<Vec<_>>(), expected);
        all
    }

    #[test]
    fn a_member_is_full_by_size_or_number() {
        let many: Vec<_> = (0..CHANGES_MAX + 1).map(|n| delete(&n.to_string())).collect();
        check(&many, 1 << 20, &[CHANGES_MAX, 1]);
        check(&many[..200], 1, &[1; 200]);
        check(&[], 1, &[]);
    }

    #[test]
    fn an_object_is_once_in_a_member() {
        check(&[delete("a"), delete("b"), delete("a"), delete("a")], 1 << 20, &[2, 1, 1]);
        let confirm =
            || Change::Confirm { gatherer: "g".to_owned(), root: "r".to_owned(), at: Stamp(1) };
        check(&[confirm(), confirm()], 1 << 20, &[2]);
    }

    #[test]
    fn a_member_reads_back_as_a_whole_and_by_place() {
        let at = Version { epoch: Epoch(7), serial: 9 };
        let withdraw = Change::Withdraw(Oid::new("g", "c"), at);
        let refreshed = |url, at| Change::Refresh(Oid::new("g", url), at);
        let list = [delete("a"), refreshed("b", None), refreshed("d", Some(Stamp(5))), withdraw];
        let entries: Vec<_> = (7..11).map(|serial| (serial, Stamp(1))).collect();
        let draft = &check(&list, 1 << 20, &[4])[0];
        let read = |wanted| -> Vec<Change> {
            let found = changes(&draft.plain, &entries, wanted).unwrap();
            found.into_iter().map(|it| it.change).collect()
        };
        assert_eq!(read(0..4), list);
        assert_eq!(read(1..2), list[1..2]);
        assert_eq!(changes(&draft.plain, &entries[1..], 0..4), Err(Damage::Content));
        assert_eq!(changes(b"@FILE { stray\n}\n", &entries[3..], 0..4), Err(Damage::Content));
        assert_eq!(notes(&draft.plain), Err(Damage::Content));
    }

    #[test]
    fn a_member_of_too_many_attributes_is_refused() {
        let mut record = Record::new("FILE", "http://a");
        record.push(GATHERER_ID, "g");
        (1..Limits::default().attributes_max).for_each(|_| record.push("x", ""));
        let read = |count: usize| {
            let entries: Vec<_> = (1..=count as u64).map(|serial| (serial, Stamp(1))).collect();
            let mut plain = Vec::new();
            soif::open_section(&mut plain, Section::Update);
            entries.iter().for_each(|_| soif::write_record(&mut plain, &record));
            soif::close_section(&mut plain);
            changes(&plain, &entries, 0..count).map(|it| it.len())
        };
        let most = ATTRIBUTES_MAX / Limits::default().attributes_max;
        assert_eq!(read(most), Ok(most));
        assert_eq!(read(most + 1), Err(Damage::Content));
    }
}
