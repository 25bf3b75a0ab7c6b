//! Text: decoding of any charset to UTF-8, and words, lines and cuts of text.

mod keywords;
pub(crate) mod language;
mod places;
mod shingles;

use std::borrow::Cow;
use std::str::Utf8Error;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

pub use keywords::Keywords;
use keywords::WORD_BYTES_MAX;
pub use places::Places;
pub use shingles::{TextPrint, similarity};

/// Maximum length of all headings of a document, or of all names of its parts, in bytes.
pub(crate) const HEADINGS_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of the text from which its charset is guessed, in bytes.
const GUESS_BYTES_MAX: usize = 64 * 1024;

/// Decodes `bytes`, which may end inside a character, to UTF-8. The charset is that of a byte order
/// mark, else ISO-2022-JP if `declared`, else UTF-8 if nearly all bytes are valid, else the
/// `declared` one if it extends ASCII, else a guess.
pub fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes) {
        let rest = bytes.get(mark_bytes..).unwrap_or_default();
        return encoding.decode_without_bom_handling(rest).0;
    }
    let declared = declared.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    // ISO-2022-JP has only ASCII bytes, so only a declaration shows it.
    if let Some(encoding) = declared.filter(|it| *it == encoding_rs::ISO_2022_JP) {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    let good_bytes = match std::str::from_utf8(bytes) {
        Ok(text) => return Cow::Borrowed(text),
        Err(error) if error.error_len().is_none() && !ends_in_letter(bytes, error, declared) => {
            let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
            return String::from_utf8_lossy(whole);
        }
        Err(error) => error.valid_up_to(),
    };
    let telling = charset_sample(bytes, good_bytes);
    if is_mostly_utf8(telling) {
        return String::from_utf8_lossy(bytes);
    }
    let encoding = declared.filter(|it| it.is_ascii_compatible()).unwrap_or_else(|| {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
        detector.feed(telling, true);
        detector.guess(None, Utf8Detection::Deny)
    });
    encoding.decode_without_bom_handling(bytes).0
}

/// Returns whether `head` looks like text: it starts with a byte order mark of UTF-16, or has no
/// NUL and at most one control character in 20 bytes.
pub fn is_text(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    if memchr::memchr(0, head).is_some() {
        return false;
    }
    // Text may have back spaces (overstruck), white space, the end mark of DOS (0x1a), escapes.
    let control =
        head.iter().filter(|byte| **byte < 0x20 && !matches!(**byte, 8..=13 | 0x1a | 0x1b)).count();
    control * 20 <= head.len()
}

/// Returns whether the unfinished UTF-8 character at the end of `bytes` is a letter of another
/// charset: all bytes before it are ASCII, and another charset is declared, or none is and the end
/// is one byte 0xDF to 0xEF except 0xE2 (lower-case letters of Latin-1). In UTF-8 these begin
/// letters that seldom follow on ASCII alone: European letters begin lower, punctuation with 0xE2.
fn ends_in_letter(bytes: &[u8], error: Utf8Error, declared: Option<&Encoding>) -> bool {
    let (before, end) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
    let is_letter = matches!(end, [0xdf..=0xe1 | 0xe3..=0xef]);
    let is_declared = declared.is_some_and(|it| it != encoding_rs::UTF_8);
    before.is_ascii() && (is_declared || declared.is_none() && is_letter)
}

/// Returns the sample that shows the charset: up to `GUESS_BYTES_MAX` bytes around `bad`, the
/// offset of the first byte that is not UTF-8. A whole book of ASCII may stand before that byte.
fn charset_sample(bytes: &[u8], bad: usize) -> &[u8] {
    let mut start = bad.saturating_sub(GUESS_BYTES_MAX / 2);
    while bytes.get(start).is_some_and(|it| it & 0xc0 == 0x80) && start < bad {
        start += 1;
    }
    let end = bytes.len().min(start + GUESS_BYTES_MAX);
    bytes.get(start..end).unwrap_or_default()
}

/// Returns whether there are at least ten valid characters outside ASCII for every invalid byte.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|it| !it.is_ascii()).count();
        bad += chunk.invalid().len();
    }
    bad * 10 <= good
}

/// Returns the front of `text`, at most `bytes_max` bytes. It is cut at the last white space in the
/// last `WORD_BYTES_MAX` bytes of the front, else between two characters.
pub fn front(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default();
    let near = cut.floor_char_boundary(cut.len().saturating_sub(WORD_BYTES_MAX));
    match cut.get(near..).and_then(|end| end.rfind(char::is_whitespace)) {
        Some(space) => cut.get(..near + space).unwrap_or(cut),
        None => cut,
    }
}

/// Returns `text` on one line of at most `bytes_max` bytes: each run of white space and control
/// characters becomes one space, and none stays at the ends.
pub fn one_line(text: &str, bytes_max: usize) -> String {
    let mut line = String::new();
    // The rest may be long; read no further than needed.
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if bytes_max < line.len() {
            break;
        }
    }
    let end = front(&line, bytes_max).len();
    line.truncate(end);
    line
}

/// Returns all of `text` on one line, as [`one_line`].
pub(crate) fn squeezed(text: &str) -> String {
    one_line(text, usize::MAX)
}

/// Returns whether a line has at least two letters or digits, unlike a ruler.
pub fn is_telling(line: &str) -> bool {
    line.chars().filter(|it| it.is_alphanumeric()).nth(1).is_some()
}

/// Text that is collected piece by piece up to a bound. The default takes nothing.
#[derive(Debug, Default)]
pub struct Body {
    text: String,
    bytes_max: usize,
    is_cut: bool,
    places: Places,
    /// Number of the page that has begun last; 0 as long as none has ended.
    pages: usize,
}

impl Body {
    /// Returns an empty text that takes at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Begins the place `name`, such as `page 3`, at the end of the text so far.
    pub(crate) fn place(&mut self, name: &str) {
        if !self.is_full() {
            self.places.add(self.text.len(), name);
        }
    }

    /// Begins a place whose name is made only if it is far enough from the place before to be named, too.
    pub(crate) fn place_with(&mut self, name: impl FnOnce() -> String) {
        if self.places.is_far(self.text.len()) {
            self.place(&name());
        }
    }

    /// Begins the next page at the offset `at`; of `count` pages that begin there, only the last has text.
    pub(crate) fn next_page(&mut self, at: usize, count: usize) {
        if self.is_full() {
            return;
        }
        if self.pages == 0 {
            self.places.add(0, "page 1");
            self.pages = 1;
        }
        self.pages += count;
        self.places.add(at.min(self.text.len()), &format!("page {}", self.pages));
    }

    /// Adds `piece`, or as much of it as fits.
    pub fn push(&mut self, piece: &str) {
        let room = self.bytes_max.saturating_sub(self.text.len());
        self.is_cut |= room < piece.len();
        self.text.push_str(piece.get(..piece.floor_char_boundary(room)).unwrap_or_default());
    }

    /// Adds `piece` with each run of white space as one space, as a browser shows it.
    pub fn push_squeezed(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        // Start of the text that is not added yet. Single spaces in it stay.
        let mut start = 0;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let space_bytes = match *byte {
                0x21..=0x7f => 0,
                b' ' => 1,
                byte => white_bytes(byte, piece, at),
            };
            let next = bytes.get(at + 1).copied().unwrap_or(b' ');
            if space_bytes == 0 || *byte == b' ' && start < at && (0x21..=0x7f).contains(&next) {
                at += 1;
                continue;
            }
            self.push(piece.get(start..at).unwrap_or_default());
            self.space();
            at += space_bytes;
            start = at;
            if self.is_full() {
                self.is_cut |= piece.get(at..).is_some_and(|it| !it.trim_start().is_empty());
                return;
            }
        }
        self.push(piece.get(start..).unwrap_or_default());
    }

    pub(crate) fn push_line(&mut self, piece: &str) {
        self.push(piece);
        self.line();
    }

    pub(crate) fn push_squeezed_line(&mut self, piece: &str) {
        self.push_squeezed(piece);
        self.line();
    }

    /// Adds the lines of `text`, each with its white space squeezed.
    pub(crate) fn push_lines(&mut self, text: &str) {
        text.lines().for_each(|it| self.push_squeezed_line(it));
    }

    /// Adds a space, unless the text is empty or ends with a space or a line end.
    pub fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.push(" ");
        }
    }

    /// Ends the line without a space at its end, unless it has ended or the text is empty.
    pub fn line(&mut self) {
        if self.text.ends_with(' ') {
            self.text.pop();
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    /// Removes the hyphen of a word at the end of the text; returns false if there is none.
    pub fn join_hyphenated(&mut self) -> bool {
        let Some(word) = self.text.trim_end_matches(' ').strip_suffix('-') else { return false };
        let hyphenated = word.ends_with(char::is_alphabetic);
        if hyphenated {
            self.text.truncate(word.len());
        }
        hyphenated
    }

    /// Returns whether fewer than four bytes are free, so that a character may not fit.
    pub fn is_full(&self) -> bool {
        self.bytes_max < self.text.len() + 4
    }

    /// Returns whether text was left out, or may have been since a reader has seen that the text is full.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut || !self.text.is_empty() && self.is_full()
    }

    /// Returns whether text was left out, if a reader goes on adding to a text that is full.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cut
    }

    /// Returns the maximum length, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn take_places(&mut self) -> Places {
        std::mem::take(&mut self.places)
    }

    /// Returns the text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Removes the text from the offset `at` on, and returns it.
    pub(crate) fn split_off(&mut self, at: usize) -> String {
        self.text.split_off(self.text.floor_char_boundary(at))
    }

    /// Returns the text so far, and begins a new one with the same bound.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// Returns the length of white space at `at`, which begins with `byte`, in bytes; 0 for none.
fn white_bytes(byte: u8, text: &str, at: usize) -> usize {
    match byte {
        9..=13 | b' ' => 1,
        // First bytes of all white space outside ASCII.
        0xc2 | 0xe1 | 0xe2 | 0xe3 => {
            let char = text.get(at..).and_then(|rest| rest.chars().next());
            char.filter(|it| it.is_whitespace()).map_or(0, char::len_utf8)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], declared: Option<&str>, expected: &str) {
        assert_eq!(decode(bytes, declared), expected, "{bytes:?} declared {declared:?}");
    }

    #[test]
    fn charsets() {
        check(b"plain", None, "plain");
        check("Grüße".as_bytes(), Some("iso-8859-1"), "Grüße");
        check(b"Gr\xfc\xdfe", Some("iso-8859-1"), "Grüße");
        check(b"Gr\xfc\xdfe aus K\xf6ln und M\xfcnchen", None, "Grüße aus Köln und München");
        check(b"\xef\xbb\xbfmark", None, "mark");
        check(b"\xff\xfeh\0i\0", None, "hi");
        check(b"cut \xc3", None, "cut ");
        check(b"cut \xe2", None, "cut ");
        check(b"cut \xe3\x81", None, "cut ");
        check(b"cut \xe9", Some("utf-8"), "cut ");
        check("schön \u{e9}".as_bytes().split_last().unwrap().1, None, "schön ");
        // The last letter of a file.
        check(b"un caf\xe9", None, "un café");
        check(b"viel Spa\xdf", None, "viel Spaß");
        check(b"VIS-\xc0", Some("iso-8859-1"), "VIS-À");
        check(b"\x1b$B$\"\x1b(B", Some("iso-2022-jp"), "あ");
        check("\u{43f}\u{440}\u{438}".as_bytes(), Some("no-such-charset"), "при");
        // The first bytes that show the charset may come late.
        let late = [&b"plain words ".repeat(9_000)[..], b"Gr\xfc\xdfe aus K\xf6ln"].concat();
        for declared in [None, Some("iso-8859-1")] {
            assert!(decode(&late, declared).ends_with("Grüße aus Köln"), "{declared:?}");
        }
        // One bad byte does not make a UTF-8 text Latin-1.
        check(
            &["é".repeat(90_000).as_bytes(), b"\xff"].concat(),
            None,
            &("é".repeat(90_000) + "\u{fffd}"),
        );
        check(&["äöüäöüäöüäöü".as_bytes(), b"\xff"].concat(), None, "äöüäöüäöüäöü\u{fffd}");
    }

    #[test]
    fn cuts_fall_between_words_and_characters() {
        assert_eq!(front("one two three", 9), "one two");
        assert_eq!(front("äöü", 3), "ä");
        assert_eq!(front("short", 99), "short");
        assert_eq!(one_line("  a \n\t b\0c  ", 99), "a b c");
        assert_eq!(one_line("one two three", 9), "one two");
    }

    #[test]
    fn bodies_squeeze_and_stop() {
        let mut body = Body::new(12);
        body.push_squeezed("  a  b\n");
        body.push_squeezed("c");
        body.line();
        body.line();
        body.push_squeezed("däääääääää");
        assert_eq!(body.as_str(), "a b c\ndää");
        assert!(body.is_full());
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 0..300), max in 0..200_usize) {
            let text = decode(&bytes, None);
            prop_assert!(front(&text, max).len() <= max);
            prop_assert!(one_line(&text, max).len() <= max);
        }

        #[test]
        fn squeezed_text_is_its_words(pieces in proptest::collection::vec("[a-c \n\t\u{a0}\u{2003}äß\u{3000}\u{1}]{0,12}", 0..6)) {
            let mut body = Body::new(1 << 20);
            pieces.iter().for_each(|piece| body.push_squeezed(piece));
            let words: Vec<String> = pieces.concat().split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(body.as_str().trim_end(), words.join(" "));
        }
    }
}
