//! The test harness: starts and ends the binary, reads its output, and sends it HTTP requests.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use net::clock;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Time after which a test takes anything for hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The promise "found (or gone) in search within 2 seconds", with a margin for a busy machine.
pub(crate) const FOUND_WITHIN: Duration = Duration::from_secs(2 * 5);

/// The promise "Ctrl-C stops cleanly in under 2 s", with the same margin.
pub(crate) const STOPPED_WITHIN: Duration = Duration::from_secs(2 * 5);

/// Returns the command of the binary under test, with arguments.
pub(crate) fn harvest<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(args: I) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harvest"));
    command.args(args).stdin(Stdio::null());
    // The user's own records of `harvest up` are no business of tests.
    command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/user"));
    command
}

/// Runs the binary to its end.
pub(crate) fn run<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(args: I) -> Output {
    harvest(args).output().unwrap()
}

/// Runs the binary to its end, which must be a success; returns its standard output.
pub(crate) fn run_ok<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(args: I) -> String {
    let output = run(args);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out
}

/// Returns standard output and standard error of a finished process.
pub(crate) fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// A running process of the binary; killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Everything printed so far, both streams in the order of arrival.
    seen: Vec<String>,
    /// The other side of the terminal that it runs in, if in one.
    terminal: Option<File>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self::new(child, vec![Box::new(out), Box::new(err)], None)
    }

    /// Starts a command whose terminal is a new one, by `setsid`.
    pub(crate) fn start_in_terminal(command: &Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
        let ours = File::from(ours);
        let mut leader = Command::new("setsid");
        leader.arg("--ctty").arg(command.get_program()).args(command.get_args());
        leader.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        for (name, _) in command.get_envs().filter(|(_, value)| value.is_none()) {
            leader.env_remove(name);
        }
        if let Some(folder) = command.get_current_dir() {
            leader.current_dir(folder);
        }
        leader.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        let child = leader.stderr(theirs).spawn().unwrap();
        let stream = ours.try_clone().unwrap();
        Self::new(child, vec![Box::new(stream)], Some(ours))
    }

    fn new(child: Child, streams: Vec<Box<dyn Read + Send>>, terminal: Option<File>) -> Self {
        let (sender, lines) = channel();
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self { child, lines, seen: Vec::new(), terminal }
    }

    /// Waits for a line that contains `part`, and returns it.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        self.line_within(PATIENCE, part)
    }

    /// Does the same with another limit.
    pub(crate) fn line_within(&mut self, patience: Duration, part: &str) -> String {
        let end = clock::monotonic() + patience;
        loop {
            let left = end.saturating_duration_since(clock::monotonic());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no line with {part:?} in:\n{}", self.seen.join("\n"));
                }
            }
        }
    }

    /// Waits for a line that contains `part`, unless there was one already.
    pub(crate) fn seen_with(&mut self, part: &str) -> String {
        let seen = self.seen.iter().find(|it| it.contains(part)).cloned();
        seen.unwrap_or_else(|| self.line_with(part))
    }

    /// Waits for the line that names the search page, and returns the page's URL.
    pub(crate) fn search_url(&mut self) -> String {
        let line = self.line_with("search at http://");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        url.to_owned()
    }

    /// Waits until all that `harvest up` has gathered at first is found; returns the search page.
    pub(crate) fn gathered_url(&mut self) -> String {
        let url = self.search_url();
        self.line_with("indexed ");
        url
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Sends the signal, and waits for the end, at most [`STOPPED_WITHIN`].
    pub(crate) fn stop(&mut self, signal: &str) -> ExitStatus {
        self.signal(signal);
        self.end()
    }

    /// Types keys into the terminal of a process.
    pub(crate) fn press(&mut self, keys: &str) {
        self.terminal.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end, which must be a success; returns all that it has printed.
    pub(crate) fn printed(&mut self) -> String {
        let status = self.end();
        self.seen.extend(self.lines.iter());
        let text = self.seen.join("\n");
        assert!(status.success(), "{status}: {text}");
        text
    }

    /// Waits for the end, at most [`STOPPED_WITHIN`].
    pub(crate) fn end(&mut self) -> ExitStatus {
        let start = clock::monotonic();
        let status = self.child.wait().unwrap();
        let took = start.elapsed();
        assert!(took < STOPPED_WITHIN, "took {took:?} to stop");
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends an HTTP/1.1 request on a new connection; returns status, head and body.
pub(crate) fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
    try_ask(method, url, headers).unwrap()
}

pub(crate) fn try_ask(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
) -> std::io::Result<(u16, String, Vec<u8>)> {
    send(method, url, headers, "")
}

/// Sends a form that has one field, as a page does; returns the status and the answer's head.
pub(crate) fn post(url: &str, field: (&str, &str), headers: &[(&str, &str)]) -> (u16, String) {
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let value: String = field.1.bytes().map(|it| format!("%{it:02X}")).collect();
    let headers: Vec<_> = headers.iter().copied().chain([kind]).collect();
    let (status, head, _) = send("POST", url, &headers, &format!("{}={value}", field.0)).unwrap();
    (status, head)
}

fn send(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<(u16, String, Vec<u8>)> {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(answer.get(..head_end).unwrap_or_default()).into_owned();
    let body = answer.get(head_end + 4..).unwrap_or_default().to_vec();
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunk(&body)
    } else {
        body
    };
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Ok((status, head, body))
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(line_end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&body[..line_end]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&body[line_end + 2..line_end + 2 + size]);
        body = &body[line_end + 2 + size + 2..];
    }
    whole
}

/// Returns the answer of a broker's search API to `query`.
pub(crate) fn search(page: &str, query: &str) -> serde_json::Value {
    let encoded: String = query
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let base = page.trim_end_matches('/');
    let (status, head, body) = ask("GET", &format!("{base}/api/search?q={encoded}"), &[]);
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(status == 200, "{head}\n{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn total(page: &str, query: &str) -> u64 {
    search(page, query)["total"].as_u64().unwrap()
}

/// Waits until the query has `wanted` hits, at most [`FOUND_WITHIN`].
pub(crate) fn wait_for_total(page: &str, query: &str, wanted: u64) -> Duration {
    let start = clock::monotonic();
    loop {
        let found = total(page, query);
        let took = start.elapsed();
        if found == wanted {
            return took;
        }
        assert!(
            took < FOUND_WITHIN,
            "{query:?} has {found} hits, not {wanted}, after {took:?}: {}",
            search(page, query)["hits"]
        );
    }
}

/// Writes a file, with its folders.
pub(crate) fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Returns a text of more than 5 MB, with `sentence` in line 60,002.
pub(crate) fn long_text(sentence: &str) -> String {
    let mut text = String::with_capacity(6 << 20);
    for line in 0..90_000 {
        let apples = line % 977;
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "line {line} tells of barrels, presses and of apples number {apples}");
        if line == 60_000 {
            text += sentence;
            text.push('\n');
        }
    }
    assert!(5_000_000 < text.len());
    text
}

/// Writes a small tree with one object for each of several summarizers.
pub(crate) fn small_tree(root: &Path) {
    write(root, "notes.txt", "Meeting notes\n\nThe quick brown fox met the harvester.\n");
    write(
        root,
        "site/index.html",
        "<html><head><title>Orchard keeping</title><meta name=description content='Pruning apples'>\
         </head><body><h1>Apples</h1><p>Prune in winter. <a href='pears.html'>Pears</a></p></body></html>",
    );
    write(root, "site/pears.md", "# Pears\n\nPears ripen off the tree.\n");
    write(
        root,
        "src/press.rs",
        "//! Presses cider.\n\n/// Turns the screw.\npub fn turn_screw() {}\n",
    );
    write(
        root,
        "refs.bib",
        "@article{a, author={Bowman, C. Mic and Danzig, Peter}, title={Discovery and Access}, year=1995}\n",
    );
    write(
        root,
        "mail/one.eml",
        "From: Ada <ada@example.org>\r\nTo: list@example.org\r\nSubject: Cider yields\r\n\
         Date: Mon, 2 Jan 2023 10:00:00 +0000\r\n\r\nYields were high.\r\n",
    );
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(b"Squeezed: the contents of a compressed quince report.\n").unwrap();
    write(root, "quince.txt.gz", gz.finish().unwrap());
}
