//! Tests of the site's rules of types, and of selection.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{Bench, Tree, settings_of};
use essence::select::{SelectionSettings, SourceFor};
use essence::typing::Recognizer;
use formats::Type;
use gatherer::Config;

fn with_choice(config: &Config, choice: SelectionSettings) -> Config {
    let mut config = config.clone();
    config.essence.select = choice;
    config
}

fn pair(made: &str, from: &str) -> SourceFor {
    SourceFor { made: made.into(), from: vec![from.into()] }
}

#[tokio::test(flavor = "multi_thread")]
async fn products_are_gathered_only_without_their_source() {
    let tree = Tree::with(&["a.md", "a.html", "d/b.html", "c.md", "c.html"]);
    let choice = SelectionSettings {
        source_for: vec![pair("*.html", "*.md")],
        ..SelectionSettings::default()
    };
    let mut config = with_choice(&tree.config(), choice);
    settings_of(&mut config).exclude = vec!["c.md".into()];
    let bench = Bench::start_with(tree, config).await;
    // c.md is excluded and not gathered, so its product c.html is gathered.
    assert_eq!(bench.handle.status().objects, 3);
    bench.until("a.html", false).await;
    let (_, metrics) = bench.get_admin("metrics").await;
    let line = "harvest_gatherer_left_out_total{reason=\"has-source\"} 1";
    assert!(metrics.contains(line), "{metrics}");

    fs::remove_file(bench.tree.path("a.md")).unwrap();
    bench.until("a.html", true).await;
    bench.tree.write("d/b.md", "b");
    bench.until("d/b.html", false).await;
    bench.until("d/b.md", true).await;
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_selection_deletes_records_and_brings_them_back() {
    let tree = Tree::with(&["a.txt", "b.c", "c.tmp"]);
    let config = tree.config();
    let bench = Bench::start_with(tree, config.clone()).await;
    assert_eq!(bench.handle.status().objects, 3);
    let source = Type::by_name("C").unwrap();
    let choice = SelectionSettings {
        stop_types: [source].into(),
        stop_names: vec!["*.tmp".into()],
        ..SelectionSettings::default()
    };
    bench.handle.reload(with_choice(&config, choice)).unwrap();
    bench.until("b.c", false).await;
    bench.until("c.tmp", false).await;
    bench.assert_conserved();
    let read = bench.read();
    ["a.txt", "b.c"].iter().for_each(|name| bench.tree.date(name, 1_000_000));
    bench.gather().await;
    bench.gather().await;
    assert!(bench.read() <= read + 4, "what was left out is not read at every pass");
    assert_eq!(bench.handle.status().objects, 1);
    bench.handle.reload(config).unwrap();
    bench.until("b.c", true).await;
    bench.until("c.tmp", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rules_have_everything_summarized_again() {
    let tree = Tree::with(&["a.recipe", "b.txt"]);
    let config = tree.config();
    let bench = Bench::start_with(tree, config.clone()).await;
    assert_eq!(bench.file("a.recipe").await.text("Type").as_deref(), Some("Text"));
    let rules = "[[type]]\nname = 'Recipe'\nby_name = '[.]recipe$'\n";
    let files = [(Path::new("types.toml").to_owned(), rules.to_owned())];
    let mut ruled = config;
    ruled.essence.typing = Arc::new(Recognizer::read(&files).unwrap());
    bench.handle.reload(ruled).unwrap();
    bench.until_text("a.recipe", "Recipe").await;
    assert_eq!(bench.file("b.txt").await.text("Type").as_deref(), Some("Text"));
}
