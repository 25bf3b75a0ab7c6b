//! Tests of sites that answer with what could hurt: each answer is bounded, named, and costs only itself.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::{Bench, Tree};
use flate2::Compression;
use flate2::write::GzEncoder;
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web, start};

/// Writes the answer for a path.
pub(crate) type Answer = dyn Fn(&str, &mut TcpStream) -> io::Result<()> + Send + Sync;

/// Serves hostile answers until the process ends; returns the address.
pub(crate) fn serve(answer: Arc<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, mut stream) = (answer.clone(), stream.unwrap());
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                if reader.read_line(&mut line).is_err() || line.is_empty() {
                    return;
                }
                let is_web = line.starts_with("GET ");
                while is_web && reader.read_line(&mut String::new()).is_ok_and(|it| 2 < it) {}
                let path = line.split(' ').nth(1).unwrap_or(&line).trim().to_owned();
                // The client may have had enough.
                let _ = answer(&path, &mut stream);
            });
        }
    });
    address.to_string()
}

pub(crate) fn whole(
    stream: &mut TcpStream,
    status: u16,
    fields: &str,
    body: &[u8],
) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{fields}\r\n"
    )?;
    stream.write_all(body)
}

/// Writes a piece again and again, up to 1 GiB.
fn without_end(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    for _ in 0..(1 << 30) / piece.len() {
        stream.write_all(piece)?;
    }
    Ok(())
}

async fn gather(scheme: &str, answer: Arc<Answer>) -> (Bench, String) {
    let url = format!("{scheme}://{}/", serve(answer));
    let (delay, grace) = (Duration::ZERO, Duration::ZERO);
    let web = Web { delay, grace, urls_max: 1_000, ..Web::new(start(&url, None).unwrap()) };
    let tree = Tree::new();
    let config = Config {
        watch: Watch::Off,
        read_bytes_max: 1 << 20,
        roots: vec![Root::Web(web)],
        ..tree.config()
    };
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    (bench, url)
}

#[track_caller]
fn has_problem(bench: &Bench, url: &str, part: &str) {
    let problems = bench.handle.problems();
    let found = problems.iter().any(|it| it.object == url && it.message.contains(part));
    assert!(found, "{url}: {part}: {problems:#?}");
}

fn page(path: &str, stream: &mut TcpStream) -> io::Result<()> {
    let redirect =
        |stream: &mut TcpStream, to: &str| whole(stream, 302, &format!("Location: {to}\r\n"), b"");
    match path {
        "/" => {
            let names = [
                "fields", "bomb", "file", "meta", "gopher", "chunks", "length", "links", "loop",
                "good",
            ];
            let links: String = names.iter().map(|it| format!("<a href={it}>x</a>")).collect();
            whole(stream, 200, "Content-Type: text/html\r\n", links.as_bytes())
        }
        "/fields" => {
            stream.write_all(b"HTTP/1.1 200 X\r\n")?;
            without_end(stream, b"X-Field: 0123456789012345678901234567890123456789\r\n")
        }
        "/bomb" => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            for _ in 0..256 {
                packed.write_all(&vec![b' '; 1 << 20])?;
            }
            let fields = "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";
            whole(stream, 200, fields, &packed.finish()?)
        }
        "/file" => redirect(stream, "file:///etc/passwd"),
        "/meta" => redirect(stream, "http://169.254.169.254/latest/meta-data/"),
        "/gopher" => redirect(stream, "gopher://127.0.0.1:6379/1flushall"),
        "/loop" => redirect(stream, "/loop"),
        "/chunks" => stream
            .write_all(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"),
        "/length" => stream.write_all(b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\nshort"),
        "/links" => {
            stream.write_all(
                b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n",
            )?;
            for number in 0..10_000_000 {
                write!(stream, "<a href=/n/{number}>n</a>")?;
            }
            Ok(())
        }
        "/good" => whole(stream, 200, "Content-Type: text/html\r\n", b"<title>Good</title>"),
        _ => whole(stream, 404, "", b""),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_are_bounded_and_named() {
    let (bench, url) = gather("http", Arc::new(page)).await;
    let at = |name: &str| format!("{url}{name}");
    assert!(bench.object(&at("good")).await.is_some(), "{:#?}", bench.handle.problems());
    for (name, part) in [
        ("fields", "head"),
        ("chunks", ""),
        ("length", ""),
        ("file", "leads to file:///etc/passwd"),
        ("gopher", "leads to gopher:"),
        ("n/0", "404"),
    ] {
        has_problem(&bench, &at(name), part);
    }
    // Of a bomb the front is read, as of any long object.
    let bomb = bench.object(&at("bomb")).await.unwrap();
    assert!(bomb.text("Truncated").is_some(), "{bomb:?}");
    for elsewhere in
        ["http://169.254.169.254/latest/meta-data/", "gopher://127.0.0.1:6379/1flushall"]
    {
        assert!(bench.object(elsewhere).await.is_none());
        assert!(
            !bench.handle.problems().iter().any(|it| it.object == elsewhere),
            "it was asked for"
        );
    }
    let crawl = bench.root().crawl.unwrap();
    assert!(crawl.done + crawl.failed <= 1_002, "urls_max holds: {crawl:?}");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_of_100_mb_and_a_list_of_itself_are_read_in_part() {
    let answer = |path: &str, stream: &mut TcpStream| match path {
        "/robots.txt" => {
            stream.write_all(
                b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /private\n",
            )?;
            (0..100).try_for_each(|_| {
                stream.write_all(&[b"#".repeat(999_999), b"\n".to_vec()].concat())
            })
        }
        "/sitemap.xml" => {
            let list = "<sitemapindex><sitemap><loc>/sitemap.xml</loc></sitemap>\
                        <sitemap><loc>/other.xml</loc></sitemap></sitemapindex>";
            whole(stream, 200, "Content-Type: text/xml\r\n", list.as_bytes())
        }
        "/other.xml" => {
            let list = "<urlset><url><loc>/listed</loc></url></urlset>";
            whole(stream, 200, "Content-Type: text/xml\r\n", list.as_bytes())
        }
        "/" => whole(stream, 200, "Content-Type: text/html\r\n", b"<a href=private/a>a</a>"),
        "/listed" | "/private/a" => whole(stream, 200, "Content-Type: text/html\r\n", b"<p>text"),
        _ => whole(stream, 404, "", b""),
    };
    let (bench, url) = gather("http", Arc::new(answer)).await;
    assert!(
        bench.object(&format!("{url}listed")).await.is_some(),
        "{:#?}",
        bench.handle.problems()
    );
    assert!(bench.object(&format!("{url}private/a")).await.is_none());
    assert_eq!(bench.handle.status().objects, 2);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gopher_menu_leads_nowhere_else() {
    // A gopher request is one line, which is what the server takes for the path.
    let answer = |_: &str, stream: &mut TcpStream| {
        let host = stream.local_addr().unwrap();
        let item = |selector: &str| format!("0odd\t{selector}\t127.0.0.1\t{}\r\n", host.port());
        let menu = [
            item("/a\r0injected"),
            "0inside\t/x\t169.254.169.254\t70\r\n".to_owned(),
            item("/b\0"),
            "hweb\tURL:file:///etc/passwd\t127.0.0.1\t70\r\n".to_owned(),
        ];
        stream.write_all(menu.concat().as_bytes())?;
        without_end(stream, b"inothing\t\tnull.host\t1\r\n")
    };
    let (bench, url) = gather("gopher", Arc::new(answer)).await;
    assert_eq!(bench.handle.status().objects, 0, "{:#?}", bench.handle.problems());
    has_problem(&bench, &url, "longer than what is read");
    bench.stop().await;
}
