//! The target of a harvest: a collection that stores its batches.

use collection::{Applied, Change, Collection, Harvested, Oid, Stamp};
use net::clock;
use oai::Datestamp;
use oai::crosswalk::{self, Dissemination, Problem, ProblemKind, SourceIdentity};
use oai::harvest::{Batch, Checkpoint};
use oai::response::Record;

/// Maximum number of problems that are listed for each batch.
pub const PROBLEMS_MAX: usize = 20;

/// The target of a harvest: a collection, on behalf of one of its sources.
#[derive(Clone, Debug)]
pub struct Target {
    collection: Collection,
    source: String,
    identity: SourceIdentity,
    keep_original: bool,
    confirmed: bool,
    /// Whether the next batch begins a new harvest although there is a checkpoint.
    anew: bool,
}

/// Time to live of records that nothing renews, in seconds: a hundred years, the maximum of a
/// collection.
const TTL_SECS_MAX: u64 = 100 * 365 * 86_400;

/// Shortest time between two confirmations that earlier records still exist, in milliseconds (six
/// hours). All consumers receive a confirmation as a change, unless it has the same time as the
/// last one.
const CONFIRM_EVERY_MS: u64 = 6 * 3_600_000;

/// The result of storing a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The effect of the batch on the collection.
    pub applied: Applied,
    /// Records that were new, different or deleted.
    pub changes: u64,
    /// Sum of the datestamps of these changes, in Unix seconds; a record without a datestamp counts
    /// as changed now.
    pub stamps_secs: i128,
    /// Records with problems.
    pub problems: u64,
    /// The first [`PROBLEMS_MAX`] problems, with the record's identifier.
    pub named: Vec<(String, Problem)>,
    /// Number of records without a name, which were left out; `problems` includes them.
    pub nameless: u64,
}

impl Target {
    /// Returns the target for the source named `source` of `collection`.
    pub fn new(collection: Collection, source: String, identity: SourceIdentity) -> Self {
        let (keep_original, confirmed, anew) = (false, false, false);
        Self { collection, source, identity, keep_original, confirmed, anew }
    }

    /// Sets whether records also keep their original metadata.
    #[must_use]
    pub fn keep_original(mut self, keep: bool) -> Self {
        self.keep_original = keep;
        self
    }

    /// Sets whether an administrator has confirmed that the source may lose most of its records.
    #[must_use]
    pub fn confirmed(mut self, confirmed: bool) -> Self {
        self.confirmed = confirmed;
        self
    }

    /// Returns the checkpoint from which the harvest continues. If the collection has lost or
    /// forgotten records of the source, the checkpoint is set back, so that they come again.
    pub async fn checkpoint(&mut self) -> Result<Checkpoint, collection::Error> {
        let (collection, source) = (self.collection.clone(), self.source.clone());
        let found = super::client::blocking(move || collection.harvest_checkpoint(&source)).await?;
        let Some(found) = found else { return Ok(Checkpoint::default()) };
        let mut checkpoint = Checkpoint::from_bytes(&found.bytes).unwrap_or_default();
        self.anew = !found.is_intact;
        if self.anew {
            checkpoint.forget_progress();
        }
        Ok(checkpoint)
    }

    /// Stores a batch, records and checkpoint in one commit; `prefix` is its format.
    ///
    /// # Errors
    ///
    /// [`collection::Error::Loss`]: the harvest is over. The source waits for an administrator, or
    /// until the lost records are back; the next harvest is a full one. Other errors are those of
    /// the collection.
    pub async fn store(&mut self, batch: Batch, prefix: &str) -> Result<Stored, collection::Error> {
        let (target, prefix) = (self.clone(), prefix.to_owned());
        let stored = super::client::blocking(move || target.apply(&batch, &prefix)).await?;
        self.anew = false;
        Ok(stored)
    }

    /// Stores the checkpoint of a harvest that ended early.
    pub async fn store_end(&mut self, checkpoint: &Checkpoint) -> Result<(), collection::Error> {
        let generation = checkpoint.generation_in_progress();
        let checkpoint = checkpoint.clone();
        let batch =
            Batch { records: Vec::new(), checkpoint, generation, release: false, last: false };
        self.store(batch, "").await.map(drop)
    }

    fn apply(&self, batch: &Batch, prefix: &str) -> Result<Stored, collection::Error> {
        let mut stored = Stored::default();
        let mut changes = Vec::with_capacity(batch.records.len());
        for record in &batch.records {
            changes.extend(self.change(record, prefix, &mut stored));
        }
        let now_ms = clock::now_ms();
        if batch.last {
            // Every received record that is not deleted still exists. Consumers do not receive
            // unchanged records again, and would let them expire.
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
            generation: batch.generation,
            last: batch.last,
            release: batch.release,
            checkpoint: batch.checkpoint.to_bytes(),
            confirmed: self.confirmed,
            anew: self.anew,
        };
        let applied = self.collection.apply_harvested(harvested, Stamp(now_ms));
        if matches!(applied, Err(collection::Error::Loss { .. })) {
            self.forget_run(batch, now_ms)?;
        }
        stored.applied = applied?;
        // Records that a full harvest did not meet are deleted without a datestamp; skip them.
        let records = u64::try_from(batch.records.len()).unwrap_or(u64::MAX);
        stored.changes = (stored.applied.updated + stored.applied.deleted).min(records);
        let now_secs = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
        let stamp = |it: &Record| it.header.datestamp.map_or(now_secs, Datestamp::secs);
        let mut stamps: Vec<i64> = batch.records.iter().map(stamp).collect();
        // Unchanged records come from the overlap of two harvests; the changed ones are newer.
        stamps.sort_unstable_by(|a, b| b.cmp(a));
        let changed = usize::try_from(stored.changes).unwrap_or(usize::MAX);
        stored.stamps_secs = stamps.into_iter().take(changed).map(i128::from).sum();
        Ok(stored)
    }

    /// Makes the next harvest a full one. Otherwise the harvest with the loss would continue at its
    /// last page for ever, and report the same loss again, even after the records are back.
    fn forget_run(&self, batch: &Batch, now_ms: u64) -> Result<(), collection::Error> {
        let mut checkpoint = batch.checkpoint.clone();
        checkpoint.forget_progress();
        let harvested = Harvested {
            source: self.source.clone(),
            generation: batch.generation,
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
            // The origin of the record may confirm it, but we do not see that. A repository that
            // was away for long does not send old records again. So the record lives until its
            // repository deletes it.
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
