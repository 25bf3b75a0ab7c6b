//! Tests of repositories behind the recorded bot walls: each is named, with what helps.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../crawl/src/walls/recorded.rs"]
mod recorded;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use crawl::walls::{Kind, Vendor};
use exchange::harvester::{Access, Repository};
use net::client::{Client, Settings};
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::harvest::{Outcome, Remedy};
use oai::request::Request;
use recorded::{ROWS, Row};
use url::Url;

type Present = Arc<Mutex<Row>>;

async fn answer(State(present): State<Present>) -> impl IntoResponse {
    let (status, field, body, _) = *present.lock().unwrap();
    (StatusCode::from_u16(status).unwrap(), [field], body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_in_front_of_a_repository_is_named_and_ends_the_harvest() {
    let present: Present = Arc::new(Mutex::new(ROWS[0]));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let base = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
    let router = Router::new().fallback(answer).with_state(present.clone());
    tokio::spawn(server::serve(listener, router, Limits::default(), Shutdown::new()));
    let access = Access { allow_private: true, ..Access::default() };
    let repository = Repository::new(Client::new(Settings::default()), base, access);
    for row in ROWS {
        *present.lock().unwrap() = *row;
        let error = repository.identify().await.unwrap_err().to_string();
        let outcome = repository.answer(&Request::Identify).await.outcome;
        let Some((vendor, _kind)): Option<(Vendor, Kind)> = row.3 else {
            assert!(!error.contains("its administrator can"), "{row:?}: {error}");
            continue;
        };
        assert!(error.contains(vendor.name()), "{row:?}: {error}");
        let Outcome::Failed { problem, remedy: Remedy::None } = outcome else {
            panic!("{row:?}: {outcome:?}");
        };
        assert!(problem.contains("its administrator can"), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_about_walls_are_no_wall() {
    let body = "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
                <responseDate>2026-01-01T00:00:00Z</responseDate><request>http://h/oai</request>\
                <error code=\"badVerb\"><![CDATA[<div id=\"px-captcha\"></div>]]></error></OAI-PMH>";
    let present: Present = Arc::new(Mutex::new((403, ("content-type", "text/xml"), body, None)));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let base = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
    let router = Router::new().fallback(answer).with_state(present);
    tokio::spawn(server::serve(listener, router, Limits::default(), Shutdown::new()));
    let access = Access { allow_private: true, ..Access::default() };
    let repository = Repository::new(Client::new(Settings::default()), base, access);
    let error = repository.identify().await.unwrap_err().to_string();
    assert!(!error.contains("its administrator can"), "{error}");
}
