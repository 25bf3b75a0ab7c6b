//! Tests of joining: one fetch streams to all who ask, each at its own pace; who asks for something else,
//! or for what is another client's alone, fetches alone.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Site, answer, counted, slow_site, slow_site_that_says, slow_site_with, until};
use http::{HeaderMap, Request};
use net::body::{self, Body};
use net::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Time after the first client's first byte within which every client has its own.
const SPREAD_MAX: Duration = Duration::from_millis(50);

/// Returns a request through the cache, as bytes.
fn get(site: &Site, path: &str) -> String {
    format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", site.origin.join(path).unwrap())
}

/// Reads an answer until a text has come, and returns when that was.
async fn reads(stream: &mut TcpStream, text: &str) -> Instant {
    let mut came = Vec::new();
    while !came.windows(text.len()).any(|it| it == text.as_bytes()) {
        assert_ne!(stream.read_buf(&mut came).await.unwrap(), 0);
    }
    clock::monotonic()
}

/// Has a hundred clients ask at once for what nobody has; returns the time from the first one's first byte
/// to the last one's, and the clients, which want the rest.
async fn spread(site: &Arc<Site>, path: &str, gate: &Semaphore) -> (Duration, Vec<TcpStream>) {
    let mut reading = JoinSet::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(site.cache).await.unwrap();
        stream.write_all(get(site, path).as_bytes()).await.unwrap();
        reading.spawn(async move {
            let at = reads(&mut stream, "the body").await;
            (at, stream)
        });
    }
    site.has_clients(100).await;
    gate.add_permits(1);
    let came = reading.join_all().await;
    let times = || came.iter().map(|it| it.0);
    let spread = times().max().unwrap() - times().min().unwrap();
    (spread, came.into_iter().map(|it| it.1).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_clients_that_miss_at_once_have_one_fetch_and_each_first_byte_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let (ends, rest) = (Arc::new(Semaphore::new(0)), "the rest");
    let ended = Arc::clone(&ends);
    let site = Site::new(move |_, _| {
        let (gate, ends) = (Arc::clone(&gate), Arc::clone(&ended));
        async move {
            gate.acquire().await.unwrap().forget();
            let next = move |step: u8| {
                let ends = Arc::clone(&ends);
                async move {
                    if step == 1 {
                        ends.acquire().await.unwrap().forget();
                    }
                    let piece = [Some("the body"), Some(rest)].get(usize::from(step)).copied();
                    (step + 1, Ok::<_, std::io::Error>(piece.flatten().map(Into::into)))
                }
            };
            answer(200, &[("cache-control", "max-age=60")], body::unfold(0, next))
        }
    });
    let site = Arc::new(site.await);
    // The machine may be busy with other things; who waits for the end of the body waits in each round.
    let mut spreads = Vec::new();
    for round in 0..5 {
        let (spread, _clients) = spread(&site, &format!("/{round}"), &opened).await;
        spreads.push(spread);
        ends.add_permits(1);
        assert_eq!(site.seen().len(), round + 1, "one fetch each");
        until("the end of the fetch", async || site.fetches().await.is_empty()).await;
    }
    println!("from the first client's first byte to the last one's: {spreads:?}");
    let best = spreads.iter().min().unwrap();
    assert!(*best < 5 * SPREAD_MAX, "{spreads:?}");
    assert_eq!(site.get("/0").await.body, format!("the body{rest}"));
}

/// Starts an origin that answers each request, when `gate` lets it, with its number and these headers.
async fn gated(lines: &'static [(&'static str, &'static str)]) -> (Arc<Semaphore>, Arc<Site>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let site = Site::new(move |_, before| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            counted(lines, before).await
        }
    });
    (opened, Arc::new(site.await))
}

/// Asks for `/` with a value of the header `x`.
fn ask(site: &Arc<Site>, x: &'static str, asking: &mut JoinSet<String>) {
    let site = Arc::clone(site);
    asking.spawn(async move { site.get_with("/", &[("x", x)]).await.body });
}

#[tokio::test]
async fn what_is_for_one_client_is_not_waited_for_again() {
    for lines in [&[("cache-control", "private")], &[("cache-control", "no-store")]] {
        let (gate, site) = gated(lines).await;
        gate.add_permits(1);
        assert_eq!(site.get("/").await.body, "body 0");
        // Nobody joins anybody now: both reach the origin before it answers one of them.
        let mut asking = JoinSet::new();
        ask(&site, "1", &mut asking);
        ask(&site, "1", &mut asking);
        site.has_asked(3).await;
        gate.add_permits(2);
        let mut bodies = asking.join_all().await;
        bodies.sort_unstable();
        assert_eq!(bodies, ["body 1", "body 2"], "{lines:?}");
    }
}

#[tokio::test]
async fn who_joins_what_depends_on_another_header_fetches_alone() {
    let (gate, site) = gated(&[("cache-control", "max-age=60"), ("vary", "x")]).await;
    let mut asking = JoinSet::new();
    ask(&site, "1", &mut asking);
    site.has_clients(1).await;
    ask(&site, "2", &mut asking);
    // Nobody knows yet that the answer depends on a header.
    site.has_clients(2).await;
    assert_eq!(site.seen().len(), 1);
    gate.add_permits(1);
    site.has_asked(2).await;
    gate.add_permits(1);
    let mut bodies = asking.join_all().await;
    bodies.sort_unstable();
    assert_eq!(bodies, ["body 0", "body 1"]);
    until("both are stored", async || site.handle.status().under_way == 0).await;
    assert_eq!(site.get_with("/", &[("x", "1")]).await.body, "body 0");
    assert_eq!(site.get_with("/", &[("x", "2")]).await.body, "body 1");
    // Now it is known.
    let mut asking = JoinSet::new();
    ask(&site, "3", &mut asking);
    ask(&site, "4", &mut asking);
    site.has_asked(4).await;
    gate.add_permits(2);
    assert_eq!(asking.join_all().await.len(), 2);
}

/// Returns the headers of a body that is stored and has this length.
fn stored(length: usize) -> Vec<(&'static str, String)> {
    vec![("cache-control", "max-age=60".to_owned()), ("content-length", length.to_string())]
}

#[tokio::test]
async fn a_part_that_is_there_or_comes_soon_comes_from_what_flows() {
    let (pieces, site) = slow_site_with(stored(9_000_000)).await;
    let site = Arc::new(site);
    pieces.send(Ok("0123456789")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "0123456789");
    let there = site.get_with("/", &[("range", "bytes=2-3")]).await;
    assert_eq!((there.status, there.body.as_str()), (206, "23"));
    assert_eq!(there.header("content-range"), "bytes 2-3/9000000");
    // What is within a MiB of it is waited for.
    let waiting = Arc::clone(&site);
    let soon =
        tokio::spawn(
            async move { waiting.get_with("/", &[("range", "bytes=1000000-1000004")]).await },
        );
    site.has_clients(2).await;
    let far = site.get_with("/", &[("range", "bytes=1048587-1048588")]).await;
    assert_eq!((far.status, site.seen().len()), (416, 2), "by a fetch of its own, of another body");
    pieces.send(Ok(Box::leak("-".repeat(999_990).into_boxed_str()))).unwrap();
    pieces.send(Ok("parts come")).unwrap();
    let soon = soon.await.unwrap();
    assert_eq!((soon.status, soon.body.as_str()), (206, "parts"));
    assert_eq!(soon.header("content-range"), "bytes 1000000-1000004/9000000");
    assert_eq!(site.seen().len(), 2);
}

/// Has the one client of a fetch leave when so much of it is there; checks whether it is finished and
/// stored.
async fn check_without_clients(length: usize, there: usize, is_finished: bool) {
    let (pieces, site) = slow_site_with(stored(length)).await;
    let send = |count: usize| {
        let text: &'static str = Box::leak("x".repeat(count).into_boxed_str());
        // Nobody takes it any more if the fetch has ended.
        let _ = pieces.send(Ok(text));
    };
    send(there);
    let (mut first, mut came) = (site.send("/", &[]).await, 0);
    while came < there {
        came += first.chunk().await.unwrap().unwrap().len();
    }
    drop(first);
    let has_left = async || !site.fetches().await.iter().any(|it| it.clients != 0);
    until("the client has left", has_left).await;
    send(length - there);
    drop(pieces);
    until("the end of the fetch", async || site.handle.status().under_way == 0).await;
    let next = site.get("/").await;
    let expected = if is_finished { length } else { "body 1".len() };
    assert_eq!((next.how().starts_with("hit"), next.body.len()), (is_finished, expected));
    assert_eq!(site.seen().len(), if is_finished { 1 } else { 2 });
}

#[tokio::test]
async fn a_fetch_that_is_nearly_done_is_finished_and_stored_without_clients() {
    // 90 % is there, or 64 KiB are left; in memory and on disk.
    check_without_clients(1_000_000, 900_000, true).await;
    check_without_clients(4_000_000, 3_600_000, true).await;
    check_without_clients(100_000, 40_000, true).await;
    check_without_clients(1_000_000, 890_000, false).await;
    check_without_clients(4_000_000, 3_000_000, false).await;
    check_without_clients(100_000, 30_000, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_comes_as_slowly_as_its_client_takes_it() {
    const LENGTH: usize = 128 << 20;
    const PIECE: usize = 64 << 10;
    // What is longer than a tenth of the disk's room is not stored, whether its length is promised or not.
    for (path, disk_bytes) in
        [("/private", 10 << 30), ("/long", 64 << 20), ("/endless", 64 << 20), ("/endless", 0)]
    {
        let given = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&given);
        let site = Site::with(
            move |request: Request<Body>, _| {
                let path = request.uri().path().to_owned();
                let (counting, mut left, is_other) =
                    (Arc::clone(&counting), LENGTH, path == "/other");
                let mut next = move || {
                    let piece = left.min(PIECE);
                    left -= piece;
                    if !is_other {
                        counting.fetch_add(piece, Ordering::SeqCst);
                    }
                    Ok::<_, std::io::Error>((piece != 0).then(|| vec![b'x'; piece].into()))
                };
                let control = if path == "/private" { "private" } else { "max-age=60" };
                let body = if path == "/endless" {
                    body::unfold((), move |()| ready(((), next())))
                } else {
                    body::pieces(next, LENGTH as u64)
                };
                ready(answer(200, &[("cache-control", control)], body))
            },
            |it| it.disk_bytes = disk_bytes,
        );
        let site = site.await;
        let mut slow = TcpStream::connect(site.cache).await.unwrap();
        slow.write_all(get(&site, path).as_bytes()).await.unwrap();
        // It has the head, and takes no more. Meanwhile as much is fetched for others.
        slow.read_exact(&mut [0; 10]).await.unwrap();
        let mut other = site.send("/other", &[]).await;
        while other.chunk().await.unwrap().is_some() {}
        // What the sockets hold on the way is the system's.
        let given = given.load(Ordering::SeqCst);
        assert!(given < LENGTH / 2, "{path}: {given} bytes");
    }
}

#[tokio::test]
async fn what_an_answer_has_for_one_client_alone_nobody_else_gets() {
    const OWN: [&str; 2] = ["x-private", "x-checked"];
    let control = "max-age=60, public, private=\"x-private\", no-cache=\"x-checked\"";
    let mut lines = vec![("cache-control", control.to_owned())];
    lines.extend(OWN.map(|it| (it, "1".to_owned())));
    let (pieces, site) = slow_site_with(lines).await;
    pieces.send(Ok("first")).unwrap();
    let (mut first, joined) = (site.send("/", &[]).await, site.send("/", &[]).await);
    let has = |it: &HeaderMap| OWN.map(|name| it.contains_key(name));
    assert_eq!((has(&first.headers), has(&joined.headers)), ([true; 2], [false; 2]));
    drop(pieces);
    while first.chunk().await.unwrap().is_some() {}
    let later = site.get("/").await;
    assert_eq!((later.body.as_str(), has(&later.headers)), ("first", [false; 2]));
    assert_eq!(site.seen().len(), 1);
}

/// Has two clients ask at once; each gives its body and its cookie.
fn two_ask(site: &Arc<Site>) -> JoinSet<(String, String)> {
    let mut asking = JoinSet::new();
    for _ in 0..2 {
        let site = Arc::clone(site);
        asking.spawn(async move {
            let came = site.get("/").await;
            let cookie = came.header("set-cookie").to_owned();
            (came.body, cookie)
        });
    }
    asking
}

#[tokio::test]
async fn an_answer_that_sets_a_cookie_is_waited_for_by_no_other_client_whatever_it_says() {
    for control in ["max-age=60, public", "s-maxage=60"] {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let site = Site::new(move |_, before| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                let cookie = format!("id={before}");
                counted(&[("cache-control", control), ("set-cookie", cookie.as_str())], before)
                    .await
            }
        });
        let site = Arc::new(site.await);
        let each = async |asking: JoinSet<(String, String)>, numbers: [u8; 2]| {
            let mut came = asking.join_all().await;
            came.sort_unstable();
            let expected = numbers.map(|it| (format!("body {it}"), format!("id={it}")));
            assert_eq!(came, expected, "{control}: each has its own");
        };
        // Nobody knows yet that it sets a cookie.
        let asking = two_ask(&site);
        site.has_clients(2).await;
        site.has_asked(1).await;
        opened.add_permits(1);
        site.has_asked(2).await;
        opened.add_permits(1);
        each(asking, [0, 1]).await;
        // It is stored for all, without a cookie.
        until("it is stored", async || site.handle.status().under_way == 0).await;
        let later = site.get("/").await;
        assert!(
            later.how().starts_with("hit") && later.header("set-cookie").is_empty(),
            "{later:?}"
        );
        // Now it is known: both reach the origin before it answers one of them.
        site.handle.purge(&site.origin);
        let asking = two_ask(&site);
        site.has_asked(4).await;
        opened.add_permits(2);
        each(asking, [2, 3]).await;
    }
}

#[tokio::test]
async fn a_hundred_clients_share_one_fetch_and_have_each_piece_as_it_comes() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first ")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "first ");
    let began = clock::monotonic();
    let mut others = Vec::new();
    for _ in 0..100 {
        let mut other = site.send("/", &[]).await;
        assert_eq!(other.chunk().await.unwrap().unwrap(), "first ");
        assert!(other.header("cache-status").unwrap().ends_with("stored; collapsed"));
        others.push(other);
    }
    // The body has not ended: nobody waited for it. 50 ms each is promised.
    assert!(began.elapsed() < 5 * Duration::from_millis(50 * 100), "{:?}", began.elapsed());
    pieces.send(Ok("second")).unwrap();
    drop(pieces);
    // The client that began it leaves.
    drop(first);
    for mut other in others {
        assert_eq!(other.chunk().await.unwrap().unwrap(), "second");
        assert_eq!(other.chunk().await.unwrap(), None);
    }
    assert_eq!(site.get("/").await.body, "first second");
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_for_one_client_comes_whole_however_slowly() {
    let (pieces, site) = slow_site_that_says("private").await;
    let mut answer = site.send("/", &[]).await;
    for piece in ["first", "second", "last"] {
        // The body is waited for before there is more of it.
        let (next, ()) = tokio::join!(answer.chunk(), async { pieces.send(Ok(piece)).unwrap() });
        assert_eq!(next.unwrap().unwrap(), piece);
    }
    drop(pieces);
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_for_one_client_is_shared_with_none() {
    for line in [("cache-control", "private"), ("cache-control", "no-store"), ("set-cookie", "a=b")]
    {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let site = Arc::new(
            Site::new(move |_, before| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    answer(200, &[line], body::full(format!("body {before}")))
                }
            })
            .await,
        );
        let asking: Vec<_> = (0..10)
            .map(|_| {
                let site = Arc::clone(&site);
                tokio::spawn(async move { site.get("/").await.body })
            })
            .collect();
        opened.add_permits(100);
        let mut bodies = Vec::new();
        for it in asking {
            bodies.push(it.await.unwrap());
        }
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!(bodies.len(), 10, "{line:?}: {bodies:?}");
        let next = site.get("/").await;
        assert!(next.how().starts_with("fwd=uri-miss; fwd-status=200; detail="), "{next:?}");
    }
}

#[tokio::test]
async fn where_the_origin_breaks_off_all_are_cut_and_nothing_is_stored() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first")).unwrap();
    let mut answers = [site.send("/", &[]).await, site.send("/", &[]).await];
    for it in &mut answers {
        assert_eq!(it.chunk().await.unwrap().unwrap(), "first");
    }
    pieces.send(Err("broken")).unwrap();
    for mut it in answers {
        assert!(it.chunk().await.is_err());
    }
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn a_fetch_ends_when_the_last_client_has_left() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert!(first.chunk().await.unwrap().is_some());
    drop(first);
    // The origin's body is dropped with its connection.
    pieces.closed().await;
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn a_long_body_reaches_fast_and_slow_clients_whole() {
    const COUNT: usize = 12 << 20;
    let site = Site::new(|_, _| async {
        let mut left = COUNT;
        let read = move || {
            let count = left.min(100_000);
            left -= count;
            Ok((count != 0).then(|| vec![b'x'; count].into()))
        };
        answer(200, &[("cache-control", "max-age=60")], body::pieces(read, COUNT as u64))
    })
    .await;
    let mut slow = site.send("/", &[]).await;
    let mut taken = slow.chunk().await.unwrap().unwrap().len();
    // Nobody waits for the slow one.
    assert_eq!(site.get("/").await.body.len(), COUNT);
    while let Some(piece) = slow.chunk().await.unwrap() {
        taken += piece.len();
    }
    assert_eq!(taken, COUNT);
    // It is stored on disk, whole and in parts.
    let asked = site.seen().len();
    assert_eq!(site.get("/").await.body.len(), COUNT);
    let part = site.get_with("/", &[("range", "bytes=5000000-7000000")]).await;
    assert_eq!((part.status, part.body.len()), (206, 2_000_001));
    assert!(part.how().starts_with("hit"), "{}", part.how());
    assert_eq!(site.seen().len(), asked);
}
