//! Following: the feed of a collection is followed, and its changes are written to a log folder,
//! which is published whenever it has grown.
//!
//! ```text
//! the feed of a gatherer or broker ─▶ DATA/logs/NAME ─publish─▶ DATA/collections/NAME@ORIGIN
//! ```
//!
//! Each collection does one thing at a time: while its folder is being published, nothing is
//! written to it.

mod pulling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use collection::Error;
use collection::replica::Follower;
use net::client::Client;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, oneshot};

use self::pulling::PullOutcome;
pub(super) use self::pulling::{Pulled, Pulling};
use super::notes::Notes;
use super::publishing::OwnSource;
use crate::config::CollectionConfig;
use crate::id::MemberId;
use crate::status::{FailureStatus, Published};
use crate::version::{Name, Namespace};

/// Pause after the first failure; it doubles with each further one, up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);
/// Longest pause after failures.
const RETRY_MAX: Duration = Duration::from_mins(5);
/// Pause after the first failure of a feed that has answered before; it doubles with each further
/// one. Most such feeds are only being restarted.
const BACK_SOON: Duration = Duration::from_millis(200);
/// Longest such pause in the first two minutes after the last answer.
const BACK_SOON_MAX: Duration = Duration::from_secs(5);
/// Later, the longest pause is the time since the last answer divided by this, up to [`RETRY_MAX`].
const AWAY_SHARE: u32 = 24;
/// Pause after a pull without news, and after a published version; a waiting caller ends it.
const PACE: Duration = Duration::from_secs(1);
/// Longest time for which the feed may hold back its answer while nothing is new.
const WAIT: Duration = Duration::from_secs(10);
/// Maximum number of callers that wait for a version of one collection.
const ASKED_MAX: usize = 64;

/// A caller that waits for a version.
type Waiter = oneshot::Sender<Result<Published, String>>;

#[derive(Debug)]
enum Phase {
    /// A step is planned.
    Due(Step),
    /// A job follows the feed; the notification ends it early.
    Following(Arc<Notify>),
    Publishing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Follow,
    Publish,
}

#[derive(Debug)]
struct Followed {
    config: CollectionConfig,
    /// The follower of the open log folder; `None` before the folder is open, and while a job has
    /// the follower.
    follower: Option<Follower>,
    state: Phase,
    due: Duration,
    failures: u32,
    /// Time of the feed's last answer.
    answered_at: Option<Duration>,
    problem: Option<String>,
    /// The failure of the last folding of the log; `None` if it succeeded.
    unfolded: Option<FoldFailure>,
    /// Callers that wait for the next pull of the feed.
    asked: Vec<Waiter>,
    /// Callers that wait for the present pull.
    answered: Vec<Waiter>,
    /// Whether the published version is damaged and has to be published again.
    is_damaged: bool,
    /// Whether the collection is no longer in the settings.
    is_over: bool,
}

/// A failed folding of a log; the log is followed and published unfolded.
#[derive(Clone, Debug)]
struct FoldFailure {
    why: String,
    failures: u32,
    /// Time of the last failure.
    at: Duration,
    /// Time of the next try.
    due: Duration,
}

impl Followed {
    fn new(config: CollectionConfig, now: Duration) -> Self {
        Self {
            config,
            follower: None,
            state: Phase::Due(Step::Follow),
            due: now,
            failures: 0,
            answered_at: None,
            problem: None,
            unfolded: None,
            asked: Vec::new(),
            answered: Vec::new(),
            is_damaged: false,
            is_over: false,
        }
    }

    /// Plans the next step for the time `due`.
    fn plan(&mut self, step: Step, due: Duration) {
        (self.state, self.due) = (Phase::Due(step), due);
    }

    /// Makes the job that follows the feed end early, if one runs.
    fn hurry(&self) {
        if let Phase::Following(hurry) = &self.state {
            hurry.notify_one();
        }
    }

    /// Returns the job that pulls the collection's feed, and records that it runs.
    fn pull_job(
        &mut self,
        dir: PathBuf,
        client: Client,
        me: MemberId,
        stop: Shutdown,
        now: Duration,
    ) -> Pulling {
        let hurry = Arc::new(Notify::new());
        self.state = Phase::Following(hurry.clone());
        self.answered.append(&mut self.asked);
        // A pull does not wait for news if it comes after a failure or a caller waits for it.
        let is_awaited = self.failures != 0 || !self.answered.is_empty();
        let wait = if is_awaited { Duration::ZERO } else { WAIT };
        let may_fold = self.unfolded.as_ref().is_none_or(|it| it.due <= now);
        let (config, follower) = (self.config.clone(), self.follower.take());
        Pulling { config, follower, dir, client, me, wait, may_fold, hurry, stop }
    }

    fn handle_success(&mut self, now: Duration) {
        (self.failures, self.answered_at, self.problem) = (0, Some(now), None);
    }

    /// Takes in whether the log could be folded; returns the problem if it is new.
    fn handle_fold(&mut self, fold: Result<(), String>, now: Duration) -> Option<String> {
        let before = self.unfolded.take();
        let why = fold.err()?;
        let is_known = before.as_ref().is_some_and(|it| it.why == why);
        let failures = before.map_or(0, |it| it.failures.saturating_add(1));
        let due = now + pause(failures);
        self.unfolded = Some(FoldFailure { why: why.clone(), failures, at: now, due });
        (!is_known).then(|| format!("the log cannot be folded: {why}"))
    }

    /// Answers the callers that wait for the pull that has ended.
    fn answer(&mut self, answer: &Result<Published, String>) {
        for it in self.answered.drain(..) {
            drop(it.send(answer.clone()));
        }
    }

    /// Plans another try and answers the callers with the problem; returns the problem if it is
    /// new.
    fn handle_failure(&mut self, why: String, pause: Duration, now: Duration) -> Option<String> {
        self.plan(Step::Follow, now + pause);
        self.failures = self.failures.saturating_add(1);
        self.answered.append(&mut self.asked);
        self.answer(&Err(why.clone()));
        let is_known = self.problem.as_ref() == Some(&why);
        self.problem = Some(why.clone());
        (!is_known).then_some(why)
    }
}

/// Returns the pause after a failure that follows `failures` others.
fn pause(failures: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(failures)).min(RETRY_MAX)
}

/// Returns the pause after a failure of a feed; `away` is the time since the feed's last answer,
/// `None` if it never answered.
fn feed_pause(failures: u32, away: Option<Duration>) -> Duration {
    let Some(away) = away else { return pause(failures) };
    let most = (away / AWAY_SHARE).clamp(BACK_SOON_MAX, RETRY_MAX);
    BACK_SOON.saturating_mul(2_u32.saturating_pow(failures)).min(most)
}

/// The collections that this member publishes.
#[derive(Debug)]
pub(super) struct Following {
    all: BTreeMap<Name, Followed>,
    client: Client,
    data: PathBuf,
    /// This member's id, by which feeds know their consumer.
    me: MemberId,
    stop: Shutdown,
}

#[derive(Debug)]
pub(super) enum FollowTask {
    Pull(Box<Pulling>),
    Publish(OwnSource),
}

/// Status of a followed collection.
#[derive(Clone, Debug)]
pub(super) struct FeedReport {
    pub(super) feed: String,
    pub(super) problem: Option<String>,
    pub(super) unfolded: Option<FailureStatus>,
}

impl Following {
    /// Returns an empty set; `stop` ends all its jobs.
    pub(super) fn new(me: MemberId, client: Client, data: PathBuf, stop: Shutdown) -> Self {
        Self { all: BTreeMap::new(), client, data, me, stop }
    }

    /// Takes over the collections in the settings.
    pub(super) fn set(&mut self, collections: &[CollectionConfig], now: Duration) {
        for followed in self.all.values_mut() {
            let config = collections.iter().find(|it| it.name == followed.config.name);
            followed.is_over = config.is_none();
            let changed = config.filter(|it| **it != followed.config).cloned();
            if followed.is_over || changed.is_some() {
                // The folder is opened anew once its job has ended.
                followed.follower = None;
                followed.hurry();
            }
            if let Some(config) = changed {
                followed.config = config;
                if let Phase::Due(_) = followed.state {
                    followed.due = now;
                }
            }
        }
        self.all.retain(|_, it| !it.is_over || !matches!(it.state, Phase::Due(_)));
        for config in collections {
            let new = || Followed::new(config.clone(), now);
            self.all.entry(config.name.clone()).or_insert_with(new);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let is_due = |it: &&Followed| matches!(it.state, Phase::Due(_));
        self.all.values().filter(is_due).map(|it| it.due).min()
    }

    /// Returns the status of a collection; none if there is no such collection.
    pub(super) fn report(&self, name: &Name, now: Duration) -> Option<FeedReport> {
        let followed = self.all.get(name)?;
        let again = followed.due.saturating_sub(now).as_secs();
        let problem = followed.problem.as_ref();
        let problem = problem.map(|it| match followed.state {
            Phase::Due(_) => format!("{it}; next try in {again} s"),
            Phase::Following(_) | Phase::Publishing => format!("{it}; being tried again"),
        });
        let unfolded = followed.unfolded.as_ref().map(|it| {
            let again = it.due.saturating_sub(now).as_secs();
            let remedy = "it is followed and published as it is; free some room";
            let text = format!("{}; {remedy}; next try in {again} s or so", it.why);
            FailureStatus { text, ago: now.saturating_sub(it.at).as_secs() }
        });
        Some(FeedReport { feed: followed.config.feed.to_string(), problem, unfolded })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.all.keys()
    }

    /// Returns the due tasks, and records that they are being done.
    pub(super) fn poll(&mut self, now: Duration) -> Vec<FollowTask> {
        let mut due = Vec::new();
        for (name, followed) in &mut self.all {
            let Phase::Due(step) = followed.state else { continue };
            if now < followed.due {
                continue;
            }
            let dir = self.data.join("logs").join(name.as_str());
            due.push(match step {
                Step::Follow => {
                    let (client, me, stop) = (self.client.clone(), self.me, self.stop.clone());
                    FollowTask::Pull(Box::new(followed.pull_job(dir, client, me, stop, now)))
                }
                Step::Publish => {
                    followed.state = Phase::Publishing;
                    FollowTask::Publish(OwnSource::log(name.clone(), dir))
                }
            });
        }
        due
    }

    pub(super) fn handle_pulled(&mut self, pulled: Pulled, now: Duration, notes: &mut Notes) {
        let Pulled { config, follower, fold, outcome } = pulled;
        let name = config.name.clone();
        let Some(followed) = self.all.get_mut(&name) else { return };
        if followed.is_over {
            self.all.remove(&name);
            return;
        }
        let unfolded = fold.and_then(|it| followed.handle_fold(it, now));
        note_problem(&name, unfolded, now, notes);
        // If the settings have changed meanwhile, the folder is opened anew.
        followed.follower = follower.filter(|_| config == followed.config);
        let is_held = followed.follower.as_ref().is_some_and(|it| it.version().is_some());
        let (is_new, pause) = match outcome {
            // The folder's content may not have been published before the last stop.
            PullOutcome::Opened => (true, Duration::ZERO),
            PullOutcome::Interrupted => (std::mem::take(&mut followed.is_damaged), Duration::ZERO),
            PullOutcome::Followed(is_new) => {
                followed.handle_success(now);
                (is_new || !followed.answered.is_empty(), PACE)
            }
            PullOutcome::Failed(error) => {
                // Another process may have been in the folder.
                let is_ours = matches!(error, Error::Io { .. } | Error::LogFolder { .. });
                followed.follower.take_if(|_| is_ours);
                let pause = match error {
                    Error::Source { .. } | Error::Missing { .. } => {
                        let away = followed.answered_at.map(|it| now.saturating_sub(it));
                        feed_pause(followed.failures, away)
                    }
                    _ => pause(followed.failures),
                };
                let problem = followed.handle_failure(error.to_string(), pause, now);
                return note_problem(&name, problem, now, notes);
            }
        };
        if pause.is_zero() || !is_held {
            // This pull has not brought the feed's present state, so its callers keep waiting.
            followed.asked.append(&mut followed.answered);
        }
        if is_new && is_held {
            followed.plan(Step::Publish, now);
        } else {
            followed.plan(Step::Follow, now + pause);
        }
    }

    pub(super) fn handle_published(
        &mut self,
        name: &Name,
        answer: Result<Published, String>,
        now: Duration,
        notes: &mut Notes,
    ) {
        let Some(followed) = self.all.get_mut(name) else { return };
        if followed.is_over {
            self.all.remove(name);
            return;
        }
        match answer {
            Ok(published) => {
                if published.is_changed {
                    followed.handle_success(now);
                }
                followed.answer(&Ok(published));
                let is_asked = !followed.asked.is_empty();
                followed.plan(Step::Follow, if is_asked { now } else { now + PACE });
            }
            Err(why) => {
                // The folder is opened anew before the next pull: somebody may have removed it
                // meanwhile.
                followed.follower = None;
                let pause = pause(followed.failures);
                let problem = followed.handle_failure(why, pause, now);
                note_problem(name, problem, now, notes);
            }
        }
    }

    /// Makes a pull of a collection's feed due at once for a caller, and publishes what is new. The
    /// caller is answered after that. Returns the caller if there is no such collection.
    pub(super) fn ask(&mut self, name: &str, reply: Waiter, now: Duration) -> Option<Waiter> {
        let found = self.all.iter_mut().find(|it| it.0.as_str() == name && !it.1.is_over);
        let Some((_, followed)) = found else { return Some(reply) };
        if ASKED_MAX <= followed.asked.len() {
            drop(reply.send(Err(format!("too many wait for {name}: try again"))));
            return None;
        }
        followed.asked.push(reply);
        match &followed.state {
            Phase::Due(Step::Follow) => followed.due = now,
            // A pull that does not wait is not interrupted: it may be a long snapshot.
            Phase::Following(hurry) if followed.answered.is_empty() => hurry.notify_one(),
            // The feed is pulled again after the present step.
            Phase::Following(_) | Phase::Due(Step::Publish) | Phase::Publishing => {}
        }
        None
    }

    /// Publishes the log of a damaged collection again; returns whether this member follows it.
    pub(super) fn publish_again(&mut self, of: &Namespace, now: Duration) -> bool {
        let Some(followed) = self.all.get_mut(&of.name) else { return false };
        match followed.state {
            // After failures, the problem is known, and the next try is planned.
            _ if followed.failures != 0 => {}
            Phase::Due(_) if followed.follower.is_some() => followed.plan(Step::Publish, now),
            Phase::Due(_) | Phase::Publishing => {}
            Phase::Following(_) => {
                followed.is_damaged = true;
                followed.hurry();
            }
        }
        true
    }
}

fn note_problem(name: &Name, problem: Option<String>, now: Duration, notes: &mut Notes) {
    if let Some(problem) = problem {
        notes.add(format!("collection {name}: {problem}"), now);
    }
}
