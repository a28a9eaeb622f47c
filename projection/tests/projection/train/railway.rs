//! The railway of the Train Benchmark: routes in a ring, their switches, sensors and segments.

use log::Change;
use projection::Graph;
use serde_json::{Value, json};

use super::{Scenario, event, object};

/// The positions of a switch, in order.
pub(crate) const POSITIONS: [&str; 3] = ["FAILURE", "STRAIGHT", "DIVERGING"];

/// How likely each error is, in percent.
struct Errors {
    no_entry: usize,
    not_monitored: usize,
    not_required: usize,
    sixth_segment: usize,
    length: usize,
    position: usize,
}

impl Scenario {
    fn errors(self) -> Errors {
        let [no_entry, not_monitored, not_required, sixth_segment, length, position] = match self {
            Scenario::Inject => [7, 2, 4, 5, 2, 8],
            Scenario::Repair => [25, 18, 10, 5, 10, 15],
        };
        Errors { no_entry, not_monitored, not_required, sixth_segment, length, position }
    }
}

/// Numbers that only look random.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

pub(crate) fn node(id: &str, type_name: &str, properties: Value) -> Change {
    let properties = object(properties);
    Change::Create { id: Some(id.into()), type_name: type_name.into(), properties }
}

pub(crate) fn link(type_name: &str, from: &str, to: &str) -> Change {
    let (type_name, from, to) = (type_name.into(), from.into(), to.into());
    Change::Link { id: None, type_name, from, to, properties: serde_json::Map::new() }
}

/// A railway of a size: five routes for each.
pub(crate) fn build(size: usize, scenario: Scenario) -> Graph {
    let mut builder = Builder {
        graph: Graph::new(),
        random: Random::new(size as u64),
        errors: scenario.errors(),
        changes: Vec::new(),
    };
    let routes = 5 * size;
    let mut ends: Vec<(String, String)> = Vec::new();
    for route in 0..routes {
        ends.push(builder.route(route, routes));
    }
    for (route, (_, last)) in ends.iter().enumerate() {
        let (first, _) = &ends[(route + 1) % routes];
        builder.changes.push(link("CONNECTS_TO", last, first));
    }
    builder.land();
    builder.graph
}

struct Builder {
    graph: Graph,
    random: Random,
    errors: Errors,
    changes: Vec<Change>,
}

impl Builder {
    /// Applies what was built so far as one event.
    fn land(&mut self) {
        let event = event(&self.graph, std::mem::take(&mut self.changes));
        self.graph.apply(&event).unwrap_or_else(|refusal| panic!("{refusal}"));
    }

    /// A route with all that belongs to it; its first and its last track element.
    fn route(&mut self, route: usize, routes: usize) -> (String, String) {
        let (id, region) = (format!("route{route}"), format!("region{route}"));
        let exit = format!("semaphore{route}");
        let entry = format!("semaphore{}", (route + routes - 1) % routes);
        let signal = |id: &str| node(id, "Semaphore", json!({"signal": "GO"}));
        // The first route enters at the exit of the last, which is built with it.
        if route == 0 {
            self.changes.push(signal(&entry));
        }
        if route + 1 < routes {
            self.changes.push(signal(&exit));
        }
        self.changes.push(node(&region, "Region", json!({})));
        self.changes.push(node(&id, "Route", json!({"active": true})));
        self.changes.push(link("EXIT", &id, &exit));
        if !self.random.chance(self.errors.no_entry) {
            self.changes.push(link("ENTRY", &id, &entry));
        }
        let mut track = Vec::new();
        for number in 0..1 + self.random.below(19) {
            self.switch(&id, &region, &format!("{route}.{number}"), &mut track);
        }
        for pair in track.windows(2) {
            self.changes.push(link("CONNECTS_TO", &pair[0], &pair[1]));
        }
        if let Some(segment) = track.iter().find(|id| id.starts_with("segment")) {
            self.changes.push(link("SEMAPHORES", segment, &entry));
        }
        self.land();
        let last = track.last().expect("a route has a switch").clone();
        (track.swap_remove(0), last)
    }

    fn switch(&mut self, route: &str, region: &str, number: &str, track: &mut Vec<String>) {
        let (switch, position) = (format!("switch{number}"), format!("position{number}"));
        let current = self.random.below(POSITIONS.len());
        // Mirrored, the position in the middle stays what it is; then another one is taken.
        let wanted = match self.random.chance(self.errors.position) {
            true if current == 1 => 2,
            true => POSITIONS.len() - 1 - current,
            false => current,
        };
        let properties = json!({"currentPosition": POSITIONS[current]});
        self.changes.push(node(&switch, "Switch", properties));
        let properties = json!({"position": POSITIONS[wanted]});
        self.changes.push(node(&position, "SwitchPosition", properties));
        self.changes.push(link("FOLLOWS", route, &position));
        self.changes.push(link("TARGET", &position, &switch));
        self.changes.push(link("ELEMENTS", region, &switch));
        track.push(switch.clone());
        for sensor in 0..1 + self.random.below(9) {
            self.sensor((route, region, &switch), &format!("{number}.{sensor}"), track);
        }
    }

    fn sensor(
        &mut self,
        (route, region, switch): (&str, &str, &str),
        number: &str,
        track: &mut Vec<String>,
    ) {
        let sensor = format!("sensor{number}");
        self.changes.push(node(&sensor, "Sensor", json!({})));
        self.changes.push(link("SENSORS", region, &sensor));
        if !self.random.chance(self.errors.not_monitored) {
            self.changes.push(link("MONITORED_BY", switch, &sensor));
            if !self.random.chance(self.errors.not_required) {
                self.changes.push(link("REQUIRES", route, &sensor));
            }
        }
        let segments = 5 + usize::from(self.random.chance(self.errors.sixth_segment));
        for segment in 0..segments {
            let id = format!("segment{number}.{segment}");
            let length = 1 + self.random.below(1000) as i64;
            let length = if self.random.chance(self.errors.length) { 1 - length } else { length };
            self.changes.push(node(&id, "Segment", json!({"length": length})));
            self.changes.push(link("MONITORED_BY", &id, &sensor));
            self.changes.push(link("ELEMENTS", region, &id));
            track.push(id);
        }
    }
}
