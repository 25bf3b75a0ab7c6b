//! Content summaries of the brokers that are listed, in a collection of their own, which the feed of the registry has as
//! a part. So whoever routes searches follows one registry, not each broker.
//!
//! A broker's description says which version its summary has; when that is another one, it is fetched. Only the summary
//! of the broker itself is taken from it, whatever else it sends.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use broker::error::Error;
use broker::route::polling::Polling;
use broker::route::summary::{self, QUERY};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{
    Change, Collection, Cursor, Epoch, GATHERER_ID, ORIGIN_VERSION, Options, Owner, Pulled, Stamp,
    Version,
};
use net::client::{Client, Request};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::admission::{Budget, Purse};
use crate::reach::Reach;

/// Folder of the collection in the data directory.
const FOLDER: &str = "summaries";
/// Longest feed of a summary, in bytes, compressed.
const BYTES_MAX: u64 = 8 << 20;
/// Longest record of a summary, in bytes: a broker's own have little more than half of it.
const RECORD_BYTES_MAX: usize = 2 << 20;
/// How often the summary of a broker is fetched: some times at once, for what comes soon after its start, and again one
/// each 30 s.
const FETCHES: Budget = Budget { most: 5.0, per_second: 1.0 / 30.0 };
/// Time for fetching one.
const FETCH: Duration = Duration::from_secs(60);
/// Number of summaries that are fetched at a time.
const AT_ONCE: usize = 16;
/// Pause after a failure: the first one, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(3_600));
/// Longest time for which the feed of another registry holds back its answer.
const WAIT: Duration = Duration::from_secs(50);
/// The epoch of all summaries: their versions are the times at which brokers made them.
const MADE: Epoch = Epoch(1);
/// The epoch of what is taken of each broker, whose numbers are counted here.
const TAKEN: Epoch = Epoch(2);

/// The summaries. Clones share them.
#[derive(Clone, Debug)]
pub struct Summaries(Arc<Keeping>);

#[derive(Debug)]
struct Keeping {
    collection: Collection,
    client: Client,
    reach: Reach,
    own_id: String,
    wanted: Mutex<BTreeMap<String, Wanted>>,
    changed: Notify,
    /// Locked while a summary is put in its place, or forgotten.
    writing: Mutex<()>,
    /// Number of summaries that were refused because they are too long.
    refused: AtomicU64,
}

/// The summary of a broker.
#[derive(Clone, Debug)]
struct Wanted {
    url: Url,
    /// The version that it has, and that which was taken.
    version: String,
    taken: Option<String>,
    is_running: bool,
    failures: u32,
    not_before: Option<Instant>,
    purse: Purse,
}

impl Summaries {
    /// Opens the summaries of a registry with this id. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used.
    pub fn open(data: &Path, client: Client, reach: Reach, own_id: &str) -> Result<Self, Error> {
        let options = Options {
            own_id: Some(own_id.to_owned()),
            record_bytes_max: RECORD_BYTES_MAX,
            ..Options::default()
        };
        let now = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(&data.join(FOLDER), options, now)?;
        Ok(Self(Arc::new(Keeping {
            collection,
            client,
            reach,
            own_id: own_id.to_owned(),
            wanted: Mutex::default(),
            changed: Notify::new(),
            writing: Mutex::default(),
            refused: AtomicU64::new(0),
        })))
    }

    /// Returns the collection that has them all.
    pub fn collection(&self) -> Collection {
        self.0.collection.clone()
    }

    /// Returns the number of summaries that were refused since the start because they are too long.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the version that the summary of a broker has.
    pub fn want(&self, id: &str, url: &Url, version: &str) {
        let mut wanted = self.wanted();
        let known = wanted.entry(id.to_owned()).or_insert_with(|| Wanted {
            url: url.clone(),
            version: String::new(),
            taken: None,
            is_running: false,
            failures: 0,
            not_before: None,
            purse: Purse::new(FETCHES, clock::monotonic()),
        });
        if known.version != version || known.url != *url {
            (known.url, known.version) = (url.clone(), version.to_owned());
            (known.failures, known.not_before) = (0, None);
            self.0.changed.notify_one();
        }
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.0.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the summary of a broker. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub fn forget(&self, id: &str) -> Result<(), Error> {
        let _writing = self.writing();
        self.wanted().remove(id);
        self.0.collection.remove_source(id, Stamp(clock::now_ms()))?;
        Ok(())
    }

    /// Keeps the summaries, and follows those of other registries, until the shutdown starts.
    pub async fn run(&self, registries: Vec<Url>, shutdown: Shutdown) {
        let mut following = JoinSet::new();
        for url in registries {
            let this = self.clone();
            following.spawn(async move { this.follow(&url).await });
        }
        let mut running = JoinSet::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((id, wanted)) = self.next()
            {
                let this = self.clone();
                running.spawn(async move { this.take(&id, &wanted).await });
            }
            tokio::select! {
                () = shutdown.started() => break,
                () = self.0.changed.notified() => {}
                Some(_) = running.join_next() => {}
                // Who has failed is tried again.
                () = sleep(RETRY.0) => {}
            }
        }
        following.shutdown().await;
        running.shutdown().await;
        let collection = self.collection();
        let closed = tokio::task::spawn_blocking(move || collection.close()).await;
        if let Err(error) = closed {
            tracing::warn!(%error, "the content summaries were not closed");
        }
    }

    /// Returns the next summary to fetch, which is marked as being fetched.
    fn next(&self) -> Option<(String, Wanted)> {
        let now = clock::monotonic();
        let mut wanted = self.wanted();
        let is_due = |it: &Wanted| {
            !it.is_running
                && it.taken.as_ref() != Some(&it.version)
                && it.not_before.is_none_or(|at| at <= now)
        };
        for (id, found) in wanted.iter_mut().filter(|it| is_due(it.1)) {
            match found.purse.take(FETCHES, now) {
                Ok(()) => {
                    found.is_running = true;
                    return Some((id.clone(), found.clone()));
                }
                // By then it may be a later version.
                Err(wait) => found.not_before = Some(now + wait),
            }
        }
        None
    }

    async fn take(&self, id: &str, wanted: &Wanted) {
        let fetched = timeout(FETCH, self.fetch(id, &wanted.url)).await;
        let fetched = fetched.unwrap_or_else(|_late| Err("it did not come in time".to_owned()));
        if let Err(error) = &fetched {
            tracing::debug!(id, error, "a content summary was not taken");
        }
        let mut all = self.wanted();
        let Some(known) = all.get_mut(id) else { return };
        known.is_running = false;
        match fetched {
            Ok(()) => (known.taken, known.failures) = (Some(wanted.version.clone()), 0),
            Err(_) => {
                known.failures = known.failures.saturating_add(1);
                let pause = RETRY.0 * 2_u32.saturating_pow(known.failures - 1);
                known.not_before = Some(clock::monotonic() + pause.min(RETRY.1));
            }
        }
    }

    /// Fetches the summary of a broker, and puts it in place of the one before.
    async fn fetch(&self, id: &str, base: &Url) -> Result<(), String> {
        let mut url = base.join("feed").map_err(|it| it.to_string())?;
        url.query_pairs_mut().append_pair("q", QUERY);
        let allow_private = self.0.reach.allows_private(&self.0.client).await;
        let request = Request::get(url).allow_private(allow_private);
        let response = self.0.client.send(request).await.map_err(|it| it.to_string())?;
        if !response.status.is_success() {
            return Err(format!("its feed answers {}", response.status));
        }
        let bytes = response.bytes(BYTES_MAX).await.map_err(|it| it.to_string())?;
        let (this, id, base) = (self.clone(), id.to_owned(), base.clone());
        let put = move || this.put(&id, &base, own_summary(&id, &bytes)?);
        tokio::task::spawn_blocking(put).await.map_err(|it| it.to_string())?
    }

    /// Puts a summary of the broker at `base` in place of the one before, if it is still wanted.
    fn put(&self, id: &str, base: &Url, summary: Change) -> Result<(), String> {
        let Change::Update(mut record) = summary else { return Ok(()) };
        let made = record.number("Update-Time").unwrap_or_default().min(clock::now_ms() / 1_000);
        record.set(GATHERER_ID, id);
        record.set(ORIGIN_VERSION, Version { epoch: MADE, serial: made }.to_string());
        let collection = &self.0.collection;
        if !collection.takes(&record) {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Err(format!("it has more than {RECORD_BYTES_MAX} bytes"));
        }
        let _writing = self.writing();
        if self.wanted().get(id).is_none_or(|it| it.url != *base) {
            return Err("it is wanted no more".to_owned());
        }
        let before = collection.cursor(id).map_err(|it| it.to_string())?;
        let serial = before.map_or(0, |it| it.serial) + 1;
        let pulled = Pulled {
            source: id.to_owned(),
            id: Some(Owner { id: id.to_owned(), is_shown: true }),
            epoch: TAKEN,
            changes: vec![(serial, Change::Update(record))],
            cursor: Cursor { epoch: TAKEN, serial, snapshot: None, part: None },
            end_of_snapshot: None,
        };
        let now = Stamp(clock::now_ms());
        collection.apply(pulled, now).map_err(|it| it.to_string())?;
        collection.compact_if_due(now).map_err(|it| it.to_string())?;
        Ok(())
    }

    /// Follows the summaries that another registry has.
    async fn follow(&self, url: &Url) {
        let feed = FeedClient::new(self.0.client.clone(), url.clone(), format!("registry {url}"))
            .allow_private(true)
            .consumer(self.0.own_id.as_str())
            .part(Some(("q", QUERY.to_owned())));
        let limits = PullLimits { bytes_max: 4 << 30, ..PullLimits::default() };
        let puller = Puller::new(feed, self.collection(), limits).confirmed(true);
        let mut polling = Polling::default();
        loop {
            let began = clock::monotonic();
            let outcome = puller.pull(Some(WAIT)).await;
            let pause = polling.after(outcome.is_ok(), began.elapsed());
            if let Err(error) = outcome {
                tracing::debug!(%error, %url, "the summaries of a registry are not followed");
            }
            sleep(pause).await;
        }
    }
}

/// Returns the summary of a broker itself in its feed.
fn own_summary(id: &str, bytes: &[u8]) -> Result<Change, String> {
    let found = summary::own_summary(id, bytes)?;
    found.map(Change::Update).ok_or_else(|| "its feed has no summary of its own".to_owned())
}

#[cfg(test)]
mod tests {
    use net::client::Settings;
    use soif::Record;

    use super::*;

    const ID: &str = "00000000000000a1";

    fn summaries(folder: &Path) -> Summaries {
        let reach = Reach::new(Some(true), None, ([0; 4], 0).into());
        Summaries::open(folder, Client::new(Settings::default()), reach, "own").unwrap()
    }

    fn url() -> Url {
        Url::parse("http://h:8501/").unwrap()
    }

    fn summary(bytes: usize) -> Change {
        let mut record = Record::new("SUMMARY", format!("urn:harvest:summary:{ID}"));
        record.push(GATHERER_ID, ID);
        record.push("Rare-Terms", vec![0xff; bytes]);
        Change::Update(record)
    }

    #[test]
    fn a_summary_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let summaries = summaries(folder.path());
        summaries.want(ID, &url(), "1");
        let error = summaries.put(ID, &url(), summary(RECORD_BYTES_MAX)).unwrap_err();
        assert!(error.contains("2097152"), "{error}");
        assert_eq!((summaries.refused(), summaries.collection().len()), (1, 0));
        summaries.put(ID, &url(), summary(RECORD_BYTES_MAX / 2 + 100_000)).unwrap();
        assert_eq!((summaries.refused(), summaries.collection().len()), (1, 1));
    }

    #[test]
    fn what_is_forgotten_while_it_is_fetched_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let summaries = summaries(folder.path());
        summaries.want(ID, &url(), "1");
        assert!(summaries.next().is_some());
        summaries.forget(ID).unwrap();
        assert!(summaries.put(ID, &url(), summary(10)).is_err());
        assert_eq!(summaries.collection().len(), 0);
    }

    #[test]
    fn a_broker_is_not_asked_for_each_version() {
        let folder = tempfile::tempdir().unwrap();
        let summaries = summaries(folder.path());
        let mut fetched = Vec::new();
        for version in 0..100 {
            summaries.want(ID, &url(), &version.to_string());
            let Some((id, found)) = summaries.next() else { continue };
            fetched.push(found.version);
            let mut wanted = summaries.wanted();
            let known = wanted.get_mut(&id).unwrap();
            (known.is_running, known.taken) = (false, fetched.last().cloned());
        }
        assert_eq!(fetched, ["0", "1", "2", "3", "4"]);
        // The last version is fetched when it is its turn.
        let wanted = summaries.wanted()[ID].clone();
        assert_eq!(wanted.version, "99");
        let wait = wanted.not_before.unwrap().saturating_duration_since(clock::monotonic());
        assert!(!wait.is_zero() && wait <= Duration::from_secs(30), "{wait:?}");
    }
}
