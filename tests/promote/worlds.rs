//! Promoting random histories against a three-way merge that is written from the rules.

use std::collections::{BTreeMap, BTreeSet};

use projection::{Graph, Pattern};
use runtime::PromoteError;
use serde_json::{Value, json};

use super::{Store, nobody, node, set};
use crate::support::long;
use crate::support::random::Random;

/// A world as a test keeps it: properties by id.
type Plain = BTreeMap<String, BTreeMap<String, i64>>;

/// A random change of a plain world, applied to it and as JSON.
fn random_change(random: &mut Random, world: &mut Plain, fresh: &str) -> Value {
    let ids: Vec<String> = world.keys().cloned().collect();
    let (name, value) = (random.pick(&["a", "b", "c"]), random.below(3) as i64);
    match random.below(10) {
        0 if ids.len() > 2 => {
            let id = &ids[random.place(ids.len())];
            world.remove(id);
            json!({"remove": id})
        }
        1 | 2 => {
            world.insert(fresh.to_owned(), BTreeMap::from([(name.to_owned(), value)]));
            node(fresh, json!({name: value}))
        }
        3 => {
            let id = &ids[random.place(ids.len())];
            world.get_mut(id).unwrap().remove(name);
            json!({"unset": id, "names": [name]})
        }
        _ => {
            let id = &ids[random.place(ids.len())];
            world.get_mut(id).unwrap().insert(name.to_owned(), value);
            set(id, json!({name: value}))
        }
    }
}

/// The three-way merge of plain worlds, from the rules and without any cleverness; none where both
/// changed the same otherwise.
fn merged(base: &Plain, ours: &Plain, theirs: &Plain) -> Option<Plain> {
    let mut all = ours.clone();
    let ids: BTreeSet<&String> = base.keys().chain(theirs.keys()).collect();
    for id in ids {
        let (was, here, there) = (base.get(id), ours.get(id), theirs.get(id));
        if was == there {
            continue;
        }
        match (here, there) {
            (None, None) => {}
            (Some(_), None) if here == was => drop(all.remove(id)),
            (None, Some(there)) if was.is_none() => drop(all.insert(id.clone(), there.clone())),
            (None, Some(_)) | (Some(_), None) => return None,
            (Some(here), Some(there)) => {
                let none = BTreeMap::new();
                let was = was.unwrap_or(&none);
                let names: BTreeSet<&String> = was.keys().chain(there.keys()).collect();
                for name in names {
                    let (was, here, there) = (was.get(name), here.get(name), there.get(name));
                    let into = all.get_mut(id).unwrap();
                    match () {
                        () if was == there || here == there => {}
                        () if here != was => return None,
                        () => match there {
                            Some(value) => drop(into.insert(name.clone(), *value)),
                            None => drop(into.remove(name)),
                        },
                    }
                }
            }
        }
    }
    Some(all)
}

fn plain(graph: &Graph) -> Plain {
    let things = Pattern::parse("(t:Thing)").unwrap();
    let steps = projection::Steps::up_to(u64::MAX);
    let env = projection::Env::EMPTY;
    let rows = things.matches(graph, &[], &env, &steps).unwrap();
    let entry = |row: projection::Row| {
        let log::Bound::Element(id) = &row.bound[0] else { panic!("a node") };
        let properties = graph.element(id).unwrap().properties_json();
        let number = |(name, value): (String, Value)| (name, value.as_i64().unwrap());
        (id.to_string(), properties.into_iter().map(number).collect())
    };
    rows.into_iter().map(entry).collect()
}

#[test]
fn promoting_random_histories_gives_the_three_way_merge_of_their_worlds() {
    let (mut landed, mut refused) = (0, 0);
    for seed in 0..if long() { 2000 } else { 150 } {
        let mut random = Random::new(seed);
        let store = Store::of(&nobody());
        let child = store.fork(store.main, "idea");
        let base = plain(&store.graph(store.main));
        let (mut ours, mut theirs) = (base.clone(), base.clone());
        let changes = 1 + random.below(6);
        for nth in 0..changes {
            for (branch, world) in [(store.main, &mut ours), (child, &mut theirs)] {
                let fresh = format!("n{}", random.below(60) + 100 * nth);
                let change = random_change(&mut random, world, &fresh);
                store.say(branch, &format!("{branch} {nth}"), json!([change]));
            }
        }
        let expected = merged(&base, &ours, &theirs);
        match (store.promote(child, store.main), expected) {
            (Ok(_), Some(expected)) => {
                landed += 1;
                assert_eq!(plain(&store.graph(store.main)), expected, "seed {seed}");
                assert_eq!(store.promote(child, store.main).unwrap().changes, 0, "seed {seed}");
            }
            (Err(PromoteError::Conflicts(_)), None) => {
                refused += 1;
                assert_eq!(plain(&store.graph(store.main)), ours, "seed {seed}");
            }
            (done, expected) => panic!("seed {seed}: {done:?}, expected {expected:?}"),
        }
    }
    assert!(landed > 20 && refused > 20, "{landed} landed, {refused} conflicts");
}
