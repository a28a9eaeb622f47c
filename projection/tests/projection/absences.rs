//! What the projection cannot reach: clocks, randomness, files, threads, the network, hash order.
//!
//! `clippy.toml` bans the types and functions; this scan bans the names, in code and not in
//! comments, so that neither a macro nor an `allow` gets around it.

#![allow(clippy::disallowed_methods, reason = "the test reads the sources; the library does not")]

use std::path::{Path, PathBuf};

const BANNED: [&str; 16] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::time",
    "std::io",
    "HashMap",
    "HashSet",
    "RandomState",
    "DefaultHasher",
    "SystemTime",
    "Instant",
    "rand::",
    "disallowed_",
    "unsafe",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The banned names in the code of a source.
fn reached(text: &str) -> Vec<&'static str> {
    let code = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<&str> = text.lines().filter(code).collect();
    BANNED.into_iter().filter(|name| code.iter().any(|line| line.contains(name))).collect()
}

#[test]
fn nothing_outside_is_reachable() {
    let mut paths = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut paths);
    assert!(paths.len() > 20, "the sources were found");
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        assert_eq!(reached(&text), Vec::<&str>::new(), "{}", path.display());
    }
}

#[test]
fn the_scan_sees_what_is_banned() {
    assert_eq!(reached("let now = std::time::Instant::now();"), ["std::time", "Instant"]);
    assert_eq!(reached("use std::{collections::HashMap};"), ["HashMap"]);
    assert_eq!(reached("// a HashMap would have an order of its own"), Vec::<&str>::new());
}

#[test]
fn the_lint_bans_them_too() {
    let text = include_str!("../../clippy.toml");
    let bans = [
        "std::collections::HashMap",
        "std::collections::HashSet",
        "std::time::Instant",
        "std::time::SystemTime",
        "std::fs::File",
        "std::thread::spawn",
        "std::fs::read",
    ];
    for name in bans {
        assert!(text.contains(&format!("\"{name}\"")), "{name}");
    }
}
