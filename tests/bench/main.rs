//! What Warren costs beside the same work done by other means, as ratios of medians in one run.
//!
//! `cargo bench -p warren-bench` runs all; names behind `--` pick some. The two sides of each
//! comparison are run in turn, so that a machine that slows down slows both.
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod calls;
mod checks;
mod create;
mod git;
mod python;
mod quota;
mod table;
mod world;

use table::Table;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runs = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut table = Table::default();
    if runs("calls") {
        runtime.block_on(calls::run(&mut table));
    }
    if runs("checks") {
        checks::run(&mut table);
    }
    if runs("create") {
        runtime.block_on(create::run(&mut table));
    }
    if runs("git") {
        git::run(&mut table);
    }
    if runs("python") {
        python::run(&mut table);
    }
    if runs("quota") {
        runtime.block_on(quota::run(&mut table));
    }
    println!("{table}");
}
