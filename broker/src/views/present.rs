//! The present views: those of the settings that are in force.

use tokio::sync::watch;

use super::Views;

/// The views that count at present. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Present(watch::Sender<Views>);

impl Default for Present {
    fn default() -> Self {
        Self(watch::Sender::new(Views::default()))
    }
}

impl Present {
    pub(crate) fn get(&self) -> Views {
        self.0.borrow().clone()
    }

    pub(crate) fn set(&self, views: Views) {
        self.0.send_if_modified(|it| {
            let is_new = *it != views;
            *it = views;
            is_new
        });
    }

    /// Returns a receiver that gets the views whenever they are defined anew.
    pub(crate) fn watch(&self) -> watch::Receiver<Views> {
        self.0.subscribe()
    }
}
