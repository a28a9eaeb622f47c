//! From the tree to a program: names become slots, and the condition becomes filters and anchors.
//!
//! Each scope is read twice: first its chains, so that every name is known, then its values and
//! conditions, which may mention any of them.

mod lower;
mod outside;

pub(crate) use lower::whole_text;

use smol_str::SmolStr;

use crate::pattern::error::PatternError;
use crate::pattern::problem::Problem;
use crate::pattern::program::{
    Anchor, AnchorKey, Code, EdgeStep, Filter, Kind, Program, SLOTS_MAX, Scope, Slot, SlotSet,
    Ways, bit, slots_of,
};
use crate::pattern::shape::Column;
use crate::pattern::syntax::{
    Body, Comparison, Direction, EdgePart, Expr, Function, Name, NodePart, Span,
};

/// Makes the program of a pattern.
///
/// # Errors
/// A name that is not bound, or bound as something else; a text that is no regular expression.
pub(crate) fn compile(text: &str, body: &Body) -> Result<Program, PatternError> {
    let mut compiler = Compiler::new(text, None);
    compiler.scope(body, None)?;
    let mut program = compiler.program;
    mark_read(&mut program);
    assert!(program.slots.len() <= SLOTS_MAX, "a set of slots has 64 places");
    Ok(program)
}

pub(crate) struct Compiler<'t> {
    text: &'t str,
    pub(crate) program: Program,
    /// What a query knows from the clauses before; `None` in a pattern that stands alone.
    columns: Option<&'t [Column]>,
    /// The names of the items of the lists that are gone through, outermost first.
    items: Vec<SmolStr>,
    /// Paths that have a name, with the scope they stand in.
    pub(crate) paths: Vec<(SmolStr, usize, Code)>,
}

impl<'t> Compiler<'t> {
    pub(crate) fn new(text: &'t str, columns: Option<&'t [Column]>) -> Compiler<'t> {
        let (program, items, paths) = (Program::default(), Vec::new(), Vec::new());
        Compiler { text, program, columns, items, paths }
    }

    pub(crate) fn error(&self, span: Span, message: impl Into<String>) -> PatternError {
        PatternError::at(self.text, span, message)
    }

    /// A scope without a pattern, for expressions that stand outside of one.
    pub(crate) fn empty_scope(&mut self) -> usize {
        self.program.scopes.push(Scope::default());
        self.program.scopes.len() - 1
    }

    /// Compiles a body as a new scope and gives its number.
    pub(crate) fn scope(
        &mut self,
        body: &Body,
        parent: Option<usize>,
    ) -> Result<usize, PatternError> {
        let scope = self.program.scopes.len();
        self.program.scopes.push(Scope { parent, ..Scope::default() });
        // Slots of the parts in the order they are written, to be met again on the second reading.
        let mut ends = Vec::new();
        for chain in &body.chains {
            let mut from = self.node(&chain.first, scope)?;
            let first = ends.len();
            ends.push(from);
            for (edge, node) in &chain.links {
                let slot = self.edge(edge, scope)?;
                let to = self.node(node, scope)?;
                self.step(edge, slot, from, to, scope);
                ends.extend([slot, to]);
                from = to;
            }
            if let Some(name) = &chain.path {
                self.path(name, ends[first..].to_vec(), scope)?;
            }
        }
        self.conditions(body, &ends, scope)?;
        self.finish(scope);
        Ok(scope)
    }

    /// The slot with a name that is visible from a scope.
    fn find(&self, name: &str, scope: usize) -> Option<usize> {
        let mut visible = Some(scope);
        while let Some(at) = visible {
            let own = slots_of(self.program.scopes[at].own);
            let mut named = own.filter(|slot| {
                self.program.slots[*slot].name.as_ref().is_some_and(|found| found == name)
            });
            if let Some(slot) = named.next() {
                return Some(slot);
            }
            visible = self.program.scopes[at].parent;
        }
        None
    }

    fn new_slot(
        &mut self,
        kind: Kind,
        name: Option<&Name>,
        span: Span,
        scope: usize,
    ) -> Result<usize, PatternError> {
        let slot = self.program.slots.len();
        if slot == SLOTS_MAX {
            let message = format!("a pattern has at most {SLOTS_MAX} nodes and edges");
            return Err(self.error(span, message));
        }
        let name = name.map(|name| name.text.clone());
        let (read, reads_any, has_edge) = (Vec::new(), false, false);
        self.program.slots.push(Slot { name, kind, scope, types: None, read, reads_any, has_edge });
        self.program.scopes[scope].own |= bit(slot);
        Ok(slot)
    }

    fn node(&mut self, part: &NodePart, scope: usize) -> Result<usize, PatternError> {
        let known = part.name.as_ref().and_then(|name| self.find(&name.text, scope));
        let slot = match (known, &part.name) {
            (Some(slot), Some(name)) => {
                self.expect_kind(slot, Kind::Node, name)?;
                slot
            }
            (None, Some(name)) => match self.given(name, Kind::Node, scope)? {
                Some(slot) => slot,
                None => self.new_slot(Kind::Node, Some(name), part.span, scope)?,
            },
            _ => self.new_slot(Kind::Node, None, part.span, scope)?,
        };
        if self.program.slots[slot].scope == scope {
            self.program.scopes[scope].nodes |= bit(slot);
        }
        self.narrow(slot, &part.types, scope)?;
        Ok(slot)
    }

    fn edge(&mut self, part: &EdgePart, scope: usize) -> Result<usize, PatternError> {
        let kind = if part.length.is_some() { Kind::Path } else { Kind::Edge };
        let known = part.name.as_ref().and_then(|name| self.find(&name.text, scope));
        let slot = match (known, &part.name) {
            (Some(slot), Some(name)) => {
                if self.program.slots[slot].scope == scope || kind == Kind::Path {
                    self.expect_kind(slot, kind, name)?;
                    let message = format!("`{}` already names another edge", name.text);
                    let error = self.error(name.span, message);
                    let error = error.about(Problem::RelationshipUniquenessViolation);
                    return Err(error.fix("give each edge of a pattern its own name"));
                }
                self.expect_kind(slot, kind, name)?;
                slot
            }
            (None, Some(name)) => match self.given(name, kind, scope)? {
                Some(slot) => slot,
                None => self.new_slot(kind, Some(name), part.span, scope)?,
            },
            _ => self.new_slot(kind, None, part.span, scope)?,
        };
        self.narrow(slot, &part.types, scope)?;
        Ok(slot)
    }

    fn expect_kind(&self, slot: usize, kind: Kind, name: &Name) -> Result<(), PatternError> {
        let found = self.program.slots[slot].kind;
        if found == kind {
            return Ok(());
        }
        let (text, found, word) = (&name.text, kind_word(found), kind_word(kind));
        let message = format!("`{text}` is {found} and cannot be {word} here");
        let error = self.error(name.span, message).about(Problem::VariableTypeConflict);
        Err(error.fix("choose another name"))
    }

    fn type_number(&mut self, name: &SmolStr) -> usize {
        let known = self.program.types.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.program.types.push(name.clone());
            self.program.types.len() - 1
        })
    }

    /// Restricts a slot to some types: its own, or by a filter if it belongs to an outer scope.
    fn narrow(&mut self, slot: usize, types: &[Name], scope: usize) -> Result<(), PatternError> {
        let (Some(first), Some(last)) = (types.first(), types.last()) else { return Ok(()) };
        let mut numbers: Vec<usize> = Vec::new();
        for name in types {
            let number = self.type_number(&name.text);
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        if self.program.slots[slot].scope != scope {
            let code = Code::HasType(slot, numbers);
            let filter = Filter { needs: bit(slot), code, late: false };
            self.program.scopes[scope].filters.push(filter);
            return Ok(());
        }
        if let Some(known) = &self.program.slots[slot].types {
            numbers.retain(|number| known.contains(number));
        }
        // A query finds nothing then; a pattern that can never match is a mistake.
        if numbers.is_empty() && self.columns.is_none() {
            let message = "this element was given another type before, and it has only one";
            return Err(self.error(first.span.to(last.span), message));
        }
        self.program.slots[slot].types = Some(numbers);
        Ok(())
    }

    fn step(&mut self, part: &EdgePart, slot: usize, left: usize, right: usize, scope: usize) {
        // A plain edge is turned to point forward. A path keeps its order, which its list shows.
        let inward = part.direction == Direction::In;
        let turned = inward && part.length.is_none();
        let (from, to) = if turned { (right, left) } else { (left, right) };
        for end in [from, to] {
            // A path that may be empty does not vouch for its ends.
            if self.program.slots[end].scope == scope && part.length.is_none_or(|l| l.min > 0) {
                self.program.slots[end].has_edge = true;
            }
        }
        let ways = match part.direction {
            Direction::Both => Ways::Both,
            Direction::In if !turned => Ways::Backward,
            _ => Ways::Forward,
        };
        let step = EdgeStep { slot, from, to, ways, length: part.length, each: Vec::new() };
        self.program.scopes[scope].edges.push(step);
    }

    /// Reads what stands in braces and after `WHERE`.
    fn conditions(
        &mut self,
        body: &Body,
        slots: &[usize],
        scope: usize,
    ) -> Result<(), PatternError> {
        let mut slots = slots.iter().copied();
        let mut steps = 0;
        for chain in &body.chains {
            let first = slots.next().expect("each part was given a slot");
            self.equalities(&chain.first.properties, first, scope)?;
            for (edge, node) in &chain.links {
                let slot = slots.next().expect("each part was given a slot");
                if edge.length.is_some() {
                    let each = self.entries(&edge.properties, scope)?;
                    self.expect_constant(&edge.properties, &each)?;
                    self.program.scopes[scope].edges[steps].each = each;
                } else {
                    self.equalities(&edge.properties, slot, scope)?;
                }
                steps += 1;
                let end = slots.next().expect("each part was given a slot");
                self.equalities(&node.properties, end, scope)?;
            }
        }
        match &body.condition {
            Some(condition) => {
                let code = self.truth(condition, scope)?;
                self.add_filter(code, scope);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The edges of a path are asked before the rest is bound, so their values stand alone.
    fn expect_constant(
        &self,
        properties: &[(Name, Expr)],
        each: &[(SmolStr, Code)],
    ) -> Result<(), PatternError> {
        for ((_, value), (_, code)) in properties.iter().zip(each) {
            let mut alone = true;
            code.visit(&mut |part| {
                alone &= !matches!(
                    part,
                    Code::Slot(_)
                        | Code::Read(..)
                        | Code::Path(_)
                        | Code::Exists(_)
                        | Code::Collect(..)
                );
            });
            if !alone {
                let message = "the edges of a path can only be compared with fixed values";
                let error = self.error(value.span, message);
                return Err(error.fix("use a literal, a parameter or a field of the event"));
            }
        }
        Ok(())
    }

    /// `{name: value}` says that the property equals the value.
    fn equalities(
        &mut self,
        properties: &[(Name, Expr)],
        slot: usize,
        scope: usize,
    ) -> Result<(), PatternError> {
        for (name, value) in self.entries(properties, scope)? {
            let read = Code::Read(slot, name);
            let code = Code::Compare(Box::new(read), vec![(Comparison::Equal, value)]);
            self.add_filter(code, scope);
        }
        Ok(())
    }

    /// Adds a condition, split where it is a conjunction.
    fn add_filter(&mut self, code: Code, scope: usize) {
        if let Code::And(parts) = code {
            parts.into_iter().for_each(|part| self.add_filter(part, scope));
            return;
        }
        if let Code::Compare(left, rest) = &code
            && let [(Comparison::Equal, right)] = rest.as_slice()
        {
            self.add_anchor(left, right, scope);
            self.add_anchor(right, left, scope);
        }
        let mut late = false;
        code.visit(&mut |part| late |= matches!(part, Code::Exists(_) | Code::Collect(..)));
        let needs = self.program.needs(&code);
        self.program.scopes[scope].filters.push(Filter { needs, code, late });
    }

    /// Notes that `key = value` finds an element, if `key` is the id or a property of one.
    fn add_anchor(&mut self, key: &Code, value: &Code, scope: usize) {
        let (slot, key) = match key {
            Code::Read(slot, name) => (*slot, AnchorKey::Property(name.clone())),
            Code::Call(Function::Id, arguments) => match arguments.as_slice() {
                [Code::Slot(slot)] => (*slot, AnchorKey::Id),
                _ => return,
            },
            _ => return,
        };
        let needs = self.program.needs(value);
        let mut plain = needs & bit(slot) == 0;
        value.visit(&mut |part| plain &= !matches!(part, Code::Exists(_) | Code::Collect(..)));
        // An index knows its elements by type, so without one it cannot be asked.
        let askable = key == AnchorKey::Id || self.program.slots[slot].types.is_some();
        if plain && askable {
            let anchor = Anchor { slot, needs, key, value: value.clone() };
            self.program.scopes[scope].anchors.push(anchor);
        }
    }

    /// Computes what a scope mentions of the scopes around it.
    fn finish(&mut self, scope: usize) {
        let found = &self.program.scopes[scope];
        let mut mentioned: SlotSet = 0;
        for step in &found.edges {
            mentioned |= bit(step.slot) | bit(step.from) | bit(step.to);
            for (_, code) in &step.each {
                mentioned |= self.program.needs(code);
            }
        }
        for filter in &found.filters {
            mentioned |= filter.needs;
        }
        self.program.scopes[scope].imports = mentioned & !self.program.scopes[scope].own;
    }
}

/// What a part of a pattern is called in messages.
fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "a node",
        Kind::Edge => "an edge",
        Kind::Path => "a path",
    }
}

/// Notes on each slot which of its properties are read anywhere.
fn mark_read(program: &mut Program) {
    let mut read: Vec<(usize, Option<SmolStr>)> = Vec::new();
    for scope in &program.scopes {
        let each = scope.edges.iter().flat_map(|step| {
            step.each.iter().map(move |(name, code)| (Some((step.slot, name)), code))
        });
        for (own, code) in each.chain(scope.filters.iter().map(|filter| (None, &filter.code))) {
            read.extend(own.map(|(slot, name)| (slot, Some(name.clone()))));
            // Elements that are only compared, or asked what never changes.
            let mut untouched: Vec<&Code> = Vec::new();
            code.visit(&mut |part| match part {
                Code::Read(slot, name) => read.push((*slot, Some(name.clone()))),
                Code::Compare(first, rest) => {
                    untouched.push(first);
                    untouched.extend(rest.iter().map(|(_, next)| next));
                }
                Code::IsNull(inner) => untouched.push(inner),
                Code::Call(function, arguments) if function.is_of_identity() => {
                    untouched.extend(arguments);
                }
                // Handed on as a value, any of its properties may be read.
                Code::Slot(slot) if !untouched.iter().any(|known| std::ptr::eq(*known, part)) => {
                    read.push((*slot, None));
                }
                _ => {}
            });
        }
    }
    for (slot, name) in read {
        let slot = &mut program.slots[slot];
        match name {
            None => slot.reads_any = true,
            Some(name) if !slot.read.contains(&name) => slot.read.push(name),
            Some(_) => {}
        }
    }
    program.slots.iter_mut().for_each(|slot| slot.read.sort_unstable());
}
