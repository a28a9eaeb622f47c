//! `rand`: the random numbers of a firing. They have a name, so they are the same in every run.

use std::fmt;

use allocative::Allocative;
use starlark::any::ProvidesStaticType;
use starlark::environment::{Methods, MethodsBuilder};
use starlark::eval::Evaluator;
use starlark::values::float::UnpackFloat;
use starlark::values::list::AllocList;
use starlark::values::{Heap, NoSerialize, StarlarkValue, UnpackValue, Value, starlark_value};
use starlark::{starlark_module, starlark_simple_value};

use crate::convert::described;
use crate::session::Session;

/// The random numbers of the firing that an evaluation belongs to.
#[derive(Clone, Copy, Debug, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct Rand;

starlark_simple_value!(Rand);

starlark::methods_static!(METHODS = methods);

#[starlark_value(type = "rand")]
impl<'v> StarlarkValue<'v> for Rand {
    fn get_methods() -> Option<&'static Methods> {
        Some(METHODS.methods())
    }
}

impl fmt::Display for Rand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rand")
    }
}

fn items<'v>(values: Value<'v>, heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
    Ok(values.iterate(heap)?.collect())
}

#[starlark_module]
fn methods(builder: &mut MethodsBuilder) {
    /// A whole number from 0 to n - 1.
    fn below<'v>(
        #[starlark(this)] _this: Value<'v>,
        #[starlark(require = pos)] n: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<u64> {
        match u64::unpack_value(n) {
            Ok(Some(limit)) if limit > 0 => Ok(Session::of(eval, "rand")?.firing.rand.below(limit)),
            _ => Err(anyhow::anyhow!(
                "rand.below needs a whole number from 1, found {}",
                described(n)
            )),
        }
    }

    /// A number from 0 up to but not including 1.
    fn uniform<'v>(
        #[starlark(this)] _this: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<f64> {
        Ok(Session::of(eval, "rand")?.firing.rand.uniform())
    }

    /// One of some values, each as likely.
    fn choice<'v>(
        #[starlark(this)] _this: Value<'v>,
        #[starlark(require = pos)] values: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let items = items(values, eval.heap())?;
        let chosen = Session::of(eval, "rand")?.firing.rand.choice(&items);
        let none = || anyhow::anyhow!("rand.choice needs at least one value to choose from");
        Ok(*chosen.ok_or_else(none)?)
    }

    /// A new list of some values in a random order, each as likely.
    fn shuffle<'v>(
        #[starlark(this)] _this: Value<'v>,
        #[starlark(require = pos)] values: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let mut items = items(values, eval.heap())?;
        Session::of(eval, "rand")?.firing.rand.shuffle(&mut items);
        Ok(eval.heap().alloc(AllocList(items)))
    }

    /// A normally distributed number.
    fn normal<'v>(
        #[starlark(this)] _this: Value<'v>,
        mean: Option<UnpackFloat>,
        deviation: Option<UnpackFloat>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<f64> {
        let mean = mean.map_or(0.0, |mean| mean.0);
        let deviation = deviation.map_or(1.0, |deviation| deviation.0);
        Ok(Session::of(eval, "rand")?.firing.rand.normal(mean, deviation))
    }
}
