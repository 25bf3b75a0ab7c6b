//! The surroundings of the search page: what the process of `harvest up` tells on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use broker::page::Surroundings;
use gatherer::{Opener, Progress};
use http::HeaderMap;
use tokio::sync::watch;

/// The gatherer and the index behind the page.
#[derive(Debug)]
pub(super) struct Around {
    progress: watch::Receiver<Progress>,
    /// The desktop's opener; `None` without a screen.
    pub(super) opener: Option<Arc<Opener>>,
    /// Whether all that the first pass has found is indexed.
    is_caught_up: AtomicBool,
}

impl Around {
    pub(super) fn new(progress: watch::Receiver<Progress>, opener: Option<Arc<Opener>>) -> Self {
        Self { progress, opener, is_caught_up: AtomicBool::new(false) }
    }

    /// Notes that all is found that the first pass has gathered.
    pub(super) fn note_caught_up(&self) {
        self.is_caught_up.store(true, Relaxed);
    }
}

impl Surroundings for Around {
    fn open_address(&self, headers: &HeaderMap) -> Option<String> {
        self.opener.as_ref()?.address(headers)
    }

    fn activity(&self) -> Option<String> {
        if self.is_caught_up.load(Relaxed) {
            return None;
        }
        let progress = self.progress.borrow();
        if 0 < progress.passes_done && progress.harvests_due == 0 {
            return Some("still indexing".to_owned());
        }
        // Of a repository nobody knows how much there is.
        let percent = progress.percent().filter(|_| progress.passes_done == 0);
        Some(
            percent.map_or_else(
                || "still gathering".to_owned(),
                |it| format!("still gathering, {it} %"),
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use gatherer::Phase;

    use super::*;

    #[test]
    fn what_is_under_way_is_told_until_all_is_found() {
        let (sender, receiver) = watch::channel(Progress::default());
        let around = Around::new(receiver, None);
        let check = |expected: Option<&str>| assert_eq!(around.activity().as_deref(), expected);
        check(Some("still gathering"));
        sender.send_modify(|it| {
            it.phase = Phase::Walking;
            (it.files_done, it.files_expected, it.harvests_due) = (43, 100, 1);
        });
        check(Some("still gathering, 43 %"));
        sender.send_modify(|it| it.passes_done = 1);
        check(Some("still gathering"));
        sender.send_modify(|it| it.harvests_due = 0);
        check(Some("still indexing"));
        around.note_caught_up();
        check(None);
    }
}
