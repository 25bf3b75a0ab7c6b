//! Tests of the NNTP client: against INN, and against a scripted server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::fetch::{Bounds, Fault};
use net::nntp::{Article, Login, Lookup, Part, Reader, Settings};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use url::Url;

use crate::inn::{Inn, NAME};
use crate::peer::der;

fn settings(address: SocketAddr) -> Settings {
    let url = Url::parse(&format!("nntp://localhost:{}/", address.port())).unwrap();
    let bounds = Bounds { allow_private: true, bytes_max: 100_000, ..Bounds::default() };
    Settings { bounds, ..Settings::new(url) }
}

fn found(lookup: Lookup) -> Article {
    let Lookup::Found(article) = lookup else { panic!("{lookup:?}") };
    article
}

#[tokio::test(flavor = "multi_thread")]
async fn inn_is_read() {
    let inn = Inn::start();
    inn.give("<1@x>", "test.a", "One", "..dot\r\nbody\r\n").await;
    inn.give("<2@x>", "test.a", "Caf\u{e9}", "two\r\n").await;
    inn.give("<3@x>", "test.a", "Large", &"0123456789\r\n".repeat(10_000)).await;
    inn.give("<4@x>", "test.closed", "Four", "four\r\n").await;

    let mut reader = Reader::new(settings(inn.address())).unwrap();
    let group = reader.group("test.a").await.unwrap().unwrap();
    assert_eq!((group.estimate, group.low, group.high), (3, 11, 13));
    assert_eq!(reader.group("test.none").await.unwrap(), None);
    reader.group("test.a").await.unwrap().unwrap();
    let [range] = &group.ranges(0).collect::<Vec<_>>()[..] else { panic!("{group:?}") };
    let overviews = reader.overviews(range.clone()).await.unwrap();
    let seen: Vec<_> = overviews
        .articles
        .iter()
        .map(|it| (it.number, it.subject.as_str(), it.id.as_str()))
        .collect();
    assert_eq!(seen, [(11, "One", "<1@x>"), (12, "Café", "<2@x>"), (13, "Large", "<3@x>")]);
    assert!(reader.overviews(20..=30).await.unwrap().articles.is_empty());

    let body = found(reader.article(Part::Body, 11).await.unwrap());
    assert_eq!((body.id.as_str(), body.bytes.as_slice()), ("<1@x>", &b".dot\r\nbody\r\n"[..]));
    let head = found(reader.article(Part::Head, 12).await.unwrap());
    assert!(String::from_utf8(head.bytes).unwrap().contains("Message-ID: <2@x>\r\n"));
    let whole = found(reader.article(Part::Article, 12).await.unwrap());
    assert!(whole.bytes.ends_with(b"\r\n\r\ntwo\r\n"));
    // The rest of a large article is skipped, and the connection goes on.
    let large = found(reader.article(Part::Article, 13).await.unwrap());
    assert_eq!((large.bytes.len(), large.truncated), (100_000, true));
    assert_eq!(found(reader.article(Part::Stat, 12).await.unwrap()).id, "<2@x>");

    let by_id = found(reader.article_by_id("<2@x>").await.unwrap());
    assert_eq!((by_id.id.as_str(), by_id.bytes), ("<2@x>", whole.bytes));
    assert_eq!(reader.article_by_id("<none@x>").await.unwrap(), Lookup::Canceled);
    let error = reader.article_by_id("2").await.unwrap_err();
    assert!(matches!(error.fault, Fault::Url { .. }), "{error}");

    assert_eq!(reader.article(Part::Stat, 5).await.unwrap(), Lookup::Expired);
    inn.cancel("<2@x>");
    assert_eq!(reader.article(Part::Article, 12).await.unwrap(), Lookup::Canceled);
    let left = reader.overviews(11..=13).await.unwrap();
    assert_eq!(left.articles.iter().map(|it| it.number).collect::<Vec<_>>(), [11, 13]);
}

#[tokio::test(flavor = "multi_thread")]
async fn inn_gives_a_closed_group_to_its_account_over_tls() {
    let inn = Inn::start();
    inn.give("<4@x>", "test.closed", "Four", "four\r\n").await;
    let login =
        |password: &str| Some(Login { name: NAME.to_owned(), password: password.to_owned() });
    let extra_roots = vec![der(&inn.authority)];
    let secure = Settings { start_tls: true, extra_roots, ..settings(inn.address()) };

    let open = Reader::new(secure.clone()).unwrap().group("test.closed").await;
    assert!(!matches!(open, Ok(Some(_))), "{open:?}");
    let mut reader = Reader::new(Settings { login: login("secret"), ..secure.clone() }).unwrap();
    assert_eq!(reader.group("test.closed").await.unwrap().unwrap().high, 1);
    assert_eq!(found(reader.article(Part::Body, 1).await.unwrap()).bytes, b"four\r\n");

    let wrong = Settings { login: login("guess"), ..secure.clone() };
    let error = Reader::new(wrong).unwrap().group("test.closed").await.unwrap_err();
    assert!(matches!(error.fault, Fault::Login { .. }), "{error}");
    let shown = format!("nntp://localhost:{}/test.closed: the server says", inn.address().port());
    assert!(error.to_string().starts_with(&shown), "{error}");
    let untrusted = Settings { extra_roots: Vec::new(), ..secure };
    let error = Reader::new(untrusted).unwrap().group("test.closed").await.unwrap_err();
    assert!(matches!(error.fault, Fault::Net(net::Error::Tls { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn inn_is_read_over_tls_from_the_first_byte_on() {
    let inn = Inn::start();
    inn.give("<1@x>", "test.a", "One", "one\r\n").await;
    let secure = inn.start_implicit();
    let url = Url::parse(&format!("snews://localhost:{}/", secure.address.port())).unwrap();
    let untrusted = Settings { url, ..settings(secure.address) };
    let trusted = Settings { extra_roots: vec![der(&inn.authority)], ..untrusted.clone() };
    let mut reader = Reader::new(trusted).unwrap();
    reader.group("test.a").await.unwrap().unwrap();
    assert_eq!(found(reader.article(Part::Body, 11).await.unwrap()).bytes, b"one\r\n");
    let error = Reader::new(untrusted).unwrap().group("test.a").await.unwrap_err();
    assert!(matches!(error.fault, Fault::Net(net::Error::Tls { .. })), "{error}");
}

/// The commands that a scripted server was sent, over all its connections.
type Sent = Arc<Mutex<Vec<String>>>;

/// A server that answers commands by their beginning, the first that fits; an empty answer ends the
/// connection. Each answer of `once` is given once, in order, before those of `always`.
async fn scripted(
    once: Vec<(&'static str, &'static str)>,
    always: &'static [(&'static str, &'static str)],
) -> (SocketAddr, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Sent::default();
    let log = Arc::clone(&sent);
    tokio::spawn(async move {
        let mut once = once;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.get_mut().write_all(b"200 hi\r\n").await.unwrap();
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|it| 0 < it) {
                let command = std::mem::take(&mut line).trim_end().to_owned();
                log.lock().unwrap().push(command.clone());
                let fits = |it: &(&str, &str)| command.starts_with(it.0);
                let answer = match once.iter().position(fits) {
                    Some(at) => once.remove(at).1,
                    None => always.iter().copied().find(fits).map_or("500 what?\r\n", |it| it.1),
                };
                if answer.is_empty() || stream.get_mut().write_all(answer.as_bytes()).await.is_err()
                {
                    break;
                }
            }
        }
    });
    (address, sent)
}

const PLAIN: &[(&str, &str)] = &[
    ("MODE", "200 reader\r\n"),
    ("CAPABILITIES", "101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\n.\r\n"),
    ("GROUP", "211 2 11 12 g\r\n"),
    ("STAT 11", "223 11 <1@x>\r\n"),
    ("STAT", "423 no\r\n"),
    ("OVER", "224 list\r\n11\ts\tf\td\t<1@x>\t\t\t\r\n.\r\n"),
    ("AUTHINFO USER", "381 password\r\n"),
    ("AUTHINFO PASS", "281 welcome\r\n"),
];

#[tokio::test]
async fn a_lost_connection_is_replaced_once_and_the_group_chosen_again() {
    let lost = vec![("STAT 11", "223 11 <1@x>\r\n"), ("STAT 11", ""), ("STAT 12", "400 bye\r\n")];
    let (address, sent) = scripted(lost, PLAIN).await;
    let mut reader = Reader::new(settings(address)).unwrap();
    reader.group("g").await.unwrap().unwrap();
    for _ in 0..2 {
        assert_eq!(found(reader.article(Part::Stat, 11).await.unwrap()).id, "<1@x>");
    }
    assert_eq!(reader.article(Part::Stat, 12).await.unwrap(), Lookup::Canceled);
    let sent = sent.lock().unwrap().join(", ");
    let opened = "MODE READER, CAPABILITIES, GROUP g";
    assert_eq!(
        sent,
        format!("{opened}, STAT 11, STAT 11, {opened}, STAT 11, STAT 12, {opened}, STAT 12")
    );

    let twice = vec![("STAT 11", ""), ("STAT 11", "")];
    let (address, _) = scripted(twice, PLAIN).await;
    let mut reader = Reader::new(settings(address)).unwrap();
    reader.group("g").await.unwrap().unwrap();
    let error = reader.article(Part::Stat, 11).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Cut { .. }), "{error}");
    assert!(error.to_string().contains("/g/11: the connection broke"), "{error}");
}

#[tokio::test]
async fn an_idle_connection_is_replaced() {
    let (address, sent) = scripted(Vec::new(), PLAIN).await;
    let idle = Duration::ZERO;
    let mut reader = Reader::new(Settings { idle, ..settings(address) }).unwrap();
    reader.group("g").await.unwrap().unwrap();
    reader.article(Part::Stat, 11).await.unwrap();
    assert_eq!(sent.lock().unwrap().iter().filter(|it| *it == "MODE READER").count(), 2);
}

#[tokio::test]
async fn old_servers_are_asked_for_overviews_by_the_older_name() {
    const OLD: &[(&str, &str)] = &[
        ("GROUP", "211 2 11 12 g\r\n"),
        (
            "XOVER 11-12",
            "224 list\r\n12\ts\tf\td\t<2@x>\t\t\t\r\n99\ts\tf\td\t<9@x>\t\t\t\r\n.\r\n",
        ),
    ];
    let (address, _) = scripted(Vec::new(), OLD).await;
    let mut reader = Reader::new(settings(address)).unwrap();
    let group = reader.group("g").await.unwrap().unwrap();
    let overviews = reader.overviews(group.ranges(0).next().unwrap()).await.unwrap();
    assert_eq!((overviews.articles.len(), overviews.left_out), (1, 1));
}

#[tokio::test]
async fn faults_are_told_apart() {
    let check = async |answer: &'static str| {
        let (address, _) = scripted(vec![("STAT", answer)], PLAIN).await;
        let mut reader = Reader::new(settings(address)).unwrap();
        reader.group("g").await.unwrap().unwrap();
        reader.article(Part::Stat, 11).await.unwrap_err()
    };
    for (answer, expected) in [
        ("480 log in\r\n", "check the name and password"),
        ("502 no\r\n", "check the name and who may read it"),
        ("403 broken\r\n", "try again later"),
        ("299 odd\r\n", "unexpected reply \"299 odd\""),
        ("hello\r\n", "no reply of NNTP"),
    ] {
        let error = check(answer).await.to_string();
        assert!(error.contains("/g/11: ") && error.contains(expected), "{error}");
    }
    for bad in ["a b", "a\r\nQUIT", ""] {
        let (address, sent) = scripted(Vec::new(), PLAIN).await;
        let mut reader = Reader::new(settings(address)).unwrap();
        assert!(matches!(reader.group(bad).await.unwrap_err().fault, Fault::Url { .. }));
        assert!(sent.lock().unwrap().is_empty());
    }
    for bad in ["1@h>\r\nQUIT", "1@h\r\nQUIT", "1@h\nQUIT", "1@h\r", "<1@h>\r\nQUIT"] {
        let (address, sent) = scripted(Vec::new(), PLAIN).await;
        let mut reader = Reader::new(settings(address)).unwrap();
        let error = reader.article_by_id(bad).await.unwrap_err();
        assert!(matches!(error.fault, Fault::Url { .. }), "{bad:?}: {error}");
        assert!(sent.lock().unwrap().is_empty(), "{bad:?}");
    }
}

#[tokio::test]
async fn a_password_goes_to_this_machine_and_has_no_line_ends() {
    let (address, sent) = scripted(Vec::new(), PLAIN).await;
    let login = Some(Login { name: "n".to_owned(), password: "p".to_owned() });
    let mut reader = Reader::new(Settings { login, ..settings(address) }).unwrap();
    reader.group("g").await.unwrap().unwrap();
    assert!(sent.lock().unwrap().contains(&"AUTHINFO PASS p".to_owned()));
    let login = Some(Login { name: "n".to_owned(), password: "p\r\nPOST".to_owned() });
    assert!(Reader::new(Settings { login, ..settings(address) }).is_err());
}
