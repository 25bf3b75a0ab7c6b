//! Tests of web archives.

use proptest::prelude::*;

use super::*;

/// Returns a WARC record.
fn warc(kind: &str, url: &str, content: &[u8]) -> Vec<u8> {
    let size = content.len();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 1970-01-02T00:00:00Z\r\n\
         Content-Length: {size}\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n\r\n"].concat()
}

/// Opens an archive; returns each member as path, name, time and content, and the problems.
fn opened(bytes: &[u8]) -> (Vec<String>, Vec<String>, Option<String>) {
    let object = Object::whole("http://h.example/a.warc", bytes.to_vec());
    let mut found = Vec::new();
    let budget = Budget::new(LIMITS, &|| false);
    let report = members(&object, Format::Warc, &budget, &mut |it| {
        let text = String::from_utf8_lossy(&it.object.bytes).into_owned();
        found.push(format!("{} {} {:?} {text}", it.path, it.object.name, it.object.modified));
        found.extend(it.problems.iter().map(|it| format!("! {}", it.message)));
    });
    let problems = report.problems.iter().map(|it| it.message.clone()).collect();
    (found, problems, report.about.map(|it| format!("{} {:?}", it.title, it.others)))
}

#[test]
fn the_pages_of_a_web_archive() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words";
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4;x=y\r\n two\r\n0\r\n\r\n";
    let archive = [
        warc("warcinfo", "", b"software: crawler 1\r\nisPartOf: Spring\r\n"),
        warc("request", "http://w.example/", b"GET / HTTP/1.1\r\n\r\n"),
        warc("response", "http://w.example/", answer),
        warc("response", "<http://w.example/a%20b.txt?q=1>", chunked),
        warc("response", "http://w.example/none", b"HTTP/1.1 404 Not Found\r\n\r\nnone"),
        warc("response", "dns:w.example", b"20240102\nw.example. 1 IN A 192.0.2.1\n"),
        warc("resource", "file:///c.txt", b"three"),
        warc("metadata", "http://w.example/", b"via: x"),
    ]
    .concat();
    let (found, problems, about) = opened(&archive);
    assert_eq!(
        found,
        [
            "http://w.example/ index Some(86400) <p>words",
            "http://w.example/a%20b.txt?q=1 a b.txt Some(86400) one two",
            "file:///c.txt c.txt Some(86400) three",
        ]
    );
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(about.as_deref(), Some("Spring [(\"Generator\", \"crawler 1\")]"));
}

#[test]
fn the_pages_of_an_old_web_archive() {
    let answer = "HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>words";
    let about = "1 0 Crawler\nURL IP-address Archive-date Content-type Archive-length\n";
    let archive = format!(
        "filedesc://a.arc 0.0.0.0 19700102000000 text/plain {}\n{about}\n\
         http://w.example/a.html 192.0.2.1 19700102000000 text/html {}\n{answer}\n",
        about.len(),
        answer.len()
    );
    let (found, problems, _) = opened(archive.as_bytes());
    assert_eq!(found, ["http://w.example/a.html a.html Some(86400) <p>words"]);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn broken_web_archives_end() {
    let whole = warc("resource", "http://w.example/a", b"words");
    let cut = whole.get(..whole.len() - 6).unwrap();
    let (found, problems, _) = opened(cut);
    assert_eq!(found, ["http://w.example/a a Some(86400) wor", "! breaks off after 3 of 5 bytes"]);
    assert_eq!(problems, Vec::<String>::new());
    let (found, problems, _) =
        opened(&[&whole[..], b"WARC/1.0\r\nContent-Length: x\r\n\r\n"].concat());
    assert_eq!(found.len(), 1);
    let last = "record 2 cannot be read; the rest was left out (last member: http://w.example/a)";
    assert_eq!(problems, [last]);
    let huge = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: a\r\nContent-Length: 99999999999999\r\n\r\nx";
    assert_eq!(opened(huge).0.len(), 2);
}

proptest! {
    #[test]
    fn any_archive_ends(
        kind in "(response|resource|warcinfo|x)",
        url in "(http://a.example/[a-z%?#/]{0,8}|dns:x|\\PC{0,6})",
        content in "(HTTP/1.1 200 OK\r\n|Transfer-Encoding: chunked\r\n|\r\n|\n|[0-9a-f]{1,3}\r\n|\\PC){0,12}",
        noise in proptest::collection::vec((0..300_usize, any::<u8>()), 0..4),
    ) {
        let mut bytes = warc(&kind, &url, content.as_bytes()).repeat(2);
        for (at, byte) in noise {
            if let Some(it) = bytes.get_mut(at) {
                *it = byte;
            }
        }
        opened(&bytes);
    }
}
