//! What arguments and results must look like: a JSON Schema, compiled once.

use jsonschema::Validator;
use serde_json::Value;

use crate::error::{Blame, EffectError};

/// A schema that has been compiled.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Value,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is no schema; the text says where.
    pub(crate) fn new(source: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&source);
        let validator = validator.map_err(|error| {
            let at = error.instance_path().to_string();
            format!("at `{at}` this is no JSON Schema: {error}")
        })?;
        Ok(Schema { source, validator })
    }

    /// The value with the schema's defaults filled in.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        filled(&self.source, value.clone())
    }

    /// Whether the value fits.
    ///
    /// # Errors
    /// It does not: every place that is wrong, up to four.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let errors = self.validator.iter_errors(value).take(4);
        let place = |error: jsonschema::ValidationError<'_>| {
            let path = error.instance_path().to_string();
            if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
        };
        let found: Vec<String> = errors.map(place).collect();
        if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
    }

    /// Checks arguments and fills in defaults.
    ///
    /// # Errors
    /// They do not fit.
    pub(crate) fn arguments(&self, effect: &str, args: &Value) -> Result<Value, EffectError> {
        let args = self.fill(args);
        self.check(&args).map_err(|what| {
            EffectError::new(
                "arguments.schema",
                Blame::Caller,
                format!("the arguments of {effect} do not fit: {what}"),
                "give the arguments that its schema asks for",
            )
        })?;
        Ok(args)
    }
}

/// Fills in defaults of properties, also of objects inside, where the property is missing.
fn filled(schema: &Value, mut value: Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let (Some(properties), Some(fields)) = (properties, value.as_object_mut()) {
        for (name, property) in properties {
            if let Some(field) = fields.get_mut(name) {
                *field = filled(property, field.take());
            } else if let Some(default) = property.get("default") {
                fields.insert(name.clone(), default.clone());
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_filled_in_and_a_misfit_names_its_field() {
        let schema = Schema::new(json!({
            "type": "object", "additionalProperties": false, "required": ["amount"],
            "properties": {"amount": {"type": "integer"}, "currency": {"default": "EUR"}},
        }))
        .expect("a schema");
        let good = schema.arguments("tool:pay", &json!({"amount": 3})).expect("they fit");
        assert_eq!(good, json!({"amount": 3, "currency": "EUR"}));
        let bad = schema.arguments("tool:pay", &json!({"amount": "3"})).expect_err("a string");
        assert!(bad.message.contains("/amount"), "{bad}");
        assert_eq!((bad.kind.as_str(), bad.blame), ("arguments.schema", Blame::Caller));
    }
}
