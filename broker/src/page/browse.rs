//! `/views`: the views as a tree, each with the number of its objects.

use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use serde::Serialize;
use url::form_urlencoded;
use web::failure::{Failure, Wants};

use super::PageState;
use super::client::Client;
use crate::views::tree::{self, TreePage};
use crate::views::{FIELD, View};

/// The page.
#[derive(Debug, Serialize)]
struct BrowsePage {
    list: TreePage<BrowsedView>,
}

/// A view.
#[derive(Debug, Serialize)]
struct BrowsedView {
    title: String,
    /// The address of a search within it, below the site's base.
    address: String,
    /// `None`: it is not known yet.
    objects: Option<u64>,
}

pub(super) async fn browse(State(state): State<PageState>, client: Client, uri: Uri) -> Response {
    let views = state.views.get();
    if views.all().next().is_none() {
        let failure = Failure::not_found("This broker has no views.");
        return state.pages.fail(Wants::Html, &failure);
    }
    let counts = state.membership.as_ref().and_then(|it| it.counts());
    let row = |view: &View| {
        let query = form_urlencoded::byte_serialize(format!("{FIELD}:{}", view.name).as_bytes())
            .collect::<String>();
        BrowsedView {
            title: view.title.clone(),
            address: format!("?q={query}"),
            objects: counts.as_ref().map(|it| it.get(&view.name).copied().unwrap_or_default()),
        }
    };
    let asked = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let number = asked.filter(|it| it.0 == "page").find_map(|it| it.1.parse().ok()).unwrap_or(1);
    let list = tree::page(views.visible(client.limit.as_deref()), number, row);
    state.pages.respond(StatusCode::OK, "views.html", &BrowsePage { list })
}
