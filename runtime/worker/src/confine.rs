//! What the worker gives up before it reads its first script.
//!
//! Scripts can reach nothing by themselves: their language has no files, clocks or sockets. This is
//! for the day on which the language has a hole. Limits and the filter of system calls hold on
//! every kernel that runs this program; Landlock is added where the kernel has it.

use std::collections::BTreeMap;
use std::io;

use landlock::{Access, AccessFs, AccessNet, Ruleset, RulesetAttr};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// How much memory the worker may address, in bytes.
pub(crate) const MEMORY_MAX: u64 = 1 << 30;

/// The system calls that a process makes that only computes, reads and writes what is open.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getrusage,
    libc::SYS_tgkill,
    libc::SYS_membarrier,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_prlimit64,
];

/// Gives everything up that reacting does not need. What is open stays open.
pub(crate) fn confine() -> io::Result<()> {
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::As, limit(MEMORY_MAX))?;
    setrlimit(Resource::Core, limit(0))?;
    end_with_the_host()?;
    // An older kernel takes what it knows of it, or nothing; the filter holds in any case.
    let files = AccessFs::from_all(landlock::ABI::V5);
    let net = AccessNet::from_all(landlock::ABI::V5);
    let rules = Ruleset::default().handle_access(files).and_then(|rules| rules.handle_access(net));
    let restricted = rules.and_then(|rules| rules.create()).and_then(|rules| rules.restrict_self());
    restricted.map_err(io::Error::other)?;
    filter()
}

/// Ends this process when its host is gone, also from the midst of an endless computation.
fn end_with_the_host() -> io::Result<()> {
    let watch = || {
        let stdin = rustix::stdio::stdin();
        // Nothing is asked for: the end of the other side is told in any case.
        let mut host = [PollFd::new(&stdin, PollFlags::RDHUP)];
        while poll(&mut host, None).is_err() || host[0].revents().is_empty() {}
        std::process::exit(0)
    };
    // Without a name: giving itself one is a system call that is not let through any more.
    std::thread::Builder::new().stack_size(64 << 10).spawn(watch)?;
    Ok(())
}

/// From now on any other system call ends the process.
fn filter() -> io::Result<()> {
    let rules = ALLOWED.iter().map(|number| (*number, Vec::new())).collect::<BTreeMap<_, _>>();
    let target = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let (other, listed) = (SeccompAction::KillProcess, SeccompAction::Allow);
    let filter = SeccompFilter::new(rules, other, listed, target).map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    seccompiler::apply_filter_all_threads(&program).map_err(io::Error::other)
}
