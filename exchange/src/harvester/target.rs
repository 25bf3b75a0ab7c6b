//! A collection that takes the parts of a harvest.

use collection::{Applied, Change, Collection, Harvested, Oid, Stamp};
use net::clock;
use oai::Datestamp;
use oai::crosswalk::{self, Dissemination, Problem, ProblemKind, SourceIdentity};
use oai::harvest::{Checkpoint, Part};
use oai::response::Record;

/// Most problems with records that are named for each part.
pub const PROBLEMS_MAX: usize = 20;

/// A collection as the target of a harvest: one of its sources.
#[derive(Clone, Debug)]
pub struct Target {
    collection: Collection,
    source: String,
    identity: SourceIdentity,
    keep_original: bool,
    confirmed: bool,
    /// Whether the next part begins anew although there is a checkpoint.
    anew: bool,
}

/// Time to live of what nobody confirms, in seconds: a hundred years, which no collection exceeds.
const TTL_SECS_MAX: u64 = 100 * 365 * 86_400;

/// How often it is confirmed at most that what came before is there still, in milliseconds (six hours): a
/// confirmation is a change, which all who follow the collection hear of. What is no later than the last one
/// is no change.
const CONFIRM_EVERY_MS: u64 = 6 * 3_600_000;

/// What storing a part did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// What it did to the collection.
    pub applied: Applied,
    /// Records that were new or different, or are gone now.
    pub changes: u64,
    /// The sum of the datestamps of these, in Unix seconds; a record without one counts as changed now.
    pub stamps_secs: i128,
    /// Records that have something wrong with them.
    pub problems: u64,
    /// The first [`PROBLEMS_MAX`] of them, by the record's identifier.
    pub named: Vec<(String, Problem)>,
    /// Of these, records without a name, which were left out.
    pub nameless: u64,
}

impl Target {
    /// The source named `source` of `collection`.
    pub fn new(collection: Collection, source: String, identity: SourceIdentity) -> Self {
        let (keep_original, confirmed, anew) = (false, false, false);
        Self { collection, source, identity, keep_original, confirmed, anew }
    }

    /// Sets whether records have their metadata as they came besides.
    #[must_use]
    pub fn keep_original(mut self, keep: bool) -> Self {
        self.keep_original = keep;
        self
    }

    /// Sets whether an administrator has confirmed that the source may lose most of what it brought.
    #[must_use]
    pub fn confirmed(mut self, confirmed: bool) -> Self {
        self.confirmed = confirmed;
        self
    }

    /// Where the harvest goes on. What has come since the collection was damaged, or was forgotten, has to
    /// come again.
    ///
    /// # Errors
    ///
    /// The collection's.
    pub async fn checkpoint(&mut self) -> Result<Checkpoint, collection::Error> {
        let (collection, source) = (self.collection.clone(), self.source.clone());
        let found = super::ask::blocking(move || collection.harvest_checkpoint(&source)).await?;
        let Some(found) = found else { return Ok(Checkpoint::default()) };
        let mut checkpoint = Checkpoint::from_bytes(&found.bytes).unwrap_or_default();
        self.anew = !found.is_intact;
        if self.anew {
            checkpoint.forget_progress();
        }
        Ok(checkpoint)
    }

    /// Stores a part, records and checkpoint in one commit; `prefix` is the format that it is in.
    ///
    /// # Errors
    ///
    /// [`collection::Error::Loss`]: the harvest is over, and the source waits for an administrator, or
    /// until what was lost is back: the next harvest is of everything.
    /// Otherwise the collection's own.
    pub async fn store(&mut self, part: Part, prefix: &str) -> Result<Stored, collection::Error> {
        let (target, prefix) = (self.clone(), prefix.to_owned());
        let stored = super::ask::blocking(move || target.apply(&part, &prefix)).await?;
        self.anew = false;
        Ok(stored)
    }

    /// Stores where a harvest that ended before its end goes on.
    ///
    /// # Errors
    ///
    /// The collection's.
    pub async fn store_end(&mut self, checkpoint: &Checkpoint) -> Result<(), collection::Error> {
        let generation = checkpoint.generation_in_progress();
        let checkpoint = checkpoint.clone();
        let part =
            Part { records: Vec::new(), checkpoint, generation, release: false, last: false };
        self.store(part, "").await.map(drop)
    }

    fn apply(&self, part: &Part, prefix: &str) -> Result<Stored, collection::Error> {
        let mut stored = Stored::default();
        let mut changes = Vec::with_capacity(part.records.len());
        for record in &part.records {
            changes.extend(self.change(record, prefix, &mut stored));
        }
        let now_ms = clock::now_ms();
        if part.last {
            // All that came and is not deleted is there still: what is as it was is not sent again, and
            // would expire.
            let (gatherer, root) = (&self.identity.gatherer_id, &self.identity.base_url);
            changes.push(Change::Confirm {
                gatherer: gatherer.clone(),
                root: root.clone(),
                at: Stamp(now_ms - now_ms % CONFIRM_EVERY_MS),
            });
        }
        let harvested = Harvested {
            source: self.source.clone(),
            changes,
            generation: part.generation,
            last: part.last,
            release: part.release,
            checkpoint: part.checkpoint.to_bytes(),
            confirmed: self.confirmed,
            anew: self.anew,
        };
        let applied = self.collection.apply_harvested(harvested, Stamp(now_ms));
        if matches!(applied, Err(collection::Error::Loss { .. })) {
            self.forget_run(part, now_ms)?;
        }
        stored.applied = applied?;
        // What a full harvest releases has no datestamp.
        let records = u64::try_from(part.records.len()).unwrap_or(u64::MAX);
        stored.changes = (stored.applied.updated + stored.applied.deleted).min(records);
        let now_secs = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
        let stamp = |it: &Record| it.header.datestamp.map_or(now_secs, Datestamp::secs);
        let mut stamps: Vec<i64> = part.records.iter().map(stamp).collect();
        // What came again as it was is of the overlap, and older.
        stamps.sort_unstable_by(|a, b| b.cmp(a));
        let changed = usize::try_from(stored.changes).unwrap_or(usize::MAX);
        stored.stamps_secs = stamps.into_iter().take(changed).map(i128::from).sum();
        Ok(stored)
    }

    /// Has the next harvest be of everything: the one that lost so much would go on with its last page for
    /// ever, and lose as much again, whatever has come back.
    fn forget_run(&self, part: &Part, now_ms: u64) -> Result<(), collection::Error> {
        let mut checkpoint = part.checkpoint.clone();
        checkpoint.forget_progress();
        let harvested = Harvested {
            source: self.source.clone(),
            generation: part.generation,
            checkpoint: checkpoint.to_bytes(),
            ..Harvested::default()
        };
        self.collection.apply_harvested(harvested, Stamp(now_ms)).map(drop)
    }

    fn change(&self, record: &Record, prefix: &str, stored: &mut Stored) -> Option<Change> {
        if record.header.deleted {
            let name = crosswalk::object_name(&record.header, prefix, &self.identity)?;
            return Some(Change::Delete(Oid::new(&name.gatherer_id, &name.url)));
        }
        let (mut made, problems) =
            crosswalk::to_soif(record, prefix, &self.identity, self.keep_original);
        let is_nameless = problems.iter().any(|it| it.kind == ProblemKind::Nameless);
        let is_sound = problems.is_empty();
        stored.problems += u64::from(!is_sound);
        stored.nameless += u64::from(is_nameless);
        let room = PROBLEMS_MAX.saturating_sub(stored.named.len());
        let identifier = &record.header.identifier;
        stored.named.extend(problems.into_iter().take(room).map(|it| (identifier.clone(), it)));
        let is_ours = |(name, _): &(String, String)| name == "Time-to-Live";
        if prefix == Dissemination::Soif.prefix() || !self.identity.attributes.iter().any(is_ours) {
            // Its origin may confirm it, but not to us, and a repository that was away for long does not
            // send again what it sent before: it lives until its repository says otherwise.
            made.set("Time-to-Live", TTL_SECS_MAX.to_string());
        }
        if !is_nameless && !self.collection.takes(&made) {
            let message = "it is too large for the collection, and is left out".to_owned();
            let problem = Problem { kind: ProblemKind::Limit, message };
            stored.problems += u64::from(is_sound);
            if stored.named.len() < PROBLEMS_MAX {
                stored.named.push((identifier.clone(), problem));
            }
        }
        (!is_nameless).then_some(Change::Update(made))
    }
}
