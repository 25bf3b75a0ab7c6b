//! The target of opening: the file of a gathered object if that is a document, else its folder.
//!
//! The opener decides by a file's name or beginning what it runs. A name that was foreign once, in
//! an unpacked archive or a mail's attachment, must not start a program. So only files are opened
//! whose ending is one of documents, pictures, sound or films, and those without an ending that
//! begin as text; and none that may be executed. A launcher (`.desktop`), a script or a program
//! opens its folder.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use collection::Oid;

use crate::shared::Shared;
use crate::site::plan;
use crate::spec;
use crate::tree::file::{self, Place, Refused};

/// Endings of files that are opened, in lower case.
const ENDINGS: &[&str] = &[
    // Text, and what an editor shows.
    "txt", "text", "md", "markdown", "rst", "adoc", "asciidoc", "org", "tex", "bib", "log", "csv",
    "tsv", "json", "toml", "yaml", "yml", "xml", "c", "h", "cc", "cpp", "hpp", "rs", "go", "hs",
    "ml", "diff", "patch", // Pages and books.
    "html", "htm", "xhtml", "pdf", "ps", "eps", "djvu", "epub", "mobi", "fb2", "dvi",
    // Documents of offices; those with macros in their name's ending are left out.
    "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods", "ppt", "pptx", "odp", "odg", // Mail.
    "eml", // Pictures.
    "png", "jpg", "jpeg", "gif", "webp", "svg", "tif", "tiff", "bmp", "heic", "avif",
    // Sound and films.
    "mp3", "ogg", "oga", "opus", "flac", "wav", "m4a", "mp4", "m4v", "webm", "mkv", "avi", "mov",
    "ogv",
];

/// Number of bytes at the beginning of a file without an ending that must be text.
pub(super) const FRONT_BYTES: usize = 1_024;

/// Permission bits to execute.
const EXECUTE: u32 = 0o111;

/// Returns the path to open for the object at `url`, without links, or why there is none, for a
/// person. Another user who may write in the root can replace the file afterwards: openers take
/// paths, not open files. Blocks.
pub(super) fn target(shared: &Shared, url: &str) -> Result<PathBuf, String> {
    let gone = || "No such file is gathered here.".to_owned();
    let stored = shared.site.collection.get(&Oid::new(&shared.site.id, url));
    let is_live =
        stored.map_err(|error| format!("The collection cannot be read: {error}."))?.is_some();
    // What stands behind it is in the file: a member of an archive, an entry of a list.
    let whole = url.split_once('#').map_or(url, |(whole, _)| whole);
    if !is_live || !whole.starts_with("file://") {
        return Err(gone());
    }
    let path = spec::file_path(whole);
    let plans = shared.plans();
    let plan =
        plan::trees(&plans).find(|it| path.starts_with(&it.tree.directory)).ok_or_else(gone)?;
    let resolved = |it: &Path| std::fs::canonicalize(it).unwrap_or_else(|_gone| it.to_owned());
    let bounds = (&*resolved(&plan.tree.directory), &*resolved(&plan.data));
    let place = file::place(&path, bounds, FRONT_BYTES).map_err(|refused| match refused {
        Refused::Gone => "The file is not there any more.".to_owned(),
        Refused::Outside => "The path leads out of what is gathered.".to_owned(),
        Refused::NotAFile | Refused::Cancelled => "This is no regular file.".to_owned(),
        Refused::Unreadable(error) => format!("The file cannot be read: {error}."),
    })?;
    Ok(shown(place))
}

/// Returns the file if it is safe to open, else its folder.
fn shown(Place { path, metadata, front }: Place) -> PathBuf {
    if is_document(&path, &metadata, &front) {
        return path;
    }
    path.parent().unwrap_or_else(|| Path::new("/")).to_owned()
}

fn is_document(path: &Path, metadata: &Metadata, front: &[u8]) -> bool {
    if metadata.permissions().mode() & EXECUTE != 0 {
        return false;
    }
    match path.extension() {
        Some(ending) => {
            let ending = ending.to_string_lossy().to_ascii_lowercase();
            ENDINGS.contains(&ending.as_str())
        }
        // A name such as `.desktop` is all ending.
        None => {
            let name = path.file_name().unwrap_or_default();
            !name.as_encoded_bytes().starts_with(b".") && is_text(front)
        }
    }
}

/// Returns whether a file of no ending begins as a text does that openers show and do not run.
fn is_text(front: &[u8]) -> bool {
    let text = String::from_utf8_lossy(front);
    let is_odd = |it: char| it.is_control() && !matches!(it, '\t' | '\n' | '\r' | '\u{c}');
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    !text.contains(is_odd) && !text.contains("[Desktop Entry]") && !begins.starts_with("#!")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn documents_are_opened_and_of_all_else_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, text: &str, mode: u32, expected: bool| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let place =
                file::place(&path, (Path::new("/"), Path::new("/none")), FRONT_BYTES).unwrap();
            let expected = if expected { path } else { dir.path().to_owned() };
            assert_eq!(
                shown(place),
                fs::canonicalize(expected).unwrap(),
                "{name} {text:?} {mode:o}"
            );
        };
        check("a.txt", "x", 0o644, true);
        check("a b.PDF", "%PDF", 0o600, true);
        check("a.txt", "x", 0o755, false);
        check("a.txt", "x", 0o645, false);
        for name in
            ["a.desktop", "a.txt.desktop", "a.sh", "a.exe", "a.jar", "a.lnk", "a.url", "a.", ".txt"]
        {
            check(name, "x", 0o644, false);
        }
        check("README", "# Orchard\n\nApples.\n", 0o644, true);
        check("copyright", "\u{feff}Größe", 0o644, true);
        check("launcher", "[Desktop Entry]\nExec=sh\n", 0o644, false);
        check("late", "\n\n# x\n[Desktop Entry]\nExec=sh\n", 0o644, false);
        check("script", "\n#!/bin/sh\n", 0o644, false);
        check("program", "MZ\u{0}\u{3}", 0o644, false);
    }
}
