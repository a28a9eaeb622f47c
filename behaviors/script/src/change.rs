//! Changes as a script handles them: values that do nothing until an event carries them.

use std::fmt;

use allocative::Allocative;
use log::Change;
use smol_str::{SmolStr, format_smolstr};
use starlark::any::ProvidesStaticType;
use starlark::codemap::FileSpan;
use starlark::starlark_simple_value;
use starlark::values::{NoSerialize, StarlarkValue, Value, starlark_value};

use crate::convert::described;
use crate::values::Element;

/// A change that was described and waits for its event. The change itself is in the session.
#[derive(Clone, Copy, Debug, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct ChangeValue {
    /// Its place among the changes of the firing.
    pub(crate) index: usize,
}

starlark_simple_value!(ChangeValue);

#[starlark_value(type = "change")]
impl<'v> StarlarkValue<'v> for ChangeValue {}

impl fmt::Display for ChangeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<change>")
    }
}

/// What a change is about.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// An element that is there, or a chosen id.
    Id(SmolStr),
    /// What another change of this firing makes.
    Made(usize),
}

impl Target {
    /// What a script gave as an element.
    pub(crate) fn of(value: Value<'_>) -> anyhow::Result<Target> {
        if let Some(element) = Element::from_value(value) {
            return Ok(Target::Id(element.id.as_str().into()));
        }
        if let Some(change) = ChangeValue::from_value(value) {
            return Ok(Target::Made(change.index));
        }
        match value.unpack_str() {
            Some(id) if !id.is_empty() => Ok(Target::Id(id.into())),
            _ => Err(anyhow::anyhow!(
                "expected an element, something created here, or an id, found {}",
                described(value)
            )),
        }
    }
}

/// A change of a firing.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The change, its ids still empty where `targets` has them.
    pub(crate) change: Change,
    /// What it is about: one element, or the ends of an edge.
    pub(crate) targets: Vec<Target>,
    /// Where the script made it.
    pub(crate) span: Option<FileSpan>,
    /// The proposal that carries it and its number there, once it is emitted.
    pub(crate) place: Option<(usize, usize)>,
}

impl Draft {
    /// Whether it makes an element.
    fn makes(&self) -> bool {
        !matches!(self.change, Change::Write { .. } | Change::Unset { .. } | Change::Remove { .. })
    }
}

/// The change at `index`, which is emitted, with its ids.
pub(crate) fn resolved(drafts: &[Draft], index: usize) -> anyhow::Result<Change> {
    let draft = &drafts[index];
    let place = draft.place.expect("a change has its place before it is resolved");
    let mut ids = draft.targets.iter().map(|target| match target {
        Target::Id(id) => Ok(id.clone()),
        Target::Made(made) if !drafts[*made].makes() => {
            Err(anyhow::anyhow!("it is about a change that makes nothing; give the element itself"))
        }
        Target::Made(made) => match drafts[*made].place {
            Some((i, j)) if (i, j) < place => Ok(format_smolstr!("@{i}#{j}")),
            _ => Err(anyhow::anyhow!(
                "it is about something that is not made yet; emit what makes it before, or put it \
                 before in the same event"
            )),
        },
    });
    let mut next = || ids.next().expect("a change has as many targets as it has ids");
    let mut change = draft.change.clone();
    match &mut change {
        Change::Create { .. } | Change::Ensure { .. } => {}
        Change::Link { from, to, .. } | Change::EnsureLink { from, to, .. } => {
            (*from, *to) = (next()?, next()?);
        }
        Change::Write { id, .. } | Change::Unset { id, .. } | Change::Remove { id } => {
            *id = next()?;
        }
    }
    Ok(change)
}
