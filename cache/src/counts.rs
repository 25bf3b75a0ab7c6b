//! Counts of what the cache has answered, and whom it has asked, for the administrator.

mod history;
mod ranking;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use net::body::{self, Body};
use net::clock;
use net::error::BoxError;
use net::shutdown::Shutdown;
use tokio::time::sleep;

use history::{History, MINUTE};
use ranking::{Ranked, Ranking};

pub use history::{Span, Totals};

/// Where the body of an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The memory.
    Hit,
    /// A fetch that another client had begun.
    Joined,
    /// The memory, after the origin said that it is still good.
    Validated,
    /// The memory, since the origin fails.
    Stale,
    /// The origin.
    Miss,
    /// The origin, without a look at what is stored.
    Passed,
    /// The cache itself: its pages, refusals and errors.
    Own,
    /// A tunnel.
    Tunnel,
}

impl From {
    /// All, in order.
    pub(crate) const ALL: [Self; 8] = [
        Self::Hit,
        Self::Joined,
        Self::Validated,
        Self::Stale,
        Self::Miss,
        Self::Passed,
        Self::Own,
        Self::Tunnel,
    ];

    /// Returns the name in metrics and the status.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Joined => "joined",
            Self::Validated => "validated",
            Self::Stale => "stale",
            Self::Miss => "miss",
            Self::Passed => "passed",
            Self::Own => "own",
            Self::Tunnel => "tunnel",
        }
    }
}

/// The longest body whose bytes are counted before they are sent.
const SOON_BYTES_MAX: u64 = 64 << 10;

/// Number of an origin's latest answers whose times are known.
const TIMES_MAX: usize = 32;

/// How an origin answers, lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) requests: u64,
    /// Requests without an answer, or answered that the origin fails (5xx).
    pub(crate) failures: u64,
    /// Times to the head of the latest answers, in milliseconds.
    times: VecDeque<u64>,
}

impl Origin {
    fn note(&mut self, took: Duration, fails: bool) {
        self.requests += 1;
        self.failures += u64::from(fails);
        self.times.push_back(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if TIMES_MAX < self.times.len() {
            self.times.pop_front();
        }
    }

    /// Adds what was earlier.
    fn add(&mut self, earlier: Self) {
        self.requests += earlier.requests;
        self.failures += earlier.failures;
        let room = TIMES_MAX.saturating_sub(self.times.len());
        earlier.times.into_iter().rev().take(room).for_each(|it| self.times.push_front(it));
    }

    /// Returns the median of the latest times, in milliseconds.
    pub(crate) fn median_ms(&self) -> u64 {
        let mut times: Vec<u64> = self.times.iter().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// What is counted. The counts of sources are since the start; names are those of this hour and the one
/// before.
#[derive(Debug)]
pub(crate) struct Counts {
    began: Instant,
    answers: [Answered; From::ALL.len()],
    history: Mutex<History>,
    objects: Mutex<[Ranking<()>; 2]>,
    origins: Mutex<[Ranking<Origin>; 2]>,
}

/// Answers from one source.
#[derive(Debug, Default)]
struct Answered {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            began: clock::monotonic(),
            answers: Default::default(),
            history: Mutex::default(),
            objects: Mutex::default(),
            origins: Mutex::default(),
        }
    }
}

impl Counts {
    /// Counts a request for an object.
    pub(crate) fn requested(&self, url: &str) {
        let [now, _] = &mut *locked(&self.objects);
        now.note(url);
    }

    /// Counts a request to an origin, and the time to the head of its answer.
    pub(crate) fn origin(&self, host: &str, took: Duration, fails: bool) {
        let [now, _] = &mut *locked(&self.origins);
        if let Some(origin) = now.note(host) {
            origin.note(took, fails);
        }
    }

    /// Counts an answer, and its bytes as they are sent.
    pub(crate) fn answered(
        self: &Arc<Self>,
        from: From,
        response: Response<Body>,
    ) -> Response<Body> {
        let answered = self.of(from);
        answered.requests.fetch_add(1, Ordering::Relaxed);
        match response.body().size_hint().exact() {
            Some(bytes) if bytes <= SOON_BYTES_MAX => {
                answered.bytes.fetch_add(bytes, Ordering::Relaxed);
                response
            }
            _ => {
                let counts = Arc::clone(self);
                response.map(|body| body::boxed(Counted { body, from, counts }))
            }
        }
    }

    fn of(&self, from: From) -> &Answered {
        let [hit, joined, validated, stale, miss, passed, own, tunnel] = &self.answers;
        match from {
            From::Hit => hit,
            From::Joined => joined,
            From::Validated => validated,
            From::Stale => stale,
            From::Miss => miss,
            From::Passed => passed,
            From::Own => own,
            From::Tunnel => tunnel,
        }
    }

    /// Returns the number of answers from each source, and their bytes.
    pub(crate) fn all(&self) -> [(&'static str, u64, u64); From::ALL.len()] {
        From::ALL.map(|it| {
            let Answered { requests, bytes } = self.of(it);
            (it.name(), requests.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
        })
    }

    /// Returns the time since the start, and what was answered since then.
    pub(crate) fn now(&self) -> (Duration, Totals) {
        let mut totals = Totals::default();
        for (from, (_, requests, bytes)) in From::ALL.into_iter().zip(self.all()) {
            if !matches!(from, From::Own | From::Tunnel) {
                totals.requests += requests;
                totals.bytes += bytes;
            }
            if matches!(from, From::Hit | From::Joined | From::Validated | From::Stale) {
                totals.hits += requests;
                totals.hit_bytes += bytes;
            }
        }
        (clock::monotonic().duration_since(self.began), totals)
    }

    /// Looks at the history.
    pub(crate) fn history<T>(&self, look: impl FnOnce(&History) -> T) -> T {
        look(&locked(&self.history))
    }

    /// Returns the objects that are requested most.
    pub(crate) fn objects(&self) -> Vec<Ranked<()>> {
        let [now, before] = locked(&self.objects).clone();
        now.with(before, |(), ()| ())
    }

    /// Returns the origins that are asked most.
    pub(crate) fn origins(&self) -> Vec<Ranked<Origin>> {
        let [now, before] = locked(&self.origins).clone();
        now.with(before, Origin::add)
    }

    /// Keeps the history, until `stop` starts.
    pub(crate) async fn keep(&self, stop: &Shutdown) {
        loop {
            tokio::select! {
                () = stop.started() => return,
                () = sleep(MINUTE) => {}
            }
            if locked(&self.history).mark(self.now()) {
                next_hour(&self.objects);
                next_hour(&self.origins);
            }
        }
    }
}

fn next_hour<V>(rankings: &Mutex<[Ranking<V>; 2]>) {
    let [now, before] = &mut *locked(rankings);
    *before = std::mem::take(now);
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A body whose bytes are counted as they are sent.
struct Counted {
    body: Body,
    from: From,
    counts: Arc<Counts>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let data = frame.as_ref().and_then(|it| it.as_ref().ok()?.data_ref());
        let bytes = data.map_or(0, |it| it.len() as u64);
        self.counts.of(self.from).bytes.fetch_add(bytes, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_latest_times_is_known() {
        let (mut now, mut before) = (Origin::default(), Origin::default());
        (0..100).for_each(|it| before.note(Duration::from_millis(it), it % 10 == 0));
        assert_eq!((before.median_ms(), before.requests, before.failures), (84, 100, 10));
        (0..3).for_each(|_| now.note(Duration::from_secs(1), false));
        now.add(before);
        assert_eq!((now.requests, now.times.len(), now.times[0]), (103, TIMES_MAX, 71));
        assert_eq!(now.times[TIMES_MAX - 1], 1_000, "the latest come last");
    }
}
