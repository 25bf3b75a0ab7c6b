//! The site's programs that summarize: `Type.sum`, one for each type, in one folder.
//!
//! Source: the user's manual, "Customizing the summarizing step": a program named after the type takes
//! the name of a file as its only argument, and writes attributes in SOIF. Those of 1995 run unchanged:
//! `HARVEST_HOME`, `PATH` and `PERL5LIB` lead to what lies beside them.
//!
//! A program runs behind fences (`program`), where it finds the object under a file name of its own. What
//! it writes is laid over the record that is made without it, which stands where the program fails.
//!
//! # Differences from the paper
//!
//! * The original ran nothing else where there was a program, and had no record where that failed.
//! * A program has a deadline, and reads nothing but the object, its own folder and the system.

mod output;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use formats::Type;
use formats::object::{Given, Problem, ProblemKind, Summary};
use formats::unnest::is_opened;
use soif::Record;

use super::Clock;
use super::program::{Job, Programs, Until};
use super::serve::PATH;
use super::spent::Spent;
use crate::typing::Recognizer;

/// How the names of programs end.
const ENDING: &str = ".sum";
/// Most files of the folder that are looked at.
const FILES_MAX: usize = 10_000;
/// Longest file name that a program is given, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The programs of a site that summarize.
#[derive(Debug, Default)]
pub struct Library {
    /// By what the `Type` attribute says.
    programs: BTreeMap<String, PathBuf>,
    types: BTreeSet<Type>,
    /// What is called as a program and not used, with the reason.
    unused: Vec<(PathBuf, String)>,
    /// What changes with any file of the folder.
    print: String,
    /// What programs may read beside the system.
    read: Vec<PathBuf>,
    /// What tells programs where they are.
    variables: Vec<(String, PathBuf)>,
    /// How long one may take.
    time_max: Duration,
}

impl Library {
    /// Reads the folder of a site's programs, each of which may take `time_max`. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn read(folder: &Path, time_max: Duration, typing: &Recognizer) -> io::Result<Self> {
        // Programs begin in another folder, and fences know no links.
        let folder = fs::canonicalize(folder)?;
        let mut entries = fs::read_dir(&folder)?.take(FILES_MAX).collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(DirEntry::file_name);
        let (home, read) = home(&folder);
        let mut library = Self { read: vec![read.to_path_buf()], time_max, ..Self::default() };
        library.variables = vec![
            ("HARVEST_HOME".to_owned(), home.to_path_buf()),
            ("PATH".to_owned(), format!("{}:{PATH}", folder.display()).into()),
            ("PERL5LIB".to_owned(), folder.clone()),
        ];
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // What it links to counts.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if !metadata.is_file() || name.starts_with('.') {
                continue;
            }
            library.print += &print(&name, &metadata);
            let Some(called) = name.strip_suffix(ENDING) else { continue };
            match summarized(called, &metadata, typing) {
                Ok(r#type) => {
                    let known = typing.name(r#type);
                    if called == known || library.types.insert(r#type) {
                        library.programs.insert(known.to_owned(), path);
                    }
                    library.types.insert(r#type);
                }
                Err(why) => library.unused.push((path, why)),
            }
        }
        Ok(library)
    }

    /// Returns the types that there are programs for.
    pub fn types(&self) -> &BTreeSet<Type> {
        &self.types
    }

    /// Returns what is called as a program and not used, each with the reason.
    pub fn unused(&self) -> &[(PathBuf, String)] {
        &self.unused
    }

    /// Returns what records depend on: another one as soon as any file of the folder is another.
    pub fn print(&self) -> &str {
        &self.print
    }

    /// Lets programs read this as well.
    pub fn allow(&mut self, read: &[PathBuf]) {
        self.read.extend_from_slice(read);
    }

    /// Has programs say their word on the summaries of one file that have something to be given, and
    /// takes that from them. A program that fails is a problem, and leaves the record as it is. Blocks.
    pub fn summarize(
        &self,
        programs: Option<&Programs>,
        clock: Clock,
        summaries: &mut [Summary],
        stopped: &(dyn Fn() -> bool + Sync),
    ) {
        let mut spent = Spent::new(self.time_max, clock);
        for summary in summaries {
            let Some(given) = summary.given.take() else { continue };
            if stopped() {
                continue;
            }
            let name = summary.record.text("Type").unwrap_or_default().into_owned();
            let Some(path) = self.programs.get(&name) else { continue };
            let problems = match self.run(programs, path, &given, &mut spent, stopped) {
                Ok(written) => laid(&written, path, &mut summary.record),
                Err(problem) => vec![problem],
            };
            let url = summary.record.url.as_str();
            let problems = problems.into_iter().map(|(kind, it)| Problem::new(url, kind, it));
            summary.problems.extend(problems);
        }
    }

    fn run(
        &self,
        programs: Option<&Programs>,
        path: &Path,
        given: &Given,
        spent: &mut Spent,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<u8>, (ProblemKind, String)> {
        let program = path.display();
        let refused = |why: &str| (ProblemKind::Program, format!("{program} {why}"));
        let programs = programs.ok_or_else(|| refused("cannot be run here"))?;
        let word = path.to_str().ok_or_else(|| refused("has a name that is not UTF-8"))?;
        let deadline = spent.next().map_err(|what| {
            let message = format!("{program} is not run: those for other parts of the file {what}");
            (ProblemKind::Limit, message)
        })?;
        let name = harmless(&given.name);
        let job = Job {
            words: &[word.to_owned(), name.clone()],
            input: &[],
            files: &[(&name, &given.bytes)],
            read: &self.read,
            variables: &self.variables,
        };
        let outcome = programs.run(&job, Until { deadline, stopped });
        spent.count(&outcome, deadline);
        outcome.map_err(|it| {
            (if it.may_pass { ProblemKind::Start } else { ProblemKind::Program }, it.why)
        })
    }
}

/// Lays what a program has written over a record; returns what is wrong with it.
fn laid(written: &[u8], path: &Path, record: &mut Record) -> Vec<(ProblemKind, String)> {
    let program = path.display();
    let Some(attributes) = output::read(written) else {
        let message = format!(
            "{program} writes what is no SOIF; expected are attributes, each `Name{{size}}:`, a TAB, the \
             value and the line's end"
        );
        return vec![(ProblemKind::Program, message)];
    };
    let cut = output::lay(attributes, record).into_iter();
    cut.map(|it| (ProblemKind::Limit, format!("{program}: {it}"))).collect()
}

/// Returns where the original would be installed to have its programs in `folder`, and what of that they
/// may read: `lib/gatherer` and `lib` are its folders.
fn home(folder: &Path) -> (&Path, &Path) {
    let above = |it: &Path| it.ancestors().nth(1).map(Path::to_path_buf);
    let lib = if folder.ends_with("lib/gatherer") { folder.parent() } else { None };
    let lib = lib.unwrap_or(folder);
    let is_lib = lib.ends_with("lib") && above(lib).is_some();
    (if is_lib { lib.parent().unwrap_or(lib) } else { lib }, lib)
}

/// Says what there is to say of a file without reading it.
fn print(name: &str, metadata: &Metadata) -> String {
    let (size, mode) = (metadata.len(), metadata.mode());
    let (secs, nanos) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{name} {size} {mode:o} {secs}.{nanos:09}\n")
}

/// Returns the type that a program is for, which is called so; or why it is for none.
fn summarized(called: &str, metadata: &Metadata, typing: &Recognizer) -> Result<Type, String> {
    let found = typing.by_name(called).ok_or_else(|| {
        format!("no type is called {called:?}; a file of `types` in [essence] can make one")
    })?;
    if is_opened(found) {
        return Err(format!("{called} is opened, and what it holds summarized"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable; make it so with chmod +x".to_owned());
    }
    Ok(found)
}

/// Returns a file name that no shell or program takes for anything else: that of the object as far as
/// that goes, with its extension.
fn harmless(name: &str) -> String {
    let is_kept = |it: char| it.is_ascii_alphanumeric() || "._-+=,%".contains(it);
    let name: String = name.chars().map(|it| if is_kept(it) { it } else { '_' }).collect();
    // All ASCII; the end tells more.
    let end = name.get(name.len().saturating_sub(NAME_BYTES_MAX)..).unwrap_or_default();
    match end.chars().next() {
        None => "object".to_owned(),
        Some('.' | '-' | '+') => format!("_{end}"),
        Some(_) => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::time::UNIX_EPOCH;

    use super::*;

    fn write(folder: &Path, name: &str, mode: u32) {
        fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
        let file = fs::File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }

    fn read(folder: &Path) -> Library {
        let types = "[[type]]\nname = 'Recipe'\nby_name = 'x'\n";
        let typing = Recognizer::read(&[("types.toml".into(), types.to_owned())]).unwrap();
        Library::read(folder, Duration::from_secs(1), &typing).unwrap()
    }

    #[test]
    fn programs_are_called_as_their_types() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, mode) in [
            ("Recipe.sum", 0o755),
            ("Pdf.sum", 0o755),
            ("text.sum", 0o755),
            ("Text.sum", 0o755),
            ("Mail.sum", 0o644),
            ("Tar.sum", 0o755),
            ("Nothing.sum", 0o755),
            ("HTML", 0o755),
            ("soif.pl", 0o644),
            (".News.sum", 0o755),
        ] {
            write(folder, name, mode);
        }
        fs::create_dir(folder.join("Image.sum")).unwrap();
        let library = read(folder);
        assert_eq!(*library.types(), [Type::Text, Type::Pdf, Type::Site(0)].into());
        let programs: Vec<(&str, &str)> = library
            .programs
            .iter()
            .map(|(r#type, path)| (r#type.as_str(), path.file_name().unwrap().to_str().unwrap()))
            .collect();
        assert_eq!(programs, [("PDF", "Pdf.sum"), ("Recipe", "Recipe.sum"), ("Text", "Text.sum")]);
        let unused: Vec<(&str, &str)> = library
            .unused()
            .iter()
            .map(|(path, why)| (path.file_name().unwrap().to_str().unwrap(), why.as_str()))
            .collect();
        let expected = [
            ("Mail.sum", "it is not executable; make it so with chmod +x"),
            (
                "Nothing.sum",
                "no type is called \"Nothing\"; a file of `types` in [essence] can make one",
            ),
            ("Tar.sum", "Tar is opened, and what it holds summarized"),
        ];
        assert_eq!(unused, expected);
        let print = library.print().to_owned();
        assert_eq!(print, read(folder).print());
        write(folder, ".soif.pl.swp", 0o644);
        assert_eq!(print, read(folder).print(), "hidden files change nothing");
        write(folder, "soif.pl", 0o600);
        let changed = read(folder).print().to_owned();
        assert_ne!(print, changed);
        fs::write(folder.join("soif.pl"), "1;\n").unwrap();
        assert_ne!(read(folder).print(), changed);
        assert!(
            Library::read(&folder.join("none"), Duration::ZERO, &Recognizer::default()).is_err()
        );
    }

    #[test]
    fn the_original_s_folders_are_known() {
        let check = |folder: &str, expected: (&str, &str)| {
            assert_eq!(home(Path::new(folder)), (Path::new(expected.0), Path::new(expected.1)));
        };
        check("/usr/local/harvest/lib/gatherer", ("/usr/local/harvest", "/usr/local/harvest/lib"));
        check("/srv/site/lib", ("/srv/site", "/srv/site/lib"));
        check("/srv/programs", ("/srv/programs", "/srv/programs"));
        check("/", ("/", "/"));
    }

    #[test]
    fn file_names_are_harmless() {
        let check = |name: &str, expected: &str| assert_eq!(harmless(name), expected);
        check("cake.recipe", "cake.recipe");
        check("-rf *;$(x) \u{e9}.c", "_-rf_____x___.c");
        check("../../etc/passwd", "_.._.._etc_passwd");
        check("", "object");
        let long = harmless(&format!("{}.pdf", "x".repeat(300)));
        assert!(long.len() == NAME_BYTES_MAX && long.ends_with(".pdf"), "{long}");
    }
}
