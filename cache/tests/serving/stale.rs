//! Tests of stale answers: validated, replaced, and used meanwhile.

use std::future::ready;
use std::sync::{Arc, Mutex};

use crate::common::{Site, answer, counted, piecewise, until};
use http::Request;
use net::body::{self, Body};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_stale_answer_is_validated_and_updated() {
    let site = Site::new(|request: Request<Body>, _| async move {
        let lines = [("cache-control", "max-age=0"), ("etag", "\"v\""), ("x", "1")];
        match request.headers().get("if-none-match") {
            Some(tag) if tag == "\"v\"" => answer(
                304,
                &[
                    ("cache-control", "max-age=60, public"),
                    ("etag", "\"v\""),
                    ("x", "2"),
                    ("set-cookie", "a=b"),
                ],
                body::empty(),
            ),
            _ => answer(200, &lines, body::full("body")),
        }
    })
    .await;
    assert_eq!(site.get("/").await.header("x"), "1");
    let validated = site.get("/").await;
    assert_eq!(
        (validated.status, validated.header("x"), validated.body.as_str()),
        (200, "2", "body")
    );
    assert_eq!(validated.how(), "fwd=stale; fwd-status=304; stored");
    assert_eq!(validated.header("set-cookie"), "a=b", "it is this client's");
    let hit = site.get("/").await;
    assert!(hit.how().starts_with("hit") && hit.header("set-cookie").is_empty(), "{hit:?}");
    let has_it = site.get_with("/", &[("if-none-match", "\"v\"")]).await;
    assert_eq!((has_it.status, has_it.body.as_str(), has_it.header("etag")), (304, "", "\"v\""));
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn a_304_that_sets_a_cookie_is_waited_for_by_no_other_client() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let site = Site::new(move |request: Request<Body>, before| {
        let gate = Arc::clone(&gate);
        async move {
            // Without `public` it would not be stored any more, and be asked for anew.
            let lines = [("cache-control", "max-age=0, public"), ("etag", "\"v\"")];
            if !request.headers().contains_key("if-none-match") {
                return answer(200, &lines, body::full("body"));
            }
            gate.acquire().await.unwrap().forget();
            let cookie = format!("id={before}");
            let lines = [("etag", "\"v\""), ("set-cookie", cookie.as_str())];
            answer(304, &lines, body::empty())
        }
    });
    let site = Arc::new(site.await);
    assert_eq!(site.get("/").await.body, "body");
    let mut asking = JoinSet::new();
    for _ in 0..2 {
        let site = Arc::clone(&site);
        asking.spawn(async move {
            let came = site.get("/").await;
            assert_eq!((came.status, came.body.as_str()), (200, "body"));
            came.header("set-cookie").to_owned()
        });
    }
    site.has_clients(2).await;
    site.has_asked(2).await;
    opened.add_permits(2);
    let mut cookies = asking.join_all().await;
    cookies.sort_unstable();
    assert_eq!(cookies, ["id=1", "id=2"]);
}

#[tokio::test]
async fn an_unasked_304_keeps_no_wrong_body_alive() {
    let site = Site::new(|request: Request<Body>, before| async move {
        if request.headers().contains_key("if-none-match") {
            return answer(304, &[("etag", "\"other\"")], body::empty());
        }
        answer(
            200,
            &[("cache-control", "max-age=0"), ("etag", "\"v\"")],
            body::full(format!("body {before}")),
        )
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 2");
}

#[tokio::test]
async fn a_failing_origin_leaves_stale_answers_in_use() {
    let site = Site::new(|_, before| async move {
        if before == 0 {
            return counted(&[("cache-control", "max-age=0"), ("etag", "\"v\"")], before).await;
        }
        answer(503, &[], body::full("no"))
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    let stale = site.get("/").await;
    assert_eq!((stale.status, stale.body.as_str()), (200, "body 0"));
    assert!(stale.how().ends_with("detail=\"the origin fails\""), "{stale:?}");
    assert_eq!(site.get("/other").await.status, 503);
}

#[tokio::test]
async fn a_stale_answer_is_used_while_it_is_validated() {
    let site = Site::new(|_, before| {
        counted(&[("cache-control", "max-age=0, stale-while-revalidate=60")], before)
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 0");
    // The second request had it fetched again.
    while site.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    while site.get("/").await.body == "body 0" {}
}

#[tokio::test]
async fn what_its_client_wishes_is_no_part_of_a_refresh_for_all() {
    let own = [
        ("cache-control", "no-store"),
        ("cache-control", "no-store, max-age=60"),
        ("pragma", "no-store"),
        ("cookie", "id=1"),
        ("authorization", "Basic eDp5"),
        ("range", "bytes=0-1"),
        ("if-none-match", "\"v\""),
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    for (name, value) in own {
        let site = Site::new(|_, before| match before {
            0 => counted(STALE, before),
            _ => counted(&[("cache-control", "max-age=60")], before),
        })
        .await;
        assert_eq!(site.get("/").await.body, "body 0");
        let used = site.get_with("/", &[(name, value)]).await;
        assert!(used.how().starts_with("hit"), "{name}: {used:?}");
        site.has_asked(2).await;
        until("the end of the refresh", async || site.handle.status().under_way == 0).await;
        assert!(!site.seen()[1].2.contains_key(name), "{name}: {:?}", site.seen());
        // It is stored for all.
        let next = site.get("/").await;
        assert!(next.how().starts_with("hit") && next.body == "body 1", "{name}: {next:?}");
        assert_eq!(site.seen().len(), 2);
    }
}

const STALE: &[(&str, &str)] = &[("cache-control", "max-age=0, stale-while-revalidate=60")];

#[tokio::test]
async fn a_stale_answer_is_replaced_by_one_that_comes_slowly() {
    const HALF: usize = 100_000;
    // Of a promised length, and in chunks.
    for count in [2, 1] {
        let (pieces, receiver) = mpsc::unbounded_channel();
        let receiver = Mutex::new(Some(receiver));
        let site = Site::new(move |_, before| {
            let lines = &[("cache-control", "max-age=60"), ("content-length", "200000")][..count];
            let receiver = if before == 1 { receiver.lock().unwrap().take() } else { None };
            match receiver {
                Some(it) => ready(answer(200, lines, piecewise(it))),
                None => counted(STALE, before),
            }
        })
        .await;
        let half: &'static str = Box::leak("x".repeat(HALF).into_boxed_str());
        pieces.send(Ok(half)).unwrap();
        for _ in 0..2 {
            assert_eq!(site.get("/").await.body, "body 0");
        }
        let has_half = async || site.fetches().await.iter().any(|it| it.bytes == HALF as u64);
        until("half of it", async || pieces.is_closed() || has_half().await).await;
        pieces.send(Ok(half)).expect("it is fetched to its end");
        drop(pieces);
        until("its end", async || site.handle.status().under_way == 0).await;
        let next = site.get("/").await;
        assert!(next.how().starts_with("hit") && next.body.len() == 2 * HALF, "{}", next.how());
        assert_eq!(site.seen().len(), 2);
    }
}

#[tokio::test]
async fn a_stale_answer_is_used_no_more_if_the_new_one_is_too_long_to_be_stored() {
    const LENGTH: usize = 3 << 20;
    let site = Site::with(
        |_, before| match before {
            0 => counted(STALE, before),
            _ => {
                let lines = [("cache-control", "max-age=60")];
                ready(answer(200, &lines, body::full(vec![b'x'; LENGTH])))
            }
        },
        |it| it.disk_bytes = 0,
    )
    .await;
    for _ in 0..2 {
        assert_eq!(site.get("/").await.body, "body 0");
    }
    until("the end of the fetch", async || site.handle.status().under_way == 0).await;
    let next = site.get("/").await;
    assert!(next.how().starts_with("fwd=uri-miss"), "{}", next.how());
    assert_eq!((next.body.len(), site.seen().len()), (LENGTH, 3));
}
