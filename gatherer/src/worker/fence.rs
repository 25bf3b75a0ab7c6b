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
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
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
    calls(COMPUTING, SeccompAction::Errno(EPERM), SeccompAction::Allow, &mut missing);
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
    files(&program.read, &program.write, &mut missing);
    calls(OUTWARD, SeccompAction::Allow, SeccompAction::Errno(EPERM), &mut missing);
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

/// Leaves the process these files, and no network, by landlock.
fn files(read: &[PathBuf], write: &[PathBuf], missing: &mut Vec<String>) {
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
    match restrict().map(|it| it.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => {}
        Ok(RulesetStatus::PartiallyEnforced) => {
            missing
                .push("the kernel's landlock is old: it fences off files only in part".to_owned());
        }
        Ok(RulesetStatus::NotEnforced) => {
            missing.push("the kernel has no landlock: files are not fenced off by it".to_owned());
        }
        Err(error) => missing.push(format!("landlock cannot be used: {error}")),
    }
}

/// Has the kernel do `matched` for the system calls named, and `other` for the rest.
fn calls(names: &[i64], other: SeccompAction, matched: SeccompAction, missing: &mut Vec<String>) {
    let rules: BTreeMap<i64, Vec<_>> = names.iter().map(|it| (*it, Vec::new())).collect();
    let apply = || {
        let target = TARGET.ok_or_else(|| "its filters are not for this processor".to_owned())?;
        let filter = SeccompFilter::new(rules, other, matched, target);
        let filter = filter.and_then(BpfProgram::try_from).map_err(|it| it.to_string())?;
        seccompiler::apply_filter(&filter).map_err(|it| it.to_string())
    };
    if let Err::<(), String>(error) = apply() {
        missing.push(format!("seccomp cannot be used: {error}"));
    }
}

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
    // How a process that panics or runs out of memory ends itself.
    libc::SYS_tgkill,
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
