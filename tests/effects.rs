//! Effects: what behaviors ask of the world, who may stop it, and what becomes of it.

mod asking;
mod bounds;
mod commands;
mod forks;
mod guards;
mod kills;
mod life;
mod recovery;

use std::sync::Arc;

use behaviors::{Firing, Proposals, ReactError};
use serde_json::{Value, json};

use crate::support::effects::{Scripted, World};
use crate::support::flock::Small;

/// Asks `tool:x` once for each `Wish`, with its arguments.
fn ask(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let wish = firing.element("wish")?;
    let args = wish.get("args").map_or(json!({}), |args| args.to_json());
    let effect = wish.text("effect").unwrap_or("tool:x");
    out.request(effect, args, wish.text("key"));
    Ok(())
}

/// A flock that asks for these wishes: each is the properties of a node `Wish`.
pub(crate) fn wishing(wishes: &[Value]) -> Small {
    let metadata = json!({"name": "ask", "match": "(wish:Wish)", "effects": ["*"]});
    let changes: Vec<Value> = wishes
        .iter()
        .enumerate()
        .map(|(n, wish)| json!({"create": format!("wish:{n}"), "type": "Wish", "properties": wish}))
        .collect();
    Small::new("fifo", &json!({}))
        .with(&metadata, ask)
        .says("grants", json!({"effects": ["*"]}))
        .begins("wishes.made", &Value::Array(changes))
}

/// One wish of `tool:x` and a world for it.
fn one(world: Scripted) -> (World, Arc<Scripted>) {
    let world = Arc::new(world);
    (World::new(&wishing(&[json!({"args": {"n": 1}})]), &[("tool:x", &world)]), world)
}
