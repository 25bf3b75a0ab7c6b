//! Shutdown: one signal for all parts of a daemon.
//!
//! Once started, it stays started. Clones share it; a [`child`](Shutdown::child) starts with its
//! parent, and may start alone.

use tokio_util::sync::CancellationToken;

/// A signal to stop, shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// Returns a signal that has not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a signal that starts when this one does, or earlier by its own
    /// [`start`](Self::start).
    #[must_use]
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token() }
    }

    /// Starts the shutdown. Later calls do nothing.
    pub fn start(&self) {
        self.token.cancel();
    }

    /// Returns whether the shutdown has started.
    pub fn is_started(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the shutdown starts; returns at once if it has.
    pub async fn started(&self) {
        self.token.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn starts_for_all_clones_and_children_and_stays_started() {
        let parent = Shutdown::new();
        let (clone, child) = (parent.clone(), parent.child());
        child.child().start();
        assert!(!parent.is_started() && !child.is_started(), "a child does not stop its parent");
        parent.start();
        clone.started().await;
        child.started().await;
        assert!(clone.is_started() && child.is_started());
    }
}
