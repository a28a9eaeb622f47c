//! drasi-core, with its indexes in memory: a source change is given to one continuous query.

use std::sync::Arc;
use std::time::Instant;

use drasi_core::evaluation::context::QueryPartEvaluationContext;
use drasi_core::evaluation::functions::FunctionRegistry;
use drasi_core::models::{
    Element, ElementMetadata, ElementPropertyMap, ElementReference, ElementValue, SourceChange,
};
use drasi_core::query::{ContinuousQuery, QueryBuilder};
use drasi_query_cypher::CypherParser;

use crate::{CHANGES, CLAIMS, Change, ROUNDS, Run, changes};

pub fn run(query: &str, before: u64) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let functions = Arc::new(FunctionRegistry::new());
        let parser = Arc::new(CypherParser::new(functions.clone()));
        let builder = QueryBuilder::new(query, parser).with_function_registry(functions);
        let query: ContinuousQuery = builder.build().await;
        for claim in 0..before {
            for source in changes(claim).into_iter().map(source) {
                query.process_source_change(source).await.expect("a good change");
            }
        }
        let mut runs = Vec::new();
        for round in 0..ROUNDS {
            let (mut rows, mut us) = (0, 0.0);
            for claim in 0..CLAIMS {
                let claim = before + round * CLAIMS + claim;
                let sources: Vec<SourceChange> = changes(claim).into_iter().map(source).collect();
                let start = Instant::now();
                for source in sources {
                    let changed = query.process_source_change(source).await.expect("a good change");
                    let noop = |row: &&_| !matches!(row, QueryPartEvaluationContext::Noop);
                    rows += changed.iter().filter(noop).count();
                }
                us += start.elapsed().as_secs_f64() * 1e6;
            }
            let us = us / (CLAIMS * CHANGES) as f64;
            runs.push(Run { rows, us, matching_us: us });
        }
        Run::least(runs.into_iter())
    })
}

fn metadata(id: &str, label: &str) -> ElementMetadata {
    let labels = Arc::from(vec![Arc::from(label)]);
    ElementMetadata { reference: ElementReference::new("bench", id), labels, effective_from: 1_000 }
}

fn property(name: &str, value: ElementValue) -> ElementPropertyMap {
    let mut properties = ElementPropertyMap::new();
    properties.insert(name, value);
    properties
}

fn source(change: Change) -> SourceChange {
    let claim = |claim: u64, confidence: f64| Element::Node {
        metadata: metadata(&format!("c{claim}"), "Claim"),
        properties: property("confidence", ElementValue::Float(confidence.into())),
    };
    match change {
        Change::Claim(number) => SourceChange::Insert { element: claim(number, 0.5) },
        Change::Confidence(number) => SourceChange::Update { element: claim(number, 0.9) },
        Change::Evidence(number, n) => SourceChange::Insert {
            element: Element::Node {
                metadata: metadata(&format!("e{number}.{n}"), "Evidence"),
                properties: property("n", ElementValue::Integer(n as i64)),
            },
        },
        Change::Supports(number, n) => SourceChange::Insert {
            element: Element::Relation {
                metadata: metadata(&format!("s{number}.{n}"), "SUPPORTS"),
                in_node: ElementReference::new("bench", &format!("e{number}.{n}")),
                out_node: ElementReference::new("bench", &format!("c{number}")),
                properties: ElementPropertyMap::new(),
            },
        },
    }
}
