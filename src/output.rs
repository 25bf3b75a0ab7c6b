//! Standard output and standard error.
//!
//! Results go to standard output, so that they can be piped; remarks go to standard error. If the
//! reader of the output goes away, the command ends in silence.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use comfy_table::{Table, presets};
use serde::Serialize;
use url::Url;
use web::foreign::visible;

/// Writes a line to standard output. Fails if nobody reads it any more, or the disk is full.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes JSON to standard output. Characters that command a terminal, or reorder text, are in its texts alone, where they
/// are escaped.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<ExitCode> {
    let is_hidden = |it: char| match it.is_ascii() {
        true => it.is_control() && it != '\n',
        false => visible(it.encode_utf8(&mut [0; 4])).contains('\u{fffd}'),
    };
    let mut shown = String::new();
    for it in serde_json::to_string_pretty(value)?.chars() {
        match is_hidden(it) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(it))),
            false => shown.push(it),
        }
    }
    line(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a line to standard error. A failure is ignored, as nobody is left to read it.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Returns whether standard output and standard error are both a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// The marks of text on standard output: only a terminal gets any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Colors and weights: ECMA-48 §8.3.117. Not if `NO_COLOR` is set (no-color.org).
    pub(crate) color: bool,
    /// Links: OSC 8, as terminals have agreed on it.
    pub(crate) links: bool,
}

impl Style {
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { color: false, links: false };
    #[cfg(test)]
    pub(crate) const TERMINAL: Self = Self { color: true, links: true };

    /// Returns the style of standard output.
    pub(crate) fn of_output() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty());
        let links = io::stdout().is_terminal() && set("TERM").is_none_or(|it| it != "dumb");
        Self { links, color: links && set("NO_COLOR").is_none() }
    }

    /// Returns `text` in bold.
    pub(crate) fn bold(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// Returns `text` less bright.
    pub(crate) fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    /// Returns `text` in green.
    pub(crate) fn green(self, text: &str) -> String {
        self.marked("32", text)
    }

    /// Returns `text` as a link to `url`, if that is one that a terminal may open.
    pub(crate) fn link(self, url: &str, text: &str) -> String {
        let url = Url::parse(url).ok().filter(|_| self.links);
        // A URL that was read is visible ASCII alone.
        match url.filter(|it| matches!(it.scheme(), "file" | "http" | "https")) {
            Some(url) => format!("\u{1b}]8;;{url}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\"),
            None => text.to_owned(),
        }
    }

    fn marked(self, code: &str, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Returns a table without lines, with these headings.
pub(crate) fn table<'a>(headings: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings);
    table
}

/// Returns `count` with the noun in singular or plural.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let count_shown = indicatif::HumanCount(count);
    match (count, noun.strip_suffix("ry")) {
        (1, _) => format!("{count_shown} {noun}"),
        (_, Some(stem)) => format!("{count_shown} {stem}ries"),
        (_, None) if noun.ends_with('s') => format!("{count_shown} {noun}es"),
        (_, None) => format!("{count_shown} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(1, "file"), "1 file");
        assert_eq!(counted(12_345, "file"), "12,345 files");
        assert_eq!(counted(2, "pass"), "2 passes");
    }
}
