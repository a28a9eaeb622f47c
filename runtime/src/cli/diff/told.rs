//! Differences as lines, and figures side by side as a table.

use std::collections::BTreeMap;

use log::Address;
use projection::Difference;
use serde_json::Value;

use crate::history::{Figures, Part};

/// One difference as lines: what was added, removed or changed, and who wrote each side.
pub(super) fn difference(
    difference: &Difference<'_>,
    parts: &[Part],
    by: impl Fn(&Part) -> [Option<Value>; 2],
) -> Vec<String> {
    let whole = |sign: char, view: projection::ElementView<'_>| {
        let properties = Value::Object(view.properties_json());
        format!("{sign} ({}) {} {properties}", view.type_name(), view.id())
    };
    let text = |value: Option<log::ValueRef<'_>>| {
        value.map_or("nothing".to_owned(), |value| value.to_json().to_string())
    };
    let mut lines = Vec::new();
    match (difference.before, difference.after) {
        (Some(gone), None) => lines.push(whole('-', gone)),
        (None, Some(new)) => lines.push(whole('+', new)),
        _ => {
            lines.push(format!("~ {}", difference.id));
            for ((name, one, other), part) in difference.properties().into_iter().zip(parts) {
                lines.push(format!("    {name}: {} -> {}", text(one), text(other)));
                lines.extend(authors(by(part)));
            }
            if parts.is_empty() {
                lines.push("    it has another type or other ends".to_owned());
            }
            return lines;
        }
    }
    lines.extend(parts.iter().flat_map(|part| authors(by(part))));
    lines
}

/// Who wrote each side; one line where it is the same event.
fn authors([one, other]: [Option<Value>; 2]) -> Vec<String> {
    let told = |sign: char, author: Option<Value>| {
        let author = author?;
        let text = |name: &str| author[name].as_str().unwrap_or_default().to_owned();
        Some(format!("      {sign} {}  {}  {}", text("address"), text("actor"), text("kind")))
    };
    [told('-', one), told('+', other)].into_iter().flatten().collect()
}

/// The figures of all sides, one a line, where each has a column.
pub(super) fn table(sides: &[(&Address, Figures)]) -> Vec<String> {
    let mut order = Vec::new();
    let mut rows: BTreeMap<&str, Vec<Option<u64>>> = BTreeMap::new();
    for (column, (_, figures)) in sides.iter().enumerate() {
        for (name, count) in figures {
            let row = rows.entry(name).or_insert_with(|| {
                order.push(name.as_str());
                vec![None; sides.len()]
            });
            row[column] = Some(*count);
        }
    }
    let heads: Vec<String> = sides.iter().map(|(address, _)| address.to_string()).collect();
    let first = order.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |name: &str, cells: Vec<String>| {
        let cells = cells.iter().zip(&heads).map(|(cell, head)| {
            let width = head.chars().count().max(12);
            format!("  {cell:>width$}")
        });
        format!("{name:<first$}{}", cells.collect::<String>())
    };
    let mut lines = vec![line("", heads.clone())];
    for name in order {
        let cells = rows[name].iter();
        let cells = cells.map(|count| count.map_or("-".to_owned(), |count| count.to_string()));
        lines.push(line(name, cells.collect()));
    }
    lines
}
