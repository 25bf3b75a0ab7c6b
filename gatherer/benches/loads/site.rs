//! The files that are served: pages of documentation that are on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::peer::public_folder;
use crate::prose::Prose;

const FILES_IN_FOLDER: usize = 100;

/// A folder of pages.
pub(crate) struct Site {
    folder: TempDir,
    /// Paths below the folder.
    pub(crate) paths: Vec<String>,
    pub(crate) bytes: u64,
}

impl Site {
    /// Copies files to a new folder, in their order.
    pub(crate) fn copy<'a>(files: impl Iterator<Item = &'a Page>) -> Self {
        let mut site = Self { folder: public_folder(), paths: Vec::new(), bytes: 0 };
        for (number, page) in files.enumerate() {
            let path = format!("{}/{number}.html", number / FILES_IN_FOLDER);
            let at = site.folder.path().join(&path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let content = page.content();
            site.bytes += content.len() as u64;
            fs::write(at, content).unwrap();
            site.paths.push(path);
        }
        site
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A page to serve.
pub(crate) enum Page {
    Real(PathBuf),
    Made(String),
}

impl Page {
    fn content(&self) -> Vec<u8> {
        match self {
            Self::Real(path) => fs::read(path).unwrap(),
            Self::Made(text) => text.clone().into_bytes(),
        }
    }
}

/// Returns this number of pages, evenly taken from all that are found, and says where they are from.
pub(crate) fn pages(count: usize) -> Vec<Page> {
    let mut files = Vec::new();
    for folder in folders() {
        find(&folder, &mut files);
    }
    files.sort();
    let (found, real) = (files.len(), files.len().min(count));
    let mut pages: Vec<Page> =
        (0..real).map(|it| Page::Real(files[it * found / real].clone())).collect();
    let prose = Prose::new();
    pages.extend((real..count).map(|it| Page::Made(prose.page(it, count).1)));
    println!("{real} HTML files of {found} found, and {} made ones", count - real);
    pages
}

/// Returns the folders in which pages are looked for.
fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("HARVEST_SITE") {
        return vec![folder.into()];
    }
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/relevance/documents");
    let mut folders = vec![unpacked, PathBuf::from("/usr/share/doc")];
    if let Ok(printed) = Command::new("rustc").args(["--print", "sysroot"]).output() {
        let sysroot = String::from_utf8_lossy(&printed.stdout);
        folders.push(Path::new(sysroot.trim()).join("share/doc"));
    }
    folders
}

/// Finds the HTML files below a folder; links are not followed.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            find(&entry.path(), files);
        } else if kind.is_file() && entry.path().extension().is_some_and(|it| it == "html") {
            files.push(entry.path());
        }
    }
}
