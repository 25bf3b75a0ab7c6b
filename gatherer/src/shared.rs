//! The state shared by the server, its loops, its handles and its pages.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use collection::Author;
use daemon::Control;
use daemon::describe::Describer;
use daemon::health::Check;
use exchange::push::Notifier;
use tokio::sync::Notify;
use tokio::task;

use crate::config::{Config, Watch};
use crate::lock::lock;
use crate::opener::Opener;
use crate::requests::Requests;
use crate::site::Site;
use crate::site::plan::Plan;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) author: Author,
    pub(crate) config: Mutex<Arc<Config>>,
    pub(crate) plans: Mutex<Arc<Vec<Plan>>>,
    pub(crate) requests: Mutex<Requests>,
    /// Wakes the rounds after a request.
    pub(crate) requested: Notify,
    /// Present way of noticing changes, which may differ from the settings; `None` while watches
    /// are being set.
    pub(crate) watching: Mutex<Option<Watch>>,
    pub(crate) notifier: Notifier,
    pub(crate) control: Control,
    /// The gatherer's description for everybody.
    pub(crate) describer: Describer,
    /// Set if the public listener has pages of another part of the process.
    pub(crate) front: OnceLock<FrontCheck>,
    /// Set if the gatherer's user has a screen on which files can be opened.
    pub(crate) opener: OnceLock<Arc<Opener>>,
    /// The gatherer's collection as an OAI-PMH repository.
    pub(crate) repository: exchange::repository::Repository,
    /// Start of the server, in Unix seconds.
    pub(crate) started: u64,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A check of the part of the process whose pages are on the public listener.
pub(crate) struct FrontCheck(pub(crate) Box<dyn Fn() -> Check + Send + Sync>);

impl fmt::Debug for FrontCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FrontCheck").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn config(&self) -> Arc<Config> {
        lock(&self.config).clone()
    }

    /// Returns the present way of noticing changes, as the status shows it.
    pub(crate) fn watching(&self) -> String {
        lock(&self.watching).map_or_else(|| "starting".to_owned(), |it| it.to_string())
    }

    pub(crate) fn plans(&self) -> Arc<Vec<Plan>> {
        lock(&self.plans).clone()
    }
}

/// Runs `work` on a thread where it may block. A panic of the work is a panic of the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = task::spawn_blocking(work).await;
    done.unwrap_or_else(|fault| resume_unwind(fault.into_panic()))
}

/// Returns how long to wait after this number of failures in a row: `first`, then twice as long
/// each time, up to `longest`.
pub(crate) fn retry_wait(failures: u32, first: Duration, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_each_failure_up_to_the_maximum() {
        let check = |first, longest, failures: &[u32], expected: &[u64]| {
            let [first, longest] = [first, longest].map(Duration::from_secs);
            let waits = failures.iter().map(|it| retry_wait(*it, first, longest).as_secs());
            assert_eq!(waits.collect::<Vec<_>>(), expected);
        };
        let refusals = [0, 1, 2, 3, 5, 6, 40, u32::MAX];
        check(10, 300, &refusals, &[10, 10, 20, 40, 160, 300, 300, 300]);
        let failures = [1, 2, 3, 9, 10, u32::MAX];
        check(60, 21_600, &failures, &[60, 120, 240, 15_360, 21_600, 21_600]);
    }
}
