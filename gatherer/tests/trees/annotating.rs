//! Tests of annotations: laid over records, stored apart, and kept when objects are gathered again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::support::{Bench, Tree};
use essence::rules::Rules;
use gatherer::config::Watch;
use gatherer::{Config, spec};
use soif::{Record, write_record};

/// A tree with a folder of annotations beside it, and a gatherer, by default without a watch.
struct Desk {
    bench: Bench,
}

fn notes(tree: &Tree) -> PathBuf {
    tree.folder.path().join("annotations")
}

/// Writes a file of annotations with an old time, so that the gatherer reads it at once.
fn annotate(tree: &Tree, name: &str, text: &str) {
    let path = notes(tree).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A new inode each time: the change is noticed whatever the time.
    let beside = path.with_file_name(".new");
    std::fs::write(&beside, text).unwrap();
    let file = std::fs::File::options().write(true).open(&beside).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// A SOIF record about the object at `url`.
fn soif(url: &str, attributes: &[(&str, &str)]) -> String {
    let mut record = Record::new("FILE", url);
    attributes.iter().for_each(|(name, value)| record.push(*name, *value));
    let mut text = Vec::new();
    write_record(&mut text, &record);
    String::from_utf8(text).unwrap()
}

fn config(tree: &Tree) -> Config {
    let mut config = Config { watch: Watch::Off, ..tree.config() };
    config.essence.annotations = vec![notes(tree)];
    config
}

impl Desk {
    async fn start(tree: Tree) -> Self {
        std::fs::create_dir_all(notes(&tree)).unwrap();
        let config = config(&tree);
        Self { bench: Bench::start_with(tree, config).await }
    }

    fn url(&self, name: &str) -> String {
        let (file, member) = name.split_once('#').map_or((name, None), |(f, m)| (f, Some(m)));
        let url = spec::file_url(&self.bench.tree.path(file));
        member.map_or_else(|| url.clone(), |member| format!("{url}#{member}"))
    }

    /// Gathers, and returns the number of changed records.
    async fn gather(&self) -> u64 {
        let progress = self.bench.gather().await;
        progress.updated + progress.deleted
    }

    async fn text(&self, name: &str, attribute: &str) -> Option<String> {
        let record = self.bench.object(&self.url(name)).await;
        let record = record.unwrap_or_else(|| panic!("{name} is not there"));
        record.text(attribute).map(|it| it.replace('\n', "|"))
    }

    /// Checks the object's `Title` and `Subject`.
    async fn check(&self, name: &str, title: &str, subject: Option<&str>) {
        assert_eq!(self.text(name, "Title").await.as_deref(), Some(title), "{name}");
        assert_eq!(self.text(name, "Subject").await.as_deref(), subject, "{name}");
    }
}

/// Returns a tree of old files, which are not read twice without need.
fn tree() -> Tree {
    let tree = Tree::new();
    tree.write("a.txt", "Note a\n\nabout this\n");
    tree.write("b.txt", "Note b\n\nabout that\n");
    tree.write("list.bib", "@misc{one, title = {One}}\n\n@misc{two, title = {Two}}\n");
    let mut builder = tar::Builder::new(std::fs::File::create(tree.path("box.tar")).unwrap());
    for (name, content) in [("in/x.txt", "Inner x\n\nwords\n"), ("in/y.txt", "Inner y\n\nwords\n")]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap();
    ["a.txt", "b.txt", "list.bib", "box.tar"].iter().for_each(|it| tree.date(it, 2_000_000));
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_is_laid_over_changed_and_taken_away() {
    let desk = Desk::start(tree()).await;
    let tree = &desk.bench.tree;
    desk.check("a.txt", "Note a", None).await;
    let (made, read) = (desk.text("a.txt", "Keywords").await.unwrap(), desk.bench.read());
    assert_eq!(desk.gather().await, 0);
    let a = desk.url("a.txt");
    annotate(
        tree,
        "a.soif",
        &soif(&a, &[("Title", "Said"), ("Keywords", "zebra"), ("Subject", "S")]),
    );
    assert_eq!(desk.gather().await, 1, "only what it is about");
    desk.check("a.txt", "Said", Some("S")).await;
    assert_eq!(desk.text("a.txt", "Keywords").await, Some(format!("{made}|zebra")));
    desk.check("b.txt", "Note b", None).await;
    assert_eq!(desk.bench.read(), read + 1);
    // A new file with the same statements changes nothing.
    annotate(
        tree,
        "a.soif",
        &format!("\n{}", soif(&a, &[("Title", "Said"), ("Keywords", "zebra"), ("Subject", "S")])),
    );
    assert_eq!(desk.gather().await, 0);
    annotate(tree, "a.soif", &soif(&a, &[("Title", "Said better"), ("Description", "")]));
    assert_eq!(desk.gather().await, 1);
    desk.check("a.txt", "Said better", None).await;
    assert_eq!(desk.text("a.txt", "Description").await, None);
    // New content keeps the annotation.
    tree.write("a.txt", "Note c\n\nanew\n");
    tree.date("a.txt", 2_000_001);
    assert_eq!(desk.gather().await, 1);
    desk.check("a.txt", "Said better", None).await;
    assert!(desk.text("a.txt", "Keywords").await.unwrap().contains("anew"));
    std::fs::remove_file(notes(tree).join("a.soif")).unwrap();
    assert_eq!(desk.gather().await, 1);
    desk.check("a.txt", "Note c", None).await;
    assert_eq!(desk.text("a.txt", "Description").await.as_deref(), Some("anew"));
    desk.bench.assert_conserved();
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_entries_are_annotated_one_by_one() {
    let desk = Desk::start(tree()).await;
    let tree = &desk.bench.tree;
    let text = soif(&desk.url("box.tar#in/y.txt"), &[("Title", "Outer y")]);
    annotate(tree, "m.soif", &text);
    assert_eq!(desk.gather().await, 1, "neither the archive nor its other member");
    desk.check("box.tar#in/y.txt", "Outer y", None).await;
    annotate(
        tree,
        "t.toml",
        &format!(
            "[[term]]\nscheme = 'LCC'\ncode = 'QA76'\nlabel = 'Data'\nobjects = ['{}', '{}', '{}']\n",
            desk.url("list.bib#two"),
            desk.url("box.tar#in/*.txt"),
            desk.url("*.txt").replace("%2A", "*"),
        ),
    );
    assert_eq!(desk.gather().await, 5);
    desk.check("box.tar#in/x.txt", "Inner x", Some("Data")).await;
    desk.check("box.tar#in/y.txt", "Outer y", Some("Data")).await;
    desk.check("list.bib#two", "Two", Some("Data")).await;
    desk.check("list.bib#one", "One", None).await;
    desk.check("a.txt", "Note a", Some("Data")).await;
    assert_eq!(desk.text("a.txt", "Subject-Code").await.as_deref(), Some("LCC:QA76"));
    // The pattern matches a later file.
    tree.write("c.txt", "Note c\n");
    tree.date("c.txt", 2_000_000);
    assert_eq!(desk.gather().await, 1);
    desk.check("c.txt", "Note c", Some("Data")).await;
    let iafa =
        format!("Template-Type: DOCUMENT\nTitle: By template\nURI-v1: {}\n", desk.url("b.txt"));
    annotate(tree, "x.iafa", &iafa);
    assert_eq!(desk.gather().await, 1);
    desk.check("b.txt", "By template", Some("Data")).await;
    let counts = desk.bench.handle.status().annotations;
    assert_eq!(
        (counts.files, counts.annotations, counts.with_mistakes, counts.unmatched),
        (3, 5, 0, 0)
    );
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_file_removes_no_annotations() {
    let desk = Desk::start(tree()).await;
    let tree = &desk.bench.tree;
    let whole = soif(&desk.url("a.txt"), &[("Title", "Said")]);
    annotate(tree, "a.soif", &whole);
    annotate(tree, "b.soif", &soif(&desk.url("b.txt"), &[("Title", "Also said")]));
    assert_eq!(desk.gather().await, 2);
    for half in [&whole[..whole.len() - 4], "", "@FILE"] {
        annotate(tree, "a.soif", half);
        assert_eq!(desk.gather().await, 0, "{half:?}");
        desk.check("a.txt", "Said", None).await;
        assert_eq!(desk.bench.problems(), ["annotation a.soif"]);
        assert_eq!(desk.bench.handle.status().annotations.with_mistakes, 1);
    }
    let text = desk.bench.handle.problems().remove(0).message;
    assert!(
        text.starts_with("line 1:1:") && text.contains("its earlier annotations count"),
        "{text}"
    );
    // A file with a mistake is refused as a whole, and others are used.
    annotate(tree, "a.soif", &soif(&desk.url("a.txt"), &[("Title", "x"), ("Note+", "")]));
    annotate(tree, "b.soif", &soif(&desk.url("b.txt"), &[("Title", "Said anew")]));
    assert_eq!(desk.gather().await, 1);
    desk.check("a.txt", "Said", None).await;
    desk.check("b.txt", "Said anew", None).await;
    let text = desk.bench.handle.problems().remove(0).message;
    assert!(text.starts_with("line 3:1: nothing is added to Note"), "{text}");
    annotate(tree, "a.soif", &whole);
    assert_eq!(desk.gather().await, 0);
    assert_eq!(desk.bench.problems(), [""; 0]);
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_without_an_object_is_reported_until_there_is_one() {
    let desk = Desk::start(tree()).await;
    let tree = &desk.bench.tree;
    let later = desk.url("later.txt");
    annotate(tree, "x.soif", &format!("\n{}", soif(&later, &[("Title", "Said")])));
    assert_eq!(desk.gather().await, 0);
    let problems = desk.bench.handle.problems();
    assert_eq!((problems.len(), problems[0].kind.as_str()), (1, "annotation-unmatched"));
    let expected =
        format!("{}:2: no object has the URL {later} ", notes(tree).join("x.soif").display());
    assert!(problems[0].message.starts_with(&expected), "{problems:?}");
    assert_eq!(desk.bench.handle.status().annotations.unmatched, 1);
    // Both annotations about one URL are reported, and a pattern that matches an archive alone.
    annotate(tree, "y.soif", &soif(&later, &[("Title", "Said")]));
    let members = desk.url("box.tar#out/*.txt");
    annotate(tree, "z.toml", &format!("[[term]]\nlabel = 'L'\nobjects = ['{members}']\n"));
    assert_eq!(desk.gather().await, 0);
    let problems = desk.bench.handle.problems();
    let places = ["x.soif:2, ", "y.soif:1: no object", "z.toml:1: no object"];
    for it in places {
        assert!(problems.iter().any(|problem| problem.message.contains(it)), "{it}: {problems:?}");
    }
    assert_eq!((problems.len(), desk.bench.handle.status().annotations.unmatched), (2, 3));
    for name in ["y.soif", "z.toml"] {
        std::fs::remove_file(notes(tree).join(name)).unwrap();
    }
    tree.write("later.txt", "Late\n");
    assert_eq!(desk.gather().await, 1);
    desk.check("later.txt", "Said", None).await;
    assert!(desk.bench.handle.problems().is_empty());
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_start_finds_no_changes() {
    let tree = tree();
    let url = spec::file_url(&tree.path("a.txt"));
    std::fs::create_dir_all(notes(&tree)).unwrap();
    annotate(&tree, "a.soif", &soif(&url, &[("Title", "Said")]));
    let desk = Desk::start(tree).await;
    desk.check("a.txt", "Said", None).await;
    let version = desk.bench.handle.version();
    let (tree, _) = desk.bench.stop().await;
    let desk = Desk::start(tree).await;
    assert_eq!((desk.bench.read(), desk.bench.handle.progress().borrow().updated), (0, 0));
    assert_eq!(desk.bench.handle.version().epoch, version.epoch);
    let (tree, _) = desk.bench.stop().await;
    std::fs::remove_file(notes(&tree).join("a.soif")).unwrap();
    let desk = Desk::start(tree).await;
    assert_eq!(desk.bench.handle.progress().borrow().updated, 1);
    desk.check("a.txt", "Note a", None).await;
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_come_first_and_what_they_delete_stays_deleted() {
    let tree = tree();
    let url = |name: &str| spec::file_url(&tree.path(name));
    std::fs::create_dir_all(notes(&tree)).unwrap();
    let text = ["a.txt", "b.txt"].map(|it| soif(&url(it), &[("Title", "Said")])).concat();
    annotate(&tree, "x.soif", &text);
    let mut config = config(&tree);
    let rules =
        "URL ~ /b\\.txt/\n\tdelete()\nType == 'Text'\n\tTitle = 'Ruled'\n\tNote = 'Ruled'\n";
    config.essence.rules = Arc::new(Rules::parse(rules).unwrap());
    let desk = Desk { bench: Bench::start_with(tree, config).await };
    desk.check("a.txt", "Said", None).await;
    assert_eq!(desk.text("a.txt", "Note").await.as_deref(), Some("Ruled"));
    assert_eq!(desk.bench.object(&desk.url("b.txt")).await, None);
    assert_eq!(desk.bench.problems(), ["annotation-unmatched b.txt"]);
    desk.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_folder_is_read_when_it_changes() {
    let tree = tree();
    std::fs::create_dir_all(notes(&tree)).unwrap();
    let url = spec::file_url(&tree.path("a.txt"));
    let mut config = Config { rewalk: Duration::from_secs(86_400), ..tree.config() };
    config.essence.annotations = vec![notes(&tree)];
    let bench = Bench::start_with(tree, config).await;
    // With the present time, as an editor writes it.
    let path = notes(&bench.tree).join("a.soif");
    std::fs::write(&path, soif(&url, &[("Title", "Said")])).unwrap();
    bench.until_text("a.txt", "Said").await;
    std::fs::write(&path, soif(&url, &[("Title", "Said again")])).unwrap();
    bench.until_text("a.txt", "Said again").await;
    std::fs::remove_file(&path).unwrap();
    bench.until_text("a.txt", "Note a").await;
    bench.stop().await;
}
