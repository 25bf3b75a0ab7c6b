//! Tests of the settings files in the documentation: what users copy from there is accepted.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use essence::config::{Files, list_folder};

use crate::harness::write;

/// Settings that name all files of which the documentation has examples.
const ALL_FILES: &str = "[essence]\ntypes = ['types.toml']\nsummarizers = ['quick.toml']\n\
                         markup = ['markup.toml']\npdf_templates = ['templates', 'minutes.toml']\n\
                         rules = 'rules'\nprograms = 'lib'\nannotations = ['annotations']\n";

/// A whole token, for one of which an example shows the front.
const TOKEN: &str = "3f0c6a9be1d24a7f9d4c7a1be0b2c85d";

/// The public key of a member.
const KEY: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

/// The front of an invitation, as examples show it.
const INVITATION_FRONT: &str = "harvest-group-1,papers,…";

/// An example of a settings file, or of a file that it names.
struct Example {
    /// Its page and line.
    position: String,
    /// The name in the comment at its beginning; empty if there is none.
    name: String,
    text: String,
}

impl Example {
    fn new(position: String, text: String) -> Self {
        let mut comments = text.lines().take(2).filter_map(|line| line.strip_prefix("# "));
        let name = comments.next().and_then(|it| it.split([',', ' ']).next()).unwrap_or_default();
        let name = if name == "of" { "" } else { name }.to_owned();
        Self { position, name, text }
    }

    fn is_of(&self, daemon: &str) -> bool {
        self.name.is_empty() || self.name == format!("{daemon}.toml")
    }

    /// Returns the text with the keys that every settings file needs.
    fn completed(&self, needed: &str, end: &str) -> String {
        let keys = self.text.lines().take_while(|it| !it.starts_with('['));
        let has = |line: &&str| {
            let key = line.split('=').next().unwrap_or_default();
            keys.clone().any(|it| it.starts_with(key))
        };
        let missing: Vec<&str> = needed.lines().filter(|line| !has(line)).collect();
        let header = end.lines().find(|it| it.starts_with('[')).unwrap_or("[[");
        let end = if self.text.contains(header) { "" } else { end };
        let invitation = format!("harvest-group-1,papers,{KEY},a.example.org:4000,{KEY}");
        let text = self.text.replace("3f0c…", TOKEN).replace(INVITATION_FRONT, &invitation);
        format!("{}\n{text}{end}", missing.join("\n"))
    }
}

/// Returns the fenced and the indented examples of a page.
fn examples(page: &Path) -> Vec<Example> {
    let text = fs::read_to_string(page).unwrap();
    let (mut found, mut block, mut is_fenced) = (Vec::new(), String::new(), false);
    let mut end = |block: &mut String, number: usize| {
        let text = std::mem::take(block);
        let is_toml = text.parse::<toml_edit::DocumentMut>().is_ok_and(|it| !it.is_empty());
        let others = ["# rules\n", "#!/bin/sh\n# lib/"];
        if is_toml || others.iter().any(|it| text.starts_with(it)) {
            found.push(Example::new(format!("{}, above line {number}", page.display()), text));
        }
    };
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        let indented = line.strip_prefix("    ").filter(|_| !is_fenced);
        let is_blank = line.is_empty() && !block.is_empty();
        match indented {
            None if line == "```toml" => {
                end(&mut block, number);
                is_fenced = true;
            }
            None if is_fenced && line != "```" => block.extend([line, "\n"]),
            Some(line) => block.extend([line, "\n"]),
            // An indented block goes on behind an empty line if that is indented, too.
            None if is_blank && number < text.lines().count() => block.push('\n'),
            None => {
                is_fenced = false;
                end(&mut block, number);
            }
        }
    }
    found
}

#[test]
fn every_example_of_settings_in_the_documentation_is_accepted() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = fs::read_dir(home.join("docs")).unwrap().map(|it| it.unwrap().path());
    let pages = pages.filter(|it| it.extension().is_some_and(|it| it == "md"));
    let mut pages: Vec<PathBuf> = pages.chain([home.join("README.md")]).collect();
    pages.sort();
    let all: Vec<Example> = pages.iter().flat_map(|page| examples(page)).collect();
    assert!(30 <= all.len(), "{}", all.len());

    let folder = tempfile::tempdir().unwrap();
    let is_settings = |it: &Example| {
        ["gatherer", "broker", "replicator", "cache", "registry"]
            .iter()
            .any(|daemon| it.is_of(daemon))
    };
    let (settings, named): (Vec<_>, Vec<_>) = all.iter().partition(|it| is_settings(it));
    let mut unread: BTreeSet<PathBuf> = BTreeSet::new();
    for it in &named {
        write(folder.path(), &it.name, &it.text);
        assert!(unread.insert(it.name.clone().into()), "{}: {} again", it.position, it.name);
    }
    let unread = RefCell::new(unread);
    let read = |path: &Path| {
        unread.borrow_mut().remove(path);
        fs::read_to_string(folder.path().join(path))
    };
    let list = |path: &Path| list_folder(&folder.path().join(path));
    let gatherer = |text: &str| {
        let files = Files { read: &read, list: &list };
        gatherer::Config::parse_with(text, files).map(drop).map_err(|it| format!("{it:#?}"))
    };
    let broker =
        |text: &str| broker::config::Config::parse(text).map(drop).map_err(|it| format!("{it:#?}"));
    let replicator =
        |text: &str| replicator::Config::parse(text).map(drop).map_err(|it| format!("{it:#?}"));
    let data = Path::new("a");
    let cache =
        |text: &str| cache::Config::parse(text, data).map(drop).map_err(|it| format!("{it:#?}"));
    let registry = |text: &str| {
        registry::config::Config::parse(text).map(drop).map_err(|it| format!("{it:#?}"))
    };
    type Read<'a> = &'a dyn Fn(&str) -> Result<(), String>;
    let daemons: [(&str, &str, &str, Read<'_>); 5] = [
        ("gatherer", "name = 'a'\ndata = 'a'", "\n[[root]]\nurl = 'file:///srv'\n", &gatherer),
        ("broker", "name = 'a'\ndata = 'a'", "", &broker),
        (
            "replicator",
            "data = 'a'\naddress = 'h.example:4000'\nsite = 'a'",
            "\n[[group]]\nname = 'g'\n",
            &replicator,
        ),
        ("cache", "", "", &cache),
        ("registry", "name = 'a'\ndata = 'a'", "", &registry),
    ];
    for it in settings {
        let of = daemons.iter().filter(|(daemon, ..)| it.is_of(daemon));
        let outcomes: Vec<Result<(), String>> =
            of.map(|(_, needed, end, read)| read(&it.completed(needed, end))).collect();
        let refusals: String = outcomes.iter().filter_map(|it| it.clone().err()).collect();
        let is_accepted = outcomes.contains(&Ok(()));
        assert!(is_accepted, "{}:\n{}\n{refusals}", it.position, it.text);
    }

    let text = format!("name = 'a'\ndata = 'a'\n[[root]]\nurl = 'file:///srv'\n{ALL_FILES}");
    assert_eq!(gatherer(&text), Ok(()));
    let annotations = folder.path().join("annotations");
    let (_read, problems) = essence::annotations::sources::read_once(&[annotations], 0);
    assert_eq!(format!("{problems:?}"), "[]");
    let mut unread = unread.into_inner();
    unread.retain(|it| !it.starts_with("annotations") && !it.starts_with("lib"));
    assert_eq!(unread, BTreeSet::new(), "name them in ALL_FILES");
}
