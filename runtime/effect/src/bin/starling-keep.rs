//! The keeper alone: what a program that embeds Starling, and the tests, start beside them.

fn main() {
    effect::keep_if_asked();
    eprintln!("starling-keep is started by Starling, to end a command and all that it began");
    std::process::exit(2);
}
