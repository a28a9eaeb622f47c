//! The behaviors that come with Starling: one file each in `library/`, listed by the build.
//!
//! A file has a function `behavior() -> Result<RustBehavior, MetadataError>` whose behavior has the
//! name of the file. Nothing else has to be edited to add one.

use std::sync::Arc;

use crate::registry::Loaded;

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Every behavior of the library, by name.
///
/// # Panics
/// The metadata of one of them cannot be used; a test of this crate makes sure that it can.
#[must_use]
pub fn library() -> Vec<Loaded> {
    listed()
        .into_iter()
        .map(|(name, behavior, source)| {
            let behavior = behavior.unwrap_or_else(|error| panic!("library/{name}.rs: {error}"));
            Loaded::new(Arc::new(behavior), source)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_holds_the_behavior_of_its_name_in_name_order() {
        let files: Vec<&str> = listed().iter().map(|(name, ..)| *name).collect();
        let behaviors = library();
        let names: Vec<&str> = behaviors.iter().map(|b| b.metadata().name.as_str()).collect();
        assert_eq!(names, files);
        assert!(files.is_sorted());
        assert!(files.len() >= 2);
        assert!(behaviors.iter().all(|b| !b.metadata().description.is_empty()));
    }
}
