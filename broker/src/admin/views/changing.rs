//! The forms that change views: `POST /views/save` and `POST /views/remove`.
//!
//! A form has the administrator's token typed in: no browser sends it by itself, so no foreign page can have a form
//! sent. Besides, a browser must say (`Origin`, RFC 6454 §7) that the form is of this listener. Programs send the token
//! in the header, as to all commands.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use daemon::auth::{AdminToken, is_from_here};
use http::header::{LOCATION, ORIGIN};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::sync::Mutex;
use web::failure::{Failure, Wants};

use super::form::{Parameters, Typed, Wrong};
use super::page::{RemovalPage, ViewsPage, Written, address, show, show_removal};
use crate::admin::settings_file;
use crate::blocking::blocking;
use crate::config::edit::{self, EditError};
use crate::error::Error;
use crate::server::Handle;

/// Maximum length of a form, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone)]
struct Changing {
    handle: Handle,
    token: AdminToken,
    /// Locked during a change, so that one is made at a time.
    turn: Arc<Mutex<()>>,
}

pub(in crate::admin) fn routes(handle: Handle, token: AdminToken) -> Router {
    Router::new()
        .route("/views/save", post(save))
        .route("/views/remove", post(remove))
        .with_state(Changing { handle, token, turn: Arc::default() })
}

/// Saves a view that was tried; shows the trial of one that was not.
async fn save(State(changing): State<Changing>, headers: HeaderMap, body: Body) -> Response {
    let asked = match changing.read(&headers, body).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let typed = Typed::of(&asked).unwrap_or_default();
    if let Some(message) = changing.refusal(&headers, &asked) {
        // Whoever has not the token may not even read here: the page has what was typed, and no more.
        let wrong = Wrong::from([("token", message)]);
        let page = ViewsPage::refused(typed, asked.get("trial").to_owned(), wrong);
        let pages = &changing.handle.inner.admin_pages;
        return pages.respond(StatusCode::FORBIDDEN, "edit-views.html", &page);
    }
    let (name, trial) = (typed.name.clone(), asked.get("trial").to_owned());
    let edited = move |text: &str| {
        let edited = typed.edited(text)?;
        if trial == typed.trial(text) {
            return Ok(edited);
        }
        let message = if trial.is_empty() {
            "it was not tried yet: look at what it would have, and save it then"
        } else {
            "it was changed since it was tried, or the settings file was: look at it again"
        };
        Err(Wrong::from([("saving", message.to_owned())]))
    };
    match changing.clone().change(edited).await {
        Ok(()) => changing.lead_to("saved", &name),
        Err(wrong) => show(changing.handle, asked, wrong).await,
    }
}

/// Removes a view.
async fn remove(State(changing): State<Changing>, headers: HeaderMap, body: Body) -> Response {
    let asked = match changing.read(&headers, body).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let name = asked.get("name").to_owned();
    if let Some(message) = changing.refusal(&headers, &asked) {
        let wrong = Wrong::from([("token", message)]);
        let page = RemovalPage { name, wrong, ..RemovalPage::default() };
        let pages = &changing.handle.inner.admin_pages;
        return pages.respond(StatusCode::FORBIDDEN, "remove-view.html", &page);
    }
    let removed = name.clone();
    let edited = move |text: &str| {
        edit::without_view(text, &removed).map_err(|error| match error {
            // The page names the views that lean on it.
            EditError::Mistakes(mistakes) => {
                let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
                Wrong::from([("saving", format!("the settings would not be accepted: {first}"))])
            }
            other => Wrong::from([("saving", other.to_string())]),
        })
    };
    match changing.clone().change(edited).await {
        Ok(()) => changing.lead_to("removed", &name),
        Err(wrong) => show_removal(changing.handle, name, wrong).await,
    }
}

impl Changing {
    /// Reads the form, unless it is of a foreign page, or too long.
    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Parameters, Response> {
        let refuse = |status, title: &str, message: String, advice: &str| {
            let (title, advice) = (title.to_owned(), advice.to_owned());
            let failure = Failure { status, title, message, advice };
            self.handle.inner.admin_pages.fail(Wants::of("/views", headers), &failure)
        };
        if headers.contains_key(ORIGIN) && !is_from_here(headers) {
            let message = "Only the page of this listener may change its views.".to_owned();
            let advice = "Open that page, and change them there.";
            return Err(refuse(StatusCode::FORBIDDEN, "Not from here", message, advice));
        }
        let form = axum::body::to_bytes(body, FORM_BYTES_MAX).await.map_err(|_error| {
            let message = format!("The form is longer than {FORM_BYTES_MAX} bytes.");
            let advice = "Write such a view into the settings file.";
            refuse(StatusCode::PAYLOAD_TOO_LARGE, "Too long", message, advice)
        })?;
        Ok(Parameters::read(&form))
    }

    /// Returns why a form may change nothing; `None`: it may.
    fn refusal(&self, headers: &HeaderMap, asked: &Parameters) -> Option<String> {
        let message = "nothing was changed: this is not the token of DATA/admin.token";
        (!self.token.permits_form(headers, asked.get("token"))).then(|| message.to_owned())
    }

    /// Changes the settings file by `edited`, to the end, even if the browser goes away.
    async fn change(
        self,
        edited: impl FnOnce(&str) -> Result<String, Wrong> + Send + 'static,
    ) -> Result<(), Wrong> {
        let wrong = |message: String| Wrong::from([("saving", message)]);
        let work = async move {
            let _turn = self.turn.lock().await;
            let reader = self.handle.clone();
            let read = move || {
                Ok::<_, Error>(Written::read(&reader).map_err(wrong).and_then(|it| {
                    let edited = edited(&it.text)?;
                    Ok((it, edited))
                }))
            };
            let read = blocking("settings", read).await.map_err(|it| wrong(it.to_string()))?;
            let (written, edited) = read?;
            let file = written.file.ok_or_else(|| wrong(Error::NoSettings.to_string()))?;
            let texts = (&*written.text, &*edited);
            settings_file::change(&self.handle, &file, texts).await.map_err(wrong)
        };
        tokio::spawn(work).await.unwrap_or_else(|error| Err(wrong(error.to_string())))
    }

    /// Leads the browser to the page, which says what was done.
    fn lead_to(&self, done: &str, name: &str) -> Response {
        match HeaderValue::try_from(address(&self.handle.inner.admin_pages, done, name)) {
            Ok(address) => (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response(),
            Err(_) => StatusCode::NO_CONTENT.into_response(),
        }
    }
}
