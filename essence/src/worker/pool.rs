//! The gatherer's side: a pool of workers, which are reused, and ended when they fail.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formats::limit::{Cut, Limit};
use formats::object::{Object, Problem, ProblemKind, Summary};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::wire::{self, Order, Ready, Reply, Request};
use super::{BUSY_MAX, Clock, Deadline, Program, wants_worker};
use crate::extract::{self, EssenceSettings};
use crate::select::LeftOut;

/// Maximum memory of a worker, in bytes, beyond what is mapped when it starts.
const MEMORY_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum resident memory of a worker, in bytes.
const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum resident memory of a worker that is used again, in bytes.
const REUSED_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Maximum length of all records of one object together, in bytes.
const ANSWER_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Maximum number of problems of one record.
const PROBLEMS_MAX: usize = 1_000;
/// Time that a worker is waited for beyond the time limit of its object.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum time until a worker is ready.
const READY_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a worker's standard error that are read.
const STDERR_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum wait for the end of a worker that broke off its answer.
const END_TIME_MAX: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// Time between two checks of a worker that is waited for.
const POLL_TIME: Duration = Duration::from_millis(20);

/// Summarizer of objects, within this process or in workers.
#[derive(Debug)]
pub struct Pool {
    program: Option<Program>,
    pub(crate) clock: Clock,
    idle: Mutex<Vec<Worker>>,
    /// Whether missing fences have been reported already.
    has_warned: AtomicBool,
    /// Fences that the system lacks, in words.
    missing: Mutex<Vec<String>>,
    /// Number of workers that were ended because they crashed, grew or took too long.
    ended: AtomicU64,
}

/// Process of a worker; ended on drop.
#[derive(Debug)]
struct Worker {
    child: Child,
    socket: UnixStream,
    /// The worker's standard error, which may give the reason why it ended.
    stderr: UnixStream,
    /// Fingerprint of the settings with which the worker was started.
    settings: u64,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may already have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[derive(Debug)]
enum Failure {
    Stopped,
    /// The worker took longer than allowed.
    Time,
    /// The worker took too much memory, or its records are too many.
    Grown(Cut, String),
    /// The worker ended by itself.
    Crashed(String),
}

/// Time limit for an object, and a check for an earlier stop.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) time_max: Duration,
    /// Returns whether the run has to end; called repeatedly.
    pub(crate) stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Pool {
    /// Returns a pool of workers started by `program`; without it, this process reads all objects.
    pub fn new(program: Option<Program>, clock: Clock) -> Self {
        Self {
            program,
            clock,
            idle: Mutex::default(),
            ended: AtomicU64::default(),
            missing: Mutex::default(),
            has_warned: AtomicBool::default(),
        }
    }

    /// Returns the fences that the system lacks, in words.
    pub fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of workers that were ended because they crashed, grew or took too long.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Types, unnests and summarizes the object; see [`extract::extract`]. Calls `left_out` with
    /// each reason for which selection left objects out, and the number of these objects. Blocks.
    pub(crate) fn extract(
        &self,
        object: Object,
        (settings, fingerprint): (&EssenceSettings, u64),
        bounds: Bounds<'_>,
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Vec<Summary> {
        let clock = self.clock;
        let deadline = Deadline::new(clock, bounds.time_max);
        let cancelled = || (bounds.stopped)() || deadline.is_over();
        let Some(program) = self.program.as_ref().filter(|_| wants_worker(&object, settings))
        else {
            return extract::extract_selected(object, settings, &cancelled, &mut |why| {
                left_out(why, 1);
            });
        };
        let worker = match self.worker(program, settings, fingerprint) {
            Ok(worker) => worker,
            Err(error) => {
                let message = format!(
                    "no worker can be started to read it: {error}; it is tried again at the next pass"
                );
                let problem = Problem::new(&object.url, ProblemKind::Start, message);
                return vec![extract::by_name(&object, settings, problem)];
            }
        };
        // The object's own record, and one record for each member.
        let count_max = settings.unnest.members_max.saturating_add(1);
        match worker.extract(&object, count_max, (bounds, clock), left_out) {
            Ok((summaries, worker)) => {
                if resident_bytes(worker.child.id()) <= REUSED_BYTES_MAX {
                    self.idle().push(worker);
                }
                summaries
            }
            Err((failure, mut summaries)) => {
                if !matches!(failure, Failure::Stopped) {
                    self.ended.fetch_add(1, Relaxed);
                }
                let problem = failure.problem(&object, bounds);
                match summaries.iter_mut().find(|it| it.record.url == object.url) {
                    Some(own) => own.problems.push(problem),
                    None => summaries.insert(0, extract::by_name(&object, settings, problem)),
                }
                summaries
            }
        }
    }

    /// Starts a worker for later objects, to find out which fences are missing. Blocks.
    pub fn probe(&self, settings: &EssenceSettings, fingerprint: u64) {
        let Some(program) = &self.program else { return };
        match self.worker(program, settings, fingerprint) {
            Ok(worker) => self.idle().push(worker),
            Err(error) => tracing::warn!("cannot find out which fences the system has: {error}"),
        }
    }

    /// Ends the idle workers.
    pub fn end_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle worker, or a new one.
    fn worker(
        &self,
        program: &Program,
        settings: &EssenceSettings,
        fingerprint: u64,
    ) -> io::Result<Worker> {
        // Workers with earlier settings are dropped, which ends them. The lock is free meanwhile.
        let take = || self.idle().pop();
        while let Some(worker) = take() {
            if worker.settings == fingerprint {
                return Ok(worker);
            }
        }
        let (worker, ready) = Worker::start(program, settings, fingerprint)?;
        if !ready.missing.is_empty() && !self.has_warned.swap(true, Relaxed) {
            for it in &ready.missing {
                tracing::warn!("objects are read with one fence less: {it}");
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
        fingerprint: u64,
    ) -> io::Result<(Self, Ready)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (stderr, their_err) = UnixStream::pair()?;
        // Standard error is not read while the worker runs: bytes beyond the buffer are lost.
        their_err.set_nonblocking(true)?;
        stderr.set_nonblocking(true)?;
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // A socket: writing to a file would kill a process that may not write files.
            .stderr(Stdio::from(OwnedFd::from(their_err)))
            .spawn()?;
        let mut worker = Self { child, socket: ours, stderr, settings: fingerprint };
        worker.socket.set_read_timeout(Some(READY_TIME_MAX))?;
        worker.socket.set_write_timeout(Some(READY_TIME_MAX))?;
        let order = Order::Serve {
            settings: Box::new(settings.clone()),
            memory_bytes_max: MEMORY_BYTES_MAX,
        };
        wire::write(&mut worker.socket, &order, &[])?;
        let (ready, _none) = wire::read(&mut worker.socket, 0)?;
        worker.socket.set_read_timeout(Some(POLL_TIME))?;
        worker.socket.set_write_timeout(Some(POLL_TIME))?;
        Ok((worker, ready))
    }

    /// Has the object summarized. Returns the worker if it can go on, else the summaries so far.
    fn extract(
        mut self,
        object: &Object,
        count_max: u64,
        (bounds, clock): (Bounds<'_>, Clock),
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Result<(Vec<Summary>, Self), (Failure, Vec<Summary>)> {
        let time_ms_max = u64::try_from(bounds.time_max.as_millis()).unwrap_or(u64::MAX);
        let mut found = Vec::new();
        let mut stream = BoundedStream::new(&self.socket, self.child.id(), bounds, clock);
        let outcome = wire::write(&mut stream, &Request::of(object, time_ms_max), &[&object.bytes])
            .and_then(|()| read_answer(stream, object, count_max, &mut found));
        match outcome {
            Ok(all) => {
                all.into_iter().for_each(|(why, count)| left_out(why, count));
                Ok((found, self))
            }
            Err(error) => {
                let is_late = error.kind() == io::ErrorKind::TimedOut;
                Err((self.failure(error, is_late, bounds.stopped), found))
            }
        }
    }

    fn failure(&mut self, error: io::Error, is_late: bool, stopped: &dyn Fn() -> bool) -> Failure {
        if stopped() {
            return Failure::Stopped;
        }
        if is_late {
            return Failure::Time;
        }
        match error.kind() {
            io::ErrorKind::OutOfMemory => Failure::Grown(
                Limit::Memory.cut_at(RESIDENT_BYTES_MAX),
                format!("more than {} MiB of memory", RESIDENT_BYTES_MAX >> 20),
            ),
            io::ErrorKind::InvalidData => Failure::Grown(
                Limit::Records.cut_at(ANSWER_BYTES_MAX),
                format!("records of more than {} MiB", ANSWER_BYTES_MAX >> 20),
            ),
            // The worker still runs, but none of its answers can be trusted.
            io::ErrorKind::PermissionDenied => Failure::Crashed(error.to_string()),
            _ => match self.wait_for_exit() {
                Ok(None) => Failure::Crashed("without a message".to_owned()),
                // A process whose stack or memory is exhausted ends by this signal.
                Ok(Some(it)) if it.signal() == Some(libc::SIGABRT) => Failure::Grown(
                    Limit::Memory.cut_at(MEMORY_BYTES_MAX),
                    if self.has_overflowed() {
                        "more than its stack: the object is nested too deeply".to_owned()
                    } else {
                        format!("more than {} MiB of memory", MEMORY_BYTES_MAX >> 20)
                    },
                ),
                Ok(Some(it)) => Failure::Crashed(it.to_string()),
                Err(error) => Failure::Crashed(error.to_string()),
            },
        }
    }

    /// Waits a short time for the worker to exit. Returns `None` if it still runs, and has only
    /// closed its socket or written an invalid frame: then it is ended on drop.
    fn wait_for_exit(&mut self) -> io::Result<Option<ExitStatus>> {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&END_TIME_MAX))?;
        self.child.try_wait()
    }

    /// Returns whether the worker's standard error reports a stack overflow.
    fn has_overflowed(&self) -> bool {
        let mut text = Vec::new();
        // The socket does not block: reading ends with an error after the bytes that are available.
        let _last = (&self.stderr).take(STDERR_BYTES_MAX).read_to_end(&mut text);
        memchr::memmem::find(&text, b"has overflowed its stack").is_some()
    }
}

impl Failure {
    fn problem(self, object: &Object, bounds: Bounds<'_>) -> Problem {
        let (kind, message) = match self {
            Self::Stopped => {
                (ProblemKind::Time, "the run was stopped while it was read".to_owned())
            }
            Self::Time => {
                let secs = (bounds.time_max + GRACE).as_secs();
                (ProblemKind::Time, format!("reading it took more than {secs} s; given up"))
            }
            Self::Grown(cut, what) => {
                (ProblemKind::Limit(cut), format!("reading it takes {what}; given up"))
            }
            Self::Crashed(status) => (
                ProblemKind::Fault,
                format!("its worker ended ({status}); please report it with this object"),
            ),
        };
        Problem::new(&object.url, kind, message)
    }
}

/// Reads the summaries of `object`, and the numbers of objects left out; gives the worker the parts
/// of the object that it asks for. Since the object may control its worker, refuses records of other
/// URLs and endless answers.
fn read_answer(
    stream: impl io::Read + io::Write,
    object: &Object,
    count_max: u64,
    found: &mut Vec<Summary>,
) -> io::Result<Vec<(LeftOut, u64)>> {
    let url = object.url.as_str();
    let is_of =
        |it: &str| it.strip_prefix(url).is_some_and(|it| it.is_empty() || it.starts_with('#'));
    let mut stream = stream.take(ANSWER_BYTES_MAX + Limit::Given.standard() as u64);
    while (found.len() as u64) <= count_max {
        let left = stream.limit();
        let read = wire::read(&mut stream, left);
        if stream.limit() == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (reply, body): (Reply, Vec<u8>) = read?;
        let (problems, given, leads) = match reply {
            Reply::Summary { mut problems, given, leads } => {
                problems.truncate(PROBLEMS_MAX);
                (problems, given, leads)
            }
            Reply::Ask { offset, bytes } => {
                wire::write_part(stream.get_mut(), object, (offset, bytes))?;
                continue;
            }
            Reply::End { left_out } => return Ok(left_out),
        };
        let summary =
            wire::summary(problems, given, leads, body).ok_or(io::ErrorKind::InvalidData)?;
        if !is_of(&summary.record.url) || !summary.problems.iter().all(|it| is_of(&it.object)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another object's record"));
        }
        found.push(summary);
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Socket of a worker; reads and writes fail at the deadline, or if the worker grows too large.
struct BoundedStream<'a> {
    socket: &'a UnixStream,
    pid: u32,
    clock: Clock,
    /// The earliest moment of the deadline.
    earliest: Instant,
    /// The deadline, however little of the CPU the worker had.
    latest: Instant,
    /// CPU time of the worker at the deadline.
    cpu: Duration,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> BoundedStream<'a> {
    fn new(socket: &'a UnixStream, pid: u32, bounds: Bounds<'a>, clock: Clock) -> Self {
        let (now, time_max) = (clock(), bounds.time_max);
        Self {
            socket,
            pid,
            clock,
            earliest: now + time_max + GRACE,
            latest: now + time_max * BUSY_MAX + GRACE,
            cpu: cpu_time(pid) + time_max + GRACE,
            stopped: bounds.stopped,
        }
    }

    fn is_late(&self) -> bool {
        let now = (self.clock)();
        self.earliest <= now && (self.latest <= now || self.cpu <= cpu_time(self.pid))
    }

    /// Repeats an attempt that would block, until it succeeds or a bound is reached.
    fn wait<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            // Checked first: if a worker sends single bytes, no attempt would ever block.
            if (self.stopped)() || self.is_late() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
            self.check_memory()?;
        }
    }

    fn check_memory(&self) -> io::Result<()> {
        let has_grown = RESIDENT_BYTES_MAX < resident_bytes(self.pid);
        if has_grown { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }
}

impl io::Read for BoundedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|| (&mut &*self.socket).read(buffer))
    }
}

impl io::Write for BoundedStream<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // A worker that asks for one part after the other never lets a read wait.
        self.check_memory()?;
        self.wait(|| (&mut &*self.socket).write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the CPU time of a process; 0 if it cannot be read.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before the other fields may have spaces and parentheses.
    let fields = stat.rsplit_once(')').map_or("", |it| it.1).split_whitespace();
    // In user mode and in the kernel, in ticks.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks.saturating_mul(1_000) / rustix::param::clock_ticks_per_second())
}

/// Returns the resident memory of a process, in bytes; 0 if it cannot be read.
fn resident_bytes(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|it| it.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use formats::object::{ReadAt, Rest};
    use net::clock;
    use rustix::process::{Signal, kill_process};

    use super::*;
    use crate::builders::zipped;
    use crate::worker::serve;

    /// Returns the command that starts this test program as a worker: see [`a_worker`].
    fn program() -> Program {
        Program {
            path: std::env::current_exe().unwrap(),
            arguments: vec!["worker::pool::tests::a_worker".into(), "--exact".into()],
        }
    }

    /// Is a worker if standard input is a socket; does nothing in a usual run.
    #[test]
    fn a_worker() {
        let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
        if input.to_string_lossy().starts_with("socket:") {
            serve::serve(clock::monotonic).unwrap();
            // Other calls at the end of a test program are not allowed here.
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

    /// Stops the process, and waits until all its threads are stopped.
    fn stop(pid: u32) {
        signal(pid, Signal::STOP);
        let is_stopped = |task: io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.contains(") T ")
        };
        while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(is_stopped) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_worker_gives_the_same_records_as_this_process() {
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
        pool.end_idle();
        assert!(pool.idle.lock().unwrap().is_empty());
    }

    /// Returns a pool whose worker is a shell: it reads the order, reports ready, runs `command`.
    fn shell_pool(command: &str) -> Pool {
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
    fn a_worker_that_hangs_after_a_failure_is_not_waited_for() {
        // One closes its socket; the other writes an invalid frame and waits.
        let cut = "printf '\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000{' >&0";
        for command in ["exec <&-; exec sleep 1000", &format!("{cut}; exec sleep 1000")] {
            let pool = shell_pool(command);
            let began = clock::monotonic();
            let found = extract(&pool, 1, bounds(100));
            assert!(clock::monotonic() - began < Duration::from_secs(50));
            assert_eq!(found[0].problems[0].kind, ProblemKind::Fault, "{found:?}");
            assert_eq!((found.len(), pool.ended()), (1, 1));
        }
    }

    #[test]
    fn a_worker_that_sends_single_bytes_gets_no_more_time() {
        let head = "printf '\\377\\377\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000' >&0";
        let pool = shell_pool(&format!("{head}; while :; do printf x >&0; sleep 0.01; done"));
        let began = clock::monotonic();
        let found = extract(&pool, 1, bounds(1));
        assert!(clock::monotonic() - began < Duration::from_secs(5 * 8));
        assert_eq!(found[0].problems[0].kind, ProblemKind::Time, "{found:?}");
    }

    #[test]
    fn a_worker_that_computes_for_ever_is_ended_by_its_cpu_time() {
        let pool = shell_pool("while :; do :; done");
        let found = extract(&pool, 1, bounds(1));
        assert_eq!(found[0].problems[0].kind, ProblemKind::Time, "{found:?}");
    }

    #[derive(Debug)]
    struct OpenBytes(Vec<u8>);

    impl ReadAt for OpenBytes {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            let from = usize::try_from(offset).unwrap().min(self.0.len());
            (&self.0[from..]).read(into)
        }
    }

    /// Returns the archive with only its first bytes in memory.
    fn long_archive() -> Object {
        let whole = archive();
        let rest = Some(Rest::new(Arc::new(OpenBytes(whole.bytes.to_vec()))));
        Object { bytes: whole.bytes.slice(..20), truncated: true, rest, ..whole }
    }

    #[test]
    fn a_worker_asks_for_the_rest_of_a_long_object() {
        let (pool, alone) =
            (Pool::new(Some(program()), clock::monotonic), Pool::new(None, clock::monotonic));
        let read = |pool: &Pool, object| {
            let settings = EssenceSettings::default();
            pool.extract(object, (&settings, 1), bounds(60), &mut |_, _| ())
        };
        let found = read(&pool, long_archive());
        assert_eq!(found, read(&alone, long_archive()));
        assert_eq!((found.len(), &*found[0].problems), (3, &[][..]));
        assert_eq!(found[1..], read(&pool, archive())[1..]);
        let front = Object { rest: None, ..long_archive() };
        assert!(read(&pool, front)[0].problems[0].message.contains("raise `read_max`"));
        assert_eq!(pool.ended(), 0);
    }

    #[test]
    fn a_worker_that_asks_without_end_gets_no_more_time() {
        let mut ask = Vec::new();
        wire::write(&mut ask, &Reply::Ask { offset: 0, bytes: 60_000 }, &[]).unwrap();
        let ask: String = ask.iter().map(|it| format!("\\{it:03o}")).collect();
        let pool = shell_pool(&format!("while :; do printf '{ask}' >&0; done"));
        let began = clock::monotonic();
        let settings = EssenceSettings::default();
        let found = pool.extract(long_archive(), (&settings, 1), bounds(1), &mut |_, _| ());
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

    /// Overflows the stack of its process if standard input is a socket; otherwise does nothing.
    #[test]
    fn a_stack_that_is_full() {
        fn deeper(depth: u64) -> u64 {
            let frame = std::hint::black_box([depth; 1_000]);
            if depth == u64::MAX { 0 } else { deeper(depth + 1) + frame[7] }
        }
        let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
        if input.to_string_lossy().starts_with("socket:") {
            assert_eq!(deeper(0), 0);
        }
    }

    #[test]
    fn a_full_stack_is_told_from_too_much_memory() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (stderr, their_err) = UnixStream::pair().unwrap();
        stderr.set_nonblocking(true).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["worker::pool::tests::a_stack_that_is_full", "--exact", "--nocapture"])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(OwnedFd::from(their_err)))
            .spawn()
            .unwrap();
        let mut worker = Worker { child, socket: ours, stderr, settings: 0 };
        let failure = worker.failure(io::ErrorKind::UnexpectedEof.into(), false, &|| false);
        assert!(
            matches!(&failure, Failure::Grown(_, why) if why.contains("nested too deeply")),
            "{failure:?}"
        );
    }

    #[test]
    fn records_of_other_objects_and_endless_answers_are_refused() {
        let url = "http://h.example/a.zip";
        let reply = |record: &str, problem: &str| {
            let record = soif::Record::new("FILE", record);
            let problems = vec![Problem::new(problem, ProblemKind::Broken, "x")];
            let mut wire = Vec::new();
            wire::write_summary(&mut wire, Summary { record, problems, given: None, leads: None })
                .unwrap();
            wire
        };
        let mut end = Vec::new();
        wire::write(&mut end, &Reply::End { left_out: Vec::new() }, &[]).unwrap();
        let member = format!("{url}#m");
        let read = |front: &[Vec<u8>]| {
            let bytes = [&front.concat()[..], &end].concat();
            let object = Object::whole(url, "");
            let outcome = read_answer(io::Cursor::new(bytes), &object, 3, &mut Vec::new());
            outcome.map(drop).map_err(|it| it.kind())
        };
        let own = reply(url, &member);
        assert_eq!(read(&[own.clone(), reply(&member, url), reply(&member, url)]), Ok(()));
        assert_eq!(
            read(&[own.clone(), own.clone(), own.clone(), own.clone()]),
            Err(io::ErrorKind::InvalidData)
        );
        for (record, problem) in [("http://h.example/b", url), (url, "http://h.example/a.zipper#x")]
        {
            let refused = read(&[own.clone(), reply(record, problem)]);
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
