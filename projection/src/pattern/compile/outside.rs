//! Names that a pattern does not bind by a slot: named paths, items of lists that are gone through,
//! and the columns of a query.

use super::{Compiler, kind_word};
use crate::pattern::error::PatternError;
use crate::pattern::problem::Problem;
use crate::pattern::program::{Code, Kind};
use crate::pattern::shape::Shape;
use crate::pattern::syntax::Name;

impl Compiler<'_> {
    /// Names a whole chain.
    pub(super) fn path(
        &mut self,
        name: &Name,
        slots: Vec<usize>,
        scope: usize,
    ) -> Result<(), PatternError> {
        let known = self.find(&name.text, scope).is_some()
            || self.path_named(&name.text, scope).is_some()
            || self.outside(&name.text).is_some();
        if known {
            let message = format!("`{}` already names something else", name.text);
            let error = self.error(name.span, message).about(Problem::VariableAlreadyBound);
            return Err(error.fix("choose another name for the path"));
        }
        self.paths.push((name.text.clone(), scope, Code::Path(slots)));
        Ok(())
    }

    /// The path with a name that is visible from a scope.
    pub(super) fn path_named(&self, name: &str, scope: usize) -> Option<&Code> {
        let mut visible = Some(scope);
        while let Some(at) = visible {
            let found = self.paths.iter().find(|(n, scope, _)| n == name && *scope == at);
            if let Some((_, _, code)) = found {
                return Some(code);
            }
            visible = self.program.scopes[at].parent;
        }
        None
    }

    /// A value with a name that comes from outside of the pattern: an item of a list that is gone
    /// through, or a column of a query.
    pub(super) fn outside(&self, name: &str) -> Option<(Code, Shape)> {
        if let Some(depth) = self.items.iter().rposition(|item| item == name) {
            return Some((Code::Item(depth), Shape::Any));
        }
        let columns = self.columns.unwrap_or_default();
        let place = columns.iter().position(|column| column.name == name)?;
        Some((Code::Column(place), columns[place].shape))
    }

    /// The slot of a part whose name is known outside of the pattern: it is bound beforehand.
    pub(super) fn given(
        &mut self,
        name: &Name,
        kind: Kind,
        scope: usize,
    ) -> Result<Option<usize>, PatternError> {
        if self.path_named(&name.text, scope).is_some() {
            return Err(self.conflict(name, Shape::Path, kind));
        }
        let Some((code, shape)) = self.outside(&name.text) else { return Ok(None) };
        if !shape.may_be(&[Shape::of_kind(kind)]) {
            return Err(self.conflict(name, shape, kind));
        }
        let slot = self.new_slot(kind, Some(name), name.span, scope)?;
        self.program.scopes[scope].given.push((slot, code));
        Ok(Some(slot))
    }

    fn conflict(&self, name: &Name, shape: Shape, kind: Kind) -> PatternError {
        let (text, word) = (&name.text, kind_word(kind));
        let message = format!("`{text}` is {} and cannot be {word} here", shape.word());
        let error = self.error(name.span, message).about(Problem::VariableTypeConflict);
        error.fix("choose another name")
    }
}
