//! Who is concerned by a change of the graph: behaviors by the type of an element, by what changes
//! about it, and by the value that their pattern fixes one of its properties to.
//!
//! A thousand behaviors that wait for a thousand values of one property are told apart by one look.

use std::collections::BTreeMap;

use projection::{Aspect, Delta, ElementView, Fixed, Graph, Watch, World};
use smol_str::SmolStr;

/// Names of behaviors by what they watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers {
    by_type: BTreeMap<SmolStr, OfType>,
}

/// Those that watch elements of one type.
#[derive(Clone, Debug, Default)]
struct OfType {
    existence: Group,
    by_property: BTreeMap<SmolStr, Group>,
    any_property: Group,
}

/// Those that watch one aspect: all, or those for whom a property has a value.
#[derive(Clone, Debug, Default)]
struct Group {
    all: Vec<SmolStr>,
    by_value: BTreeMap<SmolStr, BTreeMap<Fixed, Vec<SmolStr>>>,
}

impl Watchers {
    /// Adds what one behavior watches; false for a watch of any type, which is not kept here.
    pub(crate) fn insert(&mut self, watch: Watch, name: &SmolStr) -> bool {
        let Some(type_name) = watch.type_name else { return false };
        let of_type = self.by_type.entry(type_name).or_default();
        let group = match watch.aspect {
            Aspect::Existence => &mut of_type.existence,
            Aspect::Property(property) => of_type.by_property.entry(property).or_default(),
            Aspect::AnyProperty => &mut of_type.any_property,
        };
        match watch.fixed {
            None => group.all.push(name.clone()),
            Some((property, value)) => {
                let values = group.by_value.entry(property).or_default();
                values.entry(value).or_default().push(name.clone());
            }
        }
        true
    }

    /// Forgets a behavior.
    pub(crate) fn remove(&mut self, name: &SmolStr) {
        for of_type in self.by_type.values_mut() {
            of_type.existence.remove(name);
            of_type.any_property.remove(name);
            of_type.by_property.values_mut().for_each(|group| group.remove(name));
            of_type.by_property.retain(|_, group| !group.is_empty());
        }
        self.by_type.retain(|_, of_type| !of_type.is_empty());
    }

    /// Adds the names of all who watch something that an event changed, some perhaps often.
    pub(crate) fn concerned(&self, graph: &Graph, delta: &Delta, names: &mut Vec<SmolStr>) {
        if self.by_type.is_empty() {
            return;
        }
        let mut last = None;
        let mut of_type: Option<&OfType> = None;
        let mut most = 1024;
        for element in delta.touched() {
            let (before, after) = (delta.before(graph, element), graph.at(element));
            let Some(view) = after.or(before) else { continue };
            if last != Some(view.type_id()) {
                last = Some(view.type_id());
                of_type = self.by_type.get(view.type_name());
            }
            let Some(of_type) = of_type else { continue };
            of_type.concerned([before, after], names);
            // An event of many elements names the same behaviors over and over.
            if names.len() > most {
                names.sort_unstable();
                names.dedup();
                most = (2 * names.len()).max(1024);
            }
        }
    }
}

impl OfType {
    fn is_empty(&self) -> bool {
        let groups = [&self.existence, &self.any_property];
        groups.into_iter().all(Group::is_empty) && self.by_property.is_empty()
    }

    fn concerned(&self, sides: [Option<ElementView<'_>>; 2], names: &mut Vec<SmolStr>) {
        if let [None, _] | [_, None] = sides {
            self.existence.concerned(sides, names);
        }
        if let [Some(before), Some(after)] = sides
            && before.properties() == after.properties()
        {
            return;
        }
        self.any_property.concerned(sides, names);
        if self.by_property.len() <= 4 {
            for (property, group) in &self.by_property {
                if differs(sides, property) {
                    group.concerned(sides, names);
                }
            }
            return;
        }
        // With many properties watched, those that the element has are fewer.
        for (place, side) in sides.into_iter().enumerate() {
            let Some(side) = side else { continue };
            for (property, _) in side.properties().iter() {
                // A property of both sides is looked at once.
                let other = sides[1 - place].and_then(|other| other.property(property));
                if place == 1 && other.is_some() {
                    continue;
                }
                if let Some(group) = self.by_property.get(property)
                    && differs(sides, property)
                {
                    group.concerned(sides, names);
                }
            }
        }
    }
}

/// Whether a property is another after the event. What is not there has none.
fn differs<'g>([before, after]: [Option<ElementView<'g>>; 2], property: &str) -> bool {
    let encoded = |side: Option<ElementView<'g>>| side?.properties().get_encoded(property);
    encoded(before) != encoded(after)
}

impl Group {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_value.is_empty()
    }

    fn remove(&mut self, name: &SmolStr) {
        self.all.retain(|other| other != name);
        for values in self.by_value.values_mut() {
            values.values_mut().for_each(|names| names.retain(|other| other != name));
            values.retain(|_, names| !names.is_empty());
        }
        self.by_value.retain(|_, values| !values.is_empty());
    }

    fn concerned(&self, sides: [Option<ElementView<'_>>; 2], names: &mut Vec<SmolStr>) {
        names.extend(self.all.iter().cloned());
        for (property, values) in &self.by_value {
            for side in sides.into_iter().flatten() {
                let value = side.property(property).and_then(Fixed::of);
                let found = value.and_then(|value| values.get(&value));
                names.extend(found.into_iter().flatten().cloned());
            }
        }
    }
}
