//! The Texinfo reader: input as text, commands and arguments, and the characters that commands print.
//!
//! Source: the Texinfo manual (version 7), "Texinfo Input Conventions" and "Inserting Accents".

use crate::names::NameTable;
use crate::print::tex_fonts::accented;
use crate::print::{take, take_special};

/// Longest argument in braces, in bytes; an argument without an end is cut there.
const ARGUMENT_BYTES_MAX: usize = 4 * 1024;

/// Characters that end plain text.
const SPECIAL: &[char] = &['@', '{', '}', '\n'];

/// The input that is not read yet.
pub(super) struct TexinfoReader<'a> {
    rest: &'a str,
}

impl<'a> TexinfoReader<'a> {
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

    /// Takes a special character; for a line's end, returns `\n` before an empty line, else a
    /// space.
    pub(super) fn special(&mut self) -> Option<char> {
        take_special(&mut self.rest, ' ')
    }

    /// Takes a command's name after the at sign: letters and digits, or one other character.
    pub(super) fn command(&mut self) -> &'a str {
        let letters = self.rest.find(|it: char| !it.is_ascii_alphanumeric());
        match letters.unwrap_or(self.rest.len()) {
            0 => self.split(self.rest.chars().next().map_or(0, char::len_utf8)),
            letters => self.split(letters),
        }
    }

    pub(super) fn line(&mut self) -> &'a str {
        let line = self.split(self.rest.find('\n').unwrap_or(self.rest.len()));
        line.trim()
    }

    /// Takes an argument in braces and returns its content, if there is one.
    pub(super) fn argument(&mut self) -> Option<&'a str> {
        let inside = self.rest.strip_prefix('{')?;
        let (mut depth, mut escaped) = (0_usize, false);
        for (at, it) in inside.char_indices() {
            if ARGUMENT_BYTES_MAX < at {
                self.rest = inside.get(at..).unwrap_or_default();
                return inside.get(..at);
            }
            match it {
                _ if escaped => escaped = false,
                '@' => escaped = true,
                '}' if depth == 0 => {
                    self.rest = inside.get(at + 1..).unwrap_or_default();
                    return inside.get(..at);
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        self.rest = "";
        Some(inside)
    }

    /// Takes text up to the line that ends the environment, and skips that line; all text if there is none.
    pub(super) fn environment(&mut self, name: &str) -> &'a str {
        let end = format!("@end {name}");
        let inside = self.split(self.rest.find(&end).unwrap_or(self.rest.len()));
        self.line();
        inside
    }

    /// Takes the letter under an accent, if `command` is an accent: `@'e`, `@"{o}`, `@v{s}`.
    pub(super) fn accented(&mut self, command: &str) -> Option<char> {
        let accent = ACCENTS.get(command)?.chars().next()?;
        let bare = self.rest.trim_start_matches([' ', '{']);
        let bare = bare.strip_prefix("@dotless{").unwrap_or(bare);
        let letter = bare.chars().next()?;
        let marked = accented(accent, letter)?;
        self.rest = bare.get(letter.len_utf8()..).unwrap_or_default().trim_start_matches('}');
        Some(marked)
    }

    fn split(&mut self, at: usize) -> &'a str {
        take(&mut self.rest, at)
    }
}

/// Returns the characters that a command prints.
pub(super) fn printed(command: &str) -> Option<&str> {
    match command {
        "@" | "{" | "}" | " " | "." | "!" | "?" | "TeX" | "LaTeX" => Some(command),
        "\t" | "\n" | "tie" | "tab" => Some(" "),
        _ => SIGNS.get(command),
    }
}

/// Commands and the signs that they print.
static SIGNS: NameTable = NameTable::of(
    "atchar:@ lbracechar:{ rbracechar:} backslashchar:\\ hashchar:# ampchar:& comma:, \
     copyright:(C) registeredsymbol:(R) dots:... enddots:.... bullet:* minus:- result:=> \
     expansion:==> print:-| equiv:== error:error--> arrow:-> geq:>= leq:<= euro:€ pounds:£ \
     textdegree:° quoteleft:' quoteright:' quotedblleft:\" quotedblright:\" aa:å AA:Å ae:æ \
     AE:Æ oe:œ OE:Œ o:ø O:Ø l:ł L:Ł ss:ß dh:ð DH:Ð th:þ TH:Þ exclamdown:¡ questiondown:¿",
);

/// Accents: command and combining character.
static ACCENTS: NameTable = NameTable::of(
    "`:\u{300} ':\u{301} ^:\u{302} ~:\u{303} =:\u{304} u:\u{306} dotaccent:\u{307} \":\u{308} \
     ringaccent:\u{30a} H:\u{30b} v:\u{30c} ,:\u{327} ogonek:\u{328}",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_accents() {
        let mut reader = TexinfoReader::new("{a @code{b@}} c} d");
        assert_eq!(reader.argument(), Some("a @code{b@}} c"));
        assert_eq!(reader.argument(), None);
        for (command, text, expected) in [
            ("'", "e", Some('é')),
            ("\"", "{o}", Some('ö')),
            ("v", "{s}", Some('š')),
            ("'", "@dotless{i}", Some('í')),
            ("^", "{@dotless{i}}", Some('î')),
            ("code", "{x}", None),
        ] {
            assert_eq!(TexinfoReader::new(text).accented(command), expected, "{command}{text}");
        }
    }

    #[test]
    fn unended_arguments_are_cut() {
        let long = format!("{{{}", "x".repeat(10_000));
        let cut = TexinfoReader::new(&long).argument();
        assert_eq!(cut.map(str::len), Some(ARGUMENT_BYTES_MAX + 1));
        let mut reader = TexinfoReader::new("a\n@end x y\nb");
        assert_eq!(reader.environment("x"), "a\n");
        assert_eq!(reader.environment("x"), "\nb");
        assert!(reader.is_at_end());
    }
}
