//! Tests of FTP and news servers that answer with what could hurt, of pages that never end, and of links into private
//! networks.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::site::{self, Site, start_with, web_of};
use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web, start};

/// Answers a line of a connection, which may have data on another connection.
type Answer = dyn Fn(&str, &mut TcpStream, Option<&TcpListener>) -> io::Result<()> + Send + Sync;

/// Serves connections that begin with a greeting, until the process ends; returns the address.
fn serve(greeting: &'static str, answer: Arc<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, mut stream) = (answer.clone(), stream.unwrap());
            thread::spawn(move || -> io::Result<()> {
                stream.write_all(greeting.as_bytes())?;
                let mut lines = BufReader::new(stream.try_clone()?).lines();
                let mut data = None;
                while let Some(Ok(line)) = lines.next() {
                    if line == "EPSV" {
                        let listener = TcpListener::bind("127.0.0.1:0")?;
                        let port = listener.local_addr()?.port();
                        data = Some(listener);
                        write!(stream, "229 here (|||{port}|)\r\n")?;
                    } else {
                        answer(&line, &mut stream, data.as_ref())?;
                    }
                }
                Ok(())
            });
        }
    });
    address.to_string()
}

fn settings(tree: &Tree, url: &str) -> Config {
    let (delay, grace) = (Duration::ZERO, Duration::ZERO);
    let web = Web { delay, grace, ..Web::new(start(url, None).unwrap()) };
    Config {
        watch: Watch::Off,
        read_bytes_max: 1 << 20,
        roots: vec![Root::Web(web)],
        ..tree.config()
    }
}

async fn gather(url: &str) -> Bench {
    let tree = Tree::new();
    let config = settings(&tree, url);
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_a_list_lead_out_of_no_folder_and_are_no_commands() {
    let list = b"-rw-r--r-- 1 a a 4 Jan  1  2024 good.txt\r\n\
                 -rw-r--r-- 1 a a 4 Jan  1  2024 ../../etc/passwd\r\n\
                 -rw-r--r-- 1 a a 4 Jan  1  2024 a\rDELE b\r\n\
                 drwxr-xr-x 1 a a 4 Jan  1  2024 ..\r\n\
                 -rw-r--r-- 1 a a 4 Jan  1  2024 b\x1b[2Jc\r\n";
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let noted = asked.clone();
    let answer = move |line: &str, stream: &mut TcpStream, data: Option<&TcpListener>| {
        noted.lock().unwrap().push(line.to_owned());
        let send = |stream: &mut TcpStream, content: &[u8]| {
            stream.write_all(b"150 now\r\n")?;
            data.unwrap().accept()?.0.write_all(content)?;
            stream.write_all(b"226 done\r\n")
        };
        match line.split(' ').next().unwrap_or_default() {
            "PWD" => stream.write_all(b"257 \"/\"\r\n"),
            "USER" => stream.write_all(b"230 in\r\n"),
            "LIST" => send(stream, list),
            "RETR" => send(stream, b"text"),
            "TYPE" | "CWD" | "QUIT" => stream.write_all(b"250 yes\r\n"),
            _ => stream.write_all(b"500 no\r\n"),
        }
    };
    // A server is free to confirm TYPE by another code of success.
    let answer = move |line: &str, stream: &mut TcpStream, data: Option<&TcpListener>| {
        if line.starts_with("TYPE") {
            return stream.write_all(b"200 yes\r\n");
        }
        answer(line, stream, data)
    };
    let url = format!("ftp://{}/pub/", serve("220 hello\r\n", Arc::new(answer)));
    let bench = gather(&url).await;
    let good = bench.object(&format!("{url}good.txt")).await;
    assert!(good.is_some(), "{:#?} {:?}", bench.handle.problems(), asked.lock().unwrap());
    assert_eq!(bench.handle.status().objects, 1);
    let asked = asked.lock().unwrap().clone();
    assert!(!asked.iter().any(|it| it.contains("passwd") || it.starts_with("DELE")), "{asked:?}");
    let problems = bench.handle.problems();
    assert!(problems.iter().any(|it| it.kind == "list" && it.object == url), "{problems:?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_article_without_end_is_given_up() {
    let answer = |line: &str, stream: &mut TcpStream, _: Option<&TcpListener>| {
        let overview = |n: u32| {
            format!("{n}\tAbout\ta@h\tMon, 1 Jan 2024 10:00:00 +0000\t<{n}@h>\t\t9\t1\r\n")
        };
        let head = "Subject: About\r\nFrom: a@h\r\n\r\n";
        match line.split(' ').next().unwrap_or_default() {
            "MODE" => stream.write_all(b"200 hi\r\n"),
            "CAPABILITIES" => stream.write_all(b"101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\n.\r\n"),
            "GROUP" => stream.write_all(b"211 2 1 2 a.b\r\n"),
            "OVER" => write!(stream, "224 list\r\n{}{}.\r\n", overview(1), overview(2)),
            "ARTICLE" if line.contains("<1@h>") || line.ends_with(" 1") => {
                write!(stream, "220 1 <1@h>\r\n{head}")?;
                for _ in 0..1 << 24 {
                    stream.write_all(b"one line after the other, and none is the last one\r\n")?;
                }
                Ok(())
            }
            "ARTICLE" => write!(stream, "220 2 <2@h>\r\n{head}short\r\n.\r\n"),
            _ => stream.write_all(b"500 no\r\n"),
        }
    };
    let address = serve("200 hello\r\n", Arc::new(answer));
    let bench = gather(&format!("news://{address}/a.b")).await;
    let article = async |n: u32| bench.object(&format!("news://{address}/{n}@h")).await;
    let problems = bench.handle.problems();
    let short = article(2).await.unwrap_or_else(|| panic!("{problems:#?}"));
    assert!(short.text("Truncated").is_none());
    let named = |it: &gatherer::problems::Entry| {
        it.object.ends_with("/1@h") && it.message.contains("more than 64 MiB")
    };
    assert!(article(1).await.is_none() && problems.iter().any(named), "{problems:#?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_comes_slowly_costs_only_its_own_slot() {
    let answer = |line: &str, stream: &mut TcpStream, _: Option<&TcpListener>| {
        let page = |stream: &mut TcpStream, body: &str| {
            let fields = "Content-Type: text/html\r\nConnection: close";
            write!(
                stream,
                "HTTP/1.1 200 X\r\nContent-Length: {}\r\n{fields}\r\n\r\n{body}",
                body.len()
            )
        };
        match line.split(' ').nth(1) {
            Some("/") => {
                let links: String = (0..30).map(|it| format!("<a href=p{it}>p</a>")).collect();
                page(stream, &format!("<a href=slow>s</a>{links}"))
            }
            Some("/slow") => {
                stream.write_all(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\n\r\n")?;
                loop {
                    stream.write_all(b"a")?;
                    thread::park_timeout(Duration::from_millis(100));
                }
            }
            Some(path) if path.starts_with("/p") => page(stream, &format!("<title>{path}</title>")),
            Some(_) => stream.write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"),
            None => Ok(()),
        }
    };
    let address = serve("", Arc::new(answer));
    let url = format!("http://{address}/");
    let tree = Tree::new();
    let config = settings(&tree, &url);
    let bench = Bench::start_with(tree, config).await;
    bench.status(|it| it.objects == 31).await;
    let slow = bench.handle.explain(&url::Url::parse(&format!("{url}slow")).unwrap()).remove(0);
    assert_eq!(slow.state, "being fetched");
    // Nobody has to wait for it.
    let (_, took) = bench.stop().await;
    assert!(took < crate::support::PATIENCE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_a_private_address_is_not_asked() {
    let site = Site::start(&[]).await;
    // The root's own host is private, and allowed; this is another name, whatever it resolves to.
    let other = format!("http://localhost:{}/", site.url.port().unwrap());
    site.set("/", &format!("<title>Start</title><a href={other}inside>i</a>"));
    site.set("/inside", "<title>Inside</title>");
    let tree = Tree::new();
    let mut settings = site::config(&tree, &site);
    web_of(&mut settings).hosts_max = 5;
    let bench = start_with(tree, settings).await;
    assert!(!site.take_asked().iter().any(|it| it.0 == "/inside"));
    assert_eq!(bench.handle.status().objects, 1);
    let problems = bench.handle.problems();
    let is_named = |it: &gatherer::problems::Entry| {
        it.object.starts_with(&other) && it.message.contains("an address of this machine itself")
    };
    assert!(problems.iter().any(is_named), "{problems:#?}");
    bench.stop().await;
}
