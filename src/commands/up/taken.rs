//! Whether somebody gathers a site already: asked of a registry before it is gathered for the first time.

use std::path::Path;

use anyhow::bail;
use daemon::announce::gatherers_of;
use net::guard::Policy;
use url::Url;
use web::foreign::{harmless, visible};

use crate::{admin, output};

/// Asks the nearest registry that answers about each address. Fails if somebody gathers one; does not if there is no
/// answer.
pub(super) async fn ask(registries: Vec<Url>, urls: &[Url], data: &Path) -> anyhow::Result<()> {
    // What was gathered before is gathered again.
    if data.join("gatherer").exists() {
        return Ok(());
    }
    let client = admin::client();
    let registries = client.nearest(registries, Policy::AllowPrivate, admin::MEASURING).await;
    for url in urls {
        for registry in &registries {
            match gatherers_of(&client, registry, url).await {
                Ok(them) => {
                    let Some(it) = them.first() else { break };
                    let (name, feed) = (visible(&it.name), visible(&it.url));
                    bail!(
                        "{url} is gathered already, by {name}: a broker can pull its feed at {feed}; to gather it once \
                         more, add --anyway"
                    );
                }
                Err(problem) => {
                    let note =
                        format!("note: {registry} does not say who gathers {url}: {problem}");
                    output::note(&harmless(&note));
                }
            }
        }
    }
    Ok(())
}
