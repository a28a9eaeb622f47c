//! The six patterns of the Train Benchmark as plain loops over a plain copy of the railway: how
//! many violations there are, whatever the matcher says.

use std::collections::{BTreeMap, BTreeSet};

use projection::{ElementRef, Graph, NodeRef, World};
use serde_json::{Map, Value};

/// A railway, copied: its nodes by type, and its edges by type and end.
pub(crate) struct Copied {
    nodes: BTreeMap<NodeRef, (String, Map<String, Value>)>,
    out: BTreeMap<(String, NodeRef), Vec<NodeRef>>,
}

impl Copied {
    pub(crate) fn of(graph: &Graph) -> Copied {
        let nodes = graph.nodes().map(|node| {
            let view = graph.at(ElementRef::Node(node)).expect("it is listed");
            (node, (view.type_name().to_owned(), view.properties_json()))
        });
        let nodes = nodes.collect();
        let mut out: BTreeMap<(String, NodeRef), Vec<NodeRef>> = BTreeMap::new();
        for edge in graph.edges() {
            let view = graph.at(ElementRef::Edge(edge)).expect("it is listed");
            let (from, to) = view.ends().expect("an edge has ends");
            out.entry((view.type_name().to_owned(), from)).or_default().push(to);
        }
        Copied { nodes, out }
    }

    fn of_type(&self, type_name: &str) -> Vec<NodeRef> {
        let fits = |(node, (name, _)): (&NodeRef, &(String, Map<String, Value>))| {
            (name == type_name).then_some(*node)
        };
        self.nodes.iter().filter_map(fits).collect()
    }

    fn is(&self, node: NodeRef, type_name: &str) -> bool {
        self.nodes[&node].0 == type_name
    }

    fn property(&self, node: NodeRef, name: &str) -> &Value {
        self.nodes[&node].1.get(name).unwrap_or(&Value::Null)
    }

    fn out(&self, node: NodeRef, type_name: &str) -> &[NodeRef] {
        self.out.get(&(type_name.to_owned(), node)).map_or(&[], Vec::as_slice)
    }

    /// How many violations of a pattern there are, by its number in `PATTERNS`.
    pub(crate) fn count(&self, number: usize) -> usize {
        match number {
            0 => {
                let segments = self.of_type("Segment").into_iter();
                segments.filter(|s| self.property(*s, "length").as_i64() <= Some(0)).count()
            }
            1 => {
                let switches = self.of_type("Switch").into_iter();
                switches.filter(|w| self.out(*w, "MONITORED_BY").is_empty()).count()
            }
            2 => self.route_sensor(),
            3 => self.switch_set(),
            4 => self.connected_segments(),
            _ => self.semaphore_neighbor(),
        }
    }

    /// Each route with the switches that it follows to a position.
    fn switches(&self) -> Vec<(NodeRef, NodeRef, NodeRef)> {
        let mut all = Vec::new();
        for route in self.of_type("Route") {
            for position in self.out(route, "FOLLOWS") {
                for switch in self.out(*position, "TARGET") {
                    all.push((route, *position, *switch));
                }
            }
        }
        all
    }

    fn route_sensor(&self) -> usize {
        let switches = self.switches().into_iter();
        let missing = switches.map(|(route, _, switch)| {
            let sensors = self.out(switch, "MONITORED_BY").iter();
            sensors.filter(|sensor| !self.out(route, "REQUIRES").contains(sensor)).count()
        });
        missing.sum()
    }

    fn switch_set(&self) -> usize {
        let switches = self.switches().into_iter();
        let wrong = switches.map(|(route, position, switch)| {
            let wanted = self.property(position, "position");
            if self.property(route, "active") != true
                || wanted == self.property(switch, "currentPosition")
            {
                return 0;
            }
            let entries = self.out(route, "ENTRY").iter();
            entries.filter(|semaphore| self.property(**semaphore, "signal") == "GO").count()
        });
        wrong.sum()
    }

    fn connected_segments(&self) -> usize {
        let mut found = 0;
        let segment = |node: &&NodeRef| self.is(**node, "Segment");
        for first in self.of_type("Segment") {
            for sensor in self.out(first, "MONITORED_BY") {
                let mut chains = vec![vec![first]];
                for _ in 0..5 {
                    let mut longer = Vec::new();
                    for chain in &chains {
                        let last = *chain.last().expect("a chain is not empty");
                        for next in self.out(last, "CONNECTS_TO").iter().filter(segment) {
                            let watched = self.out(*next, "MONITORED_BY").contains(sensor);
                            if watched && !chain.contains(next) {
                                longer.push(chain.iter().copied().chain([*next]).collect());
                            }
                        }
                    }
                    chains = longer;
                }
                found += chains.len();
            }
        }
        found
    }

    fn semaphore_neighbor(&self) -> usize {
        let mut requirers: BTreeMap<NodeRef, Vec<NodeRef>> = BTreeMap::new();
        for route in self.of_type("Route") {
            for sensor in self.out(route, "REQUIRES") {
                requirers.entry(*sensor).or_default().push(route);
            }
        }
        let none = Vec::new();
        let requirers = |sensor: &NodeRef| requirers.get(sensor).unwrap_or(&none);
        let mut found = 0;
        let elements: BTreeSet<NodeRef> =
            self.of_type("Segment").into_iter().chain(self.of_type("Switch")).collect();
        for element in &elements {
            for next in self.out(*element, "CONNECTS_TO") {
                for here in self.out(*element, "MONITORED_BY") {
                    for there in self.out(*next, "MONITORED_BY") {
                        for first in requirers(here) {
                            for second in requirers(there).iter().filter(|r| *r != first) {
                                let exits = self.out(*first, "EXIT").iter();
                                let entries = self.out(*second, "ENTRY");
                                found += exits.filter(|s| !entries.contains(s)).count();
                            }
                        }
                    }
                }
            }
        }
        found
    }
}
