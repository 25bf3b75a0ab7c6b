//! Jobs that pull the feed of a collection, and their results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use collection::Error;
use collection::pull::FeedClient;
use collection::replica::Follower;
use net::client::{Client, Credentials};
use net::shutdown::Shutdown;
use tokio::sync::Notify;

use crate::config::CollectionConfig;
use crate::id::MemberId;

/// Job: open a log folder, or pull its feed.
#[derive(Debug)]
pub(crate) struct Pulling {
    pub(super) config: CollectionConfig,
    pub(super) follower: Option<Follower>,
    pub(super) dir: PathBuf,
    pub(super) client: Client,
    pub(super) me: MemberId,
    pub(super) wait: Duration,
    pub(super) may_fold: bool,
    pub(super) hurry: Arc<Notify>,
    pub(super) stop: Shutdown,
}

#[derive(Debug)]
pub(crate) struct Pulled {
    pub(super) config: CollectionConfig,
    pub(super) follower: Option<Follower>,
    /// Whether the log could be folded, if that was tried.
    pub(super) fold: Option<Result<(), String>>,
    pub(super) outcome: PullOutcome,
}

#[derive(Debug)]
pub(super) enum PullOutcome {
    /// The folder is open now.
    Opened,
    /// The feed has answered; true if there is something new.
    Followed(bool),
    /// The job was told to end early.
    Interrupted,
    Failed(Error),
}

impl Pulling {
    pub(crate) async fn run(self) -> Pulled {
        let Self { config, follower, dir, client, me, wait, may_fold, hurry, stop } = self;
        let Some(mut follower) = follower else {
            let (follower, outcome) = match open(client, &config, me.to_string(), dir).await {
                Ok(follower) => (Some(follower), PullOutcome::Opened),
                Err(error) => (None, PullOutcome::Failed(error)),
            };
            return Pulled { config, follower, fold: None, outcome };
        };
        let mut fold = None;
        let outcome = tokio::select! {
            followed = follow(&mut follower, wait, may_fold.then_some(&mut fold)) => {
                match followed {
                    Ok(is_new) => PullOutcome::Followed(is_new),
                    Err(error) => PullOutcome::Failed(error),
                }
            }
            () = hurry.notified() => PullOutcome::Interrupted,
            () = stop.started() => PullOutcome::Interrupted,
        };
        Pulled { config, follower: Some(follower), fold, outcome }
    }
}

async fn open(
    client: Client,
    config: &CollectionConfig,
    me: String,
    dir: PathBuf,
) -> Result<Follower, Error> {
    let ask = FeedClient::new(client, config.feed.clone(), config.name.as_str()).consumer(me);
    let certificate = config.certificate.clone().map(Arc::new);
    let token = config.token.as_ref().map(|it| it.secret().to_owned());
    let credentials = Credentials { token, certificate, ..Credentials::default() };
    let ask = ask.credentials(credentials).allow_private(config.allow_private);
    Follower::open(ask, dir).await
}

/// Folds the log if that is due and `fold` is given, which gets the result. Then pulls the feed,
/// but not with a long poll after a folding. Returns whether the folder has changed.
async fn follow(
    follower: &mut Follower,
    wait: Duration,
    fold: Option<&mut Option<Result<(), String>>>,
) -> Result<bool, Error> {
    let mut is_folded = false;
    if let Some(outcome) = fold {
        let folded = follower.fold_if_due().await;
        is_folded = matches!(folded, Ok(true));
        *outcome = Some(folded.map(drop).map_err(|error| error.to_string()));
        if is_folded && !wait.is_zero() {
            return Ok(true);
        }
    }
    match follower.follow(wait).await {
        // The first answer may have been a snapshot of an older state.
        Ok(true) if wait.is_zero() => follower.follow(wait).await.map(|_| true),
        // The folded log has to be published; a problem of the feed shows the next time.
        Err(_) if is_folded => Ok(true),
        followed => followed.map(|it| it || is_folded),
    }
}
