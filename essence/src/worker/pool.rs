//! The gatherer's side: workers that are kept, given objects, and ended when they go wrong.

use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use formats::object::{Object, Problem, ProblemKind, Summary};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::wire::{self, Ask, Order, Ready, Told};
use super::{Clock, Program, wants_worker};
use crate::extract::{self, EssenceSettings, GIVEN_BYTES_MAX};
use crate::select::LeftOut;

/// Most memory of a worker, in bytes, beyond what its program takes.
const MEMORY_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Most resident memory of a worker, in bytes.
const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Resident memory from which on a worker is not used again, in bytes.
const KEPT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most bytes of all records of one object.
const ANSWER_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most problems of one record: more are of use to nobody.
const PROBLEMS_MAX: usize = 1_000;
/// How long a worker is waited for beyond the time that an object may take.
const GRACE: Duration = Duration::from_secs(2);
/// How long a worker may take to be ready.
const READY_TIME_MAX: Duration = Duration::from_secs(10);
/// Most of what one says on standard error that is looked at, in bytes.
const SAID_BYTES_MAX: u64 = 1024 * 1024;
/// How long one that has broken off may take to end.
const END_TIME_MAX: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How often one is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Summarizes objects: within this process, or in workers.
#[derive(Debug)]
pub struct Pool {
    program: Option<Program>,
    clock: Clock,
    idle: Mutex<Vec<Worker>>,
    /// Whether it was said already that fences are missing.
    told: AtomicBool,
    /// What the system lacks of fences.
    missing: Mutex<Vec<String>>,
    /// Workers that were ended since they crashed, grew or took too long.
    ended: AtomicU64,
}

/// A worker's process. Dropped, it is ended.
#[derive(Debug)]
struct Worker {
    child: Child,
    socket: UnixStream,
    /// What it writes on standard error: why it ends, if it can say so.
    said: UnixStream,
    /// What the settings are that it was started with.
    settings: u64,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Why an answer is not there.
#[derive(Debug)]
enum Lost {
    /// The run was stopped.
    Stopped,
    /// It took more time than it may.
    Time,
    /// It took more memory than it may, or its records are too many.
    Grown(String),
    /// It ended by itself.
    Crashed(String),
}

/// How long an object may take, and who may stop it.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// How long it may take.
    pub time_max: Duration,
    /// Whether the run is to end; asked all the time.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

impl fmt::Debug for Bounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounds").field("time_max", &self.time_max).finish_non_exhaustive()
    }
}

impl Pool {
    /// Returns a pool of workers that are started by `program`; without one, everything is done within
    /// this process.
    pub fn new(program: Option<Program>, clock: Clock) -> Self {
        Self {
            program,
            clock,
            idle: Mutex::default(),
            ended: AtomicU64::default(),
            missing: Mutex::default(),
            told: AtomicBool::default(),
        }
    }

    /// Returns what tells the time here.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns what the system lacks to fence workers in, in words.
    pub fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many workers were ended since they crashed, grew or took too long.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Types, unnests and summarizes the object; see [`extract::extract`]. `print` is a fingerprint of
    /// the settings; `left_out` is told of what selection leaves out, and how often. Blocks.
    pub fn extract(
        &self,
        object: Object,
        (settings, print): (&EssenceSettings, u64),
        bounds: Bounds<'_>,
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Vec<Summary> {
        let clock = self.clock;
        let deadline = clock() + bounds.time_max;
        let cancelled = || (bounds.stopped)() || deadline < clock();
        let Some(program) = self.program.as_ref().filter(|_| wants_worker(&object, settings))
        else {
            return extract::extract_selected(object, settings, &cancelled, &mut |why| {
                left_out(why, 1);
            });
        };
        let worker = match self.worker(program, settings, print) {
            Ok(worker) => worker,
            Err(error) => {
                let message = format!(
                    "no worker can be started to read it: {error}; it is tried again at the next pass"
                );
                let problem = Problem::new(&object.url, ProblemKind::Start, message);
                return vec![extract::by_name(&object, settings, problem)];
            }
        };
        // Its own, and one of each member.
        let count_max = settings.unnest.members_max.saturating_add(1);
        match worker.extract(&object, count_max, (bounds, clock), left_out) {
            Ok((summaries, worker)) => {
                if worker.resident_bytes() <= KEPT_BYTES_MAX {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                }
                summaries
            }
            Err((lost, mut summaries)) => {
                if !matches!(lost, Lost::Stopped) {
                    self.ended.fetch_add(1, Relaxed);
                }
                let problem = lost.problem(&object, bounds);
                match summaries.iter_mut().find(|it| it.record.url == object.url) {
                    Some(own) => own.problems.push(problem),
                    None => summaries.insert(0, extract::by_name(&object, settings, problem)),
                }
                summaries
            }
        }
    }

    /// Starts a worker for objects to come, so that it is known which fences are missing. Blocks.
    pub fn probe(&self, settings: &EssenceSettings, print: u64) {
        let Some(program) = &self.program else { return };
        match self.worker(program, settings, print) {
            Ok(worker) => self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker),
            Err(error) => tracing::warn!("it is not known which fences there are: {error}"),
        }
    }

    /// Ends the workers that have nothing to do.
    pub fn rest(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns a worker that is idle, or a new one.
    fn worker(
        &self,
        program: &Program,
        settings: &EssenceSettings,
        print: u64,
    ) -> io::Result<Worker> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                // The settings were changed since: it is ended.
                Some(worker) if worker.settings != print => {}
                Some(worker) => return Ok(worker),
                None => break,
            }
        }
        let (worker, ready) = Worker::start(program, settings, print)?;
        if !ready.missing.is_empty() && !self.told.swap(true, Relaxed) {
            for it in &ready.missing {
                tracing::warn!("objects are read with a fence less: {it}");
            }
            *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = ready.missing;
        }
        Ok(worker)
    }
}

impl Worker {
    fn start(
        program: &Program,
        settings: &EssenceSettings,
        print: u64,
    ) -> io::Result<(Self, Ready)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (said, says) = UnixStream::pair()?;
        // Nobody reads it while the worker goes on: what is too much is lost.
        says.set_nonblocking(true)?;
        said.set_nonblocking(true)?;
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // A process that may write no files dies of writing to one.
            .stderr(Stdio::from(OwnedFd::from(says)))
            .spawn()?;
        let mut worker = Self { child, socket: ours, said, settings: print };
        worker.socket.set_read_timeout(Some(READY_TIME_MAX))?;
        worker.socket.set_write_timeout(Some(READY_TIME_MAX))?;
        let order = Order::Serve {
            settings: Box::new(settings.clone()),
            memory_bytes_max: MEMORY_BYTES_MAX,
        };
        wire::write(&mut worker.socket, &order, &[])?;
        let (ready, _none) = wire::read(&mut worker.socket, 0)?;
        worker.socket.set_read_timeout(Some(LOOK))?;
        worker.socket.set_write_timeout(Some(LOOK))?;
        Ok((worker, ready))
    }

    /// Has the object summarized. Gives the worker back if it can go on; if not, what it had said.
    fn extract(
        mut self,
        object: &Object,
        count_max: u64,
        (bounds, clock): (Bounds<'_>, Clock),
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Result<(Vec<Summary>, Self), (Lost, Vec<Summary>)> {
        let time_ms_max = u64::try_from(bounds.time_max.as_millis()).unwrap_or(u64::MAX);
        let until = clock() + bounds.time_max + GRACE;
        let mut found = Vec::new();
        let pid = self.child.id();
        let mut patient =
            Patient { socket: &self.socket, pid, clock, until, stopped: bounds.stopped };
        let outcome = wire::write(&mut patient, &Ask::of(object, time_ms_max), &[&object.bytes])
            .and_then(|()| answer(patient, &object.url, count_max, &mut found));
        match outcome {
            Ok(all) => {
                all.into_iter().for_each(|(why, count)| left_out(why, count));
                Ok((found, self))
            }
            Err(error) => Err((self.why(error, until <= clock(), bounds.stopped), found)),
        }
    }

    /// Says why the exchange failed.
    fn why(&mut self, error: io::Error, is_late: bool, stopped: &dyn Fn() -> bool) -> Lost {
        if stopped() {
            return Lost::Stopped;
        }
        if is_late {
            return Lost::Time;
        }
        match error.kind() {
            io::ErrorKind::OutOfMemory => {
                Lost::Grown(format!("more than {} MiB of memory", RESIDENT_BYTES_MAX >> 20))
            }
            io::ErrorKind::InvalidData => {
                Lost::Grown(format!("records of more than {} MiB", ANSWER_BYTES_MAX >> 20))
            }
            // It goes on, and nothing that it says can be relied on.
            io::ErrorKind::PermissionDenied => Lost::Crashed(error.to_string()),
            _ => match self.end() {
                Ok(None) => Lost::Crashed("without a word".to_owned()),
                // Who calls itself too often, or asks for memory in vain, ends by this.
                Ok(Some(it)) if it.signal() == Some(libc::SIGABRT) && self.has_overflowed() => {
                    Lost::Grown("more than its stack: the object is nested too deeply".to_owned())
                }
                Ok(Some(it)) if it.signal() == Some(libc::SIGABRT) => {
                    Lost::Grown(format!("more than {} MiB of memory", MEMORY_BYTES_MAX >> 20))
                }
                Ok(Some(it)) => Lost::Crashed(it.to_string()),
                Err(error) => Lost::Crashed(error.to_string()),
            },
        }
    }

    /// Returns how it has ended. One that has only let go of its socket, or speaks in a way that nobody
    /// understands, may go on for ever: none, and it is ended as it is dropped.
    fn end(&mut self) -> io::Result<Option<ExitStatus>> {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&END_TIME_MAX))?;
        self.child.try_wait()
    }

    /// Whether it has said that its stack is full.
    fn has_overflowed(&self) -> bool {
        let mut said = Vec::new();
        // Up to where there is nothing more for now.
        let _last = (&self.said).take(SAID_BYTES_MAX).read_to_end(&mut said);
        memchr::memmem::find(&said, b"has overflowed its stack").is_some()
    }

    fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }
}

impl Lost {
    fn problem(self, object: &Object, bounds: Bounds<'_>) -> Problem {
        let (kind, message) = match self {
            Self::Stopped => {
                (ProblemKind::Time, "the run was stopped while it was read".to_owned())
            }
            Self::Time => {
                let secs = (bounds.time_max + GRACE).as_secs();
                (ProblemKind::Time, format!("reading it took more than {secs} s; given up"))
            }
            Self::Grown(what) => (ProblemKind::Limit, format!("reading it takes {what}; given up")),
            Self::Crashed(status) => (
                ProblemKind::Fault,
                format!("what reads it ended ({status}); please report it with this object"),
            ),
        };
        Problem::new(&object.url, kind, message)
    }
}

/// Reads the summaries of the object at `url`, and how often something was left out. A worker may be in the
/// hands of what it has read: it speaks of nothing else, and not without end.
fn answer(
    from: impl io::Read,
    url: &str,
    count_max: u64,
    found: &mut Vec<Summary>,
) -> io::Result<Vec<(LeftOut, u64)>> {
    let is_of =
        |it: &str| it.strip_prefix(url).is_some_and(|it| it.is_empty() || it.starts_with('#'));
    let mut from = from.take(ANSWER_BYTES_MAX + GIVEN_BYTES_MAX);
    for _ in 0..=count_max {
        let left = from.limit();
        let read = wire::read(&mut from, left);
        if from.limit() == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (told, body): (Told, Vec<u8>) = read?;
        let (problems, given) = match told {
            Told::Summary { mut problems, given } => {
                problems.truncate(PROBLEMS_MAX);
                (problems, given)
            }
            Told::End { left_out } => return Ok(left_out),
        };
        let summary = wire::summary(problems, given, body).ok_or(io::ErrorKind::InvalidData)?;
        if !is_of(&summary.record.url) || !summary.problems.iter().all(|it| is_of(&it.object)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another object's record"));
        }
        found.push(summary);
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// A socket that is waited for until the worker has had its time, or has grown too large.
struct Patient<'a> {
    socket: &'a UnixStream,
    pid: u32,
    clock: Clock,
    until: Instant,
    stopped: &'a dyn Fn() -> bool,
}

impl Patient<'_> {
    /// Goes on after a wait in vain, or says why not.
    fn wait<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            // Asked first: one that sends a byte now and then never has it wait.
            if (self.stopped)() || self.until <= (self.clock)() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
            if RESIDENT_BYTES_MAX < resident_bytes(self.pid) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
    }
}

impl io::Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|| (&mut &*self.socket).read(buffer))
    }
}

impl io::Write for Patient<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.wait(|| (&mut &*self.socket).write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The memory that a process takes, in bytes; 0 where it cannot be seen.
fn resident_bytes(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|it| it.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use net::clock;
    use rustix::process::{Signal, kill_process};

    use super::*;
    use crate::made::zipped;
    use crate::worker::serve;

    /// Starts this test program as a worker: see [`a_worker`].
    fn program() -> Program {
        Program {
            path: std::env::current_exe().unwrap(),
            arguments: vec!["worker::pool::tests::a_worker".into(), "--exact".into()],
        }
    }

    /// Is a worker where standard input is a socket; ends at once in a usual run.
    #[test]
    fn a_worker() {
        let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
        if input.to_string_lossy().starts_with("socket:") {
            serve::serve(clock::monotonic).unwrap();
            // What else a test program does at its end is not allowed here.
            std::process::exit(0);
        }
    }

    fn archive() -> Object {
        Object::whole("http://h.example/a.zip", zipped(&[("a.txt", b"One"), ("b.txt", b"Two")]))
    }

    fn bounds(secs: u64) -> Bounds<'static> {
        Bounds { time_max: Duration::from_secs(secs), stopped: &|| false }
    }

    fn extract(pool: &Pool, print: u64, bounds: Bounds<'_>) -> Vec<Summary> {
        pool.extract(archive(), (&EssenceSettings::default(), print), bounds, &mut |_, _| ())
    }

    fn idle_pid(pool: &Pool) -> u32 {
        pool.idle.lock().unwrap()[0].child.id()
    }

    fn signal(pid: u32, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Has the process rest, and waits until all of it does.
    fn stop(pid: u32) {
        signal(pid, Signal::STOP);
        let rests = |task: io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.contains(") T ")
        };
        while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(rests) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_worker_says_what_this_process_would() {
        let (pool, alone) =
            (Pool::new(Some(program()), clock::monotonic), Pool::new(None, clock::monotonic));
        let found = extract(&pool, 1, bounds(60));
        assert_eq!(found, extract(&alone, 1, bounds(60)));
        assert_eq!(found.len(), 3);
        let pid = idle_pid(&pool);
        assert_eq!(extract(&pool, 1, bounds(60)), found);
        assert_eq!(idle_pid(&pool), pid, "it is kept");
        extract(&pool, 2, bounds(60));
        assert_ne!(idle_pid(&pool), pid, "other settings are another worker's");
        assert_eq!(pool.ended(), 0);
        pool.rest();
        assert!(pool.idle.lock().unwrap().is_empty());
    }

    /// A worker of which a shell plays the part: it takes its order, is ready, and then does as `command` says.
    fn played(command: &str) -> Pool {
        let settings = Box::new(EssenceSettings::default());
        let (mut order, mut ready) = (Vec::new(), Vec::new());
        let serve = Order::Serve { settings, memory_bytes_max: MEMORY_BYTES_MAX };
        wire::write(&mut order, &serve, &[]).unwrap();
        wire::write(&mut ready, &Ready { missing: Vec::new() }, &[]).unwrap();
        let ready: String = ready.iter().map(|it| format!("\\{it:03o}")).collect();
        let taken = format!("head -c {} <&0 >/dev/null", order.len());
        let script = format!("{taken}; printf '{ready}' >&0; {command}");
        let arguments = vec!["-c".to_owned(), script];
        Pool::new(Some(Program { path: "/bin/sh".into(), arguments }), clock::monotonic)
    }

    #[test]
    fn a_worker_that_breaks_off_and_goes_on_is_not_waited_for() {
        // It lets go of its socket; and says what is no frame, waiting for an answer.
        let cut = "printf '\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000{' >&0";
        for command in ["exec <&-; exec sleep 1000", &format!("{cut}; exec sleep 1000")] {
            let pool = played(command);
            let began = clock::monotonic();
            let found = extract(&pool, 1, bounds(100));
            assert!(clock::monotonic() - began < Duration::from_secs(50));
            assert_eq!(found[0].problems[0].kind, ProblemKind::Fault, "{found:?}");
            assert_eq!((found.len(), pool.ended()), (1, 1));
        }
    }

    #[test]
    fn a_worker_that_says_a_byte_now_and_then_has_no_more_time_than_others() {
        let head = "printf '\\377\\377\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000' >&0";
        let pool = played(&format!("{head}; while :; do printf x >&0; sleep 0.01; done"));
        let began = clock::monotonic();
        let found = extract(&pool, 1, bounds(1));
        assert!(clock::monotonic() - began < Duration::from_secs(5 * 3));
        assert_eq!(found[0].problems[0].kind, ProblemKind::Time, "{found:?}");
    }

    #[test]
    fn text_is_read_within_the_gatherer() {
        let pool = Pool::new(
            Some(Program { path: "/nowhere".into(), arguments: Vec::new() }),
            clock::monotonic,
        );
        let object = Object::whole("http://h.example/a.txt", &b"Words"[..]);
        let found =
            pool.extract(object, (&EssenceSettings::default(), 1), bounds(60), &mut |_, _| ());
        assert_eq!(found[0].problems, []);
        let found = extract(&pool, 1, bounds(60));
        assert_eq!(found[0].record.text("Title").as_deref(), Some("a.zip"));
        assert_eq!(found[0].problems[0].kind, ProblemKind::Start);
        assert!(found[0].problems[0].message.starts_with("no worker can be started to read it"));
    }

    /// Is a process whose stack is full; ends at once in a usual run.
    #[test]
    fn a_stack_that_is_full() {
        fn deeper(depth: u64) -> u64 {
            let place = std::hint::black_box([depth; 1_000]);
            if depth == u64::MAX { 0 } else { deeper(depth + 1) + place[7] }
        }
        let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
        if input.to_string_lossy().starts_with("socket:") {
            assert_eq!(deeper(0), 0);
        }
    }

    #[test]
    fn a_full_stack_is_told_from_too_much_memory() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (said, says) = UnixStream::pair().unwrap();
        said.set_nonblocking(true).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["worker::pool::tests::a_stack_that_is_full", "--exact", "--nocapture"])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(OwnedFd::from(says)))
            .spawn()
            .unwrap();
        let mut worker = Worker { child, socket: ours, said, settings: 0 };
        let lost = worker.why(io::ErrorKind::UnexpectedEof.into(), false, &|| false);
        assert!(matches!(&lost, Lost::Grown(why) if why.contains("nested too deeply")), "{lost:?}");
    }

    #[test]
    fn a_worker_speaks_of_its_object_and_not_without_end() {
        let url = "http://h.example/a.zip";
        let told = |record: &str, problem: &str| {
            let record = soif::Record::new("FILE", record);
            let problems = vec![Problem::new(problem, ProblemKind::Broken, "x")];
            let mut wire = Vec::new();
            wire::write_summary(&mut wire, Summary { record, problems, given: None }).unwrap();
            wire
        };
        let mut end = Vec::new();
        wire::write(&mut end, &Told::End { left_out: Vec::new() }, &[]).unwrap();
        let member = format!("{url}#m");
        let read = |front: &[Vec<u8>]| {
            let bytes = [&front.concat()[..], &end].concat();
            let outcome = answer(&bytes[..], url, 3, &mut Vec::new());
            outcome.map(drop).map_err(|it| it.kind())
        };
        let own = told(url, &member);
        assert_eq!(read(&[own.clone(), told(&member, url), told(&member, url)]), Ok(()));
        assert_eq!(
            read(&[own.clone(), own.clone(), own.clone(), own.clone()]),
            Err(io::ErrorKind::InvalidData)
        );
        for (record, problem) in [("http://h.example/b", url), (url, "http://h.example/a.zipper#x")]
        {
            let refused = read(&[own.clone(), told(record, problem)]);
            assert_eq!(refused, Err(io::ErrorKind::PermissionDenied), "{record} {problem}");
        }
    }

    #[test]
    fn a_worker_that_dies_costs_one_object() {
        let pool = Pool::new(Some(program()), clock::monotonic);
        extract(&pool, 1, bounds(60));
        signal(idle_pid(&pool), Signal::KILL);
        let found = extract(&pool, 1, bounds(60));
        assert_eq!(found.len(), 1);
        let problem = &found[0].problems[0];
        assert_eq!(problem.kind, ProblemKind::Fault);
        assert!(problem.message.contains("SIGKILL"), "{problem}");
        assert_eq!(pool.ended(), 1);
        assert_eq!(extract(&pool, 1, bounds(60)).len(), 3, "another one is started");
    }

    #[test]
    fn a_worker_that_hangs_is_ended_when_its_time_is_up() {
        let pool = Pool::new(Some(program()), clock::monotonic);
        extract(&pool, 1, bounds(60));
        let pid = idle_pid(&pool);
        stop(pid);
        let found = extract(&pool, 1, bounds(0));
        assert_eq!(found[0].problems[0].kind, ProblemKind::Time);
        assert_eq!(found[0].problems[0].message, "reading it took more than 2 s; given up");
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        extract(&pool, 1, bounds(60));
        stop(idle_pid(&pool));
        let stopped = Bounds { stopped: &|| true, ..bounds(60) };
        let found = extract(&pool, 1, stopped);
        assert_eq!(found[0].problems[0].message, "the run was stopped while it was read");
        assert_eq!(pool.ended(), 1, "a stop is nobody's fault");
    }
}
