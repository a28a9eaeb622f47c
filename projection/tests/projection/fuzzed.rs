//! The corpus of the fuzz target, and mutants of it: no text breaks a promise of the parser.

use crate::target::{CORPUS, Random, check, deep, mutant, texts};

const MUTANTS: usize = 20_000;

fn holds(text: &str) {
    let start: String = text.chars().take(300).collect();
    check(text).unwrap_or_else(|what| panic!("{what}\n{start:?}"));
}

#[test]
fn no_text_makes_the_parser_panic_point_nowhere_or_print_what_it_does_not_read() {
    let corpus = texts(CORPUS);
    assert!(corpus.len() > 60, "{}", corpus.len());
    corpus.iter().for_each(|text| holds(text));
    let mut random = Random(42);
    let mut patterns = 0;
    for _ in 0..MUTANTS {
        let text = mutant(&corpus, &mut random);
        holds(&text);
        patterns += usize::from(projection::Pattern::parse(&text).is_ok());
    }
    assert!(patterns > MUTANTS / 50, "{patterns} of the mutants are patterns");
}

/// A hundred thousand brackets are refused with a clear error, not with a full stack.
#[test]
fn no_depth_exhausts_the_stack() {
    for text in deep() {
        holds(&text);
    }
    let error = projection::Pattern::parse(&format!("(a) WHERE {}", "(".repeat(10_000)));
    let message = error.unwrap_err().message;
    assert!(message.contains("nested deeper than"), "{message}");
}
