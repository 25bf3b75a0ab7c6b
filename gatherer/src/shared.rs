//! What the server, its loops, its handles and its pages share.

use std::sync::{Arc, Mutex};

use collection::Author;
use daemon::Control;
use daemon::describe::Describer;
use exchange::push::Notifier;
use tokio::sync::Notify;

use crate::config::Config;
use crate::lock::lock;
use crate::progress::Watching;
use crate::requests::Requests;
use crate::site::Site;
use crate::site::plan::Plan;

/// What the server, its loops, its handles and its pages share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    /// Id and key.
    pub(crate) author: Author,
    pub(crate) config: Mutex<Arc<Config>>,
    pub(crate) plans: Mutex<Arc<Vec<Plan>>>,
    pub(crate) requests: Mutex<Requests>,
    /// Wakes the rounds when something has been asked for.
    pub(crate) asked: Notify,
    /// How changes are noticed.
    pub(crate) watching: Mutex<Watching>,
    /// Tells subscribers of changes.
    pub(crate) notifier: Notifier,
    /// Its listeners.
    pub(crate) control: Control,
    /// Tells what the gatherer is.
    pub(crate) describer: Describer,
    /// What it is to harvesters.
    pub(crate) repository: exchange::repository::Repository,
    /// When the server started, in Unix seconds.
    pub(crate) started: u64,
    /// Host and port that others reach it at.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Shared {
    pub(crate) fn config(&self) -> Arc<Config> {
        lock(&self.config).clone()
    }

    pub(crate) fn plans(&self) -> Arc<Vec<Plan>> {
        lock(&self.plans).clone()
    }
}
