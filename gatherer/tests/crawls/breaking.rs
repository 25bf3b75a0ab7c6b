//! Tests of answers that break off: the rest alone is asked for, where the host can tell that it is the rest.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web};
use url::Url;

use crate::support::{Bench, Tree};

/// Length of what is sent, in bytes, and of each part after which a connection breaks off.
const LENGTH: usize = 300_000;
const PART: usize = 100_000;

/// The requests for what breaks off, each as its head.
type Heads = Arc<Mutex<Vec<String>>>;

fn content() -> String {
    let text: String = (0..).map(|it| format!("line {it} of the file\n")).take(20_000).collect();
    text[..LENGTH].to_owned()
}

/// Serves one text until the process ends, at most [`PART`] bytes by each connection; returns the address. With
/// `changes` its validator is another with each request.
fn serve(heads: Heads, changes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may be gone.
            let _ = answer(stream.unwrap(), &heads, changes);
        }
    });
    address.to_string()
}

fn answer(mut stream: TcpStream, heads: &Heads, changes: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    if !head.starts_with("GET /file.txt ") {
        return write!(stream, "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let mut heads = heads.lock().unwrap();
    let number = if changes { heads.len() } else { 0 };
    let etag = format!("\"{number}\"");
    let lower = head.to_ascii_lowercase();
    let value = |name: &str| lower.lines().find_map(|it| it.strip_prefix(name)).map(str::to_owned);
    let is_same = value("if-range: ").is_some_and(|it| it == etag);
    let from = value("range: bytes=")
        .filter(|_| is_same)
        .map(|it| it.trim_end_matches('-').parse().unwrap());
    heads.push(head);
    drop(heads);
    let start: usize = from.unwrap_or_default();
    let status = if from.is_some() { "206 Partial Content" } else { "200 OK" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nAccept-Ranges: bytes\r\nETag: {etag}\r\n\
         Content-Length: {}\r\n",
        LENGTH - start
    )?;
    if from.is_some() {
        write!(stream, "Content-Range: bytes {start}-{}/{LENGTH}\r\n", LENGTH - 1)?;
    }
    write!(stream, "\r\n")?;
    stream.write_all(&content().as_bytes()[start..LENGTH.min(start + PART)])
}

async fn gather(changes: bool) -> (Bench, Url, Vec<String>) {
    let heads = Heads::default();
    let url = Url::parse(&format!("http://{}/file.txt", serve(heads.clone(), changes))).unwrap();
    let (delay, grace) = (Duration::ZERO, Duration::ZERO);
    let web = Web { delay, grace, ..Web::new(url.clone()) };
    let tree = Tree::new();
    let config = Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    let heads = heads.lock().unwrap().clone();
    (bench, url, heads)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_gone_on_with() {
    let (bench, url, heads) = gather(false).await;
    let record = bench.object(url.as_str()).await.unwrap();
    let md5 = soif::digest::Md5::of(content().as_bytes()).to_string();
    assert_eq!(record.text("MD5").unwrap(), md5);
    assert_eq!(record.text("File-Size").unwrap(), LENGTH.to_string());
    let ranges: Vec<_> = heads
        .iter()
        .map(|it| {
            it.lines()
                .find_map(|it| it.to_ascii_lowercase().strip_prefix("range: ").map(str::to_owned))
        })
        .collect();
    assert_eq!(ranges, [None, Some("bytes=100000-".to_owned()), Some("bytes=200000-".to_owned())]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_meanwhile_is_no_rest() {
    let (bench, url, heads) = gather(true).await;
    assert!(bench.object(url.as_str()).await.is_none());
    let problems = bench.handle.problems();
    let is_named = problems.iter().any(|it| it.object == url.as_str());
    assert!(is_named && heads.len() <= 2 * 3, "{problems:#?} {heads:#?}");
    bench.stop().await;
}
