//! A test of bad queries: an answer or a clear refusal within a second, in bounded memory, and others
//! are served. It is alone in its process, whose memory it measures.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{Origin, Running, config};
use net::clock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The promise "an answer or a clear refusal within 1 s", with a margin for a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum growth of memory, in bytes.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

const OBJECTS: u64 = 2_000;

/// Sends a request for `target`; returns the status and the answer.
async fn get(address: SocketAddr, target: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let rest = format!(" HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let request = [b"GET ", target, rest.as_bytes()].concat();
    // A refusal may come before everything is sent.
    let _ = stream.write_all(&request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (status.parse().unwrap(), answer)
}

fn search(query: &str) -> Vec<u8> {
    format!("/api/search?q={}", utf8_percent_encode(query, NON_ALPHANUMERIC)).into_bytes()
}

/// Returns a made word for each number.
fn word(mut number: u64) -> String {
    let mut word = String::new();
    for _ in 0..7 {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.push(char::from(b'a' + u8::try_from((number >> 33) % 26).unwrap()));
    }
    word
}

/// Returns bad queries with what the answer may be: statuses, and a part of the text of a refusal.
fn bad() -> Vec<(Vec<u8>, &'static [u16], &'static str)> {
    let (found, refused) = (&[200][..], &[400][..]);
    let raw = |target: &[u8]| target.to_vec();
    let mut all = vec![
        // Bytes that are no UTF-8.
        (raw(b"/api/search?q=%FF%FEx%C3"), found, ""),
        (raw(b"/?q=%FF%FEx%C3"), found, ""),
        (raw(b"/api/search?q=%FF%FE%C3"), &[200, 400], ""),
        (raw(b"/api/search?q=\xff\xfex\xc3"), &[200, 400], ""),
        (raw(b"/api/search?q=number1%00"), found, ""),
        // Too long.
        (search(&"x".repeat(1 << 20)), &[414, 431], "shorten its URL"),
        ([b"/?q=", &b"x+"[..].repeat(1 << 19)[..]].concat(), &[414, 431], "shorten its URL"),
        (search(&"x".repeat(10_000)), refused, "longer than"),
        // Many clauses.
        (
            [b"/api/search?q=", &b"a+"[..].repeat(10_000)[..]].concat(),
            &[414, 431],
            "shorten its URL",
        ),
        (
            raw(b"/api/search?q=a").into_iter().chain(b"+OR+a".repeat(10_000)).collect(),
            &[400, 414, 431],
            "",
        ),
        (search(&"a ".repeat(2_000)), found, ""),
        (search(&"+a ".repeat(1_300)), found, ""),
        (search(&"-a ".repeat(1_300)), &[200, 400], ""),
        (search(&"a OR ".repeat(800)), found, ""),
        (search(&"(".repeat(4_000)), &[200, 400], ""),
        (search(&"(a ".repeat(1_300)), found, ""),
        (search(&"a* ".repeat(1_300)), found, ""),
        (search(&"\"a b\" ".repeat(600)), found, ""),
        (search(&"number1~2 ".repeat(400)), found, ""),
        (search(&"x:[1 TO 2] ".repeat(300)), found, ""),
    ];
    // Catastrophic expressions and other patterns.
    for pattern in [
        r"/\p{L}+x\p{L}+/",
        "/(.*a){20}/",
        "/(a*)*b/",
        "/(a|aa)+b/",
        "/((a{1,100}){1,100}){1,100}/",
        "/(a?){1000}a{1000}/",
        r"/[\p{L}\p{N}]{1000}/",
        r"/(\w+\w+)+x/",
        "/.*.*.*.*.*.*x/",
        "/(((((.*)*)*)*)*)*/",
        "a* b* c* d* e* f* g* h* i* j* k* l* m* n* o* p*",
        "abcdefg~2 hijklmn~2 opqrstu~2 vwxyzab~2",
        "/.*a.*/ /.*b.*/ /.*c.*/ /.*d.*/",
        "title:/(.*a){12}/ OR body:/(.*b){12}/",
    ] {
        all.push((search(pattern), &[200, 400, 429], ""));
    }
    all
}

/// Returns the peak of this process' resident memory, in bytes.
fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Asks, and checks that there is an answer or a clear refusal in time.
async fn check(address: SocketAddr, (target, statuses, says): (Vec<u8>, &[u16], &str)) {
    let shown = String::from_utf8_lossy(&target[..target.len().min(80)]).into_owned();
    let began = clock::monotonic();
    let (status, answer) = get(address, &target).await;
    let took = began.elapsed();
    assert!(took < ANSWERED_WITHIN, "{took:?} for {shown}");
    assert!(statuses.contains(&status) || status == 429, "{shown}: {answer}");
    if status != 200 {
        let (_, reason) = answer.split_once("\r\n\r\n").unwrap();
        assert!(reason.contains(says) && reason.contains(' '), "{shown}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_queries_are_answered_or_refused_at_once_in_bounded_memory() {
    let (data, origin) = (tempfile::tempdir().unwrap(), Origin::start("000000000000000a").await);
    let changes = (0..OBJECTS).map(|n| {
        let words: Vec<_> = (0..30).map(|it| word(n * 30 + it)).collect();
        collection::Change::Update(common::record(&origin.id, n, &words.join(" ")))
    });
    let version = origin.commit(changes.collect()).await;
    let broker = Running::start(config(data.path(), vec![origin.source("made")])).await;
    broker.caught_up("made", version).await;
    assert_eq!(broker.total("object").await, OBJECTS);
    let address = broker.address;
    let before = memory_peak_bytes();
    for asked in bad() {
        check(address, asked).await;
    }
    // All at once, and somebody with a plain query beside them.
    let mut all = JoinSet::new();
    for asked in bad().into_iter().chain(bad()) {
        all.spawn(check(address, asked));
    }
    while !all.is_empty() {
        let began = clock::monotonic();
        assert_eq!(broker.total("number1999").await, 1);
        let took = began.elapsed();
        assert!(took < ANSWERED_WITHIN, "{took:?} for a plain query");
        while let Some(ended) = all.try_join_next() {
            ended.unwrap();
        }
    }
    let grown = memory_peak_bytes() - before;
    assert!(grown < MEMORY_BYTES_MAX, "{} MB", grown >> 20);
    broker.stop().await;
}
