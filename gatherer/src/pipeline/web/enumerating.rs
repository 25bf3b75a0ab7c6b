//! Enumerations: lists that the settings name, those of robots.txt, and programs that write one.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ::crawl::frontier::Pushed;
use ::crawl::sitemap;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use url::Url;

use super::crawl::Crawl;
use crate::lock::lock;
use crate::spec::{Enumeration, file_url};

/// Kind of the problem that a list cannot be had, or is not whole.
const LIST_PROBLEM: &str = "list";

/// Longest time that a program may take.
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(600);

/// Longest wait until it is seen that the crawl is to stop.
const LOOK: Duration = Duration::from_millis(250);

/// Number of bytes of a program's messages that are kept.
const MESSAGES_BYTES: u64 = 4_096;

impl Crawl<'_> {
    /// Takes the addresses of the lists that the settings name.
    pub(super) fn name_lists(&mut self) {
        for enumeration in &self.web.plan.web.enumeration {
            if let Enumeration::Address(url) = enumeration {
                self.lists.name(url.clone());
            }
        }
    }

    /// Begins with the lists that the settings name. Runs their programs, and blocks meanwhile.
    pub(super) fn enumerate(&mut self) {
        let (spec, run) = (&self.web.plan.web, self.run);
        for enumeration in &spec.enumeration {
            let (name, listed) = match enumeration {
                Enumeration::Address(url) => {
                    lock(&self.frontier).push_aside(url);
                    continue;
                }
                Enumeration::File(path) => {
                    (path, read_front(path).map_err(|error| error.to_string()))
                }
                Enumeration::Program(path) => {
                    let written = written_by(path, &spec.url, || run.is_stopped());
                    (path, self.web.runtime.block_on(written))
                }
            };
            match listed {
                Ok(bytes) => self.read_list_as(&file_url(name), &spec.url, &bytes.into()),
                Err(fault) => run.site.problem(file_url(name), LIST_PROBLEM, fault),
            }
        }
    }

    /// Takes the list that was got from `url`.
    pub(super) fn read_list(&mut self, url: &Url, body: &Bytes) {
        self.read_list_as(url.as_str(), url, body);
    }

    /// Takes a list with this name, whose URLs are relative to `base`.
    fn read_list_as(&mut self, name: &str, base: &Url, body: &Bytes) {
        let listed = self.lists.read(base, body, &mut lock(&self.frontier));
        let is_silent = listed.pages.is_empty() && name != base.as_str();
        let nothing = is_silent.then(|| "it lists nothing that can be read".to_owned());
        self.push_listed(listed.pages, 1);
        if let Some(flaw) = listed.flaw.or(nothing) {
            self.run.site.problem_from_walk(self.run.walk, name.to_owned(), LIST_PROBLEM, flaw);
        }
    }

    /// Reports that a list cannot be had, if the settings name it.
    pub(super) fn miss_list(&self, url: &Url, why: String) {
        if self.lists.is_named(url) {
            self.problem(url, LIST_PROBLEM, why);
        }
    }

    /// Takes the pages of a list. What it says has changed since the last answer is asked for, even if it is not
    /// due.
    pub(super) fn push_listed(&mut self, pages: Vec<(Url, Option<u64>)>, depth: u16) {
        for (url, changed_ms) in pages {
            let is_left = self.push(&url, depth, false) == Pushed::Seen && !self.web.is_full;
            let Some(changed_ms) = changed_ms.filter(|_| is_left) else { continue };
            let answered_ms = self.note_of(&url).and_then(|it| it.crawled).map(|it| it.answered_ms);
            if answered_ms.is_some_and(|it| it < self.began_ms && it < changed_ms) {
                lock(&self.frontier).again(&url);
            }
        }
    }
}

/// Returns the front of a file, as much as is read of any list.
fn read_front(path: &Path) -> io::Result<Vec<u8>> {
    // Others may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(sitemap::BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns what a program writes, which is called with the root's URL and gets it as a line, too.
///
/// # Errors
///
/// The fault, for people, with what the program has said last.
async fn written_by(
    program: &Path,
    root: &Url,
    is_stopped: impl Fn() -> bool,
) -> Result<Vec<u8>, String> {
    let mut child = Command::new(program)
        .arg(root.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    // However this ends, what the program has started ends with it.
    let group = Group(child.id().and_then(|it| Pid::from_raw(i32::try_from(it).ok()?)));
    if let Some(mut input) = child.stdin.take() {
        // It need not read it.
        drop(input.write_all(format!("{root}\n").as_bytes()).await);
    }
    let (out, messages) = (child.stdout.take(), child.stderr.take());
    let whole = async {
        let (mut list, mut said) = (Vec::new(), Vec::new());
        let read_list = async {
            match out {
                Some(out) => out.take(sitemap::BYTES_MAX as u64 + 1).read_to_end(&mut list).await,
                None => Ok(0),
            }
        };
        let read_messages = async {
            match messages {
                Some(mut it) => {
                    let read = (&mut it).take(MESSAGES_BYTES).read_to_end(&mut said).await;
                    // The rest is read, so that the program can go on.
                    drop(tokio::io::copy(&mut it, &mut tokio::io::sink()).await);
                    read
                }
                None => Ok(0),
            }
        };
        let ended = async {
            let status = child.wait().await;
            // What it has left behind would keep the list open.
            drop(group);
            status
        };
        let (listed, _said, status) = tokio::join!(read_list, read_messages, ended);
        listed.map_err(|error| error.to_string())?;
        let status = status.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|it| !it.trim().is_empty()).unwrap_or("it says nothing");
        // One that writes more than is read cannot end well.
        let is_whole = status.success() || sitemap::BYTES_MAX < list.len();
        if is_whole { Ok(list) } else { Err(format!("it ended with {status}: {last}")) }
    };
    let stopped = async {
        while !is_stopped() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        done = whole => done,
        () = stopped => Err("it was stopped with the crawl".to_owned()),
        () = tokio::time::sleep(PROGRAM_TIME_MAX) => {
            Err(format!("it took more than {} s, and was ended", PROGRAM_TIME_MAX.as_secs()))
        }
    }
}

/// The processes of a program, which end when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // They may all have ended.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}
