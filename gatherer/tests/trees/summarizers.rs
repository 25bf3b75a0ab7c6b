//! Tests of the site's own summarizers: programs named after types, as in 1995, and expressions.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Bench, Tree};
use essence::config::{EssenceConfig, SitePrograms};
use essence::quick::Declared;
use essence::typing::Recognizer;
use essence::worker::{Program, serve};
use flate2::Compression;
use flate2::write::GzEncoder;
use gatherer::Config;
use net::clock;

const TYPES: &str = "[[type]]\nname = 'Recipe'\nby_name = '[.]recipe$'\n\
                     [[type]]\nname = 'Hangs'\nby_name = '[.]hangs$'\n\
                     [[type]]\nname = 'Fails'\nby_name = '[.]fails$'\n\
                     [[type]]\nname = 'Floods'\nby_name = '[.]floods$'\n\
                     [[type]]\nname = 'Babbles'\nby_name = '[.]babbles$'\n\
                     [[type]]\nname = 'Refer'\nby_name = '[.]referbib$'\n";

const QUICK: &str = "[[summarizer]]\ntype = 'Recipe'\nbeside = true\n\
                     [[summarizer.attribute]]\nname = 'Serves'\nmatch = '^Serves (\\d+)'\n";

/// The manual's example of a summarizer, in Perl 4, with the library for SOIF beside it.
const REFER: &str = r#"#!/usr/bin/perl
$ENV{'HARVEST_HOME'} = "/usr/local/harvest" if (!defined($ENV{'HARVEST_HOME'}));
unshift(@INC, "$ENV{'HARVEST_HOME'}/lib");
require 'soif.pl';
open(REF, "$ARGV[0]") || die "$ARGV[0]: $!";
while (<REF>) {
    chop;
    $SOIF{'Author'} .= "$1\n" if (/^%A\s+(.*)$/);
    $SOIF{'Title'} = $1 if (/^%T\s+(.*)$/);
    $SOIF{'MD5'} = "0" if (/^%T/);
}
&main'soif_print('FILE', 'unused', %SOIF);
exit(0);
"#;

const SOIF_PL: &str = r#"package main;
sub soif_print {
    local($template, $url, %SOIF) = @_;
    print "\@$template { $url\n";
    foreach $k (sort keys %SOIF) {
        print $k, "{", length($SOIF{$k}), "}:\t", $SOIF{$k}, "\n" if (length($SOIF{$k}));
    }
    print "}\n";
}
1;
"#;

/// A simple summarizer: no `@FILE` around the attributes; it calls a program beside it.
const RECIPE: &str = "#!/bin/sh\ntitle=`head -1 \"$1\" | shout`\n\
                      printf 'Title{%d}:\\t%s\\n' ${#title} \"$title\"\n\
                      printf 'Argument{%d}:\\t%s\\n' ${#1} \"$1\"\n";

/// Is the gatherer's child process if standard input is its file or socket; else does nothing.
#[test]
fn started_by_a_gatherer() {
    let input = fs::read_link("/proc/self/fd/0").unwrap_or_default();
    let input = input.to_string_lossy();
    if input.starts_with("socket:") || input.ends_with("/input") {
        serve::serve(clock::monotonic).unwrap();
        std::process::exit(0);
    }
}

fn worker() -> Program {
    Program {
        path: fs::read_link("/proc/self/exe").unwrap(),
        arguments: ["summarizers::started_by_a_gatherer", "--exact", "-q"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(folder).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
}

fn library(tree: &Tree) -> PathBuf {
    tree.folder.path().join("site/lib")
}

fn config(tree: &Tree) -> Config {
    let typing = Recognizer::read(&[("types.toml".into(), TYPES.to_owned())]).unwrap();
    let declared = Declared::read(&[("quick.toml".into(), QUICK.to_owned())], Some(&typing));
    let essence = EssenceConfig {
        typing: Arc::new(typing),
        declared: declared.unwrap(),
        programs: Some(SitePrograms { folder: library(tree), time_max: Duration::from_secs(20) }),
        ..EssenceConfig::default()
    };
    Config { worker: Some(worker()), essence, ..tree.config() }
}

fn tar_gz(members: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_1995_run_unchanged() {
    let tree = Tree::new();
    put(&library(&tree), "Refer.sum", REFER);
    put(&library(&tree), "soif.pl", SOIF_PL);
    put(&library(&tree), "Recipe.sum", RECIPE);
    put(&library(&tree), "shout", "#!/bin/sh\ntr a-z A-Z\n");
    tree.write("cake.recipe", "apple cake\nServes 12\n");
    let book = "%A A. S. Tanenbaum\n%A D. J. Wetherall\n%T Computer Networks\n";
    let packed = tar_gz(&[("in/b.referbib", book), ("in/pie -x.recipe", "a pie\nServes 4\n")]);
    fs::write(tree.path("x.tar.gz"), packed).unwrap();
    let config = config(&tree);
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.problems(), [""; 0], "{:#?}", bench.handle.problems());
    let url = gatherer::spec::file_url(&bench.tree.path("x.tar.gz"));
    let refer = bench.object(&format!("{url}#in/b.referbib")).await.unwrap();
    let text = |name: &str| refer.text(name).unwrap_or_default().into_owned();
    assert_eq!(text("Title"), "Computer Networks");
    assert_eq!(text("Author"), "A. S. Tanenbaum\nD. J. Wetherall");
    assert_eq!([text("Type"), text("Nested-Filename")], ["Refer", "in/b.referbib"]);
    // Attributes that it does not write, or may not change, come from the built-in summarizer.
    assert!(text("Partial-Text").contains("%A A. S."), "{refer:?}");
    assert_eq!(text("MD5").len(), 32);
    for (record, title, argument, serves) in [
        (bench.file("cake.recipe").await, "APPLE CAKE", "cake.recipe", "12"),
        (
            bench.object(&format!("{url}#in/pie%20-x.recipe")).await.unwrap(),
            "A PIE",
            "pie_-x.recipe",
            "4",
        ),
    ] {
        let text = |name: &str| record.text(name).unwrap_or_default().into_owned();
        // A declared summarizer works like a built-in one.
        assert_eq!([text("Title"), text("Argument")], [title, argument]);
        assert_eq!(text("Serves"), serves);
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_loses_only_its_own_attributes() {
    let tree = Tree::new();
    put(&library(&tree), "Fails.sum", "#!/bin/sh\necho no such luck >&2\nexit 3\n");
    put(&library(&tree), "Floods.sum", "#!/bin/sh\ncat /dev/zero\n");
    put(&library(&tree), "Babbles.sum", "#!/bin/sh\necho Title: none\n");
    let names = ["a.fails", "a.floods", "a.babbles"];
    names.iter().for_each(|it| tree.write(it, "Its own title\n\nwords\n"));
    let config = config(&tree);
    let bench = Bench::start_with(tree, config).await;
    for name in names {
        let record = bench.file(name).await;
        assert_eq!(record.text("Title").as_deref(), Some("Its own title"), "{record:?}");
    }
    let mut problems = bench.handle.problems();
    problems.sort_by(|a, b| a.message.cmp(&b.message));
    let expected = [
        "Babbles.sum does not write SOIF",
        "Fails.sum fails (exit status: 3): no such luck",
        "Floods.sum writes too much; it was ended",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.kind == "program" && problem.message.contains(expected), "{problem:?}");
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_ended_and_soon_not_run_again() {
    let tree = Tree::new();
    put(&library(&tree), "Hangs.sum", "#!/bin/sh\nsleep 1000 & sleep 1000\n");
    let names: Vec<String> = (0..9).map(|n| format!("{n}.hangs")).collect();
    let members: Vec<(&str, &str)> = names.iter().map(|it| (&**it, "A title\n")).collect();
    fs::write(tree.path("h.tar.gz"), tar_gz(&members)).unwrap();
    let mut config = config(&tree);
    let time_max = Duration::from_secs(1);
    config.essence.programs = Some(SitePrograms { folder: library(&tree), time_max });
    let began = clock::monotonic();
    let bench = Bench::start_with(tree, config).await;
    // Three of the nine run until their deadline.
    assert!(clock::monotonic() - began < 5 * 3 * time_max);
    assert_eq!(bench.handle.status().objects, 1 + 9);
    let problems = bench.handle.problems();
    let count = |kind: &str, part: &str| {
        problems.iter().filter(|it| it.kind == kind && it.message.contains(part)).count()
    };
    assert_eq!(count("program", "Hangs.sum takes too long; it was ended"), 3, "{problems:#?}");
    assert_eq!(count("program", "Hangs.sum is not run"), 6, "{problems:#?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_or_declaration_has_files_summarized_again() {
    let tree = Tree::new();
    put(&library(&tree), "Recipe.sum", "#!/bin/sh\nprintf 'Title{3}:\\tOne\\n'\n");
    tree.write("cake.recipe", "apple cake\nServes 12\n");
    tree.date("cake.recipe", 800_000_000);
    let config = config(&tree);
    let bench = Bench::start_with(tree, config.clone()).await;
    let title = async || bench.file("cake.recipe").await.text("Title").unwrap().into_owned();
    assert_eq!((title().await.as_str(), bench.read()), ("One", 1));
    bench.handle.reload(config.clone()).unwrap();
    bench.passes(2).await;
    assert_eq!(bench.read(), 1, "nothing has changed");
    put(&library(&bench.tree), "Recipe.sum", "#!/bin/sh\nprintf 'Title{5}:\\tOther\\n'\n");
    bench.handle.reload(config.clone()).unwrap();
    bench.passes(3).await;
    assert_eq!((title().await.as_str(), bench.read()), ("Other", 2));
    let mut config = config;
    config.essence.programs = None;
    bench.handle.reload(config.clone()).unwrap();
    bench.passes(4).await;
    assert_eq!((title().await.as_str(), bench.read()), ("apple cake", 3));
    config.essence.declared = Declared::default();
    bench.handle.reload(config.clone()).unwrap();
    bench.passes(5).await;
    assert_eq!(bench.file("cake.recipe").await.get("Serves"), None);
    let folder = library(&bench.tree).join("none");
    config.essence.programs = Some(SitePrograms { folder, time_max: Duration::from_secs(1) });
    let refused = bench.handle.reload(config).unwrap_err().to_string();
    assert!(refused.contains("cannot read the folder of programs"), "{refused}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_time_for_programs_has_files_summarized_again() {
    let tree = Tree::new();
    put(&library(&tree), "Recipe.sum", "#!/bin/sh\nprintf 'Title{3}:\\tOne\\n'\n");
    tree.write("cake.recipe", "apple cake\n");
    tree.date("cake.recipe", 800_000_000);
    let mut config = config(&tree);
    let bench = Bench::start_with(tree, config.clone()).await;
    assert_eq!(bench.read(), 1);
    let time_max = Duration::from_secs(30);
    config.essence.programs = Some(SitePrograms { folder: library(&bench.tree), time_max });
    bench.handle.reload(config).unwrap();
    bench.passes(2).await;
    assert_eq!(bench.read(), 2);
    bench.stop().await;
}
