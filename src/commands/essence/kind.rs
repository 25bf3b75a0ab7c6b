//! `harvest essence type`: the types of files, with the rules that decided.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use essence::typing::{DecidedBy, Recognizer};
use formats::HEAD_BYTES;
use formats::office::COMPOUND;
use gatherer::config::READ_BYTES_MAX;
use gatherer::spec::{self, Map};
use serde::Serialize;
use web::foreign::harmless;

use super::{files, note_unreadable};
use crate::commands::gatherer::load;
use crate::{output, settings};

/// Files to recognize, and the rules to use.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, and folders with all files below them.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// A file of rules, which precede the built-in ones; may be given several times, in order.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Use the rules that a gatherer's settings name.
    #[arg(short, long, value_name = "FILE", conflicts_with = "rules")]
    config: Option<PathBuf>,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// The type of one file.
#[derive(Debug, Serialize)]
struct TypedFile<'a> {
    file: String,
    r#type: &'a str,
    /// The rule as FILE:LINE, or the built-in rule's reason.
    rule: String,
    /// Whether the rule is built in.
    built_in: bool,
}

/// Prints a line for each file; the exit code is 1 if one of them cannot be read.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (recognizer, maps) = recognizer(args)?;
    let (mut lines, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for path in files(&args.paths, &mut code) {
        match line(&recognizer, &maps, &path) {
            Ok(line) if args.json => output::line(&serde_json::to_string(&line)?)?,
            Ok(line) => lines.push(line),
            Err(error) => {
                note_unreadable(&path, &error);
                code = ExitCode::FAILURE;
            }
        }
    }
    let widths = lines.iter().map(|it| (it.file.chars().count(), it.r#type.chars().count()));
    let (file_width, type_width) =
        widths.fold((0, 0), |most, it| (most.0.max(it.0), most.1.max(it.1)));
    for TypedFile { file, r#type, rule, .. } in &lines {
        output::line(&format!("{file:file_width$}  {type:type_width$}  {rule}"))?;
    }
    Ok(code)
}

/// Returns the rules, and the maps to published URLs.
fn recognizer(args: &Args) -> anyhow::Result<(Recognizer, Vec<Map>)> {
    if let Some(path) = &args.config {
        let config = load(path)?;
        return Ok((Recognizer::clone(&config.essence.typing), config.maps));
    }
    let mut files = Vec::new();
    for path in &args.rules {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the rules in {}", path.display()))?;
        files.push((path.clone(), text));
    }
    let first = args.rules.first().map_or_else(|| Path::new(""), PathBuf::as_path);
    Ok((settings::accepted(first, Recognizer::read(&files))?, Vec::new()))
}

fn line<'r>(recognizer: &'r Recognizer, maps: &[Map], path: &Path) -> io::Result<TypedFile<'r>> {
    let bytes_max = u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX);
    let mut head = Vec::new();
    let mut file = File::open(path)?;
    file.by_ref().take(bytes_max).read_to_end(&mut head)?;
    // The directory of a compound file, which shows its type, may lie anywhere.
    if head.starts_with(COMPOUND) {
        file.take(READ_BYTES_MAX).read_to_end(&mut head)?;
    }
    let url = spec::public_url(maps, &std::path::absolute(path)?);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let decision = recognizer.explain(&url, &name, &head);
    Ok(TypedFile {
        file: harmless(&path.display().to_string()).into_owned(),
        r#type: decision.name,
        rule: decision.by.to_string(),
        built_in: matches!(decision.by, DecidedBy::BuiltIn(_)),
    })
}
