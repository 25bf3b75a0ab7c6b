//! Settings of Essence: the table `[essence]` of a gatherer's settings, and the files that it
//! names (docs/settings.md).

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use formats::explode::is_list;
use formats::markup::Tables;
use formats::pdf::Templates;
use formats::{Detail, Type};
use settings::{Mistake, Table};

use crate::error::{in_file, unknown_type};
use crate::extract::Explode;
use crate::glob;
use crate::quick::Declared;
use crate::rules::Rules;
use crate::select::{self, SelectionSettings, SourceFor};
use crate::typing::Recognizer;

/// Reader of a text file that the settings name.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Default time limit of a program for one object, in seconds.
const PROGRAM_SECS: u64 = 10;
/// Maximum value of the setting `program_secs`.
const PROGRAM_SECS_MAX: u64 = 600;

/// The site's programs that summarize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePrograms {
    /// The folder of the programs.
    pub folder: PathBuf,
    /// Time limit of a program for one object.
    pub time_max: Duration,
}

/// Access to the files and folders that the settings name.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// Reads a file.
    pub read: ReadFile<'a>,
    /// Lists the names of a folder's entries, in any order.
    pub list: &'a dyn Fn(&Path) -> io::Result<Vec<PathBuf>>,
}

impl fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

/// Lists the names of a folder's entries.
///
/// # Errors
///
/// The path is not a folder, or it cannot be read.
pub fn list_folder(path: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(path)?.map(|it| it.map(|it| PathBuf::from(it.file_name()))).collect()
}

/// Settings of typing, selecting and summarizing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EssenceConfig {
    /// Recognizer of types, by the rule files and the built-in rules.
    pub typing: Arc<Recognizer>,
    /// Tables of the meaning of markup elements.
    pub markup: Tables,
    /// Templates for classes of PDF documents.
    pub templates: Templates,
    /// Selection of objects.
    pub select: SelectionSettings,
    /// Amount of detail in records.
    pub detail: Detail,
    /// Types of lists whose entries get records of their own.
    pub explode: Explode,
    /// Summarizers that the site has declared.
    pub declared: Declared,
    /// The site's programs that summarize.
    pub programs: Option<SitePrograms>,
    /// The site's rules, which change records.
    pub rules: Arc<Rules>,
    /// Files and folders of annotations.
    pub annotations: Vec<PathBuf>,
    /// Files and folders that the site's programs may read in addition to those of the system.
    pub programs_read: Vec<PathBuf>,
}

impl EssenceConfig {
    /// Reads `[essence]`, and the files that it names by means of `from`. Adds the mistakes in
    /// these files to `mistakes`, each with its file.
    pub fn read(table: &Table<'_>, from: Files<'_>, mistakes: &mut Vec<Mistake>) -> Self {
        let read = from.read;
        let typing = or_default(Recognizer::read(&files(table, "types", read)), mistakes);
        let markup = or_default(Tables::read(&files(table, "markup", read)), mistakes);
        let templates = templates(table, from, mistakes);
        // If a file has mistakes, the types that it defines are unknown; they are not reported as
        // missing.
        let types = mistakes.is_empty().then_some(&typing);
        let declared = files(table, "summarizers", read);
        let declared = or_default(Declared::read(&declared, types), mistakes);
        let select = selection(&table.table("select"), types);
        let programs_read = table.strings("programs_read").into_iter().map(PathBuf::from);
        Self {
            markup,
            templates,
            select,
            detail: detail(table),
            explode: explode(table),
            declared,
            programs: programs(table, read),
            rules: Arc::new(rules(table, read, mistakes)),
            annotations: annotations(table),
            programs_read: programs_read.collect(),
            typing: Arc::new(typing),
        }
    }
}

/// Returns the value that was read. If it has mistakes, adds them and returns the default.
fn or_default<T: Default>(read: Result<T, Vec<Mistake>>, mistakes: &mut Vec<Mistake>) -> T {
    read.unwrap_or_else(|found| {
        mistakes.extend(found);
        T::default()
    })
}

/// Reads `pdf_templates = ["templates"]`: files, and folders whose `*.toml` files are read in the
/// order of their names.
fn templates(table: &Table<'_>, from: Files<'_>, mistakes: &mut Vec<Mistake>) -> Templates {
    let mut files = Vec::new();
    for (i, path) in table.strings("pdf_templates").into_iter().map(PathBuf::from).enumerate() {
        let mut named = match (from.list)(&path) {
            Ok(names) => names.iter().map(|name| path.join(name)).collect(),
            Err(_no_folder) => vec![path.clone()],
        };
        let is_template = |it: &PathBuf| it.extension().is_some_and(|it| it == "toml");
        named.retain(|it| *it == path || is_template(it));
        named.sort();
        for file in named {
            match (from.read)(&file) {
                Ok(text) => files.push((file, text)),
                Err(error) => {
                    let message = format!("cannot read {}: {error}", file.display());
                    let expected = "a template, or a folder of some";
                    table.mistake_in("pdf_templates", i, message, expected);
                }
            }
        }
    }
    or_default(Templates::read(&files), mistakes)
}

/// Reads `annotations = ["annotations"]`: files and folders, whose content is read during
/// gathering.
fn annotations(table: &Table<'_>) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = table.strings("annotations").into_iter().map(PathBuf::from).collect();
    for (i, path) in paths.iter().enumerate() {
        if path.as_os_str().is_empty() {
            table.mistake_in("annotations", i, "names nothing", "a file or a folder");
        }
    }
    paths
}

/// Reads the files that the setting `key` names.
fn files(table: &Table<'_>, key: &str, read: ReadFile<'_>) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for (i, name) in table.strings(key).into_iter().enumerate() {
        let path = PathBuf::from(name);
        match read(&path) {
            Ok(text) => files.push((path, text)),
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                table.mistake_in(key, i, message, "a file of rules");
            }
        }
    }
    files
}

/// Reads `programs = "lib"`: a folder, which is listed when the programs are first needed.
fn programs(table: &Table<'_>, read: ReadFile<'_>) -> Option<SitePrograms> {
    let secs = table.integer("program_secs", 1..=PROGRAM_SECS_MAX).unwrap_or(PROGRAM_SECS);
    let folder = table.path("programs")?;
    // Reading a path as text fails for a folder; so this tells folders from files.
    let mistake = match read(&folder) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => None,
        Err(error) => Some(format!("cannot read {}: {error}", folder.display())),
        Ok(_file) => Some(format!("{} is a file", folder.display())),
    };
    if let Some(mistake) = mistake {
        table.mistake("programs", mistake, "a folder of programs");
    }
    Some(SitePrograms { folder, time_max: Duration::from_secs(secs) })
}

/// Reads `detail = "brief"`: one of [`Detail::NAMED`], and what may be switched off in it.
fn detail(table: &Table<'_>) -> Detail {
    let chosen = table.choice("detail", &Detail::NAMED.map(|(name, _)| name));
    let named = Detail::NAMED.into_iter().find(|(name, _)| Some(*name) == chosen);
    let detail = named.map_or_else(Detail::default, |(_, detail)| detail);
    Detail {
        language: table.boolean("language", detail.language),
        text_print: table.boolean("text_print", detail.text_print),
        ..detail
    }
}

/// Reads `explode = ["CSV"]`: the types of lists to explode; `[]` means none.
fn explode(table: &Table<'_>) -> Explode {
    if !table.has("explode") {
        return Explode::All;
    }
    let mut types = BTreeSet::new();
    for (i, name) in table.strings("explode").iter().enumerate() {
        match Type::by_name(name).filter(|it| is_list(*it)) {
            Some(found) => {
                types.insert(found.name().to_owned());
            }
            None => {
                let lists = Type::ALL.iter().filter(|it| is_list(**it)).map(|it| it.name());
                let lists = lists.collect::<Vec<_>>().join(", ");
                table.mistake_in("explode", i, format!("{name:?} is no type of lists"), lists);
            }
        }
    }
    if types.is_empty() { Explode::None } else { Explode::Types(types) }
}

fn rules(table: &Table<'_>, read: ReadFile<'_>, mistakes: &mut Vec<Mistake>) -> Rules {
    let Some(path) = table.string("rules").map(PathBuf::from) else { return Rules::default() };
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            table.mistake("rules", message, "a file of rules");
            return Rules::default();
        }
    };
    or_default(Rules::parse(&text).map_err(|found| in_file(found, &path).collect()), mistakes)
}

fn selection(table: &Table<'_>, types: Option<&Recognizer>) -> SelectionSettings {
    SelectionSettings {
        stop_types: read_types(table, "stop_types", types),
        allow_types: read_types(table, "allow_types", types),
        stop_names: patterns(table, "stop_names"),
        allow_names: patterns(table, "allow_names"),
        size_min: table.bytes("min_size").unwrap_or(0),
        size_max: table.bytes("max_size"),
        source_for: source_for(&table.tables("source_for")),
    }
}

/// Returns the types that the setting `key` names. Without `known` (the rule files have mistakes),
/// returns none.
pub fn read_types(table: &Table<'_>, key: &str, known: Option<&Recognizer>) -> BTreeSet<Type> {
    let mut types = BTreeSet::new();
    for (i, name) in table.strings(key).iter().enumerate() {
        let Some(known) = known else { continue };
        match known.by_name(name) {
            Some(found) => {
                types.insert(found);
            }
            None => {
                let (message, expected) = unknown_type(name);
                table.mistake_in(key, i, message, expected);
            }
        }
    }
    types
}

/// Reads the glob patterns that the setting `key` lists.
pub fn patterns(table: &Table<'_>, key: &str) -> Vec<String> {
    let patterns = table.strings(key);
    for (i, pattern) in patterns.iter().enumerate() {
        if let Some(mistake) = glob::mistake(pattern) {
            table.mistake_in(key, i, format!("pattern {pattern:?}: {mistake}"), "a glob");
        }
    }
    patterns
}

fn source_for(tables: &[Table<'_>]) -> Vec<SourceFor> {
    let mut pairs: Vec<SourceFor> = Vec::new();
    for table in tables {
        let made = table.required_string("made");
        table.require("from", "\"*.c\"");
        let from = table.one_or_more("from");
        for (i, source) in from.iter().enumerate() {
            if let Some(mistake) = select::mistake(&made, source) {
                table.mistake_in("from", i, mistake, "such as made = \"*.o\", from = \"*.c\"");
            } else if pairs.iter().any(|it| it.made == *source && it.from.contains(&made)) {
                let message = format!("{made:?} and {source:?} would each be made of the other");
                table.mistake_in("from", i, message, "one of the two");
            }
        }
        pairs.push(SourceFor { made, from });
    }
    pairs
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    /// Empty lines before the table in a settings file.
    const BEFORE: &str = "\n\n\n\n";

    const QUICK: &str =
        "[[summarizer]]\ntype = 'Recipe'\n[[summarizer.attribute]]\nname = 'Title'\nmatch = 'x'\n";

    fn read(text: &str) -> Result<EssenceConfig, Vec<String>> {
        let files = |path: &Path| match path.to_str() {
            Some("types.toml") => Ok("[[type]]\nname = 'Recipe'\nby_name = 'x'\n".to_owned()),
            Some("pdf/a.toml") => Ok("class = 'recipe'\n".to_owned()),
            Some("pdf/b.toml" | "menu.toml") => Ok("class = 'menu'\nlike = 'recipe'\n".to_owned()),
            Some("rules") => Ok("Type == 'HTML'\n\tdelete()\n".to_owned()),
            Some("bad-rules") => Ok("Type == 'HTML'\n\tdelete\n".to_owned()),
            Some("quick.toml") => Ok(QUICK.to_owned()),
            Some("lib") => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Some("bad.toml") => Ok("\n[[type]]\nname = 'Recipe'\nby_nam = 'x'\n".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let list = |path: &Path| match path.to_str() {
            Some("pdf") => Ok(["b.toml", "a.toml", "a.txt"].map(PathBuf::from).to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        };
        let files = Files { read: &files, list: &list };
        let text = format!("{BEFORE}{text}");
        let document = Document::parse(&text).unwrap();
        let mut elsewhere = Vec::new();
        let essence = EssenceConfig::read(&document.root().table("essence"), files, &mut elsewhere);
        let mut mistakes = document.finish().err().unwrap_or_default();
        mistakes.extend(elsewhere);
        let settings = Path::new("g.toml");
        let named = mistakes.iter().map(|it| it.with_file(settings)).collect::<Vec<_>>();
        if named.is_empty() { Ok(essence) } else { Err(named) }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let shown = read(text).err().unwrap_or_default();
        assert_eq!(shown.len(), expected.len(), "{shown:#?}");
        for (shown, expected) in shown.iter().zip(expected) {
            let (position, part) = expected.split_once(' ').unwrap();
            assert!(shown.starts_with(position) && shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn all_settings_can_be_set() {
        let essence = read(
            "[essence]\ntypes = ['types.toml']\nrules = 'rules'\nexplode = ['csv']\n\
             pdf_templates = ['pdf']\nannotations = ['a.soif', 'notes']\nprograms_read = ['/lib/own']\n\
             summarizers = ['quick.toml']\ndetail = 'brief'\nprograms = 'lib'\nprogram_secs = 5\n\
             [essence.select]\nstop_types = ['object', 'Recipe']\n\
             allow_types = ['HTML']\nstop_names = ['*.tmp']\nallow_names = ['docs/']\n\
             min_size = '1 B'\nmax_size = '1 KiB'\n\
             [[essence.select.source_for]]\nmade = '*.o'\nfrom = ['*.c', '*.cc']\n\
             [[essence.select.source_for]]\nmade = '*.html'\nfrom = '*.md'\n",
        );
        let essence = essence.unwrap();
        let pair = |made: &str, from: &[&str]| SourceFor {
            made: made.into(),
            from: from.iter().map(ToString::to_string).collect(),
        };
        let expected = SelectionSettings {
            stop_types: [Type::Object, Type::Site(0)].into(),
            allow_types: [Type::Html].into(),
            stop_names: vec!["*.tmp".into()],
            allow_names: vec!["docs/".into()],
            size_min: 1,
            size_max: Some(1024),
            source_for: vec![pair("*.o", &["*.c", "*.cc"]), pair("*.html", &["*.md"])],
        };
        assert_eq!(essence.select, expected);
        assert!(!essence.rules.is_empty());
        assert_eq!(essence.explode, Explode::Types(["CSV".to_owned()].into()));
        assert_eq!(essence.annotations, ["a.soif", "notes"].map(PathBuf::from));
        let template = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
        let templates = [
            template("pdf/a.toml", "class = 'recipe'\n"),
            template("pdf/b.toml", "class = 'menu'\nlike = 'recipe'\n"),
        ];
        assert_eq!(essence.templates, Templates::read(&templates).unwrap());
        assert_eq!(essence.detail, Detail::BRIEF);
        assert_eq!(essence.programs_read, [PathBuf::from("/lib/own")]);
        let (folder, time_max) = (PathBuf::from("lib"), Duration::from_secs(5));
        assert_eq!(essence.programs, Some(SitePrograms { folder, time_max }));
        assert_ne!(essence.declared, Declared::default());
        let programs = read("[essence]\nprograms = 'lib'\n").unwrap().programs.unwrap();
        assert_eq!(programs.time_max, Duration::from_secs(10));
        assert_eq!(essence.typing.recognize("file:///x", "x", b""), Type::Site(0));
        assert_eq!(read("").unwrap(), EssenceConfig::default());
    }

    #[test]
    fn languages_and_prints_are_switched_apart_from_detail() {
        let detail = |text: &str| read(&format!("[essence]\n{text}\n")).unwrap().detail;
        assert_eq!(detail(""), Detail::RICH);
        let neither = Detail { language: false, text_print: false, ..Detail::RICH };
        assert_eq!(detail("language = false\ntext_print = false"), neither);
        let terse = Detail { text_print: true, ..Detail::TERSE };
        assert_eq!(detail("detail = 'terse'\ntext_print = true"), terse);
    }

    #[test]
    fn every_mistake_is_named_with_file_and_line() {
        check("[essence]\ntypes = ['none.toml']\n", &["g.toml:6:10: cannot read none.toml"]);
        check(
            "[essence]\ntypes = ['bad.toml']\nx = 1\n[essence.select]\nstop_types = ['Recipe']\n",
            &["g.toml:7:1: \"x\"", "bad.toml:2:1: no condition", "bad.toml:4:1: \"by_nam\""],
        );
        check("[essence]\nexplode = ['HTML']\n", &["g.toml:6:12: \"HTML\" is no type of lists"]);
        check("[essence]\ndetail = 'long'\n", &["g.toml:6:10: \"detail\" is \"long\""]);
        check("[essence]\nmarkup = ['none.toml']\n", &["g.toml:6:11: cannot read none.toml"]);
        check("[essence]\nsummarizers = ['none']\n", &["g.toml:6:16: cannot read none"]);
        check("[essence]\nsummarizers = ['quick.toml']\n", &["quick.toml:2:8: \"Recipe\""]);
        check("[essence]\nprograms = 'none'\n", &["g.toml:6:12: cannot read none"]);
        check("[essence]\nprograms = 'rules'\n", &["g.toml:6:12: is a file"]);
        check(
            "[essence]\nprograms = 'lib'\nprogram_secs = 0\n",
            &["g.toml:7:16: a whole number from 1 to 600"],
        );
        check("[essence]\nannotations = ['']\n", &["g.toml:6:16: names nothing"]);
        check("[essence]\nannotations = 'a'\n", &["g.toml:6:15: annotations"]);
        check(
            "[essence]\npdf_templates = ['none.toml']\n",
            &["g.toml:6:18: cannot read none.toml"],
        );
        check(
            "[essence]\npdf_templates = ['menu.toml']\n",
            &["menu.toml:2:1: no class is called \"recipe\""],
        );
        check("[essence]\nrules = 'none'\n", &["g.toml:6:9: cannot read none"]);
        check("[essence]\nrules = 'bad-rules'\n", &["bad-rules:2:8: is missing behind `delete`"]);
        check("[essence.select]\nstop_types = ['Objct']\n", &["g.toml:6:15: \"Object\""]);
        check("[essence.select]\nstop_names = ['a[']\n", &["g.toml:6:15: \"a[\""]);
        check(
            "[[essence.select.source_for]]\nmade = '*.o'\n",
            &["g.toml:5:1: \"from\" is missing"],
        );
        check(
            "[[essence.select.source_for]]\nmade = '*.o'\nfrom = ['*.c', 'x']\n",
            &["g.toml:7:16: has a *"],
        );
        check(
            "[[essence.select.source_for]]\nmade = '*.a'\nfrom = '*.b'\n\
             [[essence.select.source_for]]\nmade = '*.b'\nfrom = '*.a'\n",
            &["g.toml:10:8: each be made of the other"],
        );
    }
}
