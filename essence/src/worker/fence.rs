//! Fences around this process: rights that it gives up for good before it reads foreign bytes.
//!
//! Source: `landlock(7)` (files and network), `seccomp(2)` (system calls), `setrlimit(2)` (memory,
//! time, files), all of Linux. If the kernel lacks one of them, the others still apply, and the
//! caller gets a message.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use serde::{Deserialize, Serialize};

/// Maximum number of files that a program of the site may have open.
const FILES_MAX: u64 = 256;

/// Rights of a program of the site behind its fences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFence {
    /// Files and folders that the program may read, and from which it may run programs.
    pub read: Vec<PathBuf>,
    /// Folders in which the program may do everything.
    pub write: Vec<PathBuf>,
    /// Maximum memory of each of the program's processes, in bytes.
    pub memory_bytes_max: u64,
    /// Maximum CPU time of each of the program's processes, in seconds.
    pub cpu_secs_max: u64,
    /// Maximum size of a file that the program may write, in bytes.
    pub file_bytes_max: u64,
}

/// Restricts this process to computing and to its open files: no new files, sockets or other
/// processes, and at most `memory_bytes_max` of additional memory. Returns the missing fences, in
/// words.
pub fn enclose(memory_bytes_max: u64) -> Vec<String> {
    let mut missing = Vec::new();
    let limits = [
        (Resource::As, memory_bytes_max.saturating_add(mapped_bytes())),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
    ];
    limit(&limits, &mut missing);
    files(&[], &[], &mut missing);
    calls(computing(), SeccompAction::Errno(EPERM), SeccompAction::Allow, &mut missing);
    missing
}

/// Restricts this process and its children to the rights in `program`, without network access.
/// Returns the missing fences, in words.
pub fn enclose_program(program: &ProgramFence) -> Vec<String> {
    let mut missing = Vec::new();
    let limits = [
        (Resource::As, program.memory_bytes_max),
        (Resource::Cpu, program.cpu_secs_max),
        (Resource::Fsize, program.file_bytes_max),
        (Resource::Nofile, FILES_MAX),
        (Resource::Core, 0),
    ];
    limit(&limits, &mut missing);
    let has_signals = files(&program.read, &program.write, &mut missing);
    let refused = SeccompAction::Errno(EPERM);
    calls(outward(has_signals), SeccompAction::Allow, refused, &mut missing);
    // The flags of clone3 are in memory, which filters cannot read. Without clone3, libc uses
    // clone.
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    calls(Ok(all_of(&[&[libc::SYS_clone3]])), SeccompAction::Allow, unknown, &mut missing);
    if let Err(error) = seccompiler::apply_filter(OTHER_NUMBERS) {
        missing.push(format!("seccomp cannot be used: {error}"));
    }
    missing
}

/// Returns the size of the address space that is already mapped, in bytes: code, and the
/// allocator's reserves.
fn mapped_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

fn limit(limits: &[(Resource, u64)], missing: &mut Vec<String>) {
    for (resource, most) in limits {
        let limit = Rlimit { current: Some(*most), maximum: Some(*most) };
        if let Err(error) = setrlimit(*resource, limit) {
            missing.push(format!("the limit {resource:?} cannot be set: {error}"));
        }
    }
}

/// Restricts the process by landlock to these files, to no network, and to signals to itself and
/// its children. Returns whether all restrictions apply.
fn files(read: &[PathBuf], write: &[PathBuf], missing: &mut Vec<String>) -> bool {
    let version = ABI::V6;
    let restrict = || -> Result<RestrictionStatus, RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(version))?
            .handle_access(AccessNet::from_all(version))?
            .scope(Scope::from_all(version))?
            .create()?
            .add_rules(path_beneath_rules(read, AccessFs::from_read(version)))?
            .add_rules(path_beneath_rules(write, AccessFs::from_all(version)))?
            .restrict_self()
    };
    let why = match restrict().map(|it| it.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => return true,
        Ok(RulesetStatus::PartiallyEnforced) => {
            "the kernel's landlock is old: it fences off files and signals only in part".to_owned()
        }
        Ok(RulesetStatus::NotEnforced) => {
            "the kernel has no landlock: files and signals are not fenced off by it".to_owned()
        }
        Err(error) => format!("landlock cannot be used: {error}"),
    };
    missing.push(why);
    false
}

/// System calls, each with rules on its arguments: one of the rules has to match; without rules,
/// the call always matches.
type Calls = BTreeMap<i64, Vec<SeccompRule>>;

fn all_of(groups: &[&[i64]]) -> Calls {
    groups.iter().copied().flatten().map(|it| (*it, Vec::new())).collect()
}

/// Matches calls whose argument `index`, from 0, compares by `operator` with `value`. The argument
/// is read as a number of 32 bits, like process ids.
fn argument(index: u8, operator: SeccompCmpOp, value: u32) -> Result<SeccompRule, BackendError> {
    let value = u64::from(value);
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?])
}

/// Returns the calls that a worker may make.
fn computing() -> Result<Calls, BackendError> {
    let mut calls = all_of(COMPUTING);
    // A process that panics or runs out of memory ends itself by this call; it may not end other
    // processes.
    let itself = argument(0, SeccompCmpOp::Eq, std::process::id())?;
    calls.insert(libc::SYS_tgkill, vec![itself]);
    Ok(calls)
}

/// Returns the calls that a program of the site may not make. Without landlock's fence around
/// signals (`has_signals` is false), the program can send signals to its own group only.
fn outward(has_signals: bool) -> Result<Calls, BackendError> {
    let mut calls = all_of(OUTWARD);
    for call in OF_A_PROCESS.iter().copied().flatten() {
        calls.insert(*call, vec![argument(0, SeccompCmpOp::Ne, 0)?]);
    }
    // The first argument is the kind of the id in the second argument: 0 means a process.
    let others = [argument(0, SeccompCmpOp::Ne, 0)?, argument(1, SeccompCmpOp::Ne, 0)?];
    calls.insert(libc::SYS_setpriority, others.into());
    let others = OTHER_CHILDREN.iter().copied().flatten().map(|it| it.unsigned_abs());
    let others = others.map(|it| argument(0, SeccompCmpOp::MaskedEq(it.into()), it));
    calls.insert(libc::SYS_clone, others.collect::<Result<_, _>>()?);
    if !has_signals {
        for call in SIGNALS.iter().copied().flatten() {
            calls.insert(*call, vec![argument(0, SeccompCmpOp::Ne, 0)?]);
        }
        calls.extend(all_of(&[&[libc::SYS_pidfd_send_signal]]));
        for (call, requests) in [(libc::SYS_fcntl, OWNERS), (libc::SYS_ioctl, OWNERS_OF_OLD)] {
            let requests = requests.iter().map(|it| argument(1, SeccompCmpOp::Eq, *it));
            calls.insert(call, requests.collect::<Result<_, _>>()?);
        }
    }
    Ok(calls)
}

/// Makes the kernel do `matched` for system calls that match the rules, and `other` for the rest.
fn calls(
    rules: Result<Calls, BackendError>,
    other: SeccompAction,
    matched: SeccompAction,
    missing: &mut Vec<String>,
) {
    let apply = || {
        let target = TARGET.ok_or_else(|| "its filters are not for this processor".to_owned())?;
        let filter = rules.and_then(|it| SeccompFilter::new(it, other, matched, target));
        let filter = filter.and_then(BpfProgram::try_from).map_err(|it| it.to_string())?;
        seccompiler::apply_filter(&filter).map_err(|it| it.to_string())
    };
    if let Err::<(), String>(error) = apply() {
        missing.push(format!("seccomp cannot be used: {error}"));
    }
}

/// Refuses the call numbers of x32, which repeat most other calls.
const OTHER_NUMBERS: &[sock_filter] = &[
    // Load the call's number, which is the first field.
    sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
    // Compare: numbers from 2^30 on belong to x32.
    sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | EPERM },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
];

const TARGET: Option<TargetArch> = if cfg!(target_arch = "x86_64") {
    Some(TargetArch::x86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(TargetArch::aarch64)
} else if cfg!(target_arch = "riscv64") {
    Some(TargetArch::riscv64)
} else {
    None
};

const EPERM: u32 = libc::EPERM.unsigned_abs();

/// System calls for a process that only computes and uses its open files and sockets.
const COMPUTING: &[&[i64]] = &[
    &[libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev],
    &[libc::SYS_lseek, libc::SYS_fstat, libc::SYS_close],
    &[libc::SYS_recvfrom, libc::SYS_sendto],
    &[libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap],
    &[libc::SYS_mprotect, libc::SYS_madvise, libc::SYS_brk],
    &[libc::SYS_futex, libc::SYS_sched_yield, libc::SYS_sched_getaffinity],
    &[libc::SYS_clock_gettime, libc::SYS_clock_nanosleep, libc::SYS_getrandom],
    &[libc::SYS_sigaltstack, libc::SYS_rt_sigaction],
    &[libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn],
    &[libc::SYS_restart_syscall, libc::SYS_getpid, libc::SYS_gettid],
    &[libc::SYS_exit, libc::SYS_exit_group],
];

/// System calls that reach beyond files: the network, other processes, the kernel itself.
const OUTWARD: &[&[i64]] = &[
    &[libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect, libc::SYS_bind],
    &[libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4],
    // These would leave the process group that is ended at the deadline.
    &[libc::SYS_setsid, libc::SYS_setpgid],
    &[libc::SYS_ioprio_set],
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev],
    &[libc::SYS_pidfd_open, libc::SYS_pidfd_getfd],
    &[libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root],
    &[libc::SYS_chroot, libc::SYS_unshare, libc::SYS_setns],
    &[libc::SYS_bpf, libc::SYS_perf_event_open],
    &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key],
    // Memory that belongs to no process: no limit applies to it, and it remains when all processes
    // have ended.
    &[libc::SYS_shmget, libc::SYS_msgget, libc::SYS_semget],
    &[libc::SYS_mq_open, libc::SYS_memfd_create, libc::SYS_memfd_secret],
    &[libc::SYS_io_uring_setup, libc::SYS_userfaultfd],
    &[libc::SYS_kexec_load, libc::SYS_init_module, libc::SYS_finit_module],
    &[libc::SYS_delete_module, libc::SYS_reboot],
    &[libc::SYS_swapon, libc::SYS_swapoff],
    &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_sethostname],
];

/// System calls that change a process given by its id, where 0 is the caller.
const OF_A_PROCESS: &[&[i64]] = &[
    &[libc::SYS_prlimit64, libc::SYS_sched_setaffinity],
    &[libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr],
];

/// System calls that send a signal to a process given by its id, where 0 is the caller's group.
const SIGNALS: &[&[i64]] = &[
    &[libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill],
    &[libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo],
];

/// F_SETOWN, F_SETSIG and F_SETOWN_EX of `fcntl(2)`: who gets a signal about readable input, and
/// which.
const OWNERS: &[u32] = &[8, 10, 15];
/// FIOSETOWN and SIOCSPGRP of `ioctl(2)`, which set the same receiver.
const OWNERS_OF_OLD: &[u32] = &[0x8901, 0x8902];

/// Flags that give a new process its own namespaces, in which it may be root, or that make it a
/// child of the gatherer, which waits only for the program.
const OTHER_CHILDREN: &[&[i32]] = &[
    &[libc::CLONE_PARENT],
    &[libc::CLONE_NEWNS, libc::CLONE_NEWCGROUP, libc::CLONE_NEWUTS, libc::CLONE_NEWIPC],
    &[libc::CLONE_NEWUSER, libc::CLONE_NEWPID, libc::CLONE_NEWNET],
];
