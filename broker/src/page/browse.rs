//! `/views`: the views as a tree, each with the number of its objects.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use url::form_urlencoded;
use web::failure::{Failure, Wants};

use super::PageState;
use super::client::Client;
use crate::views::{FIELD, View};

/// Deepest level of the tree that is shown.
const LEVELS_MAX: usize = 16;

/// The page.
#[derive(Debug, Serialize)]
struct BrowsePage {
    views: Vec<ShownView>,
}

/// A view, and those within it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ShownView {
    title: String,
    /// The address of a search within it, below the site's base.
    address: String,
    /// `None`: it is not known yet.
    objects: Option<u64>,
    within: Vec<Self>,
}

pub(super) async fn browse(State(state): State<PageState>, client: Client) -> Response {
    let views = state.views.get();
    if views.all().next().is_none() {
        let failure = Failure::not_found("This broker has no views.");
        return state.pages.fail(Wants::Html, &failure);
    }
    let counts = state.membership.as_ref().and_then(|it| it.counts());
    let mut within: BTreeMap<Option<&str>, Vec<&View>> = BTreeMap::new();
    for view in views.all() {
        within.entry(view.within.as_deref()).or_default().push(view);
    }
    if let Some(limit) = &client.limit {
        // As if that one and those within it were all.
        let own = views.get(limit).into_iter().collect();
        within.insert(None, own);
    }
    let page = BrowsePage { views: tree(&within, counts.as_ref(), None, 0) };
    state.pages.respond(StatusCode::OK, "views.html", &page)
}

/// Returns the views within another one, or those within none, by their titles.
fn tree(
    views: &BTreeMap<Option<&str>, Vec<&View>>,
    counts: Option<&BTreeMap<String, u64>>,
    within: Option<&str>,
    level: usize,
) -> Vec<ShownView> {
    if level == LEVELS_MAX {
        return Vec::new();
    }
    let shown = |view: &&View| {
        let query = form_urlencoded::byte_serialize(format!("{FIELD}:{}", view.name).as_bytes())
            .collect::<String>();
        ShownView {
            title: view.title.clone(),
            address: format!("?q={query}"),
            objects: counts.map(|it| it.get(&view.name).copied().unwrap_or_default()),
            within: tree(views, counts, Some(&view.name), level + 1),
        }
    };
    let mut all: Vec<ShownView> = views.get(&within).into_iter().flatten().map(shown).collect();
    all.sort_by_cached_key(|it| it.title.to_lowercase());
    all
}
