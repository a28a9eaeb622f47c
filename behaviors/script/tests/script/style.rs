//! The lint against unsafe code is off in this crate, for the sake of what derive macros write.

#[test]
fn no_line_of_the_host_is_unsafe() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a source file is text");
        let word = ["un", "safe"].concat();
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
        let found: Vec<&str> = lines
            .filter(|line| line.contains(&word) && !line.contains(&format!("{word}_code")))
            .filter(|line| !line.trim_start().starts_with("reason ="))
            .collect();
        assert!(found.is_empty(), "{}: {found:?}", entry.path().display());
        files += 1;
    }
    assert!(files > 10, "the scan sees the crate");
}
