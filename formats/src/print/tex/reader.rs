//! The TeX reader: input as text, commands and groups.
//!
//! Source: The TeXbook, chapter 8.

use crate::print::{take, take_special};

/// Longest group or option, in bytes.
const GROUP_BYTES_MAX: usize = 4 * 1024;
/// Longest `\verb`, in bytes.
const VERBATIM_BYTES_MAX: usize = 1024;

/// Characters that end plain text; a line's end has a meaning only before an empty line.
const SPECIAL: &[char] = &['\\', '%', '{', '}', '$', '~', '&', '\n'];

/// The input that is not read yet.
pub(super) struct TexReader<'a> {
    rest: &'a str,
}

impl<'a> TexReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes text up to the next special character.
    pub(super) fn plain(&mut self) -> &'a str {
        self.split(self.rest.find(SPECIAL).unwrap_or(self.rest.len()))
    }

    /// Takes a special character; for a line's end, returns `\n` before an empty line, else `~`.
    pub(super) fn special(&mut self) -> Option<char> {
        take_special(&mut self.rest, '~')
    }

    /// Takes a command's name after the backslash: letters and perhaps a star, or one character. Space after
    /// letters is skipped.
    pub(super) fn command(&mut self) -> &'a str {
        let letters = self.rest.find(|it: char| !it.is_ascii_alphabetic() && it != '@');
        let letters = letters.unwrap_or(self.rest.len());
        if letters == 0 {
            let first = self.rest.chars().next().map_or(0, char::len_utf8);
            return self.split(first);
        }
        let star = usize::from(self.rest.get(letters..).is_some_and(|it| it.starts_with('*')));
        let name = self.split(letters + star);
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        name
    }

    /// Takes `\name` with its backslash; returns "" if there is none.
    pub(super) fn next_command(&mut self) -> &'a str {
        let Some(rest) = self.rest.trim_start().strip_prefix('\\') else { return "" };
        self.rest = rest;
        self.command()
    }

    pub(super) fn is_group(&self) -> bool {
        self.rest.trim_start().starts_with('{')
    }

    /// Returns whether the next group is `name`.
    pub(super) fn peek_group(&self, name: &str) -> bool {
        let inside = self.rest.strip_prefix('{').and_then(|it| it.strip_prefix(name));
        inside.is_some_and(|it| it.starts_with('}'))
    }

    /// Takes a group and returns its content; `None` if there is none or it is too long.
    pub(super) fn group(&mut self) -> Option<&'a str> {
        self.enclosed('{', '}')
    }

    /// Takes an option in brackets.
    pub(super) fn option(&mut self) -> Option<&'a str> {
        self.enclosed('[', ']')
    }

    pub(super) fn skip_option(&mut self) {
        while self.rest.starts_with('[') && self.option().is_some() {}
    }

    fn enclosed(&mut self, open: char, close: char) -> Option<&'a str> {
        let inside = self.rest.trim_start().strip_prefix(open)?;
        let (mut depth, mut escaped) = (0_usize, false);
        for (at, it) in inside.char_indices() {
            if GROUP_BYTES_MAX < at {
                return None;
            }
            if escaped {
                escaped = false;
            } else if it == '\\' {
                escaped = true;
            } else if it == close && depth == 0 {
                self.rest = inside.get(at + 1..).unwrap_or_default();
                return inside.get(..at);
            } else if it == '{' {
                depth += 1;
            } else if it == '}' {
                depth = depth.saturating_sub(1);
            }
        }
        None
    }

    pub(super) fn skip_comment(&mut self) {
        let end = self.rest.find('\n').map_or(self.rest.len(), |it| it + 1);
        self.split(end);
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Takes text up to `end`, which stays; all text if there is no `end`.
    pub(super) fn until(&mut self, end: &str) -> &'a str {
        self.split(self.rest.find(end).unwrap_or(self.rest.len()))
    }

    /// Skips text up to `end`, and `end` itself.
    pub(super) fn skip_past(&mut self, end: &str) {
        self.until(end);
        self.rest = self.rest.strip_prefix(end).unwrap_or(self.rest);
    }

    /// Takes `|text|`, with any character as the bar.
    pub(super) fn verbatim(&mut self) -> &'a str {
        let mut characters = self.rest.chars();
        let Some(bar) = characters.next() else { return "" };
        let inside = characters.as_str();
        let near = inside.get(..inside.floor_char_boundary(VERBATIM_BYTES_MAX)).unwrap_or_default();
        let line = near.lines().next().unwrap_or_default();
        let Some((text, _)) = line.split_once(bar) else { return "" };
        self.rest = inside.get(text.len() + bar.len_utf8()..).unwrap_or_default();
        text
    }

    /// Takes the letter under an accent, if `command` is an accent: `\'e`, `\"{o}`, `\c c`.
    pub(super) fn accented(&mut self, command: &str) -> Option<char> {
        let (_, plain, marked) = ACCENTS.iter().find(|(accent, ..)| *accent == command)?;
        let bare = self.rest.trim_start().trim_start_matches('{').trim_start_matches('\\');
        let letter = bare.chars().next()?;
        let at = plain.chars().position(|it| it == letter)?;
        let group = self.rest.trim_start().starts_with('{');
        self.rest = bare.get(letter.len_utf8()..).unwrap_or_default();
        if group {
            self.rest = self.rest.strip_prefix('}').unwrap_or(self.rest);
        }
        marked.chars().nth(at)
    }

    fn split(&mut self, at: usize) -> &'a str {
        take(&mut self.rest, at)
    }
}

/// Accents: command, letters, and accented letters.
const ACCENTS: &[(&str, &str, &str)] = &[
    ("'", "aeiouyAEIOUYcnszCNSZ", "áéíóúýÁÉÍÓÚÝćńśźĆŃŚŹ"),
    ("`", "aeiouAEIOU", "àèìòùÀÈÌÒÙ"),
    ("^", "aeiouAEIOU", "âêîôûÂÊÎÔÛ"),
    ("\"", "aeiouyAEIOU", "äëïöüÿÄËÏÖÜ"),
    ("~", "anoANO", "ãñõÃÑÕ"),
    ("c", "csCS", "çşÇŞ"),
    ("v", "cdenrstzCDENRSTZ", "čďěňřšťžČĎĚŇŘŠŤŽ"),
    ("r", "auAU", "åůÅŮ"),
    ("H", "ouOU", "őűŐŰ"),
    ("u", "agAG", "ăğĂĞ"),
    ("=", "aeiouAEIOU", "āēīōūĀĒĪŌŪ"),
    (".", "zeIZE", "żėİŻĖ"),
    ("k", "aeAE", "ąęĄĘ"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_accents() {
        let mut reader = TexReader::new("{a{b}\\}c}[o]{\\'e}\\'{\\i}x");
        assert_eq!(reader.group(), Some("a{b}\\}c"));
        assert_eq!(reader.option(), Some("o"));
        let mut reader = TexReader::new("{o}x");
        assert_eq!(reader.accented("\""), Some('ö'));
        assert_eq!(reader.plain(), "x");
        assert_eq!(TexReader::new("{unended").group(), None);
        assert_eq!(TexReader::new("|a b| c").verbatim(), "a b");
        assert_eq!(TexReader::new(&format!("|{}|", "a".repeat(2_000))).verbatim(), "");
    }
}
