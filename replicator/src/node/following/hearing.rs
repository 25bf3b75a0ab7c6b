//! How the feed of a collection is asked, and what comes of that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use collection::Error;
use collection::pull::Asking;
use collection::replica::Follower;
use net::client::{Client, Credentials};
use net::shutdown::Shutdown;
use tokio::sync::Notify;

use crate::config::CollectionConfig;
use crate::id::MemberId;

/// A feed is to be asked, or a folder to be opened.
#[derive(Debug)]
pub(crate) struct Hearing {
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

/// A feed has been asked, or a folder opened.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(super) config: CollectionConfig,
    pub(super) follower: Option<Follower>,
    /// Whether the log could be folded, if that was tried.
    pub(super) fold: Option<Result<(), String>>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// The folder is open now.
    Opened,
    /// The feed has answered: whether there is something new.
    Followed(bool),
    /// Somebody wants something else.
    Interrupted,
    Failed(Error),
}

impl Hearing {
    /// Asks it, or opens it.
    pub(crate) async fn run(self) -> Heard {
        let Self { config, follower, dir, client, me, wait, may_fold, hurry, stop } = self;
        let Some(mut follower) = follower else {
            let (follower, outcome) = match open(client, &config, me.to_string(), dir).await {
                Ok(follower) => (Some(follower), Outcome::Opened),
                Err(error) => (None, Outcome::Failed(error)),
            };
            return Heard { config, follower, fold: None, outcome };
        };
        let mut fold = None;
        let outcome = tokio::select! {
            followed = follow(&mut follower, wait, may_fold.then_some(&mut fold)) => {
                match followed {
                    Ok(is_new) => Outcome::Followed(is_new),
                    Err(error) => Outcome::Failed(error),
                }
            }
            () = hurry.notified() => Outcome::Interrupted,
            () = stop.started() => Outcome::Interrupted,
        };
        Heard { config, follower: Some(follower), fold, outcome }
    }
}

async fn open(
    client: Client,
    config: &CollectionConfig,
    me: String,
    dir: PathBuf,
) -> Result<Follower, Error> {
    let ask = Asking::new(client, config.feed.clone(), config.name.as_str()).consumer(me);
    let certificate = config.certificate.clone().map(Arc::new);
    let credentials = Credentials { token: config.token.clone(), certificate };
    let ask = ask.credentials(credentials).allow_private(config.allow_private);
    Follower::open(ask, dir).await
}

/// Folds the log if that is due and wanted, and asks what is new; returns whether the folder has changed.
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
        // What was asked for at once may have come as a snapshot.
        Ok(true) if wait.is_zero() => follower.follow(wait).await.map(|_| true),
        // It is to be published; what is wrong with the feed shows the next time.
        Err(_) if is_folded => Ok(true),
        followed => followed.map(|it| it || is_folded),
    }
}
