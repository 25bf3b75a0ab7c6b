//! Whether somebody gathers a site already: asked of a registry before it is gathered for the first time.

use std::path::Path;

use anyhow::bail;
use daemon::announce::gatherers_of;
use net::client::Client;
use net::guard::Policy;
use url::Url;
use web::foreign::{harmless, visible};

use super::records;
use crate::{admin, output};

/// Asks the nearest registry that answers about each address that the last `harvest up` with this data folder did not
/// gather: what one leaves out is forgotten. Fails if somebody gathers one; does not if there is no answer.
pub(super) async fn ask(registries: Vec<Url>, urls: &[Url], data: &Path) -> anyhow::Result<()> {
    let mut before = records::all().into_iter().map(|it| it.record);
    let before = before.find(|it| it.data() == data).map(|it| it.urls).unwrap_or_default();
    let is_known = |it: &&Url| before.contains(it) && data.join("gatherer").exists();
    let new: Vec<&Url> = urls.iter().filter(|it| !is_known(it)).collect();
    if new.is_empty() || registries.is_empty() {
        return Ok(());
    }
    let client = admin::client();
    let registries = client.nearest(registries, Policy::AllowPrivate, admin::MEASURING).await;
    let mut taken = Vec::new();
    for url in new {
        taken.extend(by_whom(&client, &registries, url).await);
    }
    if taken.is_empty() {
        return Ok(());
    }
    // All are named: who adds --anyway says so of all.
    bail!("{}; to gather once more what others have, add --anyway", taken.join("\n"))
}

/// Returns who gathers an address, a sentence; `None`: nobody does, or no registry answers.
async fn by_whom(client: &Client, registries: &[Url], url: &Url) -> Option<String> {
    for registry in registries {
        match gatherers_of(client, registry, url).await {
            Ok(them) => {
                let it = them.first()?;
                let (name, feed) = (visible(&it.name), visible(&it.url));
                return Some(format!(
                    "{url} is gathered already, by {name}: a broker can pull its feed at {feed}"
                ));
            }
            Err(problem) => {
                let note = format!("note: {registry} does not say who gathers {url}: {problem}");
                output::note(&harmless(&note));
            }
        }
    }
    None
}
