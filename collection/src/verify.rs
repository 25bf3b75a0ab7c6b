//! Checking a collection against itself: every checksum, the order of the log, and the key index
//! against one made anew.
//!
//! Source: DESIGN.md, "Keys" ("the full comparison is `verify`").

use std::collections::HashSet;
use std::path::Path;

use crate::change::Stamp;
use crate::collection::{Collection, Inner};
use crate::error::{Damage, Error};
use crate::keys::{self, Keys};
use crate::member::{MEMBER_BYTES_MAX, Member, Unpacker};
use crate::replay;
use crate::report::{Problem, Report};
use crate::segment::Segment;

/// Most problems that are listed.
const PROBLEMS_MAX: usize = 1000;
/// The directory of the key index that is made for comparison.
const MODEL: &str = "keys.verify";

impl Collection {
    /// Checks every checksum, the order of the log, and the key index against one made anew.
    /// Commits wait while the index is compared.
    ///
    /// # Errors
    ///
    /// The file system refused. Damage is no error: the report lists it.
    pub fn verify(&self) -> Result<Report, Error> {
        let mut check = Check::default();
        let tail = self.inner.tail();
        let view = self.inner.log.view();
        for segment in &view.segments {
            check.segment(segment)?;
        }
        check.report.objects = self.len();
        if check.report.problems.is_empty() {
            self.inner.compare_keys(&mut check)?;
        } else {
            let why = "not compared with the log, which is damaged";
            check.problem(&self.inner.keys_dir(), 0, why.to_owned());
        }
        drop(tail);
        Ok(check.report)
    }
}

impl Inner {
    /// Compares the key index with one made anew. The writer's lock is held.
    fn compare_keys(&self, check: &mut Check) -> Result<(), Error> {
        let view = self.log.view();
        let (model, live) = replay::fresh_keys_in(&self.dir, MODEL, &self.options, &view)?;
        let path = self.keys_dir();
        if live != check.report.objects {
            let message = format!("{} live objects, the log has {live}", check.report.objects);
            check.problem(&path, 0, message);
        }
        let different = self.read_keys(|keys| differences(keys, &model))?;
        for message in different {
            check.problem(&path, 0, message);
        }
        drop(model);
        let dir = self.dir.join(MODEL);
        Keys::remove(&dir).map_err(|source| Error::Keys { path: dir, source })
    }
}

/// Lists where two indexes differ.
fn differences(keys: &Keys, model: &Keys) -> Result<Vec<String>, sled::Error> {
    let mut found = Vec::new();
    let (mut ours, mut theirs) = (keys.comparable(), model.comparable());
    let (mut our, mut their) = (ours.next().transpose()?, theirs.next().transpose()?);
    while found.len() < PROBLEMS_MAX {
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
        let survey = segment.survey(true, self.serial)?;
        for gap in &survey.gaps {
            let message = format!("{} ({} bytes)", gap.why, gap.bytes);
            self.problem(&segment.path, gap.offset, message);
        }
        // What the memory knows and the file does not have shows as a gap or as missing bytes.
        let (known, found) = (segment.end(), survey.entries.last().map_or(0, |it| it.end()));
        if found < known && survey.gaps.is_empty() {
            self.problem(&segment.path, found, Damage::Truncated.to_string());
        }
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        for entry in &survey.entries {
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
