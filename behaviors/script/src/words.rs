//! The words of a script besides events: asking for an effect, ending one, a guard's verdicts, and
//! giving less to what follows.

use behaviors::Word;
use serde_json::{Map, Value as Json};
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::none::{NoneOr, NoneType};

use crate::change::ChangeValue;
use crate::convert::{to_json, to_map};
use crate::session::Session;

#[starlark_module]
pub(crate) fn words(builder: &mut GlobalsBuilder) {
    /// Asks for an effect. What it returns stands for the effect's node, to be linked.
    fn request<'v>(
        #[starlark(require = pos)] effect: &str,
        args: Option<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] key: NoneOr<&str>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<ChangeValue> {
        let session = Session::of(eval, "request")?;
        let args = args.map_or_else(|| Ok(Map::new()), |args| to_map(args, "arguments"))?;
        session.request(effect, args, key.into_option(), eval.call_stack_top_location())
    }

    /// A guard lets pass what it was shown.
    fn allow<'v>(eval: &mut Evaluator<'v, '_, '_>) -> anyhow::Result<NoneType> {
        Session::of(eval, "allow")?.say(Word::Allow, Map::new())
    }

    /// A guard refuses what it was shown.
    fn deny<'v>(
        #[starlark(require = pos)] reason: &str,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        let reason = [("reason".to_owned(), Json::from(reason))];
        Session::of(eval, "deny")?.say(Word::Deny, reason.into_iter().collect())
    }

    /// A guard puts other arguments in place of those it was shown.
    fn rewrite<'v>(
        #[starlark(require = pos)] args: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        Session::of(eval, "rewrite")?.say(Word::Rewrite, to_map(args, "arguments")?)
    }

    /// Effects are to end: one, those of a firing or of a goal, or all of the firing's own goal.
    fn cancel<'v>(
        #[starlark(require = named, default = NoneOr::None)] effect: NoneOr<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] firing: NoneOr<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] goal: NoneOr<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        let mut scope = Map::new();
        for (name, given) in [("effect", effect), ("firing", firing), ("goal", goal)] {
            if let NoneOr::Other(given) = given {
                scope.insert(name.to_owned(), to_json(given, name)?);
            }
        }
        Session::of(eval, "cancel")?.say(Word::Cancel, scope)
    }

    /// What follows from the rest of this firing may do no more than this.
    fn narrow<'v>(
        #[starlark(require = named, default = NoneOr::None)] effects: NoneOr<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] budget: NoneOr<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        let mut to = Map::new();
        for (name, given) in [("effects", effects), ("budget", budget)] {
            if let NoneOr::Other(given) = given {
                to.insert(name.to_owned(), to_json(given, name)?);
            }
        }
        Session::of(eval, "narrow")?.say(Word::Narrow, to)
    }
}
