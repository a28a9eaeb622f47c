//! How the code of this project looks, checked as a test: layers, sizes, words and dependencies.
//!
//! All are text scans. Each finding is one line that says where, and the test shows all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;
const TEXT_COLUMNS_MAX: usize = 140;

/// The layers, lowest first; each may import only what stands before it.
const LAYERS: [(&str, &str); 9] = [
    ("log", "log"),
    ("projection", "projection"),
    ("behaviors", "behaviors"),
    ("script", "behaviors/script"),
    ("forms", "behaviors/forms"),
    ("effect", "runtime/effect"),
    ("worker", "runtime/worker"),
    ("runtime", "runtime"),
    ("tests", "tests"),
];

/// Every dependency of every member, and why it is there.
const DEPENDENCIES: &str = include_str!("dependencies.txt");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the root").into()
}

/// All Rust files of the project, with their text and their path from the root.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (_, folder) in LAYERS {
        walk(&root().join(folder), &mut found);
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 10, "the scan sees the project");
    found
}

fn walk(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the project can be read").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let skipped = ["target", "fuzz", "peers", "golden", "node_modules"];
        if path.is_dir() && !skipped.iter().any(|skip| name == *skip) {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source file is text");
            let path = path.strip_prefix(root()).expect("below the root").display().to_string();
            found.push((path, text));
        }
    }
}

/// Fails with all findings, one a line.
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Whether a line belongs to code that only tests run. `cfg(test)` modules stand last in their
/// file.
fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.contains("/benches/")
}

fn product_lines(path: &str, text: &str) -> Vec<(usize, String)> {
    if is_test_file(path) {
        return Vec::new();
    }
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let code = lines.map(|line| line.split("//").next().unwrap_or("").to_owned());
    code.enumerate().map(|(at, line)| (at + 1, line)).collect()
}

#[test]
fn a_layer_imports_only_what_lies_below_it() {
    let mut findings = Vec::new();
    for (place, (name, folder)) in LAYERS.iter().enumerate() {
        let manifest = root().join(folder).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("every layer has a manifest");
        for (above, _) in &LAYERS[place + 1..] {
            let imports = |line: &str| {
                let line = line.trim_start();
                line.starts_with(&format!("{above}.")) || line.starts_with(&format!("{above} "))
            };
            if manifest.lines().any(imports) {
                findings.push(format!("{folder}/Cargo.toml: `{name}` imports `{above}`"));
            }
        }
    }
    none(&findings);
}

#[test]
fn every_file_says_what_it_is_and_is_short() {
    let mut findings = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//! ") && !path.ends_with("build.rs") {
            findings.push(format!("{path}:1: begins without `//!` and a sentence"));
        }
        let product = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
        if product > FILE_LINES_MAX {
            findings.push(format!("{path}: {product} lines, the most is {FILE_LINES_MAX}"));
        }
        for (at, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            // A text that people read, and a row of a table, are not broken for a column's sake.
            let text = line.contains('"') || line.trim_start().starts_with("//! |");
            if columns > COLUMNS_MAX && !(text && columns <= TEXT_COLUMNS_MAX) {
                findings.push(format!("{path}:{}: {columns} columns", at + 1));
            }
        }
    }
    none(&findings);
}

#[test]
fn every_function_fits_a_screen() {
    let mut findings = Vec::new();
    for (path, text) in sources() {
        let mut open: Option<(usize, usize)> = None;
        for (at, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let is_fn = code.starts_with("fn ") || code.contains(" fn ") && !code.starts_with("//");
            let begins = is_fn
                && (code.starts_with("pub")
                    || code.starts_with("fn ")
                    || code.starts_with("const fn")
                    || code.starts_with("async fn"));
            // Starlark wants all functions of a namespace inside one.
            let lists = text
                .lines()
                .nth(at.saturating_sub(1))
                .is_some_and(|l| l.contains("starlark_module"));
            if begins && open.is_none() && !code.ends_with(';') && !lists {
                open = Some((at, indent));
            }
            if let Some((start, depth)) = open
                && (line == format!("{}}}", " ".repeat(depth))
                    || at == start && code.ends_with('}'))
            {
                if at - start + 1 > FUNCTION_LINES_MAX {
                    findings.push(format!("{path}:{}: {} lines", start + 1, at - start + 1));
                }
                open = None;
            }
        }
    }
    none(&findings);
}

#[test]
fn words_that_have_no_place_here() {
    let everywhere = [".unwrap()", "dbg!(", "todo!(", "unimplemented!(", "#[ignore"];
    let pure =
        ["HashMap", "HashSet", "SystemTime", "Instant::", "std::fs", "std::thread", "std::net"];
    let mut findings = Vec::new();
    for (path, text) in sources() {
        for (at, line) in product_lines(&path, &text) {
            let mut banned: Vec<&str> = everywhere.to_vec();
            let deterministic = path.starts_with("projection/src")
                || path.starts_with("behaviors/src")
                || path.starts_with("behaviors/script/src");
            if deterministic {
                banned.extend(pure);
            }
            if path.starts_with("runtime/src") && path != "runtime/src/clock.rs" {
                banned.push("SystemTime::now");
            }
            for word in banned.iter().filter(|word| line.contains(*word)) {
                findings.push(format!("{path}:{at}: `{word}`"));
            }
        }
        for (at, line) in text.lines().enumerate() {
            let later = ["FIX", "ME"].concat();
            if line.contains(&later) || line.contains("#[ignore") && !path.ends_with("tidy.rs") {
                findings.push(format!("{path}:{}: unfinished, or a test that never runs", at + 1));
            }
            if line.trim_start().starts_with("pub use ") {
                // A module may show what its own private parts define; only lib.rs shows a crate.
                let has_parts = root().join(path.trim_end_matches(".rs")).is_dir();
                if line.contains("::*") || !(path.ends_with("lib.rs") || has_parts) {
                    findings.push(format!("{path}:{}: `pub use` out of place", at + 1));
                }
            }
        }
    }
    none(&findings);
}

#[test]
fn the_product_speaks_of_itself_alone() {
    let words = [["/wo", "rk/"].concat(), ["sub", "agent"].concat(), ["crates", ".io"].concat()];
    let mut findings = Vec::new();
    let mut texts = sources();
    for name in ["README.md", "ARCHITECTURE.md", ".ci/run", "log/FORMAT.md"] {
        let text = fs::read_to_string(root().join(name));
        texts.push((name.to_owned(), text.unwrap_or_else(|_| panic!("{name} is missing"))));
    }
    for (path, text) in texts {
        for (at, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                findings.push(format!("{path}:{}: `{word}`", at + 1));
            }
        }
    }
    none(&findings);
}

#[test]
fn every_path_in_the_architecture_page_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there");
    let mut findings = Vec::new();
    for word in page.split('`').skip(1).step_by(2) {
        let is_path = word.contains('/') && !word.contains(' ') && !word.contains('*');
        if is_path && !root().join(word).exists() {
            findings.push(format!("ARCHITECTURE.md names `{word}`, which is not there"));
        }
    }
    none(&findings);
}

#[test]
fn every_dependency_has_a_reason() {
    let mut known: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in DEPENDENCIES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or("").to_owned();
        let key = (next(), next());
        known.insert(key, next());
    }
    let mut findings = Vec::new();
    for (name, folder) in LAYERS {
        for dependency in dependencies(folder) {
            match known.remove(&(name.to_owned(), dependency.clone())) {
                None => findings.push(format!("{name}: `{dependency}` is not in dependencies.txt")),
                Some(reason) if reason.is_empty() => {
                    findings.push(format!("{name}: `{dependency}` has no reason"));
                }
                Some(_) => {}
            }
        }
    }
    findings.extend(known.keys().map(|(name, gone)| format!("{name}: `{gone}` is not used")));
    none(&findings);
}

/// The names in the dependency tables of a manifest, dev and build ones too.
fn dependencies(folder: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml"));
    let manifest = manifest.expect("every layer has a manifest");
    let (mut names, mut inside) = (Vec::new(), false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
        } else if inside && line.contains('=') && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("");
            names.push(name.to_owned());
        }
    }
    names
}

/// The canonical form relies on it: a crate anywhere in the tree could turn on insertion order.
#[test]
fn json_maps_are_sorted() {
    let map: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":2}"#).expect("it is JSON");
    assert_eq!(map.to_string(), r#"{"a":2,"b":1}"#);
    let number: serde_json::Value = serde_json::from_str("1.0").expect("it is JSON");
    assert_eq!(number.as_f64(), Some(1.0));
    assert!(!number.is_i64(), "arbitrary precision is off, and 1.0 is a float");
}

/// A new file in the library needs no other edit, so `cargo fmt` does not see it.
#[test]
fn the_behavior_library_is_formatted_named_and_tested() {
    let folder = root().join("behaviors/src/library");
    let mut findings = Vec::new();
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("the library is a folder").flatten() {
        let path = entry.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        files += 1;
        let text = fs::read_to_string(&path).expect("a source file is text");
        for (wanted, what) in [
            (format!("\"{name}\""), "its own name"),
            ("//! ".to_owned(), "a header"),
            ("#[test]".to_owned(), "a test"),
        ] {
            if !text.contains(&wanted) {
                findings.push(format!("library/{name}.rs has no {what}"));
            }
        }
        let check = std::process::Command::new("rustfmt")
            .args(["--edition", "2024", "--check", "--config-path"])
            .arg(root())
            .arg(&path)
            .output()
            .expect("rustfmt is part of the toolchain");
        if !check.status.success() {
            findings.push(format!("library/{name}.rs is not formatted: rustfmt it"));
        }
    }
    assert!(files > 0, "the library has behaviors");
    none(&findings);
}
