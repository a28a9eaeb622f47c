//! What the pure layers cannot do: a line that looks outside does not pass their lint.
//!
//! Each probe is one line put through the compiler with the rules of `projection/clippy.toml` or
//! `behaviors/clippy.toml`. A rule that is taken away makes its probe pass, and this test fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One line for each way out.
const PROBES: &[(&str, &str)] = &[
    ("a clock", "pub fn f() { let _ = std::time::Instant::now(); }"),
    ("the time of day", "pub fn f() { let _ = std::time::SystemTime::now(); }"),
    ("hash order", "pub fn f() -> std::collections::HashMap<u8, u8> { Default::default() }"),
    ("hash order of sets", "pub fn f() -> std::collections::HashSet<u8> { Default::default() }"),
    ("a random seed", "pub fn f() { let _ = std::hash::RandomState::new(); }"),
    ("a file", "pub fn f() { let _ = std::fs::File::open(\"x\"); }"),
    ("a file opened with options", "pub fn f() { let _ = std::fs::OpenOptions::new(); }"),
    ("a file's text", "pub fn f() { let _ = std::fs::read_to_string(\"x\"); }"),
    ("a file's bytes", "pub fn f() { let _ = std::fs::read(\"x\"); }"),
    ("a folder", "pub fn f() { let _ = std::fs::read_dir(\"x\"); }"),
    ("a file written", "pub fn f() { let _ = std::fs::write(\"x\", \"y\"); }"),
    ("a thread", "pub fn f() { let _ = std::thread::spawn(|| ()); }"),
    ("threads of a scope", "pub fn f() { std::thread::scope(|_| ()); }"),
    ("a pause", "pub fn f() { std::thread::sleep(std::time::Duration::ZERO); }"),
    ("which thread it is", "pub fn f() { let _ = std::thread::current(); }"),
    ("the environment", "pub fn f() { let _ = std::env::var(\"x\"); }"),
    ("the command line", "pub fn f() { let _ = std::env::args(); }"),
    ("which process it is", "pub fn f() { let _ = std::process::id(); }"),
    ("the network", "pub fn f() { let _ = std::net::TcpStream::connect(\"x\"); }"),
    ("a server", "pub fn f() { let _ = std::net::TcpListener::bind(\"x\"); }"),
    ("a datagram", "pub fn f() { let _ = std::net::UdpSocket::bind(\"x\"); }"),
    ("a program", "pub fn f() { let _ = std::process::Command::new(\"x\"); }"),
    ("what is typed", "pub fn f() { let _ = std::io::stdin(); }"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the root")
}

/// Puts a file through the lint of a layer.
fn lint(layer: &str, file: &Path) -> Output {
    let rustc = std::env::var("CARGO").map(PathBuf::from).unwrap_or_else(|_| "cargo".into());
    let driver = rustc.with_file_name("clippy-driver");
    let driver = if driver.is_file() { driver } else { "clippy-driver".into() };
    let mut command = Command::new(driver);
    command.env("CLIPPY_CONF_DIR", root().join(layer));
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit=metadata"]);
    command.args(["-D", "clippy::disallowed_methods", "-D", "clippy::disallowed_types"]);
    command.arg("--out-dir").arg(file.parent().expect("a file is in a folder")).arg(file);
    command.output().expect("the lint comes with the toolchain")
}

#[test]
fn no_line_of_a_pure_layer_can_look_outside() {
    let folder = tempfile::tempdir().unwrap();
    let harmless = folder.path().join("harmless.rs");
    std::fs::write(&harmless, "//! Pure.\npub fn f(a: u64) -> u64 { a + 1 }\n").unwrap();
    for layer in ["projection", "behaviors"] {
        let passed = lint(layer, &harmless);
        assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
        for (nth, (what, line)) in PROBES.iter().enumerate() {
            let probe = folder.path().join(format!("{layer}_{nth}.rs"));
            std::fs::write(&probe, format!("//! A way out.\n{line}\n")).unwrap();
            let refused = lint(layer, &probe);
            let told = String::from_utf8_lossy(&refused.stderr);
            assert!(!refused.status.success(), "{layer} can reach {what}: {line}");
            assert!(told.contains("disallowed"), "{layer}, {what}: {told}");
        }
    }
}

/// The lint is worth nothing where it is switched off.
#[test]
fn no_pure_layer_switches_its_lint_off() {
    let mut folders = vec![root().join("projection/src"), root().join("behaviors/src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&entry).unwrap();
                assert!(!text.contains("clippy::disallowed"), "{} allows", entry.display());
                files += 1;
            }
        }
    }
    assert!(files > 50, "the scan sees the layers: {files} files");
}
