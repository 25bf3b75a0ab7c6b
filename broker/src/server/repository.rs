//! The broker as an OAI-PMH repository: `/oai` on its public listener.

use collection::Collection;
use exchange::repository::{Daemon, Repository, SETS};
use web::Site;
use web::layout::Link;

use crate::config::Config;

/// What public pages say of the broker, with a link to its repository.
pub(super) fn site(config: &Config) -> Site {
    let site = Site::new(&*config.name).at(config.base_url.as_ref());
    let link = Link { path: "oai?verb=Identify", name: "OAI-PMH" };
    if config.oai.enabled { site.with(link) } else { site }
}

/// Makes the repository of the broker with that id.
pub(super) fn open(config: &Config, id: &str, collection: &Collection) -> Repository {
    let sets = config.data.join(SETS);
    Repository::new(collection.clone(), config.oai.clone(), daemon(config, id), sets)
}

/// What the broker is to those who harvest it. Its pulls are at no fixed times.
pub(super) fn daemon(config: &Config, id: &str) -> Daemon {
    Daemon {
        name: config.name.clone(),
        id: id.to_owned(),
        base_url: config.base_url.clone(),
        syndication: None,
    }
}
