//! The broker as an OAI-PMH repository: `/oai` on its public listener.

use exchange::repository::Daemon;

use crate::config::Config;

/// Returns the description of the broker for its harvesters. It announces no update times, since
/// its pulls have no fixed times.
pub(super) fn daemon(config: &Config, id: &str) -> Daemon {
    Daemon {
        name: config.name.clone(),
        id: id.to_owned(),
        base_url: config.daemon.base_url.clone(),
        syndication: None,
    }
}
