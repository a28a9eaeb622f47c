//! A persistent vector with holes: pages of slots under a directory, shared until they are written.
//!
//! A clone copies one pointer. The first write after it copies one root, one directory and one
//! page; what was not written stays shared, and no write is ever seen through another clone.

use triomphe::Arc;

/// Slots on a page.
const PAGE: usize = 64;
/// Pages under a directory.
const DIRECTORY: usize = 128;

/// Values at numbers. Numbers may be left out; a page without values takes no memory.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    root: Arc<Vec<Arc<Directory<T>>>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Directory<T> {
    pages: Vec<Option<Arc<Page<T>>>>,
}

#[derive(Clone, Debug)]
struct Page<T> {
    live: u32,
    slots: [Option<T>; PAGE],
}

impl<T> Clone for Pages<T> {
    fn clone(&self) -> Self {
        Pages { root: Arc::clone(&self.root), len: self.len }
    }
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages { root: Arc::new(Vec::new()), len: 0 }
    }
}

/// Where a number stands: directory, page, slot.
fn place(number: u32) -> (usize, usize, usize) {
    let number = number as usize;
    (number / (PAGE * DIRECTORY), number / PAGE % DIRECTORY, number % PAGE)
}

impl<T> Pages<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The value at `number`.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (directory, page, slot) = place(number);
        self.root.get(directory)?.pages[page].as_ref()?.slots[slot].as_ref()
    }

    /// All values by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let pages = self.root.iter().enumerate().flat_map(|(nth, directory)| {
            let first = nth * PAGE * DIRECTORY;
            let pages = directory.pages.iter().enumerate();
            pages.filter_map(move |(nth, page)| Some((first + nth * PAGE, page.as_ref()?)))
        });
        pages.flat_map(|(first, page)| {
            let slots = page.slots.iter().enumerate();
            slots.filter_map(move |(nth, slot)| {
                let number = u32::try_from(first + nth).expect("every number fits");
                Some((number, slot.as_ref()?))
            })
        })
    }
}

impl<T: Clone> Pages<T> {
    /// The value at `number`, to be changed. It must be there.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        let (directory, page, slot) = place(number);
        let directory = Arc::make_mut(&mut Arc::make_mut(&mut self.root)[directory]);
        let page = directory.pages[page].as_mut().expect("the slot is filled");
        Arc::make_mut(page).slots[slot].as_mut().expect("the slot is filled")
    }

    /// Puts a value at `number`, which must be free.
    pub(crate) fn insert(&mut self, number: u32, value: T) -> &mut T {
        self.len += 1;
        let page = Self::page_mut(&mut self.root, number);
        let slot = &mut page.slots[place(number).2];
        assert!(slot.is_none(), "slot {number} is free");
        page.live += 1;
        slot.insert(value)
    }

    /// The value at `number`, to be changed; the default is put there if nothing is.
    pub(crate) fn get_or_default(&mut self, number: u32) -> &mut T
    where
        T: Default,
    {
        let page = Self::page_mut(&mut self.root, number);
        let slot = &mut page.slots[place(number).2];
        if slot.is_none() {
            page.live += 1;
            self.len += 1;
        }
        slot.get_or_insert_default()
    }

    /// The page of a number, made if it is not there.
    fn page_mut(root: &mut Arc<Vec<Arc<Directory<T>>>>, number: u32) -> &mut Page<T> {
        let (directory, page, _) = place(number);
        let root = Arc::make_mut(root);
        while root.len() <= directory {
            root.push(Arc::new(Directory { pages: vec![None; DIRECTORY] }));
        }
        let directory = Arc::make_mut(&mut root[directory]);
        let empty = || Arc::new(Page { live: 0, slots: [const { None }; PAGE] });
        Arc::make_mut(directory.pages[page].get_or_insert_with(empty))
    }

    /// Takes the value at `number` away. It must be there.
    pub(crate) fn take(&mut self, number: u32) -> T {
        let (directory, page, slot) = place(number);
        let directory = Arc::make_mut(&mut Arc::make_mut(&mut self.root)[directory]);
        let place = &mut directory.pages[page];
        let page = Arc::make_mut(place.as_mut().expect("the slot is filled"));
        let value = page.slots[slot].take().expect("the slot is filled");
        page.live -= 1;
        self.len -= 1;
        if page.live == 0 {
            *place = None;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{any, prop};
    use proptest::{prop_assert_eq, proptest};

    use super::Pages;

    proptest! {
        #[test]
        fn clones_keep_what_they_had(
            steps in prop::collection::vec((0u32..20_000, any::<bool>()), 1..300),
            cut in any::<prop::sample::Index>(),
        ) {
            let (mut pages, mut model) = (Pages::default(), BTreeMap::new());
            let mut kept = None;
            let cut = cut.index(steps.len());
            for (nth, (number, write)) in steps.into_iter().enumerate() {
                if nth == cut {
                    kept = Some((pages.clone(), model.clone()));
                }
                if let Some(value) = model.get_mut(&number) {
                    if write {
                        *value = nth;
                        *pages.get_mut(number) = nth;
                    } else {
                        let value = *value;
                        model.remove(&number);
                        prop_assert_eq!(pages.take(number), value);
                    }
                } else {
                    model.insert(number, nth);
                    pages.insert(number, nth);
                }
            }
            for (pages, model) in kept.into_iter().chain([(pages, model)]) {
                prop_assert_eq!(pages.len(), model.len());
                let found: Vec<_> = pages.iter().map(|(number, value)| (number, *value)).collect();
                prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
