//! Reaction to watcher events: which roots stay watched, and how often all roots are walked.

use net::clock;

use super::Rounds;
use crate::config::{POLL, Watch};
use crate::lock::lock;
use crate::tree::watch::{Watcher, describe};

impl Rounds {
    /// Forgets the watch session: from now on, a root may be replaced unnoticed.
    pub(super) fn forget_watch(&mut self) {
        (self.watched, self.session, self.steady) = (None, None, false);
    }

    /// Takes over a watcher that was started or checked.
    pub(super) fn handle_watcher(
        &mut self,
        outcome: Result<Watcher, watcher::Error>,
        settings: u64,
    ) {
        if settings != self.settings {
            return;
        }
        let watching = match outcome {
            Ok(watcher) => {
                self.watched = Some(watcher.inodes.clone());
                self.watcher = Some(watcher);
                if lock(&self.shared.watching).is_some() {
                    return;
                }
                Watch::Notify
            }
            Err(error) => {
                self.forget_watch();
                self.fall_back(&describe(&error))
            }
        };
        *lock(&self.shared.watching) = Some(watching);
    }

    /// Handles the failure of a watcher that can no longer watch everything.
    pub(super) fn handle_failure(&mut self) {
        if let Some(error) = self.inbox.failure()
            && *lock(&self.shared.watching) == Some(Watch::Notify)
        {
            *lock(&self.shared.watching) = Some(self.fall_back(&error));
            self.pass_due = self.pass_due.min(clock::monotonic());
        }
    }

    fn fall_back(&self, error: &str) -> Watch {
        let message = format!(
            "changes cannot be watched ({error}); every root is walked every {} s instead; raise \
             fs.inotify.max_user_watches, or set watch = \"poll\"",
            POLL.as_secs()
        );
        tracing::warn!("{message}");
        self.shared.site.problem("-".to_owned(), "unwatched", message);
        Watch::Poll(POLL)
    }
}
