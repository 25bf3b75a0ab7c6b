//! The page of the administration: who waits is approved there, without script, and with the token alone.

use std::time::Duration;

use daemon::announce::State;
use http::header::{ACCEPT, LOCATION, ORIGIN};
use http::{HeaderName, HeaderValue};
use net::client::{Request, Response};
use url::form_urlencoded::Serializer;

use crate::common::*;

async fn text(response: Response) -> String {
    String::from_utf8(response.bytes(1 << 20).await.unwrap().to_vec()).unwrap()
}

fn with(request: Request, name: HeaderName, value: &str) -> Request {
    request.header(name, HeaderValue::from_str(value).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_approved_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("r");
    let mut config = settings(&data, Duration::from_secs(86_400));
    config.announcements.approval = true;
    let registry = registry(config).await;
    let fake = Fake::start(2).await;
    let mut description = fake.description(1);
    description.facts.name = "<b>Fake</b>".to_owned();
    fake.serve(&description);
    let id = fake.identity.id();
    assert_eq!(announce(&registry.url, &fake.announcement()).await.1.state, State::Waiting);
    let page = registry.admin.join("servers").unwrap();
    let shown = client().send(with(Request::get(page.clone()), ACCEPT, "text/html")).await.unwrap();
    let shown = text(shown).await;
    for part in ["Waiting for approval", "&lt;b&gt;Fake", &format!("value=\"approve {id}\"")] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let overview = client().send(Request::get(registry.admin.clone())).await.unwrap();
    assert!(text(overview).await.contains("servers\">Servers</a>"));
    // The form, as a browser sends it.
    let origin = registry.admin.origin().ascii_serialization();
    let decide = async |decision: &str, token: &str, origin: &str| {
        let form = Serializer::new(String::new())
            .extend_pairs([("decision", decision), ("token", token)])
            .finish();
        let url = registry.admin.join("servers/decide").unwrap();
        let request = Request { keeps_redirect: true, ..Request::post(url, form) };
        let response = client().send(with(request, ORIGIN, origin)).await.unwrap();
        let address = response.headers.get(LOCATION).map(|it| it.to_str().unwrap().to_owned());
        (response.status.as_u16(), address)
    };
    let token = std::fs::read_to_string(data.join("admin.token")).unwrap();
    let token = token.trim();
    let approve = format!("approve {id}");
    assert_eq!(decide(&approve, "x", &origin).await.0, 403);
    assert_eq!(decide(&approve, token, "http://evil.example").await.0, 403);
    assert_eq!(decide("approve 0000000000000000", token, &origin).await.0, 404);
    // An id of several words names nobody else.
    assert_eq!(decide(&format!("{approve} key more"), token, &origin).await.0, 404);
    assert!(listed(&registry.url).await.is_empty());
    let (status, address) = decide(&approve, token, &origin).await;
    assert_eq!(status, 303);
    assert_eq!(listed(&registry.url).await.len(), 1);
    let done = page.join(&address.unwrap()).unwrap();
    let done = client().send(with(Request::get(done), ACCEPT, "text/html")).await.unwrap();
    assert!(text(done).await.contains("is approved"));
    assert_eq!(decide(&format!("revoke {id}"), token, &origin).await.0, 303);
    assert!(listed(&registry.url).await.is_empty());
    registry.stop().await;
}
