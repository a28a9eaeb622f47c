//! Loading a script: it is run once, declares its behaviors, and is frozen.

use std::cell::RefCell;
use std::sync::Arc;

use behaviors::{Loaded, Metadata, ReactError};
use serde_json::{Map, Value as Json};
use starlark::PrintHandler;
use starlark::any::ProvidesStaticType;
use starlark::codemap::FileSpan;
use starlark::environment::{FrozenModule, Globals, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::OwnedFrozenValue;

use crate::bind::Parameter;
use crate::host::Limits;
use crate::reaction::ScriptBehavior;
use crate::source::Source;

/// What a script has declared so far.
#[derive(ProvidesStaticType)]
pub(crate) struct Loading {
    declared: RefCell<Vec<(Metadata, Option<FileSpan>)>>,
    /// The field of the declaration that could not be used.
    wrong: RefCell<Option<String>>,
}

impl Loading {
    /// The loading that an evaluation belongs to.
    ///
    /// # Errors
    /// It belongs to none: the script is reacting.
    pub(crate) fn of<'a>(eval: &Evaluator<'_, 'a, '_>) -> anyhow::Result<&'a Loading> {
        let loading = eval.extra.and_then(|extra| extra.downcast_ref::<Loading>());
        loading.ok_or_else(|| {
            anyhow::anyhow!(
                "behavior(…) belongs at the top of the file; a reaction declares nothing"
            )
        })
    }

    /// Takes down a behavior.
    pub(crate) fn declare(
        &self,
        fields: &Map<String, Json>,
        span: Option<FileSpan>,
    ) -> anyhow::Result<()> {
        let mut fields = fields.clone();
        // `from` cannot be an argument in a language that reserves the word.
        if let Some(from) = fields.remove("from_") {
            fields.insert("from".to_owned(), from);
        }
        let name = fields.get("name").and_then(Json::as_str).unwrap_or("behavior").to_owned();
        let metadata = Metadata::from_json(&fields, &name).inspect_err(|error| {
            // As its author spelled it.
            let from = error.field == "from";
            let field = if from { "from_" } else { error.field.as_str() };
            *self.wrong.borrow_mut() = Some(field.to_owned());
        })?;
        let mut declared = self.declared.borrow_mut();
        if declared.iter().any(|(other, _)| other.name == metadata.name) {
            anyhow::bail!("{name} is declared twice in this file; give one of them another name");
        }
        declared.push((metadata, span));
        Ok(())
    }
}

impl PrintHandler for Loading {
    fn println(&self, _text: &str) -> starlark::Result<()> {
        Err(starlark::Error::new_other(anyhow::anyhow!(
            "print belongs into a reaction; a file that is loaded only declares"
        )))
    }
}

/// Loads a script; the behaviors that it declares and that are enabled, in the file's order.
pub(crate) fn load(
    path: &str,
    text: &str,
    globals: &Globals,
    limits: Limits,
) -> Result<Vec<Loaded>, ReactError> {
    let source = Arc::new(Source::new(path, text)?);
    let dialect = Dialect { enable_load: false, ..Dialect::Standard };
    let ast = AstModule::parse(path, source.rewritten().to_owned(), &dialect)
        .map_err(|error| source.error(&error, limits, ""))?;
    let (module, declared) = run(ast, &source, globals, limits)?;
    if declared.is_empty() {
        let what = "this file declares no behavior; write behavior(name = \"…\", …) and a function \
                    of that name";
        return Err(ReactError { file: Some(path.to_owned()), ..ReactError::new(what) });
    }
    let mut loaded = Vec::new();
    for (metadata, span) in declared {
        let name = &metadata.name;
        let function = reaction(&module, name).map_err(|what| match &span {
            Some(span) => source.error_in(span, what),
            None => source.error_of(name, what),
        })?;
        let parameters =
            parameters(&function, &metadata).map_err(|what| source.error_of(name, what))?;
        if metadata.enabled {
            let source = Arc::clone(&source);
            let behavior = ScriptBehavior { metadata, source, function, parameters, limits };
            loaded.push(Loaded::new(Arc::new(behavior), text));
        }
    }
    Ok(loaded)
}

/// What a script defines, and each behavior that it declares with its place.
type Ran = (FrozenModule, Vec<(Metadata, Option<FileSpan>)>);

/// Runs a script once and freezes what it defines.
fn run(
    ast: AstModule,
    source: &Source,
    globals: &Globals,
    limits: Limits,
) -> Result<Ran, ReactError> {
    let loading = Loading { declared: RefCell::default(), wrong: RefCell::default() };
    let module = Module::with_temp_heap(|module| {
        {
            let mut eval = Evaluator::new(&module);
            eval.extra = Some(&loading);
            eval.set_print_handler(&loading);
            limits.apply(&mut eval);
            eval.eval_module(ast, globals).map_err(|error| {
                let error = source.error(&error, limits, "");
                match loading.wrong.take() {
                    Some(field) => source.at_field(error, &field),
                    None => error,
                }
            })?;
        }
        let frozen = module.freeze_named(heap_name(source.path()));
        frozen.map_err(|error| ReactError {
            file: Some(source.path().to_owned()),
            ..ReactError::new(format!("{error:?}"))
        })
    })?;
    Ok((module, loading.declared.into_inner()))
}

fn heap_name(path: &str) -> starlark::values::FrozenHeapName {
    starlark::values::FrozenHeapName::User(Box::new(path.to_owned()))
}

/// The function of a behavior.
fn reaction(module: &FrozenModule, name: &str) -> Result<OwnedFrozenValue, String> {
    let function = module.get_option(name).ok().flatten().ok_or_else(|| {
        let names: Vec<String> = module.names().map(|known| known.as_str().to_owned()).collect();
        let hint = behaviors::did_you_mean(name, names.iter().map(String::as_str));
        format!("there is no function `{name}` to react with{hint}; write def {name}(…):")
    })?;
    if function.value().parameters_spec().is_none() {
        return Err(format!("`{name}` is no function; write def {name}(…):"));
    }
    Ok(function)
}

/// What a reaction asks for.
fn parameters(function: &OwnedFrozenValue, metadata: &Metadata) -> Result<Vec<Parameter>, String> {
    let parameters = function.value().parameters_spec().expect("a reaction is a function");
    let listed = parameters.parameters_str();
    let names = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
    let parameter = |written: &str| {
        if written.starts_with(['*', '/']) {
            let name = &metadata.name;
            return Err(format!(
                "{name} is given each thing by its name; write the names in place of * and **"
            ));
        }
        Parameter::of(written.split(['=', ':']).next().unwrap_or(written).trim(), metadata)
    };
    names.map(parameter).collect()
}
