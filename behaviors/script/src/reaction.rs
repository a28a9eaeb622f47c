//! A behavior whose reaction is a function of a script.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use behaviors::{Behavior, Firing, Metadata, Proposals, ReactError, Reply};
use starlark::environment::Module;
use starlark::eval::Evaluator;
use starlark::values::{OwnedFrozenValue, Value};

use crate::bind::Parameter;
use crate::host::Limits;
use crate::session::Session;
use crate::source::Source;

/// A behavior whose reaction is a function of a script.
#[derive(Debug)]
pub(crate) struct ScriptBehavior {
    pub(crate) metadata: Metadata,
    pub(crate) source: Arc<Source>,
    pub(crate) function: OwnedFrozenValue,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) limits: Limits,
}

impl Behavior for ScriptBehavior {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        out.take(self.run(firing)?)
    }
}

impl ScriptBehavior {
    fn run(&self, firing: &Firing<'_>) -> Result<Reply, ReactError> {
        // A panic of the language is an error of this reaction, and no end of the others. Nothing
        // that it could leave half done outlives it.
        let run = || self.evaluate(firing);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            let what = "the language gave up here, most likely over a value that is too large";
            // With more memory it might have gone on.
            let error = self.source.error_of(&self.metadata.name, what.to_owned());
            Err(ReactError { stopped: true, ..error })
        })
    }

    fn evaluate(&self, firing: &Firing<'_>) -> Result<Reply, ReactError> {
        let session = Session::new(&self.metadata, firing);
        Module::with_temp_heap(|module| {
            let mut arguments: Vec<Value<'_>> = Vec::with_capacity(self.parameters.len());
            for parameter in &self.parameters {
                arguments.push(parameter.value(firing, &module)?);
            }
            let mut eval = Evaluator::new(&module);
            eval.extra = Some(&session);
            eval.set_print_handler(&session);
            self.limits.apply(&mut eval);
            let function = module.heap().access_owned_frozen_value(&self.function);
            match eval.eval_function(function, &arguments, &[]) {
                Ok(_) => Ok(()),
                Err(error) => Err(self.source.error(&error, self.limits, &self.metadata.name)),
            }
        })?;
        session.finish(&self.source)
    }
}
