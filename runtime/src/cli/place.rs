//! Where the store is: named, or found upward from here as git finds its folder.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a flock keeps its store.
const INSIDE: &str = ".starling/store.redb";

/// The store that is meant, whether it exists or not. A folder means the store of the flock in it.
pub(super) fn find(named: Option<&Path>) -> PathBuf {
    let named = named.map(Path::to_owned).or_else(|| {
        let variable = env::var_os("STARLING_STORE").filter(|value| !value.is_empty());
        variable.map(PathBuf::from)
    });
    if let Some(path) = named {
        let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        return if path.is_dir() || ends_in_slash { path.join(INSIDE) } else { path };
    }
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let above =
        |holds: &dyn Fn(&Path) -> bool| here.ancestors().find(|f| holds(f)).map(Path::to_owned);
    let store = above(&|folder| folder.join(INSIDE).is_file());
    let folder = store.or_else(|| above(&|folder| folder.join("flock.toml").is_file()));
    folder.unwrap_or(here).join(INSIDE)
}

/// The store of the flock in a folder.
pub(super) fn inside(flock: &Path) -> PathBuf {
    flock.join(INSIDE)
}

/// Makes the folder that a flock's store stands in; any other folder must be there.
pub(super) fn make_folder(store: &Path) -> std::io::Result<()> {
    match store.parent() {
        Some(folder) if folder.file_name() == Some(OsStr::new(".starling")) => {
            std::fs::create_dir_all(folder)
        }
        _ => Ok(()),
    }
}
