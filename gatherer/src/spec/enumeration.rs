//! Enumerations: where more URLs are listed than links lead to, and lists that are all there is (`[[leaf]]`).
//!
//! Source: the manual's LeafNodes, and `Enumeration` of its RootNodes (a program).
//!
//! # Differences from the original
//!
//! * An enumeration adds to links, and does not replace them; `depth = 1` leaves the links out.
//! * It can also be the address of a list: a sitemap, a feed, a plain list, or the `ls -lR` of an archive.
//!
//! Sans-I/O.

use std::path::PathBuf;

use essence::config::Files;
use settings::Table;
use url::Url;

use super::protocol::{self, Protocol};
use super::urls;

/// Maximum number of URLs of a `[[leaf]]`.
const LEAVES_MAX: usize = 1_000_000;

/// Where URLs are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enumeration {
    /// At an address that is asked for.
    Address(Url),
    /// In a file on this machine.
    File(PathBuf),
    /// What a program on this machine writes.
    Program(PathBuf),
}

/// Reads `enumeration`.
pub(super) fn enumeration(table: &Table<'_>) -> Vec<Enumeration> {
    const EXPECTED: &str = "an address of a list, or the absolute path of a program";
    let mut found = Vec::new();
    for (i, text) in table.strings("enumeration").iter().enumerate() {
        let one = if text.starts_with('/') {
            Ok(Enumeration::Program(text.into()))
        } else if text.starts_with("file:") {
            urls::path_of(text).map(Enumeration::File)
        } else {
            address(text).map(Enumeration::Address)
        };
        match one {
            Ok(one) => found.push(one),
            Err(fault) => table.mistake_in("enumeration", i, fault, EXPECTED),
        }
    }
    found
}

fn address(text: &str) -> Result<Url, String> {
    let url = protocol::start(text, None)?;
    match Protocol::of(&url) {
        Some(Protocol::Web | Protocol::Ftp) => Ok(url),
        _ => Err(format!("{text:?} is of neither HTTP nor FTP")),
    }
}

/// Reads `urls` and `file`: each URL once, in order.
pub(super) fn leaves(table: &Table<'_>, files: Files<'_>) -> Vec<Url> {
    const EXPECTED: &str = "an address such as \"https://www.example.org/paper.pdf\"";
    let mut found = Vec::new();
    for (i, text) in table.strings("urls").iter().enumerate() {
        match leaf(text) {
            Ok(url) => found.push(url),
            Err(fault) => table.mistake_in("urls", i, fault, EXPECTED),
        }
    }
    if let Some(path) = table.path("file") {
        match (files.read)(&path) {
            Err(error) => table.mistake(
                "file",
                format!("{} cannot be read: {error}", path.display()),
                "a file with a URL in each line",
            ),
            Ok(text) => {
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                let lines = text.lines().map(str::trim).enumerate();
                for (n, line) in lines.filter(|(_, it)| !it.is_empty() && !it.starts_with('#')) {
                    match leaf(line) {
                        Ok(url) => found.push(url),
                        Err(fault) => {
                            let place = format!("{}:{}: {fault}", path.display(), n + 1);
                            table.mistake("file", place, EXPECTED);
                        }
                    }
                }
            }
        }
    }
    // A list that has become empty by mistake costs no record.
    if found.is_empty() {
        table.mistake("urls", "it lists nothing", "urls = [\"https://…\"], or file = \"…\"");
    }
    if LEAVES_MAX < found.len() {
        let many = format!("{} URLs are listed", found.len());
        table.mistake("urls", many, "at most 1,000,000");
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|it| seen.insert(it.clone()));
    found
}

fn leaf(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{text:?} is no address: {error}"))?;
    // An article has no group in its address.
    if Protocol::of(&url) == Some(Protocol::News) && url.has_host() {
        return Ok(url);
    }
    protocol::start(text, None)
}
