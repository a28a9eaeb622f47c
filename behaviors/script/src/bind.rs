//! What a reaction is given: each of its parameters, made of the firing.

use behaviors::{Binding, ElementView, Firing, Metadata, ReactError, Read};
use starlark::environment::Module;
use starlark::values::list::AllocList;
use starlark::values::structs::AllocStruct;
use starlark::values::{FrozenHeap, Value};

use crate::convert::unknown;
use crate::random::Rand;
use crate::values::{Element, Event, Object, Settings, entries, json_entries};

/// A parameter of a reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Event,
    Settings,
    Rand,
    Now,
    /// A variable of the match.
    Variable(String),
    /// A declared read.
    Read(String),
}

impl Parameter {
    /// The parameter of this name.
    ///
    /// An error says what was perhaps meant.
    pub(crate) fn of(name: &str, metadata: &Metadata) -> Result<Parameter, String> {
        match name {
            "event" => return Ok(Parameter::Event),
            "settings" => return Ok(Parameter::Settings),
            "rand" => return Ok(Parameter::Rand),
            "now" => return Ok(Parameter::Now),
            _ => {}
        }
        if metadata.reads.contains_key(name) {
            return Ok(Parameter::Read(name.to_owned()));
        }
        let mut known = metadata.bound_names();
        if known.iter().any(|bound| bound == name) {
            return Ok(Parameter::Variable(name.to_owned()));
        }
        known.extend(["settings", "rand", "now"].map(str::to_owned));
        Err(unknown(
            &format!("{} gets what its event, match and reads bind; the parameter", metadata.name),
            name,
            known.iter().map(String::as_str),
        ))
    }

    /// What it is bound to.
    ///
    /// # Errors
    /// The firing has nothing of that name: it was not made for this behavior.
    pub(crate) fn value<'v>(
        &self,
        firing: &Firing<'_>,
        module: &Module<'v>,
    ) -> Result<Value<'v>, ReactError> {
        let frozen = module.frozen_heap();
        Ok(match self {
            Parameter::Event => frozen.alloc(event(firing, frozen)).to_value(),
            Parameter::Settings => {
                let entries = json_entries(&firing.settings, frozen);
                frozen.alloc(Settings { entries }).to_value()
            }
            Parameter::Rand => module.heap().alloc(Rand),
            Parameter::Now => module.heap().alloc(firing.now.ms()),
            Parameter::Variable(name) => {
                let found = firing.bound.iter().find(|(variable, _)| variable == name);
                let (_, binding) = found.ok_or_else(|| {
                    ReactError::new(format!("the firing binds no `{name}`, though the match does"))
                })?;
                bound(binding, module)
            }
            Parameter::Read(name) => rows(firing.read(name)?, module),
        })
    }
}

fn event(firing: &Firing<'_>, heap: &FrozenHeap) -> Event {
    let event = &firing.event;
    let payload = heap.alloc(Object { entries: entries(event.payload, heap) });
    let text = |text: &str| heap.alloc_str(text).to_frozen_value();
    let fields = [
        ("id", text(event.id.hex().as_str())),
        ("kind", text(event.kind)),
        ("payload", payload),
        ("actor", text(event.actor)),
        ("key", event.key.map_or_else(starlark::values::FrozenValue::new_none, text)),
        ("time", heap.alloc(event.time.ms())),
    ];
    Event {
        entries: fields.into_iter().map(|(name, value)| (heap.alloc_str(name), value)).collect(),
    }
}

fn bound<'v>(binding: &Binding<'_>, module: &Module<'v>) -> Value<'v> {
    match binding {
        Binding::Null => Value::new_none(),
        Binding::Element(view) => element(view, module),
        Binding::Path(edges) => {
            let edges: Vec<Value<'v>> = edges.iter().map(|edge| element(edge, module)).collect();
            module.heap().alloc(AllocList(edges))
        }
    }
}

fn element<'v>(view: &ElementView<'_>, module: &Module<'v>) -> Value<'v> {
    let heap = module.frozen_heap();
    module.heap().alloc(Element {
        id: heap.alloc_str(view.id),
        type_name: heap.alloc_str(view.type_name),
        ends: view.ends.map(|(from, to)| (heap.alloc_str(from), heap.alloc_str(to))),
        properties: entries(view.properties, heap),
    })
}

/// The rows of a read: elements where one variable is free, else records.
fn rows<'v>(read: &Read<'_>, module: &Module<'v>) -> Value<'v> {
    let rows: Vec<Value<'v>> = match read.variables.as_slice() {
        [_] => read.bindings.iter().map(|binding| bound(binding, module)).collect(),
        variables => read
            .rows()
            .map(|row| {
                let pairs = variables.iter().zip(row);
                let pairs = pairs.map(|(name, binding)| (*name, bound(binding, module)));
                module.heap().alloc(AllocStruct(pairs.collect::<Vec<_>>()))
            })
            .collect(),
    };
    module.heap().alloc(AllocList(rows))
}
