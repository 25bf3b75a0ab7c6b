//! Tests of the FTP client: against a scripted server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::error::{Error, Stage};
use net::fetch::{Bounds, Fault};
use net::ftp::{Client, Settings};
use net::guard::Refusal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::ftp::{settings, url};

/// Answers to commands by their beginning, in place of the usual ones; an empty answer ends the
/// connection. Each is given once.
type Script = Arc<Mutex<Vec<(&'static str, &'static str)>>>;

/// The commands that the server was sent, over all its connections; a connection begins with `+`.
type Sent = Arc<Mutex<Vec<String>>>;

struct Scripted {
    address: SocketAddr,
    script: Script,
    sent: Sent,
}

impl Scripted {
    async fn start(script: &[(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Script = Arc::new(Mutex::new(script.to_vec()));
        let sent = Sent::default();
        let server = Self { address, script: Arc::clone(&script), sent: Arc::clone(&sent) };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                sent.lock().unwrap().push("+".to_owned());
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&sent)));
            }
        });
        server
    }

    fn sent(&self) -> String {
        self.sent.lock().unwrap().join(" ")
    }
}

/// Serves one control connection.
async fn serve(stream: TcpStream, script: Script, sent: Sent) {
    let mut stream = BufReader::new(stream);
    let mut data = None;
    let mut line = "HELLO".to_owned();
    loop {
        let command = std::mem::take(&mut line).trim_end().to_owned();
        let verb = command.split(' ').next().unwrap_or_default().to_owned();
        if verb != "HELLO" {
            sent.lock().unwrap().push(verb.clone());
        }
        let scripted = {
            let mut script = script.lock().unwrap();
            let at = script.iter().position(|it| command.starts_with(it.0));
            at.map(|at| script.remove(at).1.to_owned())
        };
        let mut port = 0;
        if matches!(verb.as_str(), "EPSV" | "PASV") {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            port = listener.local_addr().unwrap().port();
            data = Some(listener);
        }
        let answer = scripted.unwrap_or_else(|| usual(&verb, port));
        if answer.is_empty() || stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        if answer.starts_with("150") {
            let (mut stream_of_data, _) = data.take().unwrap().accept().await.unwrap();
            let content = if verb == "RETR" { "content" } else { "type=file;size=1; a\r\n" };
            stream_of_data.write_all(content.as_bytes()).await.unwrap();
            drop(stream_of_data);
            stream.get_mut().write_all(b"226 sent\r\n").await.unwrap();
        }
        if !stream.read_line(&mut line).await.is_ok_and(|it| 0 < it) {
            return;
        }
    }
}

fn usual(verb: &str, port: u16) -> String {
    match verb {
        "HELLO" => "220-hello\r\n 220 not yet\r\n220 ready\r\n".to_owned(),
        "USER" => "331 password\r\n".to_owned(),
        "PASS" => "230 welcome\r\n".to_owned(),
        "PWD" => "257 \"/\" is it\r\n".to_owned(),
        "FEAT" => "211-\r\n MLST size*;\r\n211 end\r\n".to_owned(),
        "EPSV" => format!("229 ok (|||{port}|)\r\n"),
        // Another host; its port is one of this machine.
        "PASV" => format!("227 ok (192,0,2,1,{},{})\r\n", port / 256, port % 256),
        "RETR" | "MLSD" | "LIST" => "150 here it comes\r\n".to_owned(),
        "CWD" => "250 ok\r\n".to_owned(),
        "MLST" => "250-\r\n size=7;modify=20260101000000; /a\r\n250 end\r\n".to_owned(),
        "SIZE" => "213 7\r\n".to_owned(),
        "MDTM" => "213 20260101000000\r\n".to_owned(),
        _ => "200 ok\r\n".to_owned(),
    }
}

const OPENED: &str = "+ USER PASS TYPE PWD FEAT";

#[tokio::test]
async fn control_connections_are_kept_and_the_oldest_makes_room() {
    let servers = [Scripted::start(&[]).await, Scripted::start(&[]).await];
    let client = Client::new(Settings { connections_max: 1, ..settings() });
    for server in [&servers[0], &servers[0], &servers[1], &servers[0]] {
        client.fetch(&url(server.address, "a")).await.unwrap();
    }
    assert_eq!(servers[1].sent(), format!("{OPENED} EPSV RETR"));
    let once = format!("{OPENED} EPSV RETR");
    assert_eq!(servers[0].sent(), format!("{once} EPSV RETR {once}"));

    let client = Client::new(Settings { idle: Duration::ZERO, ..settings() });
    for _ in 0..2 {
        client.facts(&url(servers[1].address, "a")).await.unwrap();
    }
    let each = format!("{OPENED} MLST");
    assert!(servers[1].sent().ends_with(&format!("{each} {each}")));
}

#[tokio::test]
async fn a_download_gives_its_connection_back_unless_it_breaks_off() {
    let server = Scripted::start(&[]).await;
    let client = Client::new(settings());
    for _ in 0..2 {
        let mut file = client.open(&url(server.address, "a")).await.unwrap();
        assert_eq!(file.chunk().await.unwrap().unwrap(), "content");
        assert_eq!(file.chunk().await.unwrap(), None);
        assert_eq!(file.chunk().await.unwrap(), None);
    }
    assert_eq!(server.sent(), format!("{OPENED} EPSV RETR EPSV RETR"));
    drop(client.open(&url(server.address, "a")).await.unwrap());
    client.facts(&url(server.address, "a")).await.unwrap();
    assert!(server.sent().ends_with(&format!("{OPENED} MLST")), "{}", server.sent());
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    for lost in [("MLST", ""), ("MLST", "421 too long\r\n")] {
        let server = Scripted::start(&[]).await;
        let client = Client::new(settings());
        client.facts(&url(server.address, "a")).await.unwrap();
        server.script.lock().unwrap().push(lost);
        let facts = client.facts(&url(server.address, "a")).await.unwrap();
        assert_eq!(facts.size, Some(7));
        let each = format!("{OPENED} MLST");
        assert_eq!(server.sent(), format!("{each} MLST {each}"));
    }
}

#[tokio::test]
async fn data_come_from_the_control_connections_host_alone() {
    let server = Scripted::start(&[("EPSV", "500 what?\r\n")]).await;
    let client = Client::new(settings());
    let fetched = client.fetch(&url(server.address, "a")).await.unwrap();
    assert_eq!(fetched.bytes, b"content");
    // Once is enough to know that the server has no EPSV.
    client.list(&url(server.address, "")).await.unwrap();
    assert!(server.sent().ends_with("EPSV PASV RETR CWD PASV MLSD"), "{}", server.sent());

    let bounds = Bounds { allow_private: false, ..settings().bounds };
    let client = Client::new(Settings { bounds, ..settings() });
    let error = client.fetch(&url(server.address, "a")).await.unwrap_err();
    let refusal = Refusal::Loopback;
    let is_refused =
        matches!(&error.fault, Fault::Net(Error::Refused { refusal: it, .. }) if *it == refusal);
    assert!(is_refused, "{error}");
}

#[tokio::test]
async fn facts_are_done_without() {
    let script = [("FEAT", "500 what?\r\n"), ("SIZE", "502 no\r\n"), ("MDTM", "550 no\r\n")];
    let server = Scripted::start(&script).await;
    let client = Client::new(settings());
    // What LIST gives here is no list of files.
    let listing = client.list(&url(server.address, "")).await.unwrap();
    assert_eq!((listing.folders[0].entries.len(), listing.left_out), (0, 1));
    assert!(server.sent().ends_with("CWD EPSV LIST"), "{}", server.sent());
    let error = client.facts(&url(server.address, "a")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
    assert_eq!(client.facts(&url(server.address, "a")).await.unwrap().size, Some(7));
    assert!(server.sent().ends_with("SIZE MDTM SIZE MDTM"), "{}", server.sent());

    let server = Scripted::start(&[("MLSD", "500 what?\r\n")]).await;
    client.list(&url(server.address, "")).await.unwrap();
    assert!(server.sent().ends_with("CWD EPSV MLSD EPSV LIST"), "{}", server.sent());
}

#[tokio::test]
async fn faults_are_told_apart() {
    for (script, expected) in [
        (("HELLO", "421 full\r\n"), "try again later"),
        (("HELLO", "SSH-2.0-x\r\n"), "check that this port is the right one"),
        (("PASS", "530 no\r\n"), "check the name and password"),
        (("PWD", "257 \"/a\r\n"), "unexpected reply"),
        (("EPSV", "229 (|||0|)\r\n"), "unexpected reply"),
        (("RETR", "550 none\r\n"), "check the name and who may read it"),
        (("RETR", "226 nothing\r\n"), "unexpected reply"),
        (("TYPE", ""), "the connection broke"),
    ] {
        let server = Scripted::start(&[script]).await;
        let error = Client::new(settings()).fetch(&url(server.address, "a")).await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with("ftp://localhost:") && shown.contains(expected), "{shown}");
    }
    let server = Scripted::start(&[]).await;
    for bad in ["a%0d%0aDELE%20b", "a%0a", "folder/"] {
        let error = Client::new(settings()).fetch(&url(server.address, bad)).await.unwrap_err();
        assert!(matches!(error.fault, Fault::Url { .. }), "{error}");
    }
    assert_eq!(server.sent(), "");
}

#[tokio::test]
async fn a_server_that_stops_is_given_up() {
    let server = Scripted::start(&[("MLST", "250-\r\n")]).await;
    let mut settings = settings();
    settings.bounds.timeouts.header = Duration::from_millis(300);
    let error = Client::new(settings).facts(&url(server.address, "a")).await.unwrap_err();
    let is_slow = matches!(error.fault, Fault::Net(Error::Timeout { stage: Stage::Header, .. }));
    assert!(is_slow, "{error}");
}
