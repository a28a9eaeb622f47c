//! Where the behavior files of a flock are: in its folder `behaviors`, and in those that `use` in
//! `flock.toml` names. Nothing from elsewhere is loaded: a link that leads out is refused by name.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::FlockError;

/// A file of a flock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its path, relative to the flock.
    pub(super) path: String,
    /// Where it is.
    pub(super) file: PathBuf,
    /// Where it leads to, if that is elsewhere.
    pub(super) leaves: Option<PathBuf>,
}

/// A folder with behavior files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    /// As paths begin that are relative to the flock.
    shown: String,
    pub(super) place: PathBuf,
}

/// Whether a file is one that an editor or a person keeps beside another: `.x`, `.#x`, `#x#`, `x~`,
/// `4913`, `x.swp`, `x.tmp`, `x.bak` and the like. It is no behavior, whatever it holds.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let endings = [
        "~",
        "#",
        ".swp",
        ".swo",
        ".swx",
        ".tmp",
        ".temp",
        ".bak",
        ".orig",
        ".rej",
        ".part",
        ".disabled",
        ".crswap",
        "___jb_tmp___",
        "___jb_old___",
    ];
    let number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(['.', '#']) || number || endings.iter().any(|end| name.ends_with(end))
}

/// The folders of a flock that have behavior files, its own first.
///
/// # Errors
/// One that `use` names is not there, or `behaviors` leads elsewhere.
pub(super) fn all(flock: &Path, uses: &[PathBuf]) -> Result<Vec<Folder>, FlockError> {
    let toml = || flock.join("flock.toml");
    let mut folders = Vec::new();
    for used in uses {
        let place = flock.join(used);
        if !place.is_dir() {
            let what = format!("use: {} is no folder", used.display());
            return Err(FlockError::File { path: toml(), what });
        }
        let shown = if used.is_absolute() { relative(flock, &place) } else { plain(used) };
        folders.push(Folder { shown: shown.to_string_lossy().into_owned(), place });
    }
    let own = flock.join("behaviors");
    if own.is_dir() {
        let own = Folder { shown: "behaviors".to_owned(), place: own };
        if let Some(elsewhere) = leaves(flock, &folders, &own.place) {
            let elsewhere = elsewhere.display();
            let what = format!("behaviors is a link to {elsewhere}; write use = [\"{elsewhere}\"]");
            return Err(FlockError::File { path: toml(), what });
        }
        folders.insert(0, own);
    }
    let mut known = Vec::new();
    folders.retain(|folder| {
        let place = real(&folder.place);
        let new = !known.contains(&place);
        known.push(place);
        new
    });
    Ok(folders)
}

/// The files in these folders that could be behaviors, by path.
///
/// # Errors
/// A folder cannot be read.
pub(super) fn files(flock: &Path, folders: &[Folder]) -> Result<Vec<Found>, FlockError> {
    let mut found = Vec::new();
    for folder in folders {
        let failed = |source| FlockError::Read { path: folder.place.clone(), source };
        for entry in fs::read_dir(&folder.place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let file = entry.path();
            if is_temporary(&entry.file_name()) || file.is_dir() {
                continue;
            }
            let link = entry.file_type().map_err(failed)?.is_symlink();
            let leaves = if link { leaves(flock, folders, &file) } else { None };
            let path = format!("{}/{}", folder.shown, entry.file_name().to_string_lossy());
            found.push(Found { path, file, leaves });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Where a path leads, if that is neither in the flock nor in a folder that it uses.
fn leaves(flock: &Path, folders: &[Folder], path: &Path) -> Option<PathBuf> {
    let target = real(path);
    let inside = |folder: &Path| target.starts_with(real(folder));
    let known = inside(flock) || folders.iter().any(|folder| inside(&folder.place));
    (!known).then_some(target)
}

/// A path without links; one that leads nowhere, as it is written in the link.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| fs::read_link(path)).unwrap_or_else(|_| path.to_owned())
}

/// The way from one folder to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to) = (real(from), real(to));
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    up.chain(to[common..].iter().copied()).collect()
}

/// A relative path without `.` and doubled or closing slashes.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_beside_a_file_is_no_behavior() {
        for name in [
            "4913",
            ".greet.star.swp",
            "greet.star~",
            ".#greet.star",
            "#greet.star#",
            "5000",
            "greet.star.tmp",
            "greet.star.bak",
            ".goutputstream-X1",
            "greet.star___jb_tmp___",
            "greet.star.disabled",
        ] {
            assert!(is_temporary(OsStr::new(name)), "{name}");
        }
        for name in ["greet.star", "4913.star", "swp.star", "plan.md", "count"] {
            assert!(!is_temporary(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn the_way_to_a_used_folder_is_told_from_the_flock() {
        let root = tempfile::tempdir().expect("a folder for a test");
        let (flock, shared) = (root.path().join("a/flock"), root.path().join("shared"));
        fs::create_dir_all(&flock).expect("made");
        fs::create_dir_all(&shared).expect("made");
        fs::write(shared.join("x.star"), "").expect("written");
        for used in [PathBuf::from("../../shared/"), shared.clone(), "./../../shared".into()] {
            let folders = all(&flock, std::slice::from_ref(&used)).expect("it is there");
            let found = files(&flock, &folders).expect("it is read");
            let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
            assert_eq!(paths, ["../../shared/x.star"], "{}", used.display());
        }
        let twice = [shared, PathBuf::from("../../shared")];
        assert_eq!(all(&flock, &twice).expect("it is there").len(), 1, "one folder is one");
    }

    #[test]
    fn a_link_that_leaves_the_flock_is_told_with_its_end() {
        let root = tempfile::tempdir().expect("a folder for a test");
        let (flock, other) = (root.path().join("flock"), root.path().join("other"));
        fs::create_dir_all(flock.join("behaviors")).expect("made");
        fs::create_dir_all(flock.join("kept")).expect("made");
        fs::create_dir_all(&other).expect("made");
        fs::write(other.join("x.star"), "").expect("written");
        fs::write(flock.join("kept/y.star"), "").expect("written");
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, flock.join("behaviors").join(name)).expect("linked");
        };
        link(&other.join("x.star"), "x.star");
        link(&flock.join("kept/y.star"), "y.star");
        link(Path::new("/nowhere/z.star"), "z.star");
        let look = |uses: &[PathBuf]| {
            let folders = all(&flock, uses).expect("they are there");
            let found = files(&flock, &folders).expect("they are read").into_iter();
            found.filter_map(|found| Some((found.path, found.leaves?))).collect::<Vec<_>>()
        };
        let end = other.canonicalize().expect("it is there").join("x.star");
        let nowhere = ("behaviors/z.star".to_owned(), PathBuf::from("/nowhere/z.star"));
        assert_eq!(look(&[]), [("behaviors/x.star".to_owned(), end), nowhere.clone()]);
        assert_eq!(look(&[other]), [nowhere], "its folder is used");
    }
}
