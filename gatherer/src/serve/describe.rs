//! The gatherer's description of itself for everybody.

use std::sync::Arc;

use axum::Router;
use daemon::describe::{Facts, NAMED_MAX};

use crate::shared::Shared;
use crate::spec::Root;

pub(super) fn route(shared: &Arc<Shared>) -> Router {
    let (described, signer) = (Arc::clone(shared), Arc::clone(shared));
    let sign = move |text: &[u8]| signer.author.identity.sign(text);
    shared.control.describe(&shared.describer, move || facts(&described), sign)
}

/// Returns the facts from the settings.
pub(super) fn settings_facts(shared: &Shared) -> Facts {
    let config = shared.config();
    Facts::new(&config.name, &config.daemon, config.oai.admin_emails.first())
}

/// Returns all facts. Blocks.
fn facts(shared: &Shared) -> Facts {
    let config = shared.config();
    let maps = config.maps.iter().map(|it| it.url_prefix.to_string());
    let remote = config.roots.iter().filter(|it| !matches!(it, Root::Tree(_))).map(Root::url);
    let mut gathers: Vec<String> = maps.chain(remote).collect();
    gathers.sort();
    gathers.dedup();
    gathers.truncate(NAMED_MAX);
    let [types, languages] = shared.repository.counts();
    let objects = shared.site.collection.len();
    Facts { gathers, objects, types, languages, ..settings_facts(shared) }
}
