//! The system calls that a sandboxed command may not make, as a seccomp program.
//!
//! It is a list of what is refused: the kernel's doors to other processes, mounts, namespaces,
//! modules, keys and raw devices, and sockets by which a command could reach a service of this
//! machine. Everything else goes through, so that ordinary programs run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{IntoRawFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// Refused with "not permitted", whatever their arguments.
const REFUSED: [i64; 40] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_io_uring_setup,
    libc::SYS_fanotify_init,
];

/// The families of sockets that stay: the internet's, and what `getaddrinfo` asks the kernel by.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The program, open and left open over `exec`, for the sandbox to load.
pub(crate) fn open_for_child() -> io::Result<RawFd> {
    let program = program().map_err(io::Error::other)?;
    // Without the flag that closes it on exec: this process starts nothing but the sandbox.
    let mut file = File::from(memfd_create("filter", MemfdFlags::empty())?);
    for step in without_clone3().into_iter().chain(program) {
        file.write_all(&step.code.to_ne_bytes())?;
        file.write_all(&[step.jt, step.jf])?;
        file.write_all(&step.k.to_ne_bytes())?;
    }
    file.rewind()?;
    Ok(file.into_raw_fd())
}

/// Says of `clone3` that there is none: its flags lie in memory where no filter sees them, and
/// every library then takes `clone`. Stands before the program, which begins by loading what it
/// needs.
fn without_clone3() -> [sock_filter; 3] {
    let step = |code: u32, jt, k| sock_filter { code: code as u16, jt, jf: 0, k };
    let number = libc::SYS_clone3 as u32;
    let none = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let load = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let mut compare = step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, number);
    compare.jf = 1;
    [load, compare, step(libc::BPF_RET | libc::BPF_K, 0, none)]
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for number in REFUSED {
        rules.insert(number, Vec::new());
    }
    let when = |argument, condition, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, condition, value)
    };
    // A socket of any other family, such as one that leads to a service through a file.
    let others = FAMILIES.map(|family| when(0, SeccompCmpOp::Ne, family as u64));
    let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(others)?]);
    // Typing into the terminal that the host was started from.
    let typing = when(1, SeccompCmpOp::Eq, libc::TIOCSTI)?;
    let console = when(1, SeccompCmpOp::Eq, libc::TIOCLINUX)?;
    rules.insert(
        libc::SYS_ioctl,
        vec![SeccompRule::new(vec![typing])?, SeccompRule::new(vec![console])?],
    );
    // A new user namespace, where a command would be root again.
    let user = libc::CLONE_NEWUSER as u64;
    let new_user = when(0, SeccompCmpOp::MaskedEq(user), user)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![new_user])?]);
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let target = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?.try_into()
}
