//! Tests of repositories behind the recorded bot walls: each is named, with what helps.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../crawl/src/walls/recorded.rs"]
mod recorded;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use exchange::harvester::{Access, Repository};
use net::client::{Client, Settings};
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::harvest::{Outcome, Remedy};
use oai::request::Request;
use recorded::Recorded;
use url::Url;

type Present = Arc<Mutex<Recorded>>;

async fn answer(State(present): State<Present>) -> impl IntoResponse {
    let Recorded { status, fields, body, .. } = present.lock().unwrap().clone();
    let fields: HeaderMap = fields
        .into_iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    (StatusCode::from_u16(status).unwrap(), fields, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_in_front_of_a_repository_is_named_and_ends_the_harvest() {
    let all = recorded::all();
    let present: Present = Arc::new(Mutex::new(all[0].clone()));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let base = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
    let router = Router::new().fallback(answer).with_state(present.clone());
    tokio::spawn(server::serve(listener, router, Limits::default(), Shutdown::new()));
    let access = Access { allow_private: true, ..Access::default() };
    let repository = Repository::new(Client::new(Settings::default()), base, access);
    for it in all {
        *present.lock().unwrap() = it.clone();
        let error = repository.identify().await.unwrap_err().to_string();
        let outcome = repository.answer(&Request::Identify).await.outcome;
        let Some(named) = &it.named else {
            assert!(!error.contains("its administrator can"), "{it:?}: {error}");
            continue;
        };
        assert!(error.contains(named), "{it:?}: {error}");
        let Outcome::Failed { problem, remedy: Remedy::None } = outcome else {
            panic!("{it:?}: {outcome:?}");
        };
        assert!(problem.contains("its administrator can"), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_about_walls_are_no_wall() {
    let body = "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
                <responseDate>2026-01-01T00:00:00Z</responseDate><request>http://h/oai</request>\
                <error code=\"badVerb\"><![CDATA[<div id=\"px-captcha\"></div>]]></error></OAI-PMH>";
    let fields = vec![("content-type", "text/xml")];
    let about = Recorded { status: 403, fields, body, named: None };
    let present: Present = Arc::new(Mutex::new(about));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let base = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
    let router = Router::new().fallback(answer).with_state(present);
    tokio::spawn(server::serve(listener, router, Limits::default(), Shutdown::new()));
    let access = Access { allow_private: true, ..Access::default() };
    let repository = Repository::new(Client::new(Settings::default()), base, access);
    let error = repository.identify().await.unwrap_err().to_string();
    assert!(!error.contains("its administrator can"), "{error}");
}
