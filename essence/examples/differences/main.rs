//! A comparison of our types with the media types of `file` over a folder: a line for each pair that
//! differs, with the number of files and the name of one.
//!
//! * `cargo run --release -p essence --example differences -- /usr/share`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is there to print")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use essence::extract::EssenceSettings;
use formats::object::Object;
use formats::{COMPOUND, HEAD_BYTES, Type};

/// Number of files that are given to one run of `file`.
const BATCH: usize = 1_000;
/// Maximum number of bytes of a compound file that are read: its directory may be anywhere.
const COMPOUND_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The Debian package of `file`.
const INSTALL: &str = "file is missing or failed; install it: sudo apt-get install file";

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("name a folder: cargo run -p essence --example differences -- FOLDER");
        return ExitCode::FAILURE;
    };
    let mut paths = Vec::new();
    collect(Path::new(&folder), &mut paths);
    paths.sort();
    let mut pairs: BTreeMap<(&'static str, String), (usize, PathBuf)> = BTreeMap::new();
    for batch in paths.chunks(BATCH) {
        let Ok(media) = media_types(batch) else {
            eprintln!("{INSTALL}");
            return ExitCode::FAILURE;
        };
        for (path, media) in batch.iter().zip(media) {
            let Ok(ours) = own_type(path) else { continue };
            if !agree(ours, &media) {
                let pair = pairs.entry((ours.name(), media)).or_insert_with(|| (0, path.clone()));
                pair.0 += 1;
            }
        }
    }
    let differing: usize = pairs.values().map(|(count, _)| count).sum();
    println!("{} files, {differing} differ", paths.len());
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((ours, media), (count, path)) in pairs {
        println!("{count:>7}  {ours:<16}  {media:<44}  {}", path.display());
    }
    ExitCode::SUCCESS
}

/// Adds the files below `folder`; links are not followed, and what cannot be read is left out.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(it) if it.is_dir() => collect(&path, paths),
            // `file` reads names line by line.
            Ok(it) if it.is_file() && !path.as_os_str().as_encoded_bytes().contains(&b'\n') => {
                paths.push(path);
            }
            _ => {}
        }
    }
}

/// Returns what `file` says of each path.
fn media_types(paths: &[PathBuf]) -> io::Result<Vec<String>> {
    let mut file = Command::new("file")
        .args(["--mime-type", "--brief", "--no-pad", "--files-from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let names = paths.iter().map(|it| it.as_os_str().as_encoded_bytes());
    let list = names.map(|it| [it, b"\n"].concat()).collect::<Vec<_>>().concat();
    let stdin = file.stdin.take();
    // It answers while it reads, so that both pipes would fill up if one thread served them.
    let writer = std::thread::spawn(move || stdin.map_or(Ok(()), |mut it| it.write_all(&list)));
    let output = file.wait_with_output()?;
    let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
    written?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() == paths.len() { Ok(lines) } else { Err(io::Error::other("it lacks lines")) }
}

fn own_type(path: &Path) -> io::Result<Type> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?;
    Read::by_ref(&mut file).take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    if bytes.starts_with(COMPOUND) {
        file.take(COMPOUND_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let object = Object { name, ..Object::whole(format!("file://{}", path.display()), bytes) };
    Ok(EssenceSettings::default().type_of(&object))
}

/// Returns whether a media type of `file` is, or includes, what our type says. `file` knows fewer kinds of
/// text than names tell, so that text is text.
fn agree(ours: Type, media: &str) -> bool {
    use Type::*;
    let (kind, name) = media.split_once('/').unwrap_or((media, ""));
    let has = |words: &[&str]| words.iter().any(|it| name.contains(it));
    match ours {
        Html => has(&["html"]),
        Xml | MarcXml | DataCite => has(&["xml"]) || kind == "text",
        Svg => has(&["svg"]),
        Image => kind == "image" || has(&["dicom"]),
        Audio => kind == "audio" || has(&["ogg", "mp4"]),
        Video => kind == "video" || has(&["ogg", "flash"]),
        Font => kind == "font" || has(&["font", "ms-opentype"]),
        Pdf => has(&["pdf"]),
        PostScript => has(&["postscript"]),
        Dvi => has(&["dvi"]),
        Rtf => has(&["rtf"]),
        Word => has(&["msword", "wordprocessingml"]),
        Excel => has(&["ms-excel", "spreadsheetml"]),
        PowerPoint => has(&["powerpoint", "presentationml"]),
        OpenDocument => has(&["oasis.opendocument", "sun.xml"]),
        Epub => has(&["epub"]),
        Ebook => has(&["mobipocket", "x-ms-reader", "fictionbook"]),
        WordProcessor => has(&["wordperfect", "hwp", "mswrite", "ms-works"]),
        Spreadsheet => has(&["lotus", "quattro"]),
        Database => has(&["sqlite", "msaccess", "dbf", "dbm", "db"]),
        ScientificData => has(&["hdf", "netcdf", "fits", "matlab", "grib"]),
        Drawing => has(&["visio", "dwg", "dxf"]),
        Help => has(&["chm", "winhelp", "htmlhelp"]),
        Gzip | GzipTar | Crate | SourceDistribution => has(&["gzip"]),
        Tar => has(&["tar"]),
        Zip | Wheel | Jar => has(&["zip", "java-archive"]),
        Compressed | CompressedTar => has(&["bzip2", "xz", "zstd", "lz", "compress"]),
        Warc => has(&["warc", "arc"]),
        Archive => has(&["archive", "cpio", "7z", "rar", "zip", "iso", "cab", "disk", "package"]),
        Deb => has(&["debian"]),
        Rpm => has(&["rpm"]),
        Object | Command => has(&[
            "object",
            "sharedlib",
            "executable",
            "pie",
            "java",
            "wasm",
            "dosexec",
            "gettext",
            "archive",
            "bytecode",
        ]),
        Mail | Mailbox | News => kind == "message" || kind == "text" || has(&["mbox", "outlook"]),
        Unknown => has(&["empty"]),
        Binary | Backup => has(&["octet-stream"]),
        text if text.is_text() => {
            kind == "text"
                || kind == "message"
                || has(&[
                    "json",
                    "xml",
                    "javascript",
                    "empty",
                    "sgml",
                    "pgp",
                    "tex",
                    "mbox",
                    "ndjson",
                    "csv",
                ])
        }
        _ => false,
    }
}
