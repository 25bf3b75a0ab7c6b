//! Tests of walls: answers of each vendor, and ordinary pages that have some of their marks.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::*;

#[path = "recorded.rs"]
mod recorded;

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let all = fields.iter();
    all.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn walls_are_recognized_and_ordinary_pages_are_not() {
    let mut vendors = HashSet::new();
    for it in recorded::all() {
        let found = recognize(it.status, &headers(&it.fields), it.body.as_bytes());
        match (found, &it.named) {
            (Some(wall), Some(named)) => assert!(wall.to_string().starts_with(named), "{wall}"),
            (found, named) => assert_eq!((found, named), (None, &None), "{it:?}"),
        }
        vendors.extend(found.map(|it| it.vendor));
    }
    let all: HashSet<Vendor> = marks::MARKS.iter().map(|it| it.vendor()).collect();
    assert_eq!(vendors, all, "each vendor has an answer");
}

#[test]
fn a_wall_says_whose_it_is_and_what_helps() {
    let wall = recognize(403, &headers(&[("cf-mitigated", "challenge")]), b"").unwrap();
    assert_eq!(
        wall.to_string(),
        "Cloudflare challenges this robot (cf-mitigated); its administrator can add a WAF custom \
         rule that skips bot protection for its User-Agent and addresses"
    );
}

#[test]
fn only_the_start_of_a_body_counts() {
    let mut body = vec![b' '; BODY_BYTES_MAX];
    body.extend_from_slice(b"window.KPSDK");
    assert_eq!(recognize(403, &HeaderMap::new(), &body), None);
    assert!(recognize(403, &HeaderMap::new(), b"\xff\x00window.KPSDK\xff").is_some());
}

#[test]
fn login_pages_are_told_from_pages_with_a_login() {
    let field = "<input type=\"password\" name=p>";
    for (status, url, body, expected) in [
        (401, "http://h/a", String::new(), true),
        (200, "http://h/login?to=/a", field.to_owned(), true),
        (200, "http://idp.h/idp/profile/SAML2", field.to_owned(), true),
        (200, "http://h/a", format!("<title lang=de>Anmelden | H</title>{field}"), true),
        (200, "http://h/a", format!("<title>About catfish</title>{field}"), false),
        (200, "http://h/login", "<p>How to log in</p>".to_owned(), false),
        (200, "http://h/a?to=/login", field.to_owned(), false),
        (403, "http://h/a", String::new(), false),
    ] {
        let found = is_login(status, &Url::parse(url).unwrap(), body.as_bytes());
        assert_eq!(found, expected, "{status} {url} {body}");
    }
}

/// Returns a page in the frame of its site.
fn page(asked: &str, text: &str) -> String {
    let frame = "Home of the institute for catfish and salmon, news, people, publications, contact";
    format!("<h1>{frame}</h1><p>{text}</p><i>{asked}, 12:00:{}</i>", asked.len())
}

#[test]
fn soft_not_found_resembles_the_answer_to_a_made_up_name() {
    let sorry = "We are sorry, but there is nothing here under that name: it was moved or removed.";
    let made_up = made_up_name(7);
    let asked = format!("http://h/d/{made_up}");
    assert_eq!(Sample::new(404, &asked, b"x"), None);
    let sample = Sample::new(200, &asked, page(&made_up, sorry).as_bytes()).unwrap();
    assert!(sample.resembles("http://h/d/gone.html", page("gone.html", sorry).as_bytes()));
    let text = "The catfish of this lake were counted in spring and again in autumn by two people.";
    assert!(!sample.resembles("http://h/d/a.html", page("a.html", text).as_bytes()));
    assert!(!sample.resembles("http://h/d/a.html", b""));
    let nothing = Sample::new(200, &asked, b"").unwrap();
    assert!(nothing.resembles("http://h/a", b" \n"));
    assert!(!nothing.resembles("http://h/a", b"words"));
}
