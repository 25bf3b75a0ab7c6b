//! A site's rules change what is published, by programs as well; and a gatherer whose worker is gone goes
//! on.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::sync::Arc;

use gatherer::Config;
use gatherer::rules::Rules;
use gatherer::worker::{Program, serve};
use support::{Bench, Tree};

const RULES: &str = "\
Title ~ /secret/
\tdelete()
Type == 'Text'
\tTime-to-Live = '60'
\tPartial-Text | tr a-z A-Z; pwd >&2
\tTitle | sed 's/note/NOTE/'
\tTitle | exit 7
";

/// Is what the gatherer starts, where standard input is a file or a socket of its; ends at once in a
/// usual run.
#[test]
fn started_by_a_gatherer() {
    let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
    let input = input.to_string_lossy();
    if input.starts_with("socket:") || input.ends_with("/input") {
        serve::serve().unwrap();
        std::process::exit(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_published_as_the_rules_of_the_site_have_them() {
    let tree = Tree::new();
    tree.write("a.txt", "A note\n\nabout this\n");
    tree.write("b.txt", "A secret\n\nabout that\n");
    let worker = Program {
        path: std::fs::read_link("/proc/self/exe").unwrap(),
        arguments: ["started_by_a_gatherer", "--exact", "-q"].map(str::to_owned).to_vec(),
    };
    let mut config = Config { worker: Some(worker), ..tree.config() };
    config.essence.rules = Arc::new(Rules::parse(RULES).unwrap());
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.handle.status().objects, 1);
    let record = bench.file("a.txt").await;
    let value = |name: &str| record.text(name).unwrap().into_owned();
    assert_eq!(value("Time-to-Live"), "60");
    assert!(value("Partial-Text").contains("A NOTE"), "{record:?}");
    // Before it becomes another program, a test program says that it is one.
    assert!(value("Title").ends_with("A NOTE"), "{record:?}");
    let problems = bench.handle.problems();
    let said: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("rule of line 3: `Title | exit 7`: /bin/sh fails (exit status: 7)"));
    bench.stop().await;
}
