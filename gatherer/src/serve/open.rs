//! Opening of found files with the desktop's opener, for the browser of the gatherer's own user.
//!
//! `GET /session/KEY` gives the browser that came by a one-time link a cookie. `POST /open` opens a
//! file; it takes that cookie, the `Origin` of the search page, and a connection of the gatherer's
//! own user. `POST /session`, with the administrator's token, makes a link.
//!
//! Only what is gathered is opened, and only what documents are: for all other files the folder is.

mod target;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use axum::extract::{Extension, Form, Path as Part, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use net::clock;
use net::server::Socket;
use serde::Deserialize;
use serde_json::json;
use web::Pages;
use web::failure::{Failure, Wants};

use super::neighbor::is_user;
use crate::opener::Opener;
use crate::shared::Shared;

#[derive(Clone)]
struct Opening {
    shared: Arc<Shared>,
    pages: Pages,
}

impl Opening {
    fn opener(&self) -> Option<&Opener> {
        self.shared.opener.get().map(|it| &**it)
    }

    fn refuse(&self, headers: &HeaderMap, message: &str, advice: &str) -> Response {
        let failure = Failure {
            status: StatusCode::FORBIDDEN,
            title: "Not from here".to_owned(),
            message: message.to_owned(),
            advice: advice.to_owned(),
        };
        self.pages.fail(Wants::of("/open", headers), &failure)
    }
}

/// Returns the routes for the administrator: a request for a link.
pub(super) fn for_administrator(shared: &Arc<Shared>) -> Router {
    Router::new().route("/session", post(make_link)).with_state(shared.clone())
}

/// Returns the routes for the browser, which has no administrator's token.
pub(super) fn for_browser(shared: &Arc<Shared>, pages: &Pages) -> Router {
    Router::new()
        .route("/session/{key}", get(begin))
        .route("/open", post(open))
        .with_state(Opening { shared: shared.clone(), pages: pages.clone() })
        .layer(axum::middleware::map_response(web::headers::secure))
}

async fn make_link(State(shared): State<Arc<Shared>>) -> Response {
    match shared.opener.get().map(|it| it.link()) {
        Some(Ok(link)) => Json(json!({ "link": link })).into_response(),
        Some(Err(error)) => {
            tracing::error!(%error, "no link can be made");
            Failure::internal().status.into_response()
        }
        None => {
            let failure = Failure::not_found("This gatherer opens no files: it has no screen.");
            (failure.status, Json(failure.to_json())).into_response()
        }
    }
}

/// Gives the browser that came by a one-time link the cookie, and leads it to the search page.
async fn begin(
    State(opening): State<Opening>,
    method: Method,
    Extension(Socket(peer)): Extension<Socket>,
    Part(key): Part<String>,
    headers: HeaderMap,
) -> Response {
    let Some(opener) = opening.opener() else { return StatusCode::NOT_FOUND.into_response() };
    // The link stands in the list of processes for a moment, where other users see it. It is not
    // used up by them, nor by a program that only looks (HEAD).
    let is_user = method == Method::GET && is_user(peer, opener.admin).await;
    let cookie = is_user.then(|| opener.session.redeem(&key, clock::monotonic())).flatten();
    let Some(cookie) = cookie else {
        let page = &opener.page;
        let advice = format!(
            "The search page is at {page}. To open files from it, run `harvest up` again in the same folder."
        );
        return opening.refuse(&headers, "This link was used, or is older than a minute.", &advice);
    };
    let Ok(page) = HeaderValue::try_from(opener.page.as_str()) else {
        return Failure::internal().status.into_response();
    };
    let fresh = HeaderValue::from_static("no-store");
    let headers = [(SET_COOKIE, cookie), (LOCATION, page), (CACHE_CONTROL, fresh)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

#[derive(Deserialize)]
struct Asked {
    url: String,
}

/// Opens a gathered file; answers 204, with which a browser stays on its page.
async fn open(
    State(opening): State<Opening>,
    Extension(Socket(peer)): Extension<Socket>,
    headers: HeaderMap,
    Form(Asked { url }): Form<Asked>,
) -> Response {
    let Some(opener) = opening.opener() else { return StatusCode::NOT_FOUND.into_response() };
    let advice = "Copy the path instead, or run `harvest up` again in the same folder.";
    if !opener.session.has(&headers) {
        let message = "Only the browser that `harvest up` has opened may open files.";
        return opening.refuse(&headers, message, advice);
    }
    if !opener.session.is_from_page(&headers) {
        let message = format!("Only the search page at {} may open files.", opener.page);
        return opening.refuse(&headers, &message, advice);
    }
    if !is_user(peer, opener.admin).await {
        let message = "Only the user who runs `harvest up` may open files.";
        return opening.refuse(&headers, message, advice);
    }
    let shared = opening.shared.clone();
    let found = tokio::task::spawn_blocking(move || target::target(&shared, &url)).await;
    match found {
        Ok(Ok(target)) => {
            if let Err(error) = run(opener.program, &target) {
                let message = format!("{} cannot be started: {error}.", opener.program);
                let failure = Failure { message, ..Failure::internal() };
                return opening.pages.fail(Wants::of("/open", &headers), &failure);
            }
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(Err(message)) => {
            let failure = Failure::not_found(message);
            opening.pages.fail(Wants::of("/open", &headers), &failure)
        }
        Err(error) => {
            tracing::error!(%error, "a file cannot be opened");
            opening.pages.fail(Wants::of("/open", &headers), &Failure::internal())
        }
    }
}

/// Runs the opener with a path, which is absolute and so never an option.
fn run(program: &str, path: &Path) -> std::io::Result<()> {
    let mut command = tokio::process::Command::new(program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C, and the end of the terminal, are not for what is opened.
    command.process_group(0);
    command.spawn().map(drop)
}
