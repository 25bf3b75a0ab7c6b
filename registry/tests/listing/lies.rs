//! Daemons, and others, that lie.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use daemon::announce::{Announcement, PATH, State};
use daemon::describe::Description;
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

use crate::common::*;

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_listed_as_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let (honest, liar) = (Fake::start(1).await, Fake::start(2).await);
    honest.serve(&honest.description(5));
    let refused = async |announcement: &Announcement, part: &str| {
        let (status, reply) = announce(&registry.url, announcement).await;
        assert_eq!((status, reply.state), (403, State::Refused), "{part}");
        let reason = reply.reason.unwrap();
        assert!(reason.contains(part), "{reason:?} lacks {part:?}");
    };
    // Another's id at one's own address, with whatever description.
    let as_other = Announcement { id: honest.identity.id(), base_url: liar.url.clone() };
    liar.serve(&liar.description(1));
    refused(&as_other, "has the id").await;
    liar.serve(&Description { id: honest.identity.id(), ..liar.description(1) });
    refused(&as_other, "not made of its key").await;
    let stolen = honest.served.lock().unwrap().clone();
    liar.served.lock().unwrap().clone_from(&stolen);
    refused(&as_other, "says that it is at").await;
    // One's own id at another's address.
    let elsewhere = Announcement { id: liar.identity.id(), base_url: honest.url.clone() };
    refused(&elsewhere, "has the id").await;
    // A description that was changed on its way.
    liar.serve(&liar.description(1));
    liar.served.lock().unwrap().1.push(b' ');
    refused(&liar.announcement(), "not signed").await;
    // Of another time; of a kind that there is not; none at all; too long.
    liar.serve(&Description { time_ms: 0, ..liar.description(1) });
    refused(&liar.announcement(), "clock").await;
    liar.serve(&Description { kind: "<script>".to_owned(), ..liar.description(1) });
    refused(&liar.announcement(), "no kind of server").await;
    *liar.served.lock().unwrap() = (StatusCode::NOT_FOUND, Vec::new(), String::new());
    refused(&liar.announcement(), "404").await;
    *liar.served.lock().unwrap() = (StatusCode::OK, vec![b'x'; 1 << 20], String::new());
    refused(&liar.announcement(), "").await;
    // An older one, once a newer was seen.
    assert_eq!(announce(&registry.url, &honest.announcement()).await.1.state, State::Listed);
    tokio::time::sleep(registry::admission::AGAIN).await;
    honest.serve(&honest.description(4));
    refused(&honest.announcement(), "older").await;
    assert_eq!(listed(&registry.url).await.len(), 1);
    // All of it is on record.
    let overview = registry.handle.overview();
    assert!(9 <= overview.refused.values().sum::<u64>(), "{:?}", overview.refused);
    assert!(overview.refusals.iter().any(|it| it.reason.contains("clock")));
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_private_or_too_much_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = settings(&dir.path().join("r"), DAY);
    config.announcements.allow_private = Some(false);
    let registry = registry(config).await;
    for (body, expected) in [
        (b"{".to_vec(), 400),
        (b"[]".to_vec(), 422),
        (vec![b' '; 1 << 20], 413),
        (br#"{"id":"x","base_url":"http://h/"}"#.to_vec(), 403),
        (br#"{"id":"0011223344556677","base_url":"file:///etc/passwd"}"#.to_vec(), 403),
        (br#"{"id":"0011223344556677","base_url":"http://u:p@h/"}"#.to_vec(), 403),
        (br#"{"id":"0011223344556677","base_url":"http://h/?q"}"#.to_vec(), 403),
        (br#"{"id":"0011223344556677","base_url":"javascript:alert(1)"}"#.to_vec(), 403),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(post(&registry.url, PATH, body).await.0, expected, "{shown}");
    }
    // Private networks, this machine and its link are not asked.
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(1));
    for base in [fake.url.as_str(), "http://10.0.0.1/", "http://169.254.169.254/latest/"] {
        let base_url = Url::parse(base).unwrap();
        let announcement = Announcement { id: fake.identity.id(), base_url };
        let (status, reply) = announce(&registry.url, &announcement).await;
        assert_eq!(status, 403);
        let reason = reply.reason.unwrap();
        assert!(reason.contains("private network"), "{base}: {reason}");
    }
    assert_eq!(*fake.asked.lock().unwrap(), 0);
    // A flood is told to come later.
    let mut later = 0;
    for n in 0..100 {
        let id = format!("{n:016x}");
        let base_url = Url::parse("http://10.0.0.1/").unwrap();
        let (status, reply) = announce(&registry.url, &Announcement { id, base_url }).await;
        later += u32::from(status == 429 && reply.state == State::Later && 0 < reply.every_secs);
    }
    assert!(20 < later, "{later} of 100 were told to come later");
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_known_and_does_not_answer_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = settings(&dir.path().join("r"), DAY);
    config.announcements.every = Duration::from_secs(300);
    let registry = registry(config).await;
    let fake = Fake::start(1).await;
    fake.serve(&fake.description(1));
    assert_eq!(announce(&registry.url, &fake.announcement()).await.1.state, State::Listed);
    fake.served.lock().unwrap().0 = StatusCode::NOT_FOUND;
    assert_eq!(announce(&registry.url, &fake.announcement()).await.0, 403);
    let asked = *fake.asked.lock().unwrap();
    let (status, reply) = announce(&registry.url, &fake.announcement()).await;
    assert!(status == 429 && (2..=60).contains(&reply.every_secs), "{status} {reply:?}");
    assert_eq!(*fake.asked.lock().unwrap(), asked, "it is asked all the same");
    registry.stop().await;
}

/// Starts a host that takes one connection and says nothing; returns its address, and what holds the connection.
async fn hanging() -> (Url, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind(HERE).await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    (url, tokio::spawn(async move { listener.accept().await.unwrap().0 }))
}

/// Announces from another address of this machine, and returns the answer as it was sent.
async fn announce_from(from: IpAddr, registry: &Url, announcement: &Announcement) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    let at = registry.socket_addrs(|| None).unwrap()[0];
    let mut stream = socket.connect(at).await.unwrap();
    let body = serde_json::to_string(announcement).unwrap();
    let head = format!(
        "POST /{PATH} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_hang_hold_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let known = Fake::start(1).await;
    known.serve(&known.description(1));
    assert_eq!(announce(&registry.url, &known.announcement()).await.1.state, State::Listed);
    tokio::time::sleep(registry::admission::AGAIN).await;
    // As many as are asked at a time on behalf of one address.
    let began = net::clock::monotonic();
    let (mut announcing, mut held) = (Vec::new(), Vec::new());
    for n in 0..4 {
        let (base_url, connection) = hanging().await;
        let announcement = Announcement { id: format!("{n:016x}"), base_url };
        let url = registry.url.clone();
        announcing.push(tokio::spawn(async move { announce(&url, &announcement).await }));
        held.push(connection.await.unwrap());
    }
    let (base_url, _) = hanging().await;
    let more = Announcement { id: format!("{:016x}", 9), base_url };
    let (status, reply) = announce(&registry.url, &more).await;
    assert_eq!((status, reply.state), (429, State::Later));
    // Who is known is asked nevertheless, and so are strangers of other addresses.
    let asked = *known.asked.lock().unwrap();
    assert_eq!(announce(&registry.url, &known.announcement()).await.1.state, State::Listed);
    assert_eq!(*known.asked.lock().unwrap(), asked + 1);
    let stranger = Fake::start(2).await;
    stranger.serve(&stranger.description(1));
    let elsewhere = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let answer = announce_from(elsewhere, &registry.url, &stranger.announcement()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"listed\""), "{answer}");
    assert!(announcing.iter().all(|it| !it.is_finished()), "the others hang still");
    assert_eq!(listed(&registry.url).await.len(), 2);
    // They are given up, though their connections stay.
    for it in announcing {
        let (status, reply) = it.await.unwrap();
        assert_eq!((status, reply.state), (403, State::Refused), "{reply:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(50), "ten seconds are promised");
    drop(held);
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_of_itself_is_text() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let fake = Fake::start(1).await;
    let mut description = fake.description(1);
    description.facts.name = "<script>alert(1)</script>\u{202e}".to_owned();
    description.facts.gathers = vec!["javascript:alert(1)".to_owned()];
    fake.serve(&description);
    assert_eq!(announce(&registry.url, &fake.announcement()).await.1.state, State::Listed);
    let page = async |path: &str| {
        let url = registry.url.join(path).unwrap();
        let page = client().send(net::client::Request::get(url)).await.unwrap();
        String::from_utf8(page.bytes(1 << 20).await.unwrap().to_vec()).unwrap()
    };
    for path in ["servers", "?q=script"] {
        // The index follows the list.
        let listed = async {
            loop {
                let page = page(path).await;
                if page.contains("alert(1)") {
                    return page;
                }
            }
        };
        let page = tokio::time::timeout(Duration::from_secs(60), listed).await.unwrap();
        assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'), "{page}");
        assert!(!page.contains("href=\"javascript"), "{page}");
    }
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registrys_own_name_says_whether_private_addresses_are_asked() {
    for (own, expected) in
        [("http://localhost:1/", State::Listed), ("https://192.0.43.7/", State::Refused)]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut config = settings(&dir.path().join("r"), DAY);
        config.broker.daemon.base_url = Url::parse(own).ok();
        let registry = registry(config).await;
        let fake = Fake::start(1).await;
        fake.serve(&fake.description(1));
        let (_, reply) = announce(&registry.url, &fake.announcement()).await;
        assert_eq!(reply.state, expected, "{own}: {reply:?}");
        registry.stop().await;
    }
}
