//! Ways out of the sandbox. Each case is a script that prints `ESCAPED` if it got through; some are
//! run without the sandbox too, where they must print it, so that a case cannot pass by failing.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use effect::{Answer, Sandbox};
use serde_json::json;

use crate::support::{BOTH, Flock, act, block_on, mark, processes_with};

/// A case: its name, its script, and whether it gets through without a sandbox, whoever runs it.
type Case = (&'static str, &'static str, Open);

/// Whether a case is tried without the sandbox first.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Yes,
    No,
}
use Open::{No, Yes};

/// What is read that is not the flock's.
#[rustfmt::skip]
const READING: [Case; 12] = [
    ("a file in /tmp", "grep -q canary $OUT_TMP/secret && echo ESCAPED", Yes),
    ("the same through the root of process 1", "grep -q canary /proc/1/root$OUT_TMP/secret && echo ESCAPED", No),
    ("the same through its own root", "grep -q canary /proc/self/root$OUT_TMP/secret && echo ESCAPED", Yes),
    ("the homes", "ls -A /home /root $REAL_HOME 2>/dev/null | grep -v : | grep -q . && echo ESCAPED", No),
    ("a key of ssh", "cat $REAL_HOME/.ssh/* /root/.ssh/* 2>/dev/null | grep -q . && echo ESCAPED", No),
    ("hashes of passwords", "grep -q : /etc/shadow && echo ESCAPED", No),
    ("a hard link to them", "ln /etc/shadow stolen 2>/dev/null && grep -q : stolen && echo ESCAPED", No),
    ("sockets of services", "ls -A /run | grep -v '^systemd$' | grep -q . && echo ESCAPED", No),
    ("the store of the flock", "test -e $FLOCK/.starling/store.redb && echo ESCAPED", Yes),
    ("the environment of the host", "tr '\\0' '\\n' < /proc/$HOST/environ | grep -q . && echo ESCAPED", No),
    ("memory of the machine", "head -c 1 /dev/mem /dev/kmem /proc/kcore 2>/dev/null | grep -q . && echo ESCAPED", No),
    ("a disk", "head -c 1 /dev/vda /dev/sda /dev/nvme0n1 2>/dev/null | grep -q . && echo ESCAPED", No),
];

/// What is written that is not the workspace's.
#[rustfmt::skip]
const WRITING: [Case; 20] = [
    ("a new file outside", "touch $OUT/new && echo ESCAPED", Yes),
    ("a file outside", "echo evil > $OUT/secret && echo ESCAPED", Yes),
    ("through a link", "ln -s $OUT link && echo evil > link/linked && echo ESCAPED", Yes),
    ("through a hard link", "ln $OUT/secret hard && echo evil > hard && echo ESCAPED", Yes),
    ("by moving a file out", "echo evil > moved && mv moved $OUT/moved && echo ESCAPED", Yes),
    ("/etc", "touch /etc/starling-escape && echo ESCAPED", No),
    ("/usr/bin", "touch /usr/bin/starling-escape && echo ESCAPED", No),
    ("the settings of the flock", "echo '[grants]' >> $FLOCK/flock.toml && echo ESCAPED", Yes),
    ("the settings, by moving others there", "echo x > f && mv f $FLOCK/flock.toml && echo ESCAPED", Yes),
    ("a new behavior", "echo x > $FLOCK/behaviors/evil.star && echo ESCAPED", Yes),
    ("a new tool", "echo x > $FLOCK/tools/evil.toml && echo ESCAPED", Yes),
    ("its own tool file", "echo x >> $FLOCK/tools/it.toml && echo ESCAPED", Yes),
    ("the folder of behaviors", "mv $FLOCK/behaviors $FLOCK/gone && echo ESCAPED", Yes),
    ("the flock as a whole", "rm $FLOCK/flock.toml && echo ESCAPED", Yes),
    ("the kernel's settings", "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESCAPED", No),
    ("sysrq", "echo h > /proc/sysrq-trigger && echo ESCAPED", No),
    ("/sys", "echo 0 > /sys/kernel/profiling && echo ESCAPED", No),
    ("a cgroup", "mkdir /sys/fs/cgroup/starling-escape /sys/fs/cgroup/pids/starling-escape && echo ESCAPED", No),
    ("a device", "mknod disk b 254 0 && echo ESCAPED", No),
    ("more than its /tmp holds", "head -c 400000000 /dev/zero > /tmp/fill && echo ESCAPED", No),
];

/// Who is reached.
#[rustfmt::skip]
const REACHING: [Case; 10] = [
    ("a service of this machine",
     "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{PORT}\") and print \"ESCAPED\"'", Yes),
    ("it by another address", "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.2:$ENV{PORT}\") and print \"ESCAPED\"'", Yes),
    ("it by UDP",
     "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Proto => \"udp\", PeerAddr => \"127.0.0.1:$ENV{PORT}\") \
      and $s->send(\"x\")'", No),
    ("a socket that is a file",
     "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) \
      and connect(S, pack_sockaddr_un(\"$ENV{OUT}/sock\")) and print \"ESCAPED\"'", Yes),
    ("a socket that has a name only",
     "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) \
      and connect(S, pack(\"Sa*\", AF_UNIX, \"\\0$ENV{NAME}\")) and print \"ESCAPED\"'", Yes),
    ("the wire itself", "perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) and print \"ESCAPED\"'", No),
    ("its packets", "perl -e 'socket(S, 17, 3, 768) and print \"ESCAPED\"'", No),
    ("the hypervisor", "perl -e 'socket(S, 40, 1, 0) and print \"ESCAPED\"'", No),
    ("the kernel's crypto", "perl -e 'socket(S, 38, 5, 0) and print \"ESCAPED\"'", No),
    ("bluetooth", "perl -e 'socket(S, 31, 3, 1) and print \"ESCAPED\"'", No),
];

/// What is done to processes, namespaces and the kernel. A system call that is refused gives
/// "not permitted", and nothing else counts as refused.
#[rustfmt::skip]
const DOING: [Case; 26] = [
    ("the host is seen", "test -e /proc/$HOST/exe && echo ESCAPED; kill -0 $HOST && echo ESCAPED", No),
    ("the host is signalled", "kill -CONT $HOST && echo ESCAPED", Yes),
    ("the host is slowed", "renice -n 1 -p $HOST && echo ESCAPED", No),
    ("a child outlives it", "(setsid sh -c 'while true; do sleep 0.1; : MARK; done' >/dev/null 2>&1 &)", No),
    ("a grandchild outlives it", "(setsid sh -c '(setsid sh -c \"while true; do sleep 0.1; : MARK; done\" &) &' >/dev/null 2>&1 &)", No),
    ("it is root in a namespace", "unshare -U true && echo ESCAPED", No),
    ("it mounts in a namespace", "unshare -rm mount -t tmpfs none /mnt && echo ESCAPED", No),
    ("it enters another's", "nsenter -t 1 -m true && echo ESCAPED", No),
    ("it mounts", "mount --bind /etc /mnt && echo ESCAPED", No),
    ("it makes the root writable", "mount -o remount,rw,bind / && echo ESCAPED", No),
    ("it uncovers the flock", "umount -l $FLOCK && echo ESCAPED", No),
    ("it changes its root", "chroot / true && echo ESCAPED", No),
    ("it becomes another user", "setpriv --reuid 1 --clear-groups true && echo ESCAPED", No),
    ("ptrace", "CALL 101 0", No),
    ("process_vm_readv", "CALL 310 0", No),
    ("bpf", "CALL 321 0", No),
    ("keyctl", "CALL 250 0", No),
    ("perf_event_open", "CALL 298 0", No),
    ("io_uring_setup", "CALL 425 0", No),
    ("userfaultfd", "CALL 323 0", No),
    ("open_by_handle_at", "CALL 304 0", No),
    ("finit_module", "CALL 313 0", No),
    ("kexec_load", "CALL 246 0", No),
    ("setns", "CALL 308 0", No),
    ("clone into a user namespace", "CALL 56 268435456", No),
    ("typing into the terminal", "perl -e '$b = \"x\"; ioctl(STDERR, 0x5412, $b); print \"ESCAPED\" unless $! == 1'", No),
];

/// Calls the kernel by number, which means the same on this kind of processor only.
const CALL: &str = "perl -e '$r = syscall(NUMBER, FIRST, 0, 0, 0, 0); exit 0 if $r == 0 && NUMBER == 56; \
                    print \"ESCAPED\" unless $r == -1 && $! == 1'";

/// Everything that the cases want to reach.
struct World {
    flock: Flock,
    out: PathBuf,
    out_tmp: tempfile::TempDir,
    mark: String,
    listener: TcpListener,
    udp: UdpSocket,
    named: String,
    sockets: [UnixListener; 2],
}

impl World {
    fn new(turn: &str) -> Self {
        let flock = Flock::new();
        for folder in ["behaviors", ".starling"] {
            fs::create_dir_all(flock.path().join(folder)).expect("made");
        }
        fs::write(flock.path().join("flock.toml"), "name = \"it\"\n").expect("written");
        fs::write(flock.path().join(".starling/store.redb"), "history").expect("written");
        let out =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{turn}-{}", std::process::id()));
        drop(fs::remove_dir_all(&out));
        fs::create_dir_all(&out).expect("made");
        fs::write(out.join("secret"), "canary").expect("written");
        let out_tmp = tempfile::tempdir().expect("a folder");
        fs::write(out_tmp.path().join("secret"), "canary").expect("written");
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let port = listener.local_addr().expect("bound").port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).expect("the same port");
        udp.set_nonblocking(true).expect("set");
        // A child that another test is starting may hold the last world's name for a moment.
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let nth = WORLDS.fetch_add(1, Ordering::Relaxed);
        let named = format!("starling-{turn}-{nth}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(named.as_bytes()).expect("a name");
        let by_name = UnixListener::bind_addr(&address).expect("bound");
        let by_path = UnixListener::bind(out.join("sock")).expect("bound");
        let mark = mark(&flock.path());
        World { flock, out, out_tmp, mark, listener, udp, named, sockets: [by_name, by_path] }
    }

    fn script(&self, script: &str) -> String {
        let script = match script.strip_prefix("CALL ") {
            Some(numbers) => {
                let (number, first) = numbers.split_once(' ').expect("two numbers");
                CALL.replace("NUMBER", number).replace("FIRST", first)
            }
            None => script.replace("MARK", &self.mark),
        };
        let port = self.listener.local_addr().expect("bound").port();
        let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
        format!(
            "export FLOCK={} OUT={} OUT_TMP={} HOST={} PORT={port} NAME={} REAL_HOME={home}\n\
             said=$( ({script}) 2>&1 </dev/null)\n\
             case \"$said\" in *ESCAPED*) echo '\"ESCAPED\"';; *) echo '\"kept\"';; esac",
            self.flock.path().display(),
            self.out.display(),
            self.out_tmp.path().display(),
            std::process::id(),
            self.named,
        )
    }

    fn escapes(&self, sandbox: Sandbox, script: &str) -> bool {
        self.flock.tool("it", &self.script(script), "effects = [\"write\"]");
        let tool = self.flock.load(sandbox, "tool:it");
        match block_on(act(&*tool, self.flock.call("tool:it", json!({})))) {
            Answer::Succeeded { result, .. } => result == json!("ESCAPED"),
            other => panic!("the script runs to its end: {script}: {other:?}"),
        }
    }

    /// What is different from how it was.
    fn harm(&self) -> Vec<String> {
        let mut harm = Vec::new();
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).expect("there").flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let mut expect = |what: &str, fine: bool| {
            if !fine {
                harm.push(what.to_owned());
            }
        };
        let flock = self.flock.path();
        expect("outside", names(&self.out) == ["secret", "sock"]);
        let secret = fs::read_to_string(self.out.join("secret"));
        expect("the secret", secret.is_ok_and(|text| text == "canary"));
        let settings = fs::read_to_string(flock.join("flock.toml"));
        expect("the settings", settings.is_ok_and(|text| text == "name = \"it\"\n"));
        let parts = [".starling", "behaviors", "flock.toml", "tools", "work"];
        expect("the flock", names(&flock) == parts);
        expect("the behaviors", names(&flock.join("behaviors")).is_empty());
        expect("the tools", names(&flock.join("tools")) == ["it.sh", "it.toml"]);
        expect("a visitor", self.listener.accept().is_err());
        expect("a letter", self.udp.recv(&mut [0; 8]).is_err());
        for socket in &self.sockets {
            socket.set_nonblocking(true).expect("set");
            expect("a visitor by a socket", socket.accept().is_err());
        }
        expect("a process", processes_with(&self.mark).is_empty());
        harm
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.out));
    }
}

#[test]
fn no_way_leads_out_of_the_sandbox() {
    Sandbox::Required.check().expect("the sandbox is there: tests/run installs bubblewrap");
    let cases: Vec<Case> = [&READING[..], &WRITING, &REACHING, &DOING].concat();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let world = World::new("kept");
    let mut through = Vec::new();
    for (name, script, _) in &cases {
        if script.starts_with("CALL ") && std::env::consts::ARCH != "x86_64" {
            continue;
        }
        if world.escapes(Sandbox::Required, script) {
            through.push((*name).to_owned());
        }
        through.extend(world.harm().into_iter().map(|what| format!("{name}: {what} changed")));
        // What a case left in the workspace is its own business.
        drop(fs::remove_dir_all(world.flock.work()));
        fs::create_dir_all(world.flock.work()).expect("made");
    }
    assert_eq!(through, [""; 0], "these got through");
}

/// The cases that anybody can do get through when nobody stands in the way.
#[test]
fn without_the_sandbox_the_same_scripts_get_through() {
    let cases = [&READING[..], &WRITING, &REACHING, &DOING].concat();
    for (name, script, _) in cases.into_iter().filter(|(_, _, open)| *open == Yes) {
        let world = World::new("open");
        assert!(world.escapes(Sandbox::Off, script), "{name}");
    }
}

/// A command that starts processes without end fills its own bound, and not the machine: where a
/// control group can be made also as root, else where the user is not root.
#[test]
fn a_fork_bomb_fills_only_its_own_bound() {
    let flock = Flock::new();
    let script = "n=0; while [ $n -lt 3000 ]; do sleep 30 & n=$((n+1)); done; echo '{}'";
    flock.tool("it", script, "class = \"opaque\"");
    for sandbox in BOTH {
        let tool = flock.load(sandbox, "tool:it");
        let answer = block_on(act(&*tool, flock.call("tool:it", json!({}))));
        match answer {
            Answer::Failed(error) if effect::processes_are_bounded() => {
                assert!(error.message.to_lowercase().contains("fork"), "{error}");
            }
            Answer::Succeeded { .. } if !effect::processes_are_bounded() => {}
            other => panic!("{sandbox:?}: {other:?}"),
        }
    }
}

/// Ten gigabytes of output, and more memory and processes than it may have, are its own trouble.
#[test]
fn a_flood_drowns_only_itself() {
    let flock = Flock::new();
    let rest = "memory_bytes = 200000000\ntimeout = \"20s\"";
    let cases = [
        (
            "head -c 10000000000 /dev/zero",
            Duration::from_secs(2),
            "output.too_large process.timeout",
        ),
        (
            "perl -e '$x = \"x\" x 1000000000; print length($x)'",
            Duration::from_secs(10),
            "process.exit",
        ),
        (
            "for i in 1 2 3 4 5 6 7 8; do (while true; do :; done) & done; wait",
            Duration::from_millis(500),
            "process.timeout",
        ),
    ];
    for (script, timeout, kinds) in cases {
        flock.tool("it", script, rest);
        let tool = flock.load(Sandbox::Required, "tool:it");
        let mut call = flock.call("tool:it", json!({}));
        call.timeout = timeout;
        let begun = std::time::Instant::now();
        let (Answer::Failed(error) | Answer::Unknown(error)) = block_on(act(&*tool, call)) else {
            panic!("{script} ends badly")
        };
        assert!(kinds.contains(&error.kind), "{script}: {error}");
        assert!(begun.elapsed() < timeout + Duration::from_secs(5), "{script} ended in time");
    }
}
