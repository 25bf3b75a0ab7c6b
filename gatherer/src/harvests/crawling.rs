//! The crawl of a web site, from its begin to its end, on the schedule of the roots elsewhere.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use net::client::Client;
use net::shutdown::Shutdown;

use super::harvest::HarvestEnd;
use crate::lock::lock;
use crate::pipeline::{self, Access, Order, Spool, WebAccess};
use crate::rounds;
use crate::site::Site;
use crate::site::plan::WebPlan;

/// Asks for the pages of a site: for all (`is_full`), or for those that are due. The client comes with the
/// authorities that it trusts. Blocks.
///
/// # Errors
///
/// The collection failed: committed changes stay, and the next crawl goes on from there.
pub(super) fn crawl(
    site: &Site,
    plan: &WebPlan,
    client: (Client, Vec<Vec<u8>>),
    (confirmed, is_full): (bool, bool),
    stop: &Shutdown,
) -> Result<HarvestEnd, collection::Error> {
    let root_state = site.root_state(&plan.root.url)?;
    let spool = Arc::new(Spool::new(site.spool_folder(plan.web.url())));
    let web = WebAccess::new(plan, client, spool.clone(), is_full);
    let order = Order { scopes: Vec::new(), whole: true, confirmed, session: None };
    let has_begun = web.has_begun.clone();
    let access = (&plan.root, Access::Web(web));
    pipeline::run(site, access, &root_state, &order, &|| stop.is_started())?;
    site.workers.end_idle();
    if !stop.is_started() {
        spool.clear();
    }
    Ok(if stop.is_started() {
        HarvestEnd::Stopped
    } else if lock(&root_state.note).hold.is_some() {
        HarvestEnd::Held
    } else if has_begun.load(Relaxed) {
        HarvestEnd::Finished
    } else {
        HarvestEnd::Failed
    })
}

/// Deletes the records of a site that is no longer in the settings; if there are many, only after a
/// confirmation. Blocks.
///
/// # Errors
///
/// The collection failed.
pub(super) fn forget(
    site: &Site,
    url: &str,
    confirmed: bool,
    stop: &Shutdown,
) -> Result<HarvestEnd, collection::Error> {
    rounds::forget_root(site, url, confirmed, &|| stop.is_started())?;
    Spool::new(site.spool_folder(url)).clear();
    let is_left = site.known_roots()?.iter().any(|it| it == url);
    Ok(if stop.is_started() {
        HarvestEnd::Stopped
    } else if is_left {
        HarvestEnd::Held
    } else {
        HarvestEnd::Forgotten
    })
}
