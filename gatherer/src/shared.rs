//! The state shared by the server, its loops, its handles and its pages.

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

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) author: Author,
    pub(crate) config: Mutex<Arc<Config>>,
    pub(crate) plans: Mutex<Arc<Vec<Plan>>>,
    pub(crate) requests: Mutex<Requests>,
    /// Wakes the rounds after a request.
    pub(crate) requested: Notify,
    /// Present way of noticing changes.
    pub(crate) watching: Mutex<Watching>,
    pub(crate) notifier: Notifier,
    pub(crate) control: Control,
    /// The gatherer's description for everybody.
    pub(crate) describer: Describer,
    /// The gatherer's collection as an OAI-PMH repository.
    pub(crate) repository: exchange::repository::Repository,
    /// Start of the server, in Unix seconds.
    pub(crate) started: u64,
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
