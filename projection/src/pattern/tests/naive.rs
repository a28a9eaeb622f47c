//! A deliberately naive matcher: it tries everything, from scratch, on a plain copy of the graph.
//!
//! It reads the same tree as the product and shares nothing else with it: no plan, no index, no
//! evaluation of expressions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use log::Bound;
use serde_json::{Map, Value};

use crate::graph::{Born, ElementRef, Graph};
use crate::pattern::syntax::{
    Arithmetic, Body, Comparison, Direction, EdgePart, EventField, Expr, ExprKind, Function,
    Literal, Name, TextTest,
};
use crate::world::World;

/// An element, copied.
pub(super) struct Plain {
    pub(super) type_name: String,
    pub(super) properties: Map<String, Value>,
    pub(super) born: Born,
    pub(super) ends: Option<(String, String)>,
}

/// A graph, copied.
pub(super) struct PlainGraph {
    pub(super) elements: BTreeMap<String, Plain>,
}

/// What else an expression may mention.
pub(super) struct Given<'a> {
    pub(super) parameters: &'a BTreeMap<String, Value>,
    pub(super) event: Option<(String, Map<String, Value>)>,
}

/// A value, or an element by its id.
#[derive(Clone, Debug)]
enum V {
    Json(Value),
    Element(String),
    List(Vec<V>),
}

const NULL: V = V::Json(Value::Null);

type Names = BTreeMap<String, Bound>;

/// One match: what is bound in pattern order, and by name.
#[derive(Clone, Default)]
struct Found {
    bound: Vec<Bound>,
    names: Names,
    /// The edges taken in this body.
    used: Vec<String>,
    /// What each part of the body is bound to, in the order the parts are written.
    parts: Vec<Bound>,
}

impl PlainGraph {
    pub(super) fn of(graph: &Graph) -> PlainGraph {
        let nodes = graph.nodes().map(ElementRef::Node);
        let all = nodes.chain(graph.edges().map(ElementRef::Edge));
        let elements = all.map(|reference| {
            let view = graph.at(reference).unwrap();
            let id = |node| graph.at(ElementRef::Node(node)).unwrap().id().to_owned();
            let plain = Plain {
                type_name: view.type_name().to_owned(),
                properties: view.properties_json(),
                born: view.born(),
                ends: view.ends().map(|(from, to)| (id(from), id(to))),
            };
            (view.id().to_owned(), plain)
        });
        PlainGraph { elements: elements.collect() }
    }

    /// Every match with its order, sorted.
    pub(super) fn rows(&self, body: &Body, given: &Given<'_>) -> Vec<(Vec<Born>, Vec<Bound>)> {
        let mut rows: Vec<_> = self
            .found(body, &Names::new(), given)
            .into_iter()
            .map(|found| {
                let ids = found.bound.iter().flat_map(|bound| match bound {
                    Bound::Element(id) => vec![id],
                    Bound::Path(ids) => ids.iter().collect(),
                });
                (ids.map(|id| self.elements[id.as_str()].born).collect(), found.bound.clone())
            })
            .collect();
        rows.sort();
        rows
    }

    fn found(&self, body: &Body, outer: &Names, given: &Given<'_>) -> Vec<Found> {
        let mut found = vec![Found { names: outer.clone(), ..Found::default() }];
        for chain in &body.chains {
            found = found.iter().flat_map(|f| self.nodes(f, chain.first.name.as_ref())).collect();
            for (edge, node) in &chain.links {
                let ways = found.iter().flat_map(|f| self.edges(f, edge));
                found = ways
                    .flat_map(|(f, end)| {
                        let mut next = self.nodes(&f, node.name.as_ref());
                        next.retain(|n| {
                            n.parts.last() == Some(&Bound::Element(end.as_str().into()))
                        });
                        next
                    })
                    .collect();
            }
        }
        found.retain(|f| self.holds(body, f, given));
        found
    }

    /// Every way to go on with a node.
    fn nodes(&self, found: &Found, name: Option<&Name>) -> Vec<Found> {
        let known = name.and_then(|name| found.names.get(name.text.as_str()));
        if let Some(bound) = known {
            let mut next = found.clone();
            next.parts.push(bound.clone());
            return vec![next];
        }
        let nodes = self.elements.iter().filter(|(_, plain)| plain.ends.is_none());
        nodes.map(|(id, _)| bind(found, name, Bound::Element(id.into()))).collect()
    }

    /// Every way to go on with an edge or a path, each with the node it leads to.
    fn edges(&self, found: &Found, part: &EdgePart) -> Vec<(Found, String)> {
        let Some(Bound::Element(here)) = found.parts.last() else { panic!("a node comes first") };
        let name = part.name.as_ref();
        let Some(length) = part.length else {
            let known = name.and_then(|name| found.names.get(name.text.as_str()));
            let mut out = Vec::new();
            for (edge, end) in self.steps(here, part.direction) {
                if found.used.contains(&edge) {
                    continue;
                }
                let bound = Bound::Element(edge.as_str().into());
                let mut next = match known {
                    Some(known) if *known != bound => continue,
                    Some(_) => {
                        let mut next = found.clone();
                        next.parts.push(bound);
                        next
                    }
                    None => bind(found, name, bound),
                };
                next.used.push(edge);
                out.push((next, end));
            }
            return out;
        };
        let max = length.max.unwrap_or(u32::MAX);
        let mut out = Vec::new();
        let mut open = vec![(Vec::<String>::new(), here.to_string())];
        while let Some((path, end)) = open.pop() {
            if path.len() >= length.min as usize {
                let ids = path.iter().map(Into::into).collect();
                let mut next = bind(found, name, Bound::Path(ids));
                next.used.extend(path.iter().cloned());
                out.push((next, end.clone()));
            }
            if path.len() < max as usize {
                for (edge, far) in self.steps(&end, part.direction) {
                    if !path.contains(&edge) && !found.used.contains(&edge) {
                        let longer = path.iter().cloned().chain([edge]).collect();
                        open.push((longer, far));
                    }
                }
            }
        }
        out
    }

    /// The edges at a node in a direction, each with its other end.
    fn steps(&self, here: &str, direction: Direction) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for (id, plain) in &self.elements {
            let Some((from, to)) = &plain.ends else { continue };
            if direction != Direction::In && from == here {
                out.push((id.clone(), to.clone()));
            }
            if direction != Direction::Out && to == here {
                out.push((id.clone(), from.clone()));
            }
        }
        out.sort();
        out.dedup();
        out
    }

    /// Whether types, properties and the condition allow what is bound.
    fn holds(&self, body: &Body, found: &Found, given: &Given<'_>) -> bool {
        let mut parts = found.parts.iter();
        let mut fits = |types: &[Name], properties: &[(Name, Expr)]| {
            let ids = match parts.next().expect("each part is bound") {
                Bound::Element(id) => vec![id.clone()],
                Bound::Path(ids) => ids.clone(),
            };
            ids.iter().all(|id| {
                let plain = &self.elements[id.as_str()];
                let typed = types.is_empty() || types.iter().any(|t| t.text == plain.type_name);
                typed
                    && properties.iter().all(|(name, value)| {
                        let has = plain.properties.get(name.text.as_str()).cloned();
                        let wanted = self.value(value, found, given);
                        same(&V::Json(has.unwrap_or_default()), &wanted) == Some(true)
                    })
            })
        };
        let chains = body.chains.iter().all(|chain| {
            let first = fits(&chain.first.types, &chain.first.properties);
            let rest = chain.links.iter().map(|(edge, node)| {
                let edge = fits(&edge.types, &edge.properties);
                fits(&node.types, &node.properties) && edge
            });
            rest.fold(first, |all, one| all && one)
        });
        let condition = body.condition.as_ref();
        chains && condition.is_none_or(|c| truth(&self.value(c, found, given)) == Some(true))
    }

    fn value(&self, expr: &Expr, found: &Found, given: &Given<'_>) -> V {
        let value = |expr: &Expr| self.value(expr, found, given);
        match &expr.kind {
            ExprKind::Literal(literal) => V::Json(match literal {
                Literal::Null => Value::Null,
                Literal::Bool(truth) => (*truth).into(),
                Literal::Int(number) => (*number).into(),
                Literal::UInt(number) => (*number).into(),
                Literal::Float(number) => (*number).into(),
                Literal::Text(text) => text.as_str().into(),
            }),
            ExprKind::List(items) => V::List(items.iter().map(value).collect()),
            ExprKind::Map(_) | ExprKind::Index(..) => panic!("not among the random cases"),
            ExprKind::Parameter(name) => {
                V::Json(given.parameters.get(name.as_str()).cloned().unwrap_or_default())
            }
            ExprKind::Variable(name) => match &found.names[name.as_str()] {
                Bound::Element(id) => V::Element(id.to_string()),
                Bound::Path(ids) => {
                    V::List(ids.iter().map(|i| V::Element(i.to_string())).collect())
                }
            },
            ExprKind::Event(field) => match (&given.event, field) {
                (Some((kind, _)), EventField::Kind) => V::Json(kind.as_str().into()),
                (Some((_, payload)), EventField::Payload(path)) => {
                    let mut at = Value::Object(payload.clone());
                    for name in path {
                        at = at.get(name.as_str()).cloned().unwrap_or_default();
                    }
                    V::Json(at)
                }
                _ => NULL,
            },
            ExprKind::Property(base, name) => match value(base) {
                V::Element(id) => {
                    let properties = &self.elements[&id].properties;
                    V::Json(properties.get(name.as_str()).cloned().unwrap_or_default())
                }
                _ => NULL,
            },
            ExprKind::HasType(base, types) => match value(base) {
                V::Element(id) => {
                    of_truth(Some(types.iter().any(|t| t.text == self.elements[&id].type_name)))
                }
                _ => NULL,
            },
            ExprKind::Exists(body) => {
                of_truth(Some(!self.found(body, &found.names, given).is_empty()))
            }
            ExprKind::Call(function, arguments) => match (function, value(&arguments[0])) {
                (Function::Id, V::Element(id)) => V::Json(id.into()),
                (Function::Type, V::Element(id)) => {
                    V::Json(self.elements[&id].type_name.as_str().into())
                }
                (Function::Size, V::List(items)) => V::Json(items.len().into()),
                (Function::Coalesce, _) => {
                    let mut values = arguments.iter().map(value);
                    values.find(|v| !matches!(v, V::Json(Value::Null))).unwrap_or(NULL)
                }
                _ => NULL,
            },
            ExprKind::Arithmetic(op, a, b) => calculate(*op, &value(a), &value(b)),
            ExprKind::Negate(a) => calculate(Arithmetic::Subtract, &V::Json(0.into()), &value(a)),
            ExprKind::IsNull(a) => of_truth(Some(matches!(value(a), V::Json(Value::Null)))),
            ExprKind::IsNotNull(a) => of_truth(Some(!matches!(value(a), V::Json(Value::Null)))),
            _ => of_truth(self.logic(expr, found, given)),
        }
    }

    fn logic(&self, expr: &Expr, found: &Found, given: &Given<'_>) -> Option<bool> {
        let value = |expr: &Expr| self.value(expr, found, given);
        let three = |expr: &Expr| truth(&value(expr));
        match &expr.kind {
            ExprKind::Not(a) => three(a).map(|t| !t),
            // The least of false < null < true, and the greatest.
            ExprKind::And(parts) => rank_truth(parts.iter().map(|p| rank(three(p))).min()),
            ExprKind::Or(parts) => rank_truth(parts.iter().map(|p| rank(three(p))).max()),
            ExprKind::Xor(a, b) => Some(three(a)? != three(b)?),
            ExprKind::Compare(first, rest) => {
                let mut all = Vec::new();
                let mut left = value(first);
                for (op, next) in rest {
                    let right = value(next);
                    all.push(rank(compares(*op, &left, &right)));
                    left = right;
                }
                rank_truth(all.into_iter().min())
            }
            ExprKind::In(a, b) => {
                let item = value(a);
                let items = match value(b) {
                    V::List(items) => items,
                    V::Json(Value::Array(items)) => items.into_iter().map(V::Json).collect(),
                    _ => return None,
                };
                let any = items.iter().map(|other| rank(same(&item, other))).max();
                rank_truth(any.or(Some(0)))
            }
            ExprKind::Text(test, a, b) => {
                let (V::Json(Value::String(a)), V::Json(Value::String(b))) = (value(a), value(b))
                else {
                    return None;
                };
                Some(match test {
                    TextTest::StartsWith => a.starts_with(&b),
                    TextTest::EndsWith => a.ends_with(&b),
                    TextTest::Contains => a.contains(&b),
                    TextTest::Matches => panic!("not among the random cases"),
                })
            }
            _ => panic!("not a truth"),
        }
    }
}

fn bind(found: &Found, name: Option<&Name>, bound: Bound) -> Found {
    let mut next = found.clone();
    next.bound.push(bound.clone());
    next.parts.push(bound.clone());
    if let Some(name) = name {
        next.names.insert(name.text.to_string(), bound);
    }
    next
}

fn truth(value: &V) -> Option<bool> {
    if let V::Json(Value::Bool(truth)) = value { Some(*truth) } else { None }
}

fn of_truth(truth: Option<bool>) -> V {
    V::Json(truth.map_or(Value::Null, Value::Bool))
}

/// False 0, null 1, true 2.
fn rank(truth: Option<bool>) -> u8 {
    truth.map_or(1, |truth| if truth { 2 } else { 0 })
}

fn rank_truth(rank: Option<u8>) -> Option<bool> {
    match rank {
        Some(0) => Some(false),
        Some(2) => Some(true),
        _ => None,
    }
}

fn same(a: &V, b: &V) -> Option<bool> {
    match (a, b) {
        (V::Json(Value::Null), _) | (_, V::Json(Value::Null)) => None,
        (V::Element(a), V::Element(b)) => Some(a == b),
        (V::Json(Value::Number(a)), V::Json(Value::Number(b))) => Some(a.as_f64() == b.as_f64()),
        (V::Json(a), V::Json(b)) => Some(a == b),
        (V::List(a), V::List(b)) if a.len() == b.len() => {
            let all = a.iter().zip(b).map(|(a, b)| rank(same(a, b))).min();
            rank_truth(all.or(Some(2)))
        }
        _ => Some(false),
    }
}

fn compares(op: Comparison, a: &V, b: &V) -> Option<bool> {
    if let Comparison::Equal | Comparison::NotEqual = op {
        return same(a, b).map(|s| s == (op == Comparison::Equal));
    }
    let ordering = match (a, b) {
        (V::Json(Value::Number(a)), V::Json(Value::Number(b))) => {
            a.as_f64()?.partial_cmp(&b.as_f64()?)?
        }
        (V::Json(Value::String(a)), V::Json(Value::String(b))) => a.cmp(b),
        (V::Json(Value::Bool(a)), V::Json(Value::Bool(b))) => a.cmp(b),
        _ => return None,
    };
    Some(match op {
        Comparison::Less => ordering == Ordering::Less,
        Comparison::LessOrEqual => ordering != Ordering::Greater,
        Comparison::Greater => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    })
}

/// Small whole numbers and halves only, as the random cases have; a sum with a text joins.
fn calculate(op: Arithmetic, a: &V, b: &V) -> V {
    if let (Arithmetic::Add, V::Json(Value::String(a)), V::Json(Value::Number(b))) = (op, a, b) {
        return V::Json(format!("{a}{b}").into());
    }
    let (V::Json(Value::Number(a)), V::Json(Value::Number(b))) = (a, b) else { return NULL };
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return V::Json(match op {
            Arithmetic::Add => (a + b).into(),
            Arithmetic::Subtract => (a - b).into(),
            Arithmetic::Multiply => (a * b).into(),
            _ => panic!("not among the random cases"),
        });
    }
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return NULL };
    V::Json(match op {
        Arithmetic::Add => (a + b).into(),
        Arithmetic::Subtract => (a - b).into(),
        Arithmetic::Multiply => (a * b).into(),
        _ => panic!("not among the random cases"),
    })
}
