//! `GET /api/search`: search, for use by programs.
//!
//! The parameters are in [`crate::page::parameters`]; `q` or `like` is required. The answer is
//! [`Answer`] as JSON, here shortened:
//!
//! ```json
//! {"total":1,"total_all":1,"took_us":420,"hits":[{"url":"…","title":"…","description":"…","type":"HTML","score":7.5,
//!  "gatherer":"…","snippet":"…","place":"page 3"}],"facets":{"type":[["HTML",1]]}}
//! ```
//!
//! `snippet` is plain text; `snippet_html` is HTML with the matched words in `<mark>`. `place` says
//! where in the object the first matched word of the excerpt stands, by the record's `Text-Places`
//! (docs/essence.md), and is absent if that is unknown. [`Snippet`](crate::answer::Snippet) has its
//! forms; it is for people, and further forms may come.
//!
//! The first `total_all` hits have all words of the query; unless `match=all`, others with some of
//! them may follow. `suggestion` is a spelling of the query that finds more.
//!
//! `activity` is what goes on until everything is found, such as `still gathering, 43 %`; absent when
//! all is.
//!
//! A query with a mistake is searched by its words, and
//! `"notice":{"message":"…","offset":3,"length":1}` says so; offset and length are in bytes of `q`.
//! If it has no word or is too long, or if the search takes too long, the answer is 400 with
//! `{"error":{"message":"…","offset":3,"length":1}}`. A mistake in another parameter is answered with
//! 400 and `{"error":{"message":"…","parameter":"limit"}}`, and a search that other brokers have sent here already with
//! 409. A search that takes long may be refused with
//! 429 and `Retry-After` (docs/search.md).

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, Uri};
use query::QueryError;
use serde_json::{Value, json};
use web::failure::Wants;

use crate::answer::Answer;
use crate::error::Error;
use crate::page::PageState;
use crate::page::client::{Client, later};
use crate::page::parameters::{Parameters, Unknown};

pub(crate) async fn search(State(state): State<PageState>, client: Client, uri: Uri) -> Response {
    let asked = match Parameters::parse(uri.query(), Unknown::Refused) {
        Ok(asked) => asked,
        Err(error) => return wrong_parameter(&error.name, &error.message),
    };
    if asked.text.is_none() && asked.like.is_none() {
        return wrong_parameter("q", "the parameter q is missing; q=* asks for everything");
    }
    // Of two that send one search on, the first gets the hits.
    if let Some(id) = &asked.search
        && state.route().is_some_and(|it| !it.is_new(id))
    {
        return refuse(StatusCode::CONFLICT, json!({ "message": "this search has been here" }));
    }
    let text = asked.text.as_deref().unwrap_or_default();
    // Asked before the search: what has ended since may not be among the hits.
    let activity = state.activity();
    match state.ask(client, &asked, text).await {
        Ok((_, answer)) => axum::Json(Answer { activity, ..answer }).into_response(),
        Err(Error::Query(error)) => wrong_query(&error),
        Err(error @ Error::Late) => refuse(
            StatusCode::BAD_REQUEST,
            json!({ "message": error.to_string(), "offset": 0, "length": text.len() }),
        ),
        Err(Error::Crowded(crowded)) => {
            let error = json!({ "message": crowded.to_string() });
            later(&crowded, refuse(StatusCode::TOO_MANY_REQUESTS, error))
        }
        Err(error) => state.fault(Wants::Json, &error),
    }
}

/// Answers `GET /api/statistics?q=QUERY`: how many objects have its words, for a broker that asks several.
pub(crate) async fn statistics(
    State(state): State<PageState>,
    client: Client,
    uri: Uri,
) -> Response {
    let asked = match Parameters::parse(uri.query(), Unknown::Refused) {
        Ok(asked) => asked,
        Err(error) => return wrong_parameter(&error.name, &error.message),
    };
    let Some(text) = &asked.text else {
        return wrong_parameter("q", "the parameter q is missing");
    };
    // Of a client that may have a part, the statistics of all are no business.
    if client.limit.is_some() {
        return wrong_parameter("q", "statistics are of all that is here");
    }
    let query = query::parse(text).unwrap_or_else(|_wrong| query::plain(text));
    match state.statistics(client, &query).await {
        Ok(statistics) => axum::Json(statistics).into_response(),
        Err(Error::Query(error)) => wrong_query(&error),
        Err(Error::Crowded(crowded)) => {
            let error = json!({ "message": crowded.to_string() });
            later(&crowded, refuse(StatusCode::TOO_MANY_REQUESTS, error))
        }
        Err(error) => state.fault(Wants::Json, &error),
    }
}

fn wrong_query(error: &QueryError) -> Response {
    let (offset, length) = (error.offset, error.len);
    let error = json!({ "message": error.message, "offset": offset, "length": length });
    refuse(StatusCode::BAD_REQUEST, error)
}

fn wrong_parameter(name: &str, message: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, json!({ "message": message, "parameter": name }))
}

fn refuse(status: StatusCode, error: Value) -> Response {
    (status, axum::Json(json!({ "error": error }))).into_response()
}
