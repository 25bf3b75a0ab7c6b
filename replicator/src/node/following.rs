//! How a collection of this member's own becomes versions: its feed is followed into a folder, which is published
//! whenever it has grown.
//!
//! ```text
//! the feed of a gatherer or broker ─▶ DATA/logs/NAME ─publish─▶ DATA/collections/NAME@ORIGIN
//! ```
//!
//! For each collection one thing is done at a time: while its folder is published nothing is written to it.

mod hearing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use collection::Error;
use collection::replica::Follower;
use net::client::Client;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, oneshot};

use self::hearing::Outcome;
pub(super) use self::hearing::{Heard, Hearing};
use super::notes::Notes;
use super::publishing::Source;
use crate::config::CollectionConfig;
use crate::id::MemberId;
use crate::status::{FailureStatus, Published};
use crate::version::{Name, Namespace};

/// What failed is tried again after so long; twice as long each time after, up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause before something is tried again.
const RETRY_MAX: Duration = Duration::from_mins(5);
/// A feed that was there a moment ago is asked again after so long; twice as long each time after, up to
/// [`BACK_SOON_MAX`], or to a share of the time that it has been away: mostly it was started anew.
const BACK_SOON: Duration = Duration::from_millis(200);
const BACK_SOON_MAX: Duration = Duration::from_secs(5);
const AWAY_SHARE: u32 = 24;
/// A feed is asked, and a version published, once in so long.
const PACE: Duration = Duration::from_secs(1);
/// So long a feed holds its answer while there is nothing new.
const WAIT: Duration = Duration::from_secs(10);
/// Most who wait for a version of one collection.
const ASKED_MAX: usize = 64;

/// Who waits for a version.
type Asked = oneshot::Sender<Result<Published, String>>;

/// Where the log of a collection of this member's own is.
fn log_dir(data: &Path, name: &Name) -> PathBuf {
    data.join("logs").join(name.as_str())
}

/// What is done about a collection.
#[derive(Debug)]
enum State {
    /// Something is to be done next.
    Due(Step),
    /// A job follows the feed; whoever wants it to end says so.
    Following(Arc<Notify>),
    /// The folder is being published.
    Publishing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Follow,
    Publish,
}

/// A collection that is followed.
#[derive(Debug)]
struct Followed {
    config: CollectionConfig,
    /// None before the folder is open, and while a job has it.
    follower: Option<Follower>,
    state: State,
    due: Duration,
    failures: u32,
    /// When the feed answered last.
    answered_at: Option<Duration>,
    /// What was wrong the last time.
    problem: Option<String>,
    /// What there is to say of a log that could not be folded.
    unfolded: Option<Unfolded>,
    /// Whose version needs the feed to be asked once more, and who gets that which comes next.
    asked: Vec<Asked>,
    answered: Vec<Asked>,
    /// Whether what was published is damaged, and is to be published once more.
    is_damaged: bool,
    /// Whether it is no more in the settings.
    is_over: bool,
}

/// A log could not be folded; it is followed and published as it is.
#[derive(Clone, Debug)]
struct Unfolded {
    why: String,
    failures: u32,
    /// When it failed last, and when it is tried again.
    at: Duration,
    due: Duration,
}

impl Followed {
    fn new(config: CollectionConfig, now: Duration) -> Self {
        Self {
            config,
            follower: None,
            state: State::Due(Step::Follow),
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

    /// Plans what is next.
    fn plan(&mut self, step: Step, due: Duration) {
        (self.state, self.due) = (State::Due(step), due);
    }

    /// Has the job that follows the feed end.
    fn hurry(&self) {
        if let State::Following(hurry) = &self.state {
            hurry.notify_one();
        }
    }

    /// Has its feed asked.
    fn hear(
        &mut self,
        dir: PathBuf,
        client: Client,
        me: MemberId,
        stop: Shutdown,
        now: Duration,
    ) -> Hearing {
        let hurry = Arc::new(Notify::new());
        self.state = State::Following(hurry.clone());
        self.answered.append(&mut self.asked);
        // Whether it is back is wanted to be known at once.
        let is_awaited = self.failures != 0 || !self.answered.is_empty();
        let wait = if is_awaited { Duration::ZERO } else { WAIT };
        let may_fold = self.unfolded.as_ref().is_none_or(|it| it.due <= now);
        let (config, follower) = (self.config.clone(), self.follower.take());
        Hearing { config, follower, dir, client, me, wait, may_fold, hurry, stop }
    }

    fn handle_success(&mut self, now: Duration) {
        (self.failures, self.answered_at, self.problem) = (0, Some(now), None);
    }

    /// Takes in whether the log could be folded; returns what is wrong if that is new.
    fn handle_fold(&mut self, fold: Result<(), String>, now: Duration) -> Option<String> {
        let before = self.unfolded.take();
        let why = fold.err()?;
        let is_known = before.as_ref().is_some_and(|it| it.why == why);
        let failures = before.map_or(0, |it| it.failures.saturating_add(1));
        let due = now + pause(failures);
        self.unfolded = Some(Unfolded { why: why.clone(), failures, at: now, due });
        (!is_known).then(|| format!("the log cannot be folded: {why}"))
    }

    /// Answers who waits for what was begun.
    fn answer(&mut self, answer: &Result<Published, String>) {
        for it in self.answered.drain(..) {
            // Who has gone away need not know.
            drop(it.send(answer.clone()));
        }
    }

    /// How long to leave a feed alone that does not answer.
    fn feed_pause(&self, now: Duration) -> Duration {
        feed_pause(self.failures, self.answered_at.map(|it| now.saturating_sub(it)))
    }

    /// Plans another try, which nobody waits for; returns the problem if it is another than before.
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

/// How long to wait after so many failures before.
fn pause(failures: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(failures)).min(RETRY_MAX)
}

/// The same for a feed; `away`: since when it has not answered, `None` if it never has.
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
    /// The member's id: by that feeds know who asks.
    me: MemberId,
    stop: Shutdown,
}

/// What is due for a collection.
#[derive(Debug)]
pub(super) enum Due {
    /// Its feed is to be asked.
    Hear(Box<Hearing>),
    /// The folder with its log is to be published.
    Publish(Source),
}

/// What is told of a followed collection.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) feed: String,
    pub(super) problem: Option<String>,
    pub(super) unfolded: Option<FailureStatus>,
}

impl Following {
    /// None yet; `stop` ends what is done for any.
    pub(super) fn new(me: MemberId, client: Client, data: PathBuf, stop: Shutdown) -> Self {
        Self { all: BTreeMap::new(), client, data, me, stop }
    }

    /// Takes over which collections there are.
    pub(super) fn set(&mut self, collections: &[CollectionConfig], now: Duration) {
        for followed in self.all.values_mut() {
            let config = collections.iter().find(|it| it.name == followed.config.name);
            followed.is_over = config.is_none();
            let changed = config.filter(|it| **it != followed.config).cloned();
            if followed.is_over || changed.is_some() {
                // It is opened anew, once whoever has it has ended.
                followed.follower = None;
                followed.hurry();
            }
            if let Some(config) = changed {
                followed.config = config;
                if let State::Due(_) = followed.state {
                    followed.due = now;
                }
            }
        }
        self.all.retain(|_, it| !it.is_over || !matches!(it.state, State::Due(_)));
        for config in collections {
            let new = || Followed::new(config.clone(), now);
            self.all.entry(config.name.clone()).or_insert_with(new);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let is_due = |it: &&Followed| matches!(it.state, State::Due(_));
        self.all.values().filter(is_due).map(|it| it.due).min()
    }

    /// What to tell of one.
    pub(super) fn told(&self, name: &Name, now: Duration) -> Option<Told> {
        let followed = self.all.get(name)?;
        let again = followed.due.saturating_sub(now).as_secs();
        let problem = followed.problem.as_ref();
        let problem = problem.map(|it| match followed.state {
            State::Due(_) => format!("{it}; next try in {again} s"),
            State::Following(_) | State::Publishing => format!("{it}; being tried again"),
        });
        let unfolded = followed.unfolded.as_ref().map(|it| {
            let again = it.due.saturating_sub(now).as_secs();
            let remedy = "it is followed and published as it is; free some room";
            let text = format!("{}; {remedy}; next try in {again} s or so", it.why);
            FailureStatus { text, ago: now.saturating_sub(it.at).as_secs() }
        });
        Some(Told { feed: followed.config.feed.to_string(), problem, unfolded })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.all.keys()
    }

    /// What is due.
    pub(super) fn poll(&mut self, now: Duration) -> Vec<Due> {
        let mut due = Vec::new();
        for (name, followed) in &mut self.all {
            let State::Due(step) = followed.state else { continue };
            if now < followed.due {
                continue;
            }
            let dir = log_dir(&self.data, name);
            due.push(match step {
                Step::Follow => {
                    let (client, me, stop) = (self.client.clone(), self.me, self.stop.clone());
                    Due::Hear(Box::new(followed.hear(dir, client, me, stop, now)))
                }
                Step::Publish => {
                    followed.state = State::Publishing;
                    Due::Publish(Source::log(name.clone(), dir))
                }
            });
        }
        due
    }

    pub(super) fn handle_heard(&mut self, heard: Heard, now: Duration, notes: &mut Notes) {
        let Heard { config, follower, fold, outcome } = heard;
        let name = config.name.clone();
        let Some(followed) = self.all.get_mut(&name) else { return };
        if followed.is_over {
            self.all.remove(&name);
            return;
        }
        let unfolded = fold.and_then(|it| followed.handle_fold(it, now));
        if let Some(why) = unfolded {
            notes.add(format!("collection {name}: {why}"), now);
        }
        // Otherwise it is opened anew, by the settings as they are now.
        followed.follower = follower.filter(|_| config == followed.config);
        let is_held = followed.follower.as_ref().is_some_and(|it| it.version().is_some());
        let (is_new, pause) = match outcome {
            // What is in the folder may not have been published before the last end.
            Outcome::Opened => (true, Duration::ZERO),
            Outcome::Interrupted => (std::mem::take(&mut followed.is_damaged), Duration::ZERO),
            Outcome::Followed(is_new) => {
                followed.handle_success(now);
                (is_new || !followed.answered.is_empty(), PACE)
            }
            Outcome::Failed(error) => {
                // Somebody else may have been in the folder.
                let is_ours = matches!(error, Error::Io { .. } | Error::LogFolder { .. });
                followed.follower.take_if(|_| is_ours);
                let pause = match error {
                    Error::Source { .. } | Error::Missing { .. } => followed.feed_pause(now),
                    _ => pause(followed.failures),
                };
                let problem = followed.handle_failure(error.to_string(), pause, now);
                return note_problem(&name, problem, now, notes);
            }
        };
        if pause.is_zero() || !is_held {
            // Who waits for what the feed says now waits on.
            followed.asked.append(&mut followed.answered);
        }
        if is_new && is_held {
            followed.plan(Step::Publish, now);
        } else {
            followed.plan(Step::Follow, now + pause);
        }
    }

    /// The folder of a collection has been published, or not.
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
                // It is opened as it is then: somebody may have removed it meanwhile.
                followed.follower = None;
                let pause = pause(followed.failures);
                let problem = followed.handle_failure(why, pause, now);
                note_problem(name, problem, now, notes);
            }
        }
    }

    /// Has the feed of a collection asked at once, and what is new published, for who waits for that; hands them back if
    /// there is no such collection.
    pub(super) fn ask(&mut self, name: &str, reply: Asked, now: Duration) -> Option<Asked> {
        let found = self.all.iter_mut().find(|it| it.0.as_str() == name && !it.1.is_over);
        let Some((_, followed)) = found else { return Some(reply) };
        if ASKED_MAX <= followed.asked.len() {
            drop(reply.send(Err(format!("too many wait for {name}: try again"))));
            return None;
        }
        followed.asked.push(reply);
        match &followed.state {
            State::Due(Step::Follow) => followed.due = now,
            // What comes without a wait is let come: it may be a long snapshot.
            State::Following(hurry) if followed.answered.is_empty() => hurry.notify_one(),
            // The feed is asked after that.
            State::Following(_) | State::Due(Step::Publish) | State::Publishing => {}
        }
        None
    }

    /// Has the log of a collection published once more, since what was published is damaged; says whether it is one.
    pub(super) fn publish_again(&mut self, of: &Namespace, now: Duration) -> bool {
        let Some(followed) = self.all.get_mut(&of.name) else { return false };
        match followed.state {
            // Otherwise what is wrong is known already.
            _ if followed.failures != 0 => {}
            State::Due(_) if followed.follower.is_some() => followed.plan(Step::Publish, now),
            State::Due(_) | State::Publishing => {}
            State::Following(_) => {
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
