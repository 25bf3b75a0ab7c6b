//! Lanes: dear searches wait for each other, and nobody else waits for them.
//!
//! Most searches use the processor for some milliseconds. A pattern that no word need begin like, or
//! a thousand hits with their texts, can use it for a thousand times that. So there are two lanes:
//!
//! - The **quick lane** takes searches that are cheap by their looks ([`is_dear`]). One that then needs
//!   more than [`quick_cpu`] of the processor is given up, paid for, and begins again in the other lane.
//! - The **dear lane** runs its searches on half of the processors. The places to wait for that are
//!   few, and who has used too much lately gets none ([`budgets`]): it is refused at once, with the
//!   time after which to ask again. Cheap searches are never refused.

mod budgets;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use net::clock;
use query::Value;
use tokio::sync::Semaphore;

use crate::answer::{SEARCH_CPU_MAX, SearchRequest};
use crate::blocking::blocking;
use crate::error::{Crowded, Error};
pub use budgets::DearSearches;
use budgets::{Budgets, Refusal};

/// Maximum number of quick searches that run at the same time; further ones wait. Each takes a
/// thread and the memory of its hits.
const QUICK_MAX: usize = 16;
/// Processor time after which a search is none of the quick ones, and what it may be for each object that is
/// searched: a frequent word costs by how many objects have it.
const QUICK_CPU_MAX: Duration = Duration::from_millis(100);
const QUICK_CPU_OF_ONE: Duration = Duration::from_nanos(300);

/// What part of that a client has left who has used too much: searches that are as cheap as they look need less.
const DEBTORS_PART: u32 = 4;

/// Shortest beginning of a word that leaves few enough words to look at, in characters.
const BEGINNING_CHARS_MIN: usize = 3;
/// Greatest sum of edits in fuzzy words of a cheap query.
const EDITS_MAX: usize = 6;
/// Processor time for reading the texts of a search's hits: what every search may use, and what one
/// may use whose client has enough left.
const TEXTS_CPU: Duration = Duration::from_millis(20);
const TEXTS_CPU_MAX: Duration = Duration::from_millis(400);
/// Most hits whose texts are read for a cheap search.
const TEXTS_MAX: usize = 100;

impl From<Refusal> for Crowded {
    fn from(refusal: Refusal) -> Self {
        let (message, retry_after) = match refusal {
            Refusal::Own { retry_after } => {
                ("your address has asked for much that takes long", retry_after)
            }
            Refusal::Full { retry_after } => {
                ("many searches that take long are under way", retry_after)
            }
        };
        Self { message, retry_after_secs: retry_after.as_secs().max(1) }
    }
}

/// The lanes of one engine. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    quick: Arc<Semaphore>,
    dear: Arc<Semaphore>,
    budgets: Arc<Mutex<Budgets>>,
    /// What clients have spent on reading texts.
    texts: Arc<Mutex<Budgets>>,
}

impl Default for Lanes {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            quick: Arc::new(Semaphore::new(QUICK_MAX)),
            dear: Arc::new(Semaphore::new((processors / 2).max(1))),
            budgets: Arc::default(),
            texts: Arc::default(),
        }
    }
}

impl Lanes {
    /// Runs the search `work` of `client`, which may use the processor for the time that it is
    /// called with: that of `quick` ([`quick_cpu`]), and in the dear lane more. `None`: it [`is_dear`].
    ///
    /// # Errors
    ///
    /// The errors of `work`; [`Error::Crowded`].
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: IpAddr,
        quick: Option<Duration>,
        work: impl Fn(Duration) -> Result<T, Error> + Clone + Send + 'static,
    ) -> Result<T, Error> {
        if let Some(cpu) = quick {
            let may_spend = locked(&self.budgets).may_spend(client, clock::monotonic());
            let cpu = if may_spend { cpu } else { cpu / DEBTORS_PART };
            match self.quick(cpu, work.clone()).await {
                Err(Error::Late) => {
                    locked(&self.budgets).spend(client, cpu, clock::monotonic());
                }
                outcome => return outcome,
            }
        }
        let mut place = self.enter(client).map_err(Crowded::from)?;
        let permit = Arc::clone(&self.dear).acquire_owned().await;
        let outcome = move || {
            let began = clock::thread_cpu();
            let outcome = work(SEARCH_CPU_MAX);
            place.used = clock::thread_cpu().saturating_sub(began);
            drop((place, permit));
            outcome
        };
        blocking("a dear search", outcome).await
    }

    /// Runs a search in the quick lane, which may use the processor for `cpu`.
    ///
    /// # Errors
    ///
    /// The errors of `work`, such as [`Error::Late`].
    pub(crate) async fn quick<T: Send + 'static>(
        &self,
        cpu: Duration,
        work: impl FnOnce(Duration) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The permit moves into the blocking work: a client that leaves cannot free it early.
        let permit = Arc::clone(&self.quick).acquire_owned().await;
        let outcome = move || {
            let outcome = work(cpu);
            drop(permit);
            outcome
        };
        blocking("a search", outcome).await
    }

    /// Reads the texts of a search's hits by `read`, which asks whether it may go on. Who has used
    /// much time for that lately has little; nobody is refused.
    pub(crate) fn read_texts(&self, client: IpAddr, read: impl FnOnce(&dyn Fn() -> bool)) {
        let now = clock::monotonic();
        let has_debt = !locked(&self.texts).may_spend(client, now);
        let room = if has_debt { TEXTS_CPU } else { TEXTS_CPU_MAX };
        let began = clock::thread_cpu();
        read(&|| clock::thread_cpu() < began + room);
        let used = clock::thread_cpu().saturating_sub(began).saturating_sub(TEXTS_CPU);
        locked(&self.texts).spend(client, used, clock::monotonic());
    }

    /// Returns how many dear searches there were.
    pub(crate) fn counts(&self) -> DearSearches {
        locked(&self.budgets).counts()
    }

    fn enter(&self, client: IpAddr) -> Result<Place, Refusal> {
        let budgets = Arc::clone(&self.budgets);
        locked(&budgets).enter(client, clock::monotonic())?;
        Ok(Place { client, budgets, used: Duration::ZERO })
    }
}

fn locked(budgets: &Mutex<Budgets>) -> std::sync::MutexGuard<'_, Budgets> {
    budgets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place of a client in the dear lane; dropping it gives it back.
struct Place {
    client: IpAddr,
    budgets: Arc<Mutex<Budgets>>,
    used: Duration,
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.budgets).leave(self.client, self.used, clock::monotonic());
    }
}

/// Returns the processor time that a quick search may use among this number of objects.
pub(crate) fn quick_cpu(objects: u64) -> Duration {
    let of_all = QUICK_CPU_OF_ONE.saturating_mul(u32::try_from(objects).unwrap_or(u32::MAX));
    QUICK_CPU_MAX.max(of_all).min(SEARCH_CPU_MAX)
}

/// Returns whether a search is dear by its looks.
pub(crate) fn is_dear(request: &SearchRequest) -> bool {
    let (mut edits, mut has_wide) = (0, false);
    request.query.for_each_leaf(&mut |leaf| match &leaf.value {
        Value::Regex(_) => has_wide = true,
        Value::Prefix(text) => has_wide |= text.chars().count() < BEGINNING_CHARS_MIN,
        Value::Fuzzy(_, count) => edits += usize::from(*count),
        Value::Word(_) | Value::Phrase(_) | Value::Range(..) | Value::Present => {}
    });
    has_wide || EDITS_MAX < edits || request.snippets && TEXTS_MAX < request.limit
}

#[cfg(test)]
mod tests;
