//! What the gatherer is, told to everybody.

use std::sync::Arc;

use axum::Router;
use daemon::describe::{Facts, NAMED_MAX};

use crate::shared::Shared;
use crate::spec::Root;

/// Returns the route that tells it.
pub(super) fn route(shared: &Arc<Shared>) -> Router {
    let (teller, signer) = (Arc::clone(shared), Arc::clone(shared));
    let sign = move |text: &[u8]| signer.author.identity.sign(text);
    shared.describer.route(move || facts(&teller), sign)
}

/// What the settings say of it.
pub(super) fn known(shared: &Shared) -> Facts {
    let config = shared.config();
    Facts::new(&config.name, &config.daemon, config.oai.admin_emails.first())
}

/// All there is to say. Blocks.
fn facts(shared: &Shared) -> Facts {
    let config = shared.config();
    let maps = config.maps.iter().map(|it| it.url_prefix.to_string());
    let repositories = config.roots.iter().filter(|it| matches!(it, Root::Repository(_)));
    let repositories = repositories.map(Root::url);
    let mut gathers: Vec<String> = maps.chain(repositories).collect();
    gathers.sort();
    gathers.dedup();
    gathers.truncate(NAMED_MAX);
    let [types, languages] = shared.repository.counts();
    let objects = shared.site.collection.len();
    Facts { gathers, objects, types, languages, ..known(shared) }
}
