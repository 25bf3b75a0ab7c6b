//! The generator of docs/formats.md: the built-in types, how each is recognized and what is read.
//!
//! * `cargo run -p essence --example formats > docs/formats.md`
//! * `… --example formats -- limits`: prints the table of limits of docs/essence.md.
//! * `… --example formats -- seeds fuzz/seeds`: writes the samples as seeds of the fuzz targets.

#![allow(clippy::unwrap_used, reason = "samples are made like tests")]
#![allow(clippy::print_stdout, reason = "it is there to print")]

#[path = "../../tests/made/mod.rs"]
mod made;
mod samples;
mod table;

use std::path::Path;

fn main() {
    assert!(
        table::missing().is_empty() && table::faults().is_empty(),
        "samples are missing or wrong: run essence/tests/formats.rs for a list"
    );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => print!("{}", table::page()),
        ["limits"] => print!("{}", table::limits()),
        ["seeds", folder] => seeds(Path::new(folder)),
        _ => panic!("see the head of essence/examples/formats/main.rs"),
    }
}

/// Writes each sample after a line with its type (target `summarize`) or its name (`essence`).
fn seeds(folder: &Path) {
    for sample in samples::all() {
        for (target, line) in [("summarize", sample.r#type.name()), ("essence", sample.name)] {
            let folder = folder.join(target);
            std::fs::create_dir_all(&folder).unwrap();
            let seed = [line.as_bytes(), b"\n", &sample.bytes].concat();
            std::fs::write(folder.join(sample.r#type.name()), seed).unwrap();
        }
    }
}
