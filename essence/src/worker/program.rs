//! Programs of the site: each runs behind fences in its own folder, and is ended at its deadline
//! with all its children.

use std::ffi::CStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, chmodat, openat, renameat_with, unlinkat,
};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::path::Arg;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::fence::ProgramFence;
use super::wire::{self, Order};
use super::{Clock, Program};

/// Maximum memory of each process, in bytes.
const MEMORY_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum size of a file that a program may write, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum output of a program, in bytes.
const OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum size of all files in a program's folder together, in bytes.
const FILES_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const FILES_MAX: usize = 10_000;
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 128;
/// Maximum number of a program's processes.
const PROCESSES_MAX: usize = 256;
/// Maximum resident memory of all processes of a program together, in bytes.
const RESIDENT_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Time between two checks of a program's files, processes and memory.
const USAGE_TIME: Duration = Duration::from_millis(250);
/// Maximum number of bytes of a program's standard error that are shown.
const COMPLAINT_BYTES_MAX: usize = 300;
const COMPLAINT_LINES_MAX: usize = 3;
/// Reason for ending a program that writes more than allowed.
const TOO_MUCH: &str = "writes too much; it was ended";
/// Time between two checks of a program's deadline.
const POLL_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Files and folders of the system, which programs may read: no disks, terminals or shared memory.
const SYSTEM: &str = "/usr /bin /sbin /lib /lib32 /lib64 /etc /opt /proc/self \
                      /dev/null /dev/zero /dev/full /dev/random /dev/urandom";

/// Runner of the site's programs.
#[derive(Debug)]
pub struct Programs {
    starter: Program,
    /// Parent of the programs' folders.
    scratch: PathBuf,
    clock: Clock,
    /// Start of the run, in Unix milliseconds; it is a part of the folders' names.
    began: u64,
    count: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// Whether the reason may be temporary, such as a shortage of the system.
    pub(crate) may_pass: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, may_pass: false }
    }
}

/// Deadline of a program, and a check for an earlier stop.
#[derive(Clone, Copy)]
pub(crate) struct RunDeadline<'a> {
    pub(crate) deadline: Instant,
    /// Returns whether the run has to end; called repeatedly.
    pub(crate) stopped: &'a (dyn Fn() -> bool + Sync),
}

/// A program to run, with its input.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    /// Bytes on its standard input.
    pub(crate) input: &'a [u8],
    /// Names and contents of the files in its working directory.
    pub(crate) files: &'a [(&'a str, &'a [u8])],
    /// Files and folders that the program may read in addition to those of the system.
    pub(crate) read: &'a [PathBuf],
    /// Additional environment variables.
    pub(crate) variables: &'a [(String, PathBuf)],
}

impl Programs {
    /// Returns a runner that starts programs by means of `starter`, each in its own folder below
    /// `scratch`, which is removed first. `now_ms` is in Unix milliseconds, and differs between
    /// runs.
    pub fn new(starter: Program, scratch: PathBuf, clock: Clock, now_ms: u64) -> Self {
        // Removes the folders of a run that was killed.
        remove(&scratch);
        Self { starter, scratch, clock, began: now_ms, count: AtomicU64::new(0) }
    }

    /// Runs a program, and returns its output. Blocks.
    ///
    /// # Errors
    ///
    /// The program cannot be started, fails, takes too long or writes too much.
    pub(crate) fn run(&self, job: &Job<'_>, until: RunDeadline<'_>) -> Result<Vec<u8>, Failure> {
        let number = self.count.fetch_add(1, Relaxed);
        let folder = self.scratch.join(format!("{}-{number}", self.began));
        let outcome = self.run_in(&folder, job, until);
        remove(&folder);
        let name = job.words.first().map(String::as_str).unwrap_or_default();
        match outcome {
            Ok(outcome) => outcome.map_err(Failure::from),
            Err(error) => {
                Err(Failure { why: format!("{name} cannot be started: {error}"), may_pass: true })
            }
        }
    }

    fn run_in(
        &self,
        folder: &Path,
        job: &Job<'_>,
        until: RunDeadline<'_>,
    ) -> io::Result<Result<Vec<u8>, String>> {
        let work = folder.join("work");
        // The folder holds objects that other users may not read.
        let mut private = DirBuilder::new();
        private.mode(0o700);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.scratch)?;
        private.create(folder)?;
        private.create(&work)?;
        for (name, content) in job.files {
            fs::write(work.join(name), content)?;
        }
        let left = until.deadline.saturating_duration_since((self.clock)());
        let system = SYSTEM.split(' ').map(PathBuf::from);
        let fence = ProgramFence {
            read: system.chain(job.read.iter().cloned()).collect(),
            write: vec![work.clone(), "/dev/null".into()],
            memory_bytes_max: MEMORY_BYTES_MAX,
            cpu_secs_max: left.as_secs() + 1,
            file_bytes_max: FILE_BYTES_MAX,
        };
        let (words, variables) = (job.words.to_vec(), job.variables.to_vec());
        let order = Order::Become { fence, folder: work.clone(), words, variables };
        let path = folder.join("input");
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        wire::write(&mut file, &order, &[])?;
        file.write_all(job.input)?;
        file.seek(SeekFrom::Start(0))?;
        let child = Command::new(&self.starter.path)
            .args(&self.starter.arguments)
            .env_clear()
            .stdin(Stdio::from(file))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let name = job.words.first().map(String::as_str).unwrap_or_default();
        supervise(child, &work, until, self.clock)
            .map(|it| it.map_err(|why| format!("{name} {why}")))
    }
}

fn remove(folder: &Path) {
    match empty(folder).and_then(|()| fs::remove_dir(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), "cannot be removed: {error}");
        }
        _ => {}
    }
}

/// Empties a folder, whatever the depth of its subfolders: moves the content of each one up before
/// removing it, so that neither the stack nor the number of open files grows with the depth.
fn empty(folder: &Path) -> io::Result<()> {
    let top = enter(CWD, folder)?;
    let mut moved = 0_u64;
    loop {
        let mut is_empty = true;
        for entry in Dir::read_from(&top)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            is_empty = false;
            if unlink(&top, name)? {
                continue;
            }
            let below = enter(&top, name)?;
            for entry in Dir::read_from(&below)? {
                let entry = entry?;
                let inner = entry.file_name();
                if inner == c"." || inner == c".." || unlink(&below, inner)? {
                    continue;
                }
                // A folder without permissions cannot be moved.
                let _closed = chmodat(&below, inner, Mode::RWXU, AtFlags::empty());
                loop {
                    moved += 1;
                    let target = format!(".{moved}");
                    match renameat_with(&below, inner, &top, &target, RenameFlags::NOREPLACE) {
                        Err(Errno::EXIST) => {}
                        outcome => break outcome?,
                    }
                }
            }
            // Moving entries during the reading may hide some of them: the next round moves these.
            let _outcome = unlink(&top, name)?;
        }
        if is_empty {
            return Ok(());
        }
    }
}

/// Opens a folder, even if a program has removed its permissions.
fn enter(from: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _open = chmodat(&from, name, Mode::RWXU, AtFlags::empty());
    Ok(openat(&from, name, flags, Mode::empty())?)
}

/// Removes an entry of a folder; returns `false` for a folder that is not empty.
fn unlink(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        outcome => return Ok(outcome.map(|()| true)?),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::ACCESS) => Ok(false),
        outcome => Ok(outcome.map(|()| true)?),
    }
}

/// Returns the bytes on disk and the number of files below a folder. If files are too many or too
/// deep, counts only some and returns a number above [`FILES_MAX`]. Gives folders the permissions
/// that this needs.
fn usage(folder: &Path) -> (u64, usize) {
    let (mut bytes, mut count) = (0_u64, 0);
    let mut folders = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = fs::read_dir(&folder).or_else(|_closed| {
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            fs::read_dir(&folder)
        });
        // A folder may be readable but not enterable.
        let _entered = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        for entry in entries.into_iter().flatten().flatten() {
            // Links are not followed, since the target of a link is not in this folder.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push((entry.path(), depth + 1));
            }
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(512));
            count += 1;
            // Below some thousand levels, paths are too long.
            if FILES_MAX < count || DEPTH_MAX < depth {
                return (bytes, FILES_MAX + 1);
            }
        }
    }
    (bytes, count)
}

/// Returns the number of processes in a group, and their total memory, in bytes.
fn processes(group: u32) -> (usize, u64) {
    let (mut count, mut pages) = (0, 0_u64);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process =
            entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        // The process may have ended meanwhile.
        let stat = is_process.then(|| fs::read_to_string(entry.path().join("stat")).ok()).flatten();
        // The name before the `)` may contain any bytes.
        let Some(fields) = stat.as_deref().and_then(|it| it.rsplit_once(')')) else { continue };
        let fields: Vec<&str> = fields.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok());
        // Fields from the third on: proc_pid_stat(5).
        let (of, resident) = (number(2), number(21));
        if of == Some(u64::from(group)) {
            count += 1;
            pages = pages.saturating_add(resident.unwrap_or(0));
        }
    }
    (count, pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Returns why a program has to be ended; `None` if it uses no more than allowed.
fn excess(child: &Child, work: &Path) -> Option<&'static str> {
    let ((count, resident), (bytes, files)) = (processes(child.id()), usage(work));
    if PROCESSES_MAX < count {
        return Some("starts too many processes; it was ended");
    }
    if RESIDENT_BYTES_MAX < resident {
        return Some("takes too much memory; it was ended");
    }
    (FILES_BYTES_MAX < bytes || FILES_MAX < files).then_some(TOO_MUCH)
}

/// Reads the output of a program until it ends or has to be ended, and ends its process group.
fn supervise(
    mut child: Child,
    work: &Path,
    until: RunDeadline<'_>,
    clock: Clock,
) -> io::Result<Result<Vec<u8>, String>> {
    let mut pipes = Pipes::of(&mut child)?;
    let ended = wait(&child, work, (until, clock), &mut pipes);
    // Ends the program's children that are still running.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    // All output is in the pipes now. A process that has left the group may hold the pipes open, so
    // their end is not waited for.
    while pipes.read() && !pipes.is_too_much() {}
    let ended = ended.or_else(|| pipes.is_too_much().then_some(TOO_MUCH));
    Ok(match ended {
        Some(why) => Err(why.to_owned()),
        None if status.success() => Ok(pipes.output),
        None => Err(describe_exit(status, &pipes.complaint)),
    })
}

/// Waits until the program has ended, and returns `None`; returns the reason if it has to be ended.
fn wait(
    child: &Child,
    work: &Path,
    (until, clock): (RunDeadline<'_>, Clock),
    pipes: &mut Pipes,
) -> Option<&'static str> {
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        return Some("cannot be waited for");
    };
    let mut checked = clock();
    loop {
        let mut waited = vec![PollFd::new(&process, PollFlags::IN)];
        waited.extend(pipes.out.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        waited.extend(pipes.err.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        // After an interrupted wait, the loop goes on.
        let _count = poll(&mut waited, Some(&POLL_TIME));
        let has_ended = waited.first().is_some_and(|it| !it.revents().is_empty());
        pipes.read();
        if pipes.is_too_much() {
            return Some(TOO_MUCH);
        }
        if has_ended {
            return None;
        }
        let now = clock();
        if until.deadline <= now {
            return Some("takes too long; it was ended");
        }
        if checked + USAGE_TIME <= now {
            checked = now;
            if let Some(why) = excess(child, work) {
                return Some(why);
            }
        }
        if (until.stopped)() {
            return Some("was ended with the run");
        }
    }
}

/// Output of a program, read as it arrives.
struct Pipes {
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    output: Vec<u8>,
    /// Last bytes of the program's standard error.
    complaint: Vec<u8>,
    /// Length of the program's standard error, in bytes.
    complained: u64,
}

impl Pipes {
    fn of(child: &mut Child) -> io::Result<Self> {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        out.as_ref().map_or(Ok(()), |it| ioctl_fionbio(it, true))?;
        err.as_ref().map_or(Ok(()), |it| ioctl_fionbio(it, true))?;
        Ok(Self { out, err, output: Vec::new(), complaint: Vec::new(), complained: 0 })
    }

    fn is_too_much(&self) -> bool {
        OUTPUT_BYTES_MAX < (self.output.len() as u64).max(self.complained)
    }

    /// Reads available bytes; returns whether there were any.
    fn read(&mut self) -> bool {
        let mut piece = [0; 65_536];
        let output = read(&mut self.out, &mut piece);
        self.output.extend_from_slice(output);
        let is_any = !output.is_empty();
        let complaint = read(&mut self.err, &mut piece);
        self.complaint.extend_from_slice(complaint);
        self.complained += complaint.len() as u64;
        let surplus = self.complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
        self.complaint.drain(..surplus);
        is_any || !complaint.is_empty()
    }
}

/// Reads available bytes; closes a pipe that has reached its end.
fn read<'a>(from: &mut Option<impl Read>, piece: &'a mut [u8]) -> &'a [u8] {
    let Some(pipe) = from else { return &[] };
    match pipe.read(piece) {
        Ok(count @ 1..) => piece.get(..count).unwrap_or_default(),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => &[],
        // Bytes that were read before a failure are kept.
        Ok(0) | Err(_) => {
            *from = None;
            &[]
        }
    }
}

fn describe_exit(status: ExitStatus, complaint: &[u8]) -> String {
    let complaint = String::from_utf8_lossy(complaint);
    // Some programs write the reason before the last line.
    let lines: Vec<&str> = complaint.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    match &lines[lines.len().saturating_sub(COMPLAINT_LINES_MAX)..] {
        [] => format!("fails ({status})"),
        last => format!("fails ({status}): {}", last.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    };
    use net::clock;

    use super::*;
    use crate::worker::serve;

    /// Becomes the ordered program if standard input is a file; does nothing in a usual run.
    #[test]
    fn a_program() {
        let input = fs::read_link("/proc/self/fd/0").unwrap_or_default();
        if input.ends_with("input") {
            serve::serve(clock::monotonic).unwrap();
        }
    }

    fn run(command: &str, input: &[u8], secs: u64) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let starter = Program {
            path: fs::read_link("/proc/self/exe").unwrap(),
            arguments: ["worker::program::tests::a_program", "--exact", "--nocapture"]
                .map(str::to_owned)
                .to_vec(),
        };
        let programs = Programs::new(starter, folder.path().join("scratch"), clock::monotonic, 1);
        let words = ["/bin/sh", "-c", command].map(str::to_owned);
        let deadline = clock::monotonic() + Duration::from_secs(secs);
        let until = RunDeadline { deadline, stopped: &|| false };
        let files: &[(&str, &[u8])] = &[("object", b"of bytes")];
        let job = Job { words: &words, input, files, read: &[], variables: &[] };
        let outcome = programs.run(&job, until).map_err(|it| it.why);
        assert_eq!(fs::read_dir(folder.path().join("scratch")).unwrap().count(), 0);
        // The output of the test program before it becomes another one.
        let text = outcome.map(|it| String::from_utf8_lossy(&it).into_owned());
        text.map(|it| it.replacen("\nrunning 1 test\n", "", 1))
    }

    #[test]
    fn programs_read_and_write() {
        assert_eq!(run("cat; cat object; pwd >&2", b"input ", 60).unwrap(), "input of bytes");
        assert_eq!(
            run("echo x > new && cat new; echo $HOME | grep -c work", b"", 60).unwrap(),
            "x\n1\n"
        );
        let long = vec![b'x'; 1 << 20];
        assert_eq!(run("tr x y", &long, 60).unwrap(), "y".repeat(1 << 20));
    }

    #[test]
    fn programs_that_fail_say_why() {
        let failed = run("echo one >&2; echo two >&2; exit 3", b"", 60).unwrap_err();
        assert_eq!(failed, "/bin/sh fails (exit status: 3): one; two");
        let failed = run("printf '#!/nowhere\\n' > a; chmod +x a; exec ./a", b"", 60).unwrap_err();
        assert!(failed.contains("not found"), "{failed}");
        let failed = run("kill -9 $$", b"", 60).unwrap_err();
        assert_eq!(failed, "/bin/sh fails (signal: 9 (SIGKILL))");
    }

    #[test]
    fn programs_are_ended_with_all_that_they_started() {
        let ended = run("sleep 1000 & sleep 1000", b"", 1).unwrap_err();
        assert_eq!(ended, "/bin/sh takes too long; it was ended");
        assert_eq!(run("sleep 1000 & echo done", b"", 60).unwrap(), "done\n");
        // `timeout` would make a group of its own, and `setsid` a session.
        let ended = run("timeout 1000 sleep 1000", b"", 1).unwrap_err();
        assert_eq!(ended, "/bin/sh takes too long; it was ended");
        assert_eq!(run("setsid sleep 1000 & echo done", b"", 60).unwrap(), "done\n");
        for flood in ["cat /dev/zero", "cat /dev/zero >&2"] {
            let ended = run(flood, b"", 60).unwrap_err();
            assert_eq!(ended, "/bin/sh writes too much; it was ended");
        }
    }

    #[test]
    fn processes_that_hold_the_pipes_are_not_waited_for() {
        // The child leaves its group, as it can without a filter of system calls.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "setsid sleep 100 & echo $!"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        child.stdin.take();
        let began = clock::monotonic();
        let until = RunDeadline { deadline: began + Duration::from_secs(60), stopped: &|| false };
        let output =
            supervise(child, Path::new("/nowhere"), until, clock::monotonic).unwrap().unwrap();
        assert!(clock::monotonic() - began < Duration::from_secs(50));
        let pid = String::from_utf8(output).unwrap().trim().parse().unwrap();
        // It may have been ended with its group before it could leave.
        let _gone = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }

    #[test]
    fn files_and_processes_of_a_program_are_bounded() {
        for (command, expected) in [
            ("while :; do head -c 200M /dev/zero > $((i=i+1)); done", TOO_MUCH),
            ("while :; do : > $((i=i+1)); done", TOO_MUCH),
            ("for i in $(seq 200); do mkdir d; cd d; done; sleep 1000", TOO_MUCH),
            (
                "mkdir d; while :; do (sleep 1000 &); done",
                "starts too many processes; it was ended",
            ),
        ] {
            assert_eq!(run(command, b"", 100).unwrap_err(), format!("/bin/sh {expected}"));
        }
    }

    #[test]
    fn folders_without_permissions_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("c"), [1; 10_000]).unwrap();
        let close = |mode: u32| {
            fs::set_permissions(&below, Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(below.parent().unwrap(), Permissions::from_mode(mode)).unwrap();
        };
        close(0);
        let (bytes, count) = usage(folder.path());
        assert!(10_000 <= bytes && count == 3, "{bytes} {count}");
        close(0o400);
        usage(folder.path());
        assert_eq!(fs::metadata(&below).unwrap().mode() & 0o777, 0o700);
        remove(&folder.path().join("a"));
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn deep_folders_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().join("scratch");
        fs::create_dir_all(scratch.join("1/work")).unwrap();
        // Much deeper than the longest path.
        let mut folder = enter(CWD, &scratch.join("1/work")).unwrap();
        for _ in 0..5_000 {
            rustix::fs::mkdirat(&folder, c"d", Mode::RWXU).unwrap();
            folder = enter(&folder, c"d").unwrap();
        }
        rustix::fs::symlinkat(c"/etc", &folder, c"link").unwrap();
        let starter = Program { path: "/nowhere".into(), arguments: Vec::new() };
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let programs = small
            .spawn(|| Programs::new(starter, scratch, clock::monotonic, 1))
            .unwrap()
            .join()
            .unwrap();
        assert!(!programs.scratch.exists() && Path::new("/etc").exists());
    }

    #[test]
    fn programs_change_no_other_process() {
        for command in [
            "prlimit --pid $PPID --cpu=1000:1000",
            "renice -n 19 -p $PPID",
            "taskset -p 1 $PPID",
            "kill -0 $PPID",
            "unshare --user true",
            "ipcmk -M 1000",
            "python3 -c 'import os; os.memfd_create(\"a\")'",
        ] {
            let refused = run(command, b"", 60).unwrap_err();
            assert!(refused.contains("not permitted"), "{command}: {refused}");
        }
        // CLONE_PARENT, with the signal of a child.
        let clone = format!(
            "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); \
             c.syscall({}, 0x8011, 0, 0, 0, 0) == -1 and exit(os.strerror(ctypes.get_errno()))'",
            libc::SYS_clone
        );
        let refused = run(&clone, b"", 60).unwrap_err();
        assert!(refused.contains("not permitted"), "{refused}");
        assert_eq!(run("ulimit -n 100; nice -n 5 sh -c 'ulimit -n'", b"", 60).unwrap(), "100\n");
    }

    #[test]
    fn programs_stay_within_their_folder() {
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("file");
        let missing = run(&format!("echo x > {}; true", file.display()), b"", 60);
        assert!(missing.is_ok());
        let needed = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let needed = needed.handle_access(AccessFs::from_all(ABI::V1));
        let has_landlock = needed.and_then(Ruleset::create).is_ok();
        assert_eq!(file.exists(), !has_landlock);
        assert_eq!(run("ls /dev/shm", b"", 60).is_ok(), !has_landlock);
        assert_eq!(run("head -c 2 /dev/zero | wc -c", b"", 60).unwrap(), "2\n");
    }
}
