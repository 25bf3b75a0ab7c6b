//! Verification of a collection: every checksum, the order of the log, and the key index against a
//! rebuilt one.
//!
//! Source: docs/collection.md, "The key index".

use std::collections::HashSet;
use std::path::Path;
use std::sync::PoisonError;

use crate::change::Stamp;
use crate::collection::{Collection, Inner};
use crate::error::{Damage, Error};
use crate::keys::{self, Keys};
use crate::log::segment::{SERIAL_MAX, Segment, Stretch};
use crate::member::{MEMBER_BYTES_MAX, Member, Unpacker};
use crate::recover;
use crate::recover::replay;
use crate::report::{Problem, Report};

/// Maximum number of problems in a report.
const PROBLEMS_MAX: usize = 1000;
/// The directory of the key index that is built for comparison.
pub(crate) const MODEL: &str = "keys.verify";

impl Collection {
    /// Checks every checksum, the order of the log, and the key index against a rebuilt one.
    /// Commits go on meanwhile, except during the comparison at the end; compactions wait.
    ///
    /// # Errors
    ///
    /// The file system reports an error. Damage is not an error: the report lists it.
    pub fn verify(&self) -> Result<Report, Error> {
        let inner = &self.inner;
        let _uncompacted = inner.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut check = Check::default();
        for segment in &inner.log.view().segments {
            inner.check_open()?;
            check.segment(segment)?;
        }
        let view = inner.log.view();
        for hole in view.missing.iter() {
            let Problem { file, offset, message } = recover::missing_problem(&inner.dir, hole);
            check.problem(&file, offset, message);
        }
        check.report.unknown = inner.tail().manifest.lost || self.aftermath()?.is_some();
        if check.report.problems.is_empty() {
            inner.compare_keys(&mut check)?;
        } else {
            check.report.objects = self.len();
            let mut lost = inner.lost(&view)?;
            check.report.healable = lost.oids.split_off(lost.orphans);
            check.report.lost = lost.oids;
        }
        Ok(check.report)
    }

    /// Rebuilds the key index, for example if it disagrees with the log.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]: a part of the log is damaged; heal it first. [`Error::Keys`]: a new
    /// index cannot be built either.
    pub fn remake_keys(&self) -> Result<(), Error> {
        self.inner.rebuild_keys(self.inner.keys_made(), "a rebuild was requested")
    }
}

impl Inner {
    fn compare_keys(&self, check: &mut Check) -> Result<(), Error> {
        let check_open = || self.check_open();
        let view = self.log.view();
        let (model, _) = replay::fresh_keys(
            &self.log.disk,
            (self.keys_home(), MODEL),
            &self.options,
            &view,
            &replay::fail,
            &check_open,
        )?;
        let compared = self.compare_with(&model, check);
        drop(model);
        if matches!(compared, Err(Error::Stopped { .. })) {
            // The removal may take long, so it is left to the next opening.
            return compared;
        }
        let dir = self.keys_home().join(MODEL);
        let removed = Keys::remove(&dir).map_err(|source| Error::keys(dir, source));
        compared.and(removed)
    }

    fn compare_with(&self, model: &Keys, check: &mut Check) -> Result<(), Error> {
        // Only a few commits came since the model was built; from here on neither index changes.
        let _still = self.tail();
        let live = replay::follow(model, &self.dir, &self.log.view(), &|| self.check_open())?;
        let path = self.dir.join(replay::KEYS);
        let known = self.read_keys(|keys| Ok(keys.watermark().unwrap_or_default().live))?;
        if live != known {
            check.problem(&path, 0, format!("{known} live objects, the log has {live}"));
        }
        let found =
            self.read_keys(|keys| differences(keys, model, || self.check_open().is_ok()))?;
        self.check_open()?;
        for message in found {
            check.problem(&path, 0, message);
        }
        check.report.objects = known;
        Ok(())
    }
}

/// Lists at most [`PROBLEMS_MAX`] differences between two indexes; ends early when `goes_on`
/// returns false.
fn differences(
    keys: &Keys,
    model: &Keys,
    goes_on: impl Fn() -> bool,
) -> Result<Vec<String>, sled::Error> {
    let mut found = Vec::new();
    let (mut ours, mut theirs) = (keys.comparable()?, model.comparable()?);
    let (mut our, mut their) = (ours.next().transpose()?, theirs.next().transpose()?);
    while found.len() < PROBLEMS_MAX && goes_on() {
        let order = match (&our, &their) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((our, _)), Some((their, _))) => our.cmp(their),
        };
        match (order, &our, &their) {
            (std::cmp::Ordering::Less, Some((key, _)), _) => {
                found.push(format!("{} is not in the log", keys::describe(key)));
            }
            (std::cmp::Ordering::Greater, _, Some((key, _))) => {
                found.push(format!("{} is missing", keys::describe(key)));
            }
            (std::cmp::Ordering::Equal, Some((key, our)), Some((_, their))) if our != their => {
                found.push(format!("{} differs from the log", keys::describe(key)));
            }
            _ => {}
        }
        if order.is_le() {
            our = ours.next().transpose()?;
        }
        if order.is_ge() {
            their = theirs.next().transpose()?;
        }
    }
    Ok(found)
}

#[derive(Default)]
struct Check {
    report: Report,
    /// The last serial and stamp so far.
    serial: u64,
    stamp: Stamp,
}

impl Check {
    fn problem(&mut self, file: &Path, offset: u64, message: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(Problem { file: file.to_owned(), offset, message });
        }
    }

    fn segment(&mut self, segment: &Segment) -> Result<(), Error> {
        self.report.segments += 1;
        // Members appended after this point are not checked.
        let (known, length) = (segment.end(), segment.file_bytes()?);
        let survey = segment.survey(true, self.serial, known.min(length), SERIAL_MAX)?;
        for (offset, bytes, why) in survey.iter().filter_map(Stretch::damage) {
            let end = offset + bytes;
            let entries = segment.entries().clone();
            for entry in entries.iter().filter(|it| it.offset < end && offset < it.end()) {
                segment.mark(entry.offset, why);
            }
            self.problem(&segment.path, offset, format!("{why} ({bytes} bytes)"));
        }
        if length < known {
            self.problem(&segment.path, length, Damage::Truncated.to_string());
        }
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        for stretch in &survey {
            let Stretch::Sound(entry) = stretch else { continue };
            self.report.members += 1;
            self.report.bytes += u64::from(entry.bytes);
            let outcome = match segment.read(entry, &mut unpacker) {
                Ok(member) => self.member(&member),
                Err(Error::Damaged { what, .. }) => Err(what),
                Err(error) => return Err(error),
            };
            if let Err(damage) = outcome {
                self.problem(&segment.path, entry.offset, damage.to_string());
            }
        }
        Ok(())
    }

    fn member(&mut self, member: &Member) -> Result<(), Damage> {
        let first = member.header.entries.first().map(|(_, stamp)| *stamp);
        if member.header.base < self.serial || first.is_some_and(|it| it < self.stamp) {
            return Err(Damage::Order);
        }
        member.notes()?;
        let changes = member.changes()?;
        self.report.changes += changes.len() as u64;
        let mut seen = HashSet::new();
        for scanned in &changes {
            if scanned.change.oid().is_some_and(|oid| !seen.insert(oid)) {
                return Err(Damage::Repeated);
            }
            (self.serial, self.stamp) = (scanned.serial, scanned.stamp);
        }
        Ok(())
    }
}
