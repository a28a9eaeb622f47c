//! Lists the files of `src/library`, so that a new one is part of the library without an edit.
#![allow(clippy::disallowed_methods, reason = "it runs where the crate is built, not in it")]

use std::fmt::Write;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src/library");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = format!("{root}/src/library");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().into_string().expect("file names are UTF-8");
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    // The order of a folder is whatever the disk says.
    names.sort();
    let (mut modules, mut list) = (String::new(), String::new());
    for name in &names {
        let path = format!("{folder}/{name}.rs");
        writeln!(modules, "#[path = {path:?}]\nmod {name};").expect("a String takes every write");
        writeln!(list, "({name:?}, {name}::behavior(), include_str!({path:?})),")
            .expect("a String takes every write");
    }
    let text = format!(
        "{modules}\nfn listed() -> Vec<(&'static str, \
         Result<crate::RustBehavior, crate::MetadataError>, &'static str)> {{\nvec![\n{list}]\n}}\n"
    );
    fs::write(format!("{}/library.rs", env::var("OUT_DIR").expect("cargo sets it")), text)
}
