//! The site's programs that summarize: `Type.sum`, one for each type, in one folder.
//!
//! Source: the user's manual, "Customizing the summarizing step": a program named after the type
//! takes the name of a file as its only argument, and writes attributes in SOIF. Programs of 1995
//! run unchanged: `HARVEST_HOME`, `PATH` and `PERL5LIB` lead them to the files next to them.
//!
//! A program runs behind fences (`program`), with the object in its working directory. Its output
//! is laid over the record that is made without the program. If the program fails, that record is
//! used unchanged.
//!
//! # Differences from the paper
//!
//! * For a type with a program, the original ran nothing else, and had no record if the program
//!   failed.
//! * A program has a deadline, and reads only the object, its own folder and the system.

mod output;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use formats::Type;
use formats::object::{Problem, ProblemKind, ProgramInput, Summary};
use soif::Record;

use super::Clock;
use super::budget::ProgramBudget;
use super::program::{Job, Programs, RunDeadline};
use super::serve::PATH;
use crate::typing::Recognizer;

/// Extension of the names of programs.
const ENDING: &str = ".sum";
/// Maximum number of files of the folder that are listed.
const FILES_MAX: usize = 10_000;
/// Maximum length of the file name that an object has for a program, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The site's programs that summarize.
#[derive(Debug, Default)]
pub struct Library {
    /// Programs by the name of their type, as in the `Type` attribute.
    programs: BTreeMap<String, PathBuf>,
    /// The types that have programs.
    pub types: BTreeSet<Type>,
    /// Files whose names are like those of programs but which are not used, with the reason.
    pub unused: Vec<(PathBuf, String)>,
    /// Text for the fingerprint of records, which changes whenever a file of the folder does.
    pub fingerprint_source: String,
    /// Files and folders that programs may read in addition to those of the system.
    pub(crate) read: Vec<PathBuf>,
    /// Environment variables that tell programs their location.
    variables: Vec<(String, PathBuf)>,
    /// Time limit of one program.
    time_max: Duration,
}

impl Library {
    /// Lists the folder of a site's programs, each of which has the time limit `time_max`. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn read(folder: &Path, time_max: Duration, typing: &Recognizer) -> io::Result<Self> {
        // Programs run in another folder, and the fences do not follow links.
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
            // The metadata of a link are those of its target.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if !metadata.is_file() || name.starts_with('.') {
                continue;
            }
            library.fingerprint_source += &metadata_line(&name, &metadata);
            let Some(stem) = name.strip_suffix(ENDING) else { continue };
            match program_type(stem, &metadata, typing) {
                Ok(r#type) => {
                    let type_name = typing.name(r#type);
                    if stem == type_name || library.types.insert(r#type) {
                        library.programs.insert(type_name.to_owned(), path);
                    }
                    library.types.insert(r#type);
                }
                Err(why) => library.unused.push((path, why)),
            }
        }
        Ok(library)
    }

    /// Runs programs on those summaries of one file that carry an object for them, and removes
    /// these objects. If a program fails, adds a problem and leaves the record as it is. Blocks.
    pub fn summarize(
        &self,
        programs: Option<&Programs>,
        clock: Clock,
        summaries: &mut [Summary],
        stopped: &(dyn Fn() -> bool + Sync),
    ) {
        let mut budget = ProgramBudget::new(self.time_max, clock);
        for summary in summaries {
            let Some(given) = summary.given.take() else { continue };
            if stopped() {
                continue;
            }
            let name = summary.record.text("Type").unwrap_or_default().into_owned();
            let Some(path) = self.programs.get(&name) else { continue };
            let problems = match self.run(programs, path, &given, &mut budget, stopped) {
                Ok(written) => lay_output(&written, path, &mut summary.record),
                Err(problem) => vec![problem],
            };
            let url = summary.record.url.as_str();
            let problems = problems.into_iter().map(|(kind, it)| Problem::new(url, kind, it));
            summary.add_problems(problems.collect());
        }
    }

    fn run(
        &self,
        programs: Option<&Programs>,
        path: &Path,
        given: &ProgramInput,
        budget: &mut ProgramBudget,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<u8>, (ProblemKind, String)> {
        let program = path.display();
        let refused = |why: &str| (ProblemKind::Program, format!("{program} {why}"));
        let programs = programs.ok_or_else(|| refused("cannot be run here"))?;
        let command = path.to_str().ok_or_else(|| refused("has a name that is not UTF-8"))?;
        let deadline = budget.next().map_err(|(kind, what)| {
            (kind, format!("{program} is not run: programs for other parts of the file {what}"))
        })?;
        let name = safe_name(&given.name);
        let job = Job {
            words: &[command.to_owned(), name.clone()],
            input: &[],
            files: &[(&name, &given.bytes)],
            read: &self.read,
            variables: &self.variables,
        };
        let outcome = programs.run(&job, RunDeadline { deadline, stopped });
        budget.count(&outcome, deadline);
        outcome.map_err(|it| {
            (if it.may_pass { ProblemKind::Start } else { ProblemKind::Program }, it.why)
        })
    }
}

/// Lays the output of a program over a record; returns problems with the output.
fn lay_output(written: &[u8], path: &Path, record: &mut Record) -> Vec<(ProblemKind, String)> {
    let program = path.display();
    let Some(attributes) = output::read(written) else {
        let message = format!(
            "{program} does not write SOIF; expected are attributes, each `Name{{size}}:`, a TAB, the \
             value and the line's end"
        );
        return vec![(ProblemKind::Program, message)];
    };
    let cut = output::lay(attributes, record).into_iter();
    cut.map(|(kind, it)| (kind, format!("{program}: {it}"))).collect()
}

/// Returns the installation folder (`HARVEST_HOME`) of the programs in `folder`, and the part of it
/// that they may read. In the original, programs were in `lib/gatherer` or in `lib`.
fn home(folder: &Path) -> (&Path, &Path) {
    let lib = if folder.ends_with("lib/gatherer") { folder.parent() } else { None };
    let lib = lib.unwrap_or(folder);
    let home = if lib.ends_with("lib") { lib.parent() } else { None };
    (home.unwrap_or(lib), lib)
}

fn metadata_line(name: &str, metadata: &Metadata) -> String {
    let (size, mode) = (metadata.len(), metadata.mode());
    let (secs, nanos) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{name} {size} {mode:o} {secs}.{nanos:09}\n")
}

/// Returns the type of a program whose name begins with `stem`; as an error, the reason why the
/// program cannot be used.
fn program_type(stem: &str, metadata: &Metadata, typing: &Recognizer) -> Result<Type, String> {
    let found = typing.by_name(stem).ok_or_else(|| {
        format!("no type is called {stem:?}; a file of `types` in [essence] can make one")
    })?;
    if found.is_opened() {
        return Err(format!("{stem} is opened, and its members are summarized"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable; make it so with chmod +x".to_owned());
    }
    Ok(found)
}

/// Returns a file name that no shell or program can misread: the end of the object's name,
/// including the extension, in harmless characters.
fn safe_name(name: &str) -> String {
    let is_kept = |it: char| it.is_ascii_alphanumeric() || "._-+=,%".contains(it);
    let name: String = name.chars().map(|it| if is_kept(it) { it } else { '_' }).collect();
    // All characters are ASCII here; the end of the name has the extension.
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
    fn programs_are_named_like_their_types() {
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
        assert_eq!(library.types, [Type::Text, Type::Pdf, Type::Site(0)].into());
        let programs: Vec<(&str, &str)> = library
            .programs
            .iter()
            .map(|(r#type, path)| (r#type.as_str(), path.file_name().unwrap().to_str().unwrap()))
            .collect();
        assert_eq!(programs, [("PDF", "Pdf.sum"), ("Recipe", "Recipe.sum"), ("Text", "Text.sum")]);
        let unused: Vec<(&str, &str)> = library
            .unused
            .iter()
            .map(|(path, why)| (path.file_name().unwrap().to_str().unwrap(), why.as_str()))
            .collect();
        let expected = [
            ("Mail.sum", "it is not executable; make it so with chmod +x"),
            (
                "Nothing.sum",
                "no type is called \"Nothing\"; a file of `types` in [essence] can make one",
            ),
            ("Tar.sum", "Tar is opened, and its members are summarized"),
        ];
        assert_eq!(unused, expected);
        let fingerprint = library.fingerprint_source.to_owned();
        assert_eq!(fingerprint, read(folder).fingerprint_source);
        write(folder, ".soif.pl.swp", 0o644);
        assert_eq!(fingerprint, read(folder).fingerprint_source, "hidden files change nothing");
        write(folder, "soif.pl", 0o600);
        let changed = read(folder).fingerprint_source.to_owned();
        assert_ne!(fingerprint, changed);
        fs::write(folder.join("soif.pl"), "1;\n").unwrap();
        assert_ne!(read(folder).fingerprint_source, changed);
        assert!(
            Library::read(&folder.join("none"), Duration::ZERO, &Recognizer::default()).is_err()
        );
    }

    #[test]
    fn the_folders_of_the_original_are_recognized() {
        let check = |folder: &str, expected: (&str, &str)| {
            assert_eq!(home(Path::new(folder)), (Path::new(expected.0), Path::new(expected.1)));
        };
        check("/usr/local/harvest/lib/gatherer", ("/usr/local/harvest", "/usr/local/harvest/lib"));
        check("/srv/site/lib", ("/srv/site", "/srv/site/lib"));
        check("/srv/programs", ("/srv/programs", "/srv/programs"));
        check("/", ("/", "/"));
    }

    #[test]
    fn file_names_are_safe() {
        let check = |name: &str, expected: &str| assert_eq!(safe_name(name), expected);
        check("cake.recipe", "cake.recipe");
        check("-rf *;$(x) \u{e9}.c", "_-rf_____x___.c");
        check("../../etc/passwd", "_.._.._etc_passwd");
        check("", "object");
        let long = safe_name(&format!("{}.pdf", "x".repeat(300)));
        assert!(long.len() == NAME_BYTES_MAX && long.ends_with(".pdf"), "{long}");
    }
}
