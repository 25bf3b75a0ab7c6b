//! The worker: summarizing in a separate, fenced process. Workers read the types whose parsers are
//! not safe in time and memory by construction, and large objects that are read as a whole.
//!
//! Source: TR §4 (Essence ran a program for each object); `landlock(7)`, `seccomp(2)`,
//! `setrlimit(2)`.
//!
//! A worker is the daemon's own binary, started anew. It first gives up everything that it does not
//! need (`fence`): files, the network, other processes. Then it reads objects from a socket and
//! answers with summaries (`wire`). The gatherer keeps as many workers as it has threads that
//! summarize (`pool`). It ends a worker that crashes, grows or takes too long: then the object gets
//! a record made from its name, with a problem that gives the reason, and the run goes on.
//!
//! # Differences from the paper
//!
//! * A process summarizes thousands of objects rather than one.
//! * Text, pages, source and catalogs are summarized within the gatherer, in time and memory that
//!   are linear in the length of the input: docs/essence.md names the libraries that are trusted
//!   with them. If one of these panics, the object gets a record made from its name.
//! * Catalogs and other text that is read from beginning to end go to a worker if they are long, or
//!   packed (their length is unknown then).

pub mod budget;
pub mod fence;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod library;
pub mod pool;
pub mod program;
pub mod serve;
mod wire;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use formats::object::Object;
use formats::unnest::{self, Format};
use formats::{Type, is_read_whole};
use rustix::time::{ClockId, clock_gettime};

use crate::extract::EssenceSettings;

/// Maximum size of an object whose text is read as a whole within the gatherer, in bytes.
const WITHIN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Clock by which deadlines are measured.
pub type Clock = fn() -> Instant;

/// Number of time limits after which an object is given up, however little of a busy machine's CPU
/// it had.
const BUSY_MAX: u32 = 6;

/// Time limit for the object that this thread reads. Time in which others have the CPU does not
/// count: no object is at fault for a busy machine.
pub(crate) struct Deadline {
    clock: Clock,
    /// The earliest moment at which the time can be up.
    earliest: Instant,
    /// The moment at which the time is up in any case.
    latest: Instant,
    /// CPU time of this thread at which the time is up.
    cpu: Duration,
}

impl Deadline {
    pub(crate) fn new(clock: Clock, time_max: Duration) -> Self {
        let now = clock();
        Self {
            clock,
            earliest: now + time_max,
            latest: now + time_max * BUSY_MAX,
            cpu: cpu_time() + time_max,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        let now = (self.clock)();
        self.earliest < now && (self.latest < now || self.cpu < cpu_time())
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Command that starts a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Path of the daemon's own binary.
    pub path: PathBuf,
    /// Arguments that make it a worker.
    pub arguments: Vec<String>,
}

/// Returns whether a worker summarizes objects of this type: the library that opens them does not
/// check the clock, or takes as much memory as the object demands; or they may contain such
/// objects.
pub fn is_for_worker(r#type: Type) -> bool {
    use Type::*;
    match r#type {
        Pdf | Word | Excel | PowerPoint | OpenDocument | Epub | Mail | Mailbox | News | Image
        | Audio | Video | Font | Object | Command | PostScript | Dvi => true,
        other => other.is_opened() || other.is_stored(),
    }
}

/// Returns whether the object goes to a worker: by its type, if it is long and read as a whole, or
/// if it is opened, since its content may have any type. Gzip stays in this process if its content,
/// by its name and beginning, is text that is neither for a worker, nor opened, nor read as a
/// whole.
pub(crate) fn wants_worker(object: &Object, settings: &EssenceSettings) -> bool {
    match settings.type_of(object) {
        Type::Gzip => {
            let typing = &settings.summary.typing;
            let Some((name, head)) = unnest::peek(object) else { return true };
            let inner = typing.recognize(&object.url, &name, &head);
            let is_opened = Format::of_head(&head, inner).is_some();
            is_for_worker(inner) || is_opened || is_read_whole(inner) || !inner.is_text()
        }
        found if is_read_whole(found) && WITHIN_BYTES_MAX < object.bytes.len() => true,
        found => is_for_worker(found) || Format::of(object, found).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use flate2::Compression;
    use net::clock;

    use super::*;

    thread_local! {
        /// Time by which [`later`] is ahead of the clock.
        static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn later() -> Instant {
        clock::monotonic() + AHEAD.get()
    }

    #[test]
    fn time_of_others_does_not_count() {
        let deadline = Deadline::new(later, Duration::from_secs(60));
        assert!(!deadline.is_over());
        AHEAD.set(Duration::from_secs(120));
        assert!(!deadline.is_over());
        AHEAD.set(Duration::from_secs(61 * u64::from(BUSY_MAX)));
        assert!(deadline.is_over(), "it would wait for ever");
        let busy = Deadline::new(clock::monotonic, Duration::from_millis(50));
        let began = cpu_time();
        while !busy.is_over() {}
        let used = cpu_time() - began;
        assert!(used < Duration::from_millis(300), "{used:?}");
    }

    #[test]
    fn objects_that_may_hold_any_type_go_to_a_worker() {
        let wants = |name: &str, bytes: &[u8]| {
            let object = Object::whole(format!("http://h.example/{name}"), bytes.to_vec());
            wants_worker(&object, &EssenceSettings::default())
        };
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0";
        let packed = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let named = |name: &[u8], bytes: &[u8]| {
            let mut encoder =
                flate2::GzBuilder::new().filename(name).write(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let shar = b"#!/bin/sh\n# This is a shell archive.\nsed 's/^X//' >a.pdf <<'E'\nX%PDF-\nE\n";
        // Blocks without content.
        let nothing = [&packed(b"")[..10], &b"\0\0\0\xff\xff".repeat(20_000)].concat();
        let entry = b"@book{a, title = {A}}\n";
        let long = |text: &[u8]| text.repeat(WITHIN_BYTES_MAX / text.len() + 1);
        for (name, bytes, expected) in [
            ("a.bib", &entry[..], false),
            ("a.bib", &long(entry), true),
            ("a.bib.gz", &packed(entry), true),
            ("a.json", b"[1]", false),
            ("a.json", &[&b"["[..], &long(b"1, "), b"1]"].concat(), true),
            ("a.json.gz", &packed(b"[1]"), true),
            ("a.txt", &long(b"words "), false),
            ("a.pdf", &b"%PDF-1.4\n"[..], true),
            ("a.txt", b"words", false),
            ("a.html", b"<html>", false),
            ("a.eml", b"From: a@b.example\nTo: c@d.example\nSubject: x\n\nhello\n", true),
            ("a.uu", b"begin 644 a.pdf\n`\nend\n", true),
            ("a.sh", b"#!/bin/sh\necho words\n", false),
            ("a.sh", shar, true),
            ("a", shar, true),
            ("a.sh.gz", &packed(shar), true),
            ("a.txt.gz", &packed(shar), true),
            ("ls.1.gz", gzip, false),
            ("a.pdf.gz", gzip, true),
            ("a.gz.gz", gzip, true),
            ("paper.gz", gzip, true),
            ("a.txt.gz", &packed(b"words"), false),
            ("a.txt.gz", &packed(b"%PDF-1.4\n"), true),
            ("a.txt.gz", &packed(&packed(b"words")), true),
            ("a.txt.gz", &packed(&b"words ".repeat(10_000)), false),
            ("a.txt.gz", &named(b"a.eml", b"words"), true),
            ("a.txt.gz", &nothing, true),
        ] {
            assert_eq!(wants(name, bytes), expected, "{name}");
        }
    }
}
