//! The functions of a script: what it proposes with, and `behavior`, with which it declares.

use log::{Change, WriteOp};
use serde_json::{Map, Value as Json};
use smol_str::SmolStr;
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::dict::DictRef;
use starlark::values::none::{NoneOr, NoneType};
use starlark::values::tuple::UnpackTuple;

use crate::change::{ChangeValue, Target};
use crate::convert::{described, to_json, to_map};
use crate::load::Loading;
use crate::session::Session;
use crate::values::Element;

#[starlark_module]
pub(crate) fn surface(builder: &mut GlobalsBuilder) {
    /// Declares a behavior; the function of its name is its reaction.
    fn behavior<'v>(
        #[starlark(args)] positional: UnpackTuple<Value<'v>>,
        #[starlark(kwargs)] fields: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        if let Some(first) = positional.items.first() {
            let found = described(*first);
            anyhow::bail!("behavior has named fields only, such as name = \"…\"; found {found}");
        }
        Loading::of(eval)?.declare(&properties(&fields)?, eval.call_stack_top_location())?;
        Ok(NoneType)
    }

    /// Proposes an event, with the changes that it makes.
    fn emit<'v>(
        #[starlark(require = pos)] kind: &str,
        payload: Option<Value<'v>>,
        #[starlark(args)] changes: UnpackTuple<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] key: NoneOr<&str>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        let session = Session::of(eval, "emit")?;
        let payload = match payload {
            Some(value) if ChangeValue::from_value(value).is_some() => {
                anyhow::bail!("the payload comes before the changes: emit(kind, {{}}, change)")
            }
            Some(value) => to_map(value, "payload")?,
            None => Map::new(),
        };
        session.emit(kind, payload, &changes.items, key.into_option())?;
        Ok(NoneType)
    }

    /// A new node.
    fn create<'v>(
        #[starlark(require = pos)] r#type: &str,
        #[starlark(default = NoneOr::None)] id: NoneOr<&str>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let properties = crate::surface::properties(&properties)?;
        let id = id.into_option().map(SmolStr::from);
        let change = Change::Create { id, type_name: r#type.into(), properties };
        draft(eval, change, Vec::new(), "create")
    }

    /// A node with a chosen id, created if it is absent.
    fn ensure<'v>(
        #[starlark(require = pos)] r#type: &str,
        #[starlark(default = NoneOr::None)] id: NoneOr<&str>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let properties = crate::surface::properties(&properties)?;
        let Some(id) = id.into_option() else {
            anyhow::bail!("ensure needs the id to look for, id = \"…\"; create makes a new one");
        };
        let change = Change::Ensure { id: id.into(), type_name: r#type.into(), properties };
        draft(eval, change, Vec::new(), "ensure")
    }

    /// A new edge.
    fn link<'v>(
        #[starlark(require = pos)] a: Value<'v>,
        #[starlark(require = pos)] r#type: &str,
        #[starlark(require = pos)] b: Value<'v>,
        #[starlark(default = NoneOr::None)] id: NoneOr<&str>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let properties = crate::surface::properties(&properties)?;
        let id = id.into_option().map(SmolStr::from);
        let (from, to) = (SmolStr::default(), SmolStr::default());
        let change = Change::Link { id, type_name: r#type.into(), from, to, properties };
        draft(eval, change, vec![Target::of(a)?, Target::of(b)?], "link")
    }

    /// An edge, created unless one of its type joins these ends.
    fn ensure_link<'v>(
        #[starlark(require = pos)] a: Value<'v>,
        #[starlark(require = pos)] r#type: &str,
        #[starlark(require = pos)] b: Value<'v>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let properties = crate::surface::properties(&properties)?;
        let (from, to) = (SmolStr::default(), SmolStr::default());
        let change = Change::EnsureLink { type_name: r#type.into(), from, to, properties };
        draft(eval, change, vec![Target::of(a)?, Target::of(b)?], "ensure_link")
    }

    /// Properties written.
    fn set<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        write(eval, WriteOp::Set, x, &properties)
    }

    /// Numbers added to properties.
    fn add<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        write(eval, WriteOp::Add, x, &properties)
    }

    /// One item appended to each of these lists.
    fn append<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(kwargs)] properties: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        write(eval, WriteOp::Append, x, &properties)
    }

    /// Properties dropped.
    fn unset<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(args)] names: UnpackTuple<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let name = |value: &Value<'v>| match value.unpack_str() {
            Some(name) => Ok(SmolStr::from(name)),
            None => {
                Err(anyhow::anyhow!("a property is named by a string, found {}", described(*value)))
            }
        };
        let names = names.items.iter().map(name).collect::<anyhow::Result<Vec<_>>>()?;
        if names.is_empty() {
            anyhow::bail!("unset drops nothing: name the properties, unset(x, \"name\")");
        }
        let change = Change::Unset { id: SmolStr::default(), names };
        draft(eval, change, vec![Target::of(x)?], "unset")
    }

    /// An element removed; the edges at a node fall with it.
    fn remove<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        draft(eval, Change::Remove { id: SmolStr::default() }, vec![Target::of(x)?], "remove")
    }

    /// The ids of the ends of an edge: from where, to where.
    fn ends<'v>(
        #[starlark(require = pos)] edge: Value<'v>,
    ) -> anyhow::Result<(Value<'v>, Value<'v>)> {
        match Element::from_value(edge).map(|element| element.ends) {
            Some(Some((from, to))) => Ok((from.to_value(), to.to_value())),
            _ => Err(anyhow::anyhow!("only an edge has ends, found {}", described(edge))),
        }
    }
}

fn draft<'v>(
    eval: &Evaluator<'v, '_, '_>,
    change: Change,
    targets: Vec<Target>,
    what: &str,
) -> anyhow::Result<ChangeValue> {
    let span = eval.call_stack_top_location();
    Ok(Session::of(eval, what)?.draft(change, targets, span))
}

fn write<'v>(
    eval: &Evaluator<'v, '_, '_>,
    op: WriteOp,
    x: Value<'v>,
    written: &DictRef<'v>,
) -> anyhow::Result<ChangeValue> {
    let properties = properties(written)?;
    let name = op.name();
    if properties.is_empty() {
        anyhow::bail!("{name} writes nothing: name the properties, {name}(x, property = value)");
    }
    if op == WriteOp::Add
        && let Some((name, value)) = properties.iter().find(|(_, value)| !value.is_number())
    {
        anyhow::bail!("add adds numbers, but `{name}` is {value}; use set or append");
    }
    let change = Change::Write { op, id: SmolStr::default(), properties, if_version: None };
    draft(eval, change, vec![Target::of(x)?], name)
}

/// Named arguments as JSON.
fn properties(named: &DictRef<'_>) -> anyhow::Result<Map<String, Json>> {
    let mut map = Map::new();
    for (name, value) in named.iter() {
        let name = name.unpack_str().expect("an argument is named by a string");
        map.insert(name.to_owned(), to_json(value, name)?);
    }
    Ok(map)
}
