//! Whether somebody gathers a site already: asked of a registry before it is gathered for the first time.

use std::path::Path;

use anyhow::bail;
use daemon::announce::gatherers_of;
use url::Url;
use web::foreign::visible;

use crate::{admin, output};

/// Asks the registry about each address. Fails if somebody gathers one; does not if there is no answer.
pub(super) async fn ask(registry: &Url, urls: &[Url], data: &Path) -> anyhow::Result<()> {
    // What was gathered before is gathered again.
    if data.join("gatherer").exists() {
        return Ok(());
    }
    let client = admin::client();
    let mut registry = registry.clone();
    if !registry.path().ends_with('/') {
        registry.set_path(&format!("{}/", registry.path()));
    }
    for url in urls {
        match gatherers_of(&client, &registry, url).await {
            Ok(them) => {
                if let Some(it) = them.first() {
                    let (name, feed) = (visible(&it.name), visible(&it.url));
                    bail!(
                        "{url} is gathered already, by {name}: a broker can pull its feed at {feed}; to gather it once \
                         more, add --anyway"
                    );
                }
            }
            Err(problem) => {
                output::note(&format!("note: nobody knows who gathers {url}: {problem}"));
            }
        }
    }
    Ok(())
}
