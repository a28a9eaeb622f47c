//! Numbers: `math`, `sum` and `round`. The functions come from a library in Rust, not from the
//! machine's, so that a model gives the same numbers everywhere.

use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::float::UnpackFloat;
use starlark::values::{UnpackValue, Value};

use crate::convert::described;

/// Adds the functions to the globals.
pub(crate) fn numbers(builder: &mut GlobalsBuilder) {
    functions(builder);
    builder.namespace("math", |math| {
        math.set("pi", std::f64::consts::PI);
        math.set("e", std::f64::consts::E);
        mathematics(math);
    });
}

/// A number as a float.
fn number(value: Value<'_>) -> anyhow::Result<f64> {
    match UnpackFloat::unpack_value(value) {
        Ok(Some(UnpackFloat(number))) => Ok(number),
        _ => Err(anyhow::anyhow!("expected a number, found {}", described(value))),
    }
}

/// The result of a function, unless it has none there.
fn defined(name: &str, x: f64, result: f64) -> anyhow::Result<f64> {
    if result.is_finite() || !x.is_finite() {
        return Ok(result);
    }
    Err(anyhow::anyhow!("math.{name}({x}) is not a number that can be stored"))
}

/// A float without a fraction as an integer.
fn whole(name: &str, float: f64) -> anyhow::Result<i64> {
    // 2^63 is a float; the greatest i64 is not.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        return Ok(float as i64);
    }
    Err(anyhow::anyhow!("{name}({float}) does not fit 64 bits"))
}

#[starlark_module]
fn mathematics(builder: &mut GlobalsBuilder) {
    /// The square root.
    fn sqrt<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<f64> {
        let x = number(x)?;
        defined("sqrt", x, libm::sqrt(x))
    }

    /// e to the power of x.
    fn exp<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<f64> {
        let x = number(x)?;
        defined("exp", x, libm::exp(x))
    }

    /// The logarithm, natural unless a base is given.
    fn log<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(require = pos)] base: Option<Value<'v>>,
    ) -> anyhow::Result<f64> {
        let x = number(x)?;
        match base.map(number).transpose()? {
            None => defined("log", x, libm::log(x)),
            Some(2.0) => defined("log", x, libm::log2(x)),
            Some(10.0) => defined("log", x, libm::log10(x)),
            Some(base) => defined("log", x, libm::log(x) / libm::log(base)),
        }
    }

    /// x to the power of y.
    fn pow<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(require = pos)] y: Value<'v>,
    ) -> anyhow::Result<f64> {
        let x = number(x)?;
        defined("pow", x, libm::pow(x, number(y)?))
    }

    /// The greatest integer that is not above x.
    fn floor<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<i64> {
        i64::unpack_value(x)
            .ok()
            .flatten()
            .map_or_else(|| whole("floor", libm::floor(number(x)?)), Ok)
    }

    /// The least integer that is not below x.
    fn ceil<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<i64> {
        i64::unpack_value(x)
            .ok()
            .flatten()
            .map_or_else(|| whole("ceil", libm::ceil(number(x)?)), Ok)
    }

    /// The sine of an angle in radians.
    fn sin<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<f64> {
        Ok(libm::sin(number(x)?))
    }

    /// The cosine of an angle in radians.
    fn cos<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<f64> {
        Ok(libm::cos(number(x)?))
    }

    /// The tangent of an angle in radians.
    fn tan<'v>(#[starlark(require = pos)] x: Value<'v>) -> anyhow::Result<f64> {
        Ok(libm::tan(number(x)?))
    }

    /// The angle of the point (x, y), in radians.
    fn atan2<'v>(
        #[starlark(require = pos)] y: Value<'v>,
        #[starlark(require = pos)] x: Value<'v>,
    ) -> anyhow::Result<f64> {
        Ok(libm::atan2(number(y)?, number(x)?))
    }
}

#[starlark_module]
fn functions(builder: &mut GlobalsBuilder) {
    /// The sum of some numbers.
    fn sum<'v>(
        #[starlark(require = pos)] numbers: Value<'v>,
        #[starlark(require = pos)] start: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let heap = eval.heap();
        let mut total = start.unwrap_or_else(|| heap.alloc(0));
        for number in numbers.iterate(heap)? {
            total = total.add(number, heap)?;
        }
        Ok(total)
    }

    /// The nearest integer, or with `digits` the nearest float of so many decimals; of two equally
    /// near ones the even one.
    fn round<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(require = pos)] digits: Option<i32>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<Value<'v>> {
        if x.get_type() == "int" {
            return Ok(x);
        }
        let float = number(x)?;
        let Some(digits) = digits else {
            return Ok(eval.heap().alloc(whole("round", libm::rint(float))?));
        };
        let digits = usize::try_from(digits).ok().filter(|digits| *digits <= 30);
        let digits = digits.ok_or_else(|| anyhow::anyhow!("round keeps 0 to 30 decimals"))?;
        let text = format!("{float:.digits$}");
        Ok(eval.heap().alloc(text.parse::<f64>().unwrap_or(float)))
    }
}
