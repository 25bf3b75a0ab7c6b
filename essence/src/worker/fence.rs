//! Fences around this process: what it gives up for good before it looks at foreign bytes.
//!
//! Source: `landlock(7)` (files and network), `seccomp(2)` (system calls), `setrlimit(2)` (memory, time,
//! files), all Linux. Where the kernel lacks one, the others still hold, and whoever called is told.

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

/// Most files that a program of the site may have open.
const FILES_MAX: u64 = 256;

/// What is left to a program that the site has named, behind its fences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Files and folders that it may read, and run programs from.
    pub read: Vec<PathBuf>,
    /// Folders in which it may do everything.
    pub write: Vec<PathBuf>,
    /// Most memory of each of its processes, in bytes.
    pub memory_bytes_max: u64,
    /// Most CPU time of each of its processes, in seconds.
    pub cpu_secs_max: u64,
    /// Longest file that it may write, in bytes.
    pub file_bytes_max: u64,
}

/// Leaves this process what computing takes, and the files it has open: no file, no socket, no other
/// process, and at most so much memory. Returns what the system lacks, in words.
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

/// Leaves this process, and what it starts, what summarizing takes: its folders, and no network.
/// Returns what the system lacks, in words.
pub fn enclose_program(program: &Program) -> Vec<String> {
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
    // What it is asked for is in memory, where no filter looks: the C library takes the older call then.
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    calls(Ok(all_of(&[libc::SYS_clone3])), SeccompAction::Allow, unknown, &mut missing);
    if let Err(error) = seccompiler::apply_filter(OTHER_NUMBERS) {
        missing.push(format!("seccomp cannot be used: {error}"));
    }
    missing
}

/// The address space that is mapped already, in bytes: code, and what the allocator has set aside.
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

/// Leaves the process these files, no network, and signals to what it starts, by landlock. Returns whether
/// all of it holds.
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
    let outcome = restrict().map(|it| it.ruleset);
    let is_whole = matches!(outcome, Ok(RulesetStatus::FullyEnforced));
    match outcome {
        Ok(RulesetStatus::FullyEnforced) => {}
        Ok(RulesetStatus::PartiallyEnforced) => {
            missing.push(
                "the kernel's landlock is old: it fences off files and signals only in part"
                    .to_owned(),
            );
        }
        Ok(RulesetStatus::NotEnforced) => {
            missing.push(
                "the kernel has no landlock: files and signals are not fenced off by it".to_owned(),
            );
        }
        Err(error) => missing.push(format!("landlock cannot be used: {error}")),
    }
    is_whole
}

/// System calls, each with what its arguments are where it is meant; with none, it is meant always.
type Calls = BTreeMap<i64, Vec<SeccompRule>>;

fn all_of(names: &[i64]) -> Calls {
    names.iter().map(|it| (*it, Vec::new())).collect()
}

/// Meets calls whose argument of this place, from 0, compares so with `value`, as a number of 32 bits:
/// process ids are.
fn argument(place: u8, how: SeccompCmpOp, value: u32) -> Result<SeccompRule, BackendError> {
    let value = u64::from(value);
    SeccompRule::new(vec![SeccompCondition::new(place, SeccompCmpArgLen::Dword, how, value)?])
}

/// What a worker may call.
fn computing() -> Result<Calls, BackendError> {
    let mut calls = all_of(COMPUTING);
    // How a process that panics or runs out of memory ends itself; and nobody else.
    let itself = argument(0, SeccompCmpOp::Eq, std::process::id())?;
    calls.insert(libc::SYS_tgkill, vec![itself]);
    Ok(calls)
}

/// What a program of the site may not call. Without `has_signals`, a fence of signals, it can send them to
/// its own group only.
fn outward(has_signals: bool) -> Result<Calls, BackendError> {
    let mut calls = all_of(OUTWARD);
    for call in OF_A_PROCESS {
        calls.insert(*call, vec![argument(0, SeccompCmpOp::Ne, 0)?]);
    }
    // The first says what the second is the number of: 0 is a process.
    let others = [argument(0, SeccompCmpOp::Ne, 0)?, argument(1, SeccompCmpOp::Ne, 0)?];
    calls.insert(libc::SYS_setpriority, others.into());
    let others = OTHER_CHILDREN.iter().map(|it| it.unsigned_abs());
    let others = others.map(|it| argument(0, SeccompCmpOp::MaskedEq(it.into()), it));
    calls.insert(libc::SYS_clone, others.collect::<Result<_, _>>()?);
    if !has_signals {
        for call in SIGNALS {
            calls.insert(*call, vec![argument(0, SeccompCmpOp::Ne, 0)?]);
        }
        calls.extend(all_of(&[libc::SYS_pidfd_send_signal]));
        for (call, requests) in [(libc::SYS_fcntl, OWNERS), (libc::SYS_ioctl, OWNERS_OF_OLD)] {
            let requests = requests.iter().map(|it| argument(1, SeccompCmpOp::Eq, *it));
            calls.insert(call, requests.collect::<Result<_, _>>()?);
        }
    }
    Ok(calls)
}

/// Has the kernel do `matched` for the system calls named, and `other` for the rest.
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

/// Refuses what has a number of x32, by which most others can be had once more.
const OTHER_NUMBERS: &[sock_filter] = &[
    // The call's number, which comes first.
    sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
    // From 2^30 on.
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

/// The system calls of a process that computes, and talks over what it has open.
const COMPUTING: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The system calls that reach beyond files: the network, other processes, the kernel itself.
const OUTWARD: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Out of the group that is ended when the time is up.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_ioprio_set,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Memory that no process has, so that it counts for none, and stays when all have ended.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
];

/// Those that change a process by its id, where 0 is whoever calls.
const OF_A_PROCESS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Those that send a signal to a process by its id, where 0 is the group of whoever calls.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// Requests that say who is sent a signal, and which, when there is something to read (`fcntl(2)`): F_SETOWN,
/// F_SETSIG and F_SETOWN_EX; and by `ioctl(2)`, FIOSETOWN and SIOCSPGRP.
const OWNERS: &[u32] = &[8, 10, 15];
const OWNERS_OF_OLD: &[u32] = &[0x8901, 0x8902];

/// What has a new process see a system of its own, in which it may be root, or makes it a child of the
/// gatherer, which waits for none but the program.
const OTHER_CHILDREN: &[i32] = &[
    libc::CLONE_PARENT,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
