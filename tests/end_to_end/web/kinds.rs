//! Tests of `harvest up` with addresses of several kinds.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use super::{Nginx, up};
use crate::harness::{Running, harvest, search, texts, wait_for_total, write};
use crate::servers::Pyftpdlib;

fn up_with(data: &Path, arguments: &[&str]) -> Command {
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data).args(arguments);
    command
}

fn url_of_hit(page: &str, word: &str) -> String {
    search(page, word)["hits"][0]["url"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_and_a_site_are_gathered_together_and_once_more_means_all() {
    let (nginx, data, folder) =
        (Nginx::start(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&nginx.site(), "index.html", "<title>Start</title><a href=a.html>a</a>");
    write(&nginx.site(), "a.html", "<title>Pears</title><p>ripening in october");
    write(folder.path(), "b.txt", "Plums are dried in november.");
    let targets = [nginx.url.as_str(), folder.path().to_str().unwrap()];
    let mut first = Running::start(up_with(data.path(), &targets));
    let limits = first.line_with("is gathered as");
    for part in ["at most 250 objects", "1 host (", " 1 s between requests"] {
        assert!(limits.contains(part), "{part} is missing in: {limits}");
    }
    let page = first.gathered_url();
    wait_for_total(&page, "ripening", 1);
    wait_for_total(&page, "dried", 1);
    assert_eq!(url_of_hit(&page, "ripening"), format!("{}a.html", nginx.url));
    assert!(url_of_hit(&page, "dried").ends_with("/b.txt"));
    assert!(first.stop("INT").success());
    let before = nginx.answers().len();

    let once = [targets[0], targets[1], "--once"];
    let output = up_with(data.path(), &once).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    let answers = nginx.answers().split_off(before);
    for path in ["/", "/a.html"] {
        assert!(answers.contains(&(path.to_owned(), 304)), "{path}: {answers:?}");
    }
}

#[test]
fn an_address_of_ftp_is_gathered() {
    let files = [("pub/apples.txt", b"Apples are kept in the cellar.".to_vec())];
    let (server, data) = (Pyftpdlib::start(false, &files), tempfile::tempdir().unwrap());
    let url = format!("ftp://{}/pub/", server.running.address);
    let mut running = Running::start(up_with(data.path(), &[&url]));
    let page = running.gathered_url();
    wait_for_total(&page, "cellar", 1);
    assert_eq!(url_of_hit(&page, "cellar"), format!("{url}apples.txt"));
    assert!(running.stop("INT").success());
}

#[test]
fn what_an_address_is_can_be_named() {
    let nginx = Nginx::start();
    write(&nginx.site(), "index.html", "<title>Start</title>");
    for (kind, is_whole, expected) in
        [("web", true, "indexed   1 object"), ("oai", false, "failed")]
    {
        let data = tempfile::tempdir().unwrap();
        let before = nginx.answers().len();
        let output = up(&nginx, data.path(), &["--once", "--as", kind]).output().unwrap();
        let (out, err) = texts(&output);
        assert_eq!(output.status.success(), is_whole, "{out}\n{err}");
        assert!(out.contains(expected), "{out}");
        let asked: Vec<String> =
            nginx.answers().split_off(before).into_iter().map(|it| it.0).collect();
        let is_asked_as_repository = asked.iter().any(|it| it.contains("verb="));
        assert_eq!(is_asked_as_repository, kind == "oai", "{asked:?}");
        assert_eq!(asked.iter().any(|it| it == "/sitemap.xml"), kind == "web", "{asked:?}");
        let remembered = fs::read_to_string(data.path().join("addresses.json")).unwrap();
        assert!(remembered.contains(&format!("\"{kind}\"")), "{remembered}");
    }
}

/// Serves a first page with links that are never answered, until the process ends; returns the address.
fn serve_the_first_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let links: String = (0..12).map(|it| format!("<a href=p{it}>p</a>")).collect();
    std::thread::spawn(move || {
        let mut unanswered = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let (kind, body) = match line.split(' ').nth(1).unwrap_or_default() {
                "/" => ("text/html", links.as_str()),
                path if path.starts_with("/p") => {
                    unanswered.push(stream);
                    continue;
                }
                _ => ("text/plain", ""),
            };
            while reader.read_line(&mut line).is_ok_and(|it| 2 < it) {}
            let length = body.len();
            let head = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
            // The client may be gone.
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n{body}");
        }
    });
    url
}

#[test]
fn the_progress_tells_hosts_and_outcomes() {
    let (url, data) = (serve_the_first_page(), tempfile::tempdir().unwrap());
    let mut running = Running::start(up_with(data.path(), &[&url]));
    let line = running.line_with("answered, ");
    let host = url.trim_end_matches('/');
    for part in [" read; ", " answered, 0 failed, 0 kept out by robots.txt, 12 waiting (", host] {
        assert!(line.contains(part), "{part} is missing in: {line}");
    }
    assert!(running.stop("INT").success());
}
