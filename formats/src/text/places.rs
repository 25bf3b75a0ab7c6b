//! Places in a text: where its pages, slides and sheets begin, so that a hit can be opened where it stands.
//!
//! `Text-Places` has a line for each place: what it is and the offset into the text attribute at which it begins,
//! in bytes, such as `page 3 5312`. The lines take at most 1 % of the text. Where more places are known, those in
//! between are left out: a place goes up to the next one that is named. The first place of each kind, and of each
//! sheet, is never left out: a hit in it would be taken for one in the part before.

use std::borrow::Borrow;
use std::fmt::Write as _;

/// Maximum number of places that are kept of a text; of more, every second one goes.
const MARKS_MAX: usize = 4 * 1024;
/// Maximum length of the name of a place, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// Least distance between two places in a row of many, in bytes: by their share, few nearer ones could be named.
const NEAR_BYTES: usize = 1_200;
/// Share of the text that its places may take: one byte in this many.
const SHARE: usize = 100;

/// The places of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// None are known.
    #[default]
    None,
    /// The lines of the text are those of the object, from its first line on.
    Lines,
    /// Begins of parts.
    Marks(Marks),
}

/// Begins of parts of a text, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    marks: Vec<(usize, String)>,
    /// Every how many places of a group one is kept; 0 if there are too many groups for any.
    step: usize,
    /// Number of places of the last group so far.
    count: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: Vec::new(), step: 1, count: 0 }
    }
}

impl Marks {
    /// Adds the place `name`, which begins at `offset`.
    fn add(&mut self, offset: usize, name: String) {
        if self.step == 0 {
            return;
        }
        if self.marks.last().is_some_and(|(before, _)| *before == offset) {
            // The part before has no text.
            self.marks.pop();
            self.marks.push((offset, name));
            return;
        }
        if self.marks.last().is_none_or(|(_, before)| group(before) != group(&name)) {
            self.count = 0;
        }
        let is_kept = self.count.is_multiple_of(self.step);
        self.count += 1;
        if !is_kept {
            return;
        }
        self.marks.push((offset, name));
        if MARKS_MAX < self.marks.len() {
            self.step *= 2;
            self.marks = thin(std::mem::take(&mut self.marks).into_iter(), 2).collect();
        }
        if MARKS_MAX < self.marks.len() {
            *self = Self { step: 0, ..Self::default() };
        }
    }

    /// Returns every `step`th place of each group in the text from `start` to `end` as lines.
    fn lines(&self, start: usize, end: usize, step: usize) -> String {
        // A part that begins in white space before the text begins with the text.
        let first = self.marks.partition_point(|(offset, _)| *offset <= start).saturating_sub(1);
        let inside = self.marks.iter().skip(first).take_while(|(offset, _)| *offset < end);
        let mut lines = String::new();
        for (offset, name) in thin(inside, step) {
            let _infallible = writeln!(lines, "{name} {}", offset.saturating_sub(start));
        }
        lines.truncate(lines.trim_end().len());
        lines
    }
}

/// Returns every `step`th mark of each group, its first among them.
fn thin<M: Borrow<(usize, String)>>(
    marks: impl Iterator<Item = M>,
    step: usize,
) -> impl Iterator<Item = M> {
    let (mut last, mut count) = (String::new(), 0_usize);
    marks.filter(move |mark| {
        let group = group(&mark.borrow().1);
        if last != group {
            (last, count) = (group.to_owned(), 0);
        }
        count += 1;
        (count - 1).is_multiple_of(step)
    })
}

/// Returns what the places of a group have in common: a sheet's name, or else the kind of the place.
fn group(name: &str) -> &str {
    let (kind, _) = name.split_once(' ').unwrap_or((name, ""));
    if kind == "sheet" { name.rsplit_once('!').map_or(name, |(sheet, _)| sheet) } else { kind }
}

impl Places {
    /// Adds the place `name`, which begins at `offset`.
    pub(crate) fn add(&mut self, offset: usize, name: &str) {
        let name = super::one_line(name, NAME_BYTES_MAX);
        if let Self::Marks(marks) = self {
            marks.add(offset, name);
        } else {
            let mut marks = Marks::default();
            marks.add(offset, name);
            *self = Self::Marks(marks);
        }
    }

    /// Returns whether `offset` is far enough from the last place for another one.
    pub(crate) fn is_far(&self, offset: usize) -> bool {
        let Self::Marks(marks) = self else { return true };
        marks.marks.last().is_none_or(|(before, _)| before + NEAR_BYTES <= offset)
    }

    /// Returns `Text-Places` for the part of `text` from `start` to `end`; empty if nothing fits.
    pub(crate) fn attribute(&self, text: &str, start: usize, end: usize) -> String {
        let room = end.saturating_sub(start) / SHARE;
        match self {
            Self::None => String::new(),
            Self::Lines => lines(text, start, end, room),
            Self::Marks(marks) => {
                let mut step = 1;
                while step <= marks.marks.len() {
                    let lines = marks.lines(start, end, step);
                    if lines.len() <= room {
                        return lines;
                    }
                    step *= 2;
                }
                String::new()
            }
        }
    }
}

/// Returns numbers of lines at even distances, from the first line that is far enough from the begin.
fn lines(text: &str, start: usize, end: usize, room: usize) -> String {
    let before = text.get(..start).unwrap_or_default();
    let mut number = 1 + memchr::memchr_iter(b'\n', before.as_bytes()).count();
    let inside = text.get(start..end).unwrap_or_default().as_bytes();
    let mut shown = String::new();
    for newline in memchr::memchr_iter(b'\n', inside) {
        number += 1;
        let place = format!("line {number} {}", newline + 1);
        // Even distances: the share holds for the text so far.
        if SHARE * (shown.len() + place.len() + 1) <= newline {
            shown.push_str(&place);
            shown.push('\n');
        }
    }
    shown.truncate(shown.trim_end().len().min(room));
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::Object;
    use crate::pdf::tests::{paged, stream};
    use crate::print::dvi::tests::document;
    use crate::testing::summarize;
    use crate::{Settings, Type};

    #[test]
    fn parts_without_text_have_no_place() {
        let mut places = Places::default();
        let named = [(0, "page 1"), (0, "page 2"), (700, "page\n 3"), (9_000, "page 4")];
        for (offset, name) in named {
            places.add(offset, name);
        }
        let text = "x".repeat(8_000);
        assert_eq!(places.attribute(&text, 0, 8_000), "page 2 0\npage 3 700");
        assert_eq!(places.attribute(&text, 700, 8_000), "page 3 0");
        assert_eq!(places.attribute(&text, 0, 1_000), "page 2 0");
        assert_eq!(places.attribute(&text, 0, 500), "");
    }

    #[test]
    fn the_first_place_of_each_sheet_is_kept() {
        let mut places = Places::default();
        let mut firsts = Vec::new();
        let sheets = ["Sum", "Oh! no", "Costs 2024", "Costs 2025"];
        for sheet in 0..sheets.len() * 2_000 {
            let (name, row) = (sheets[sheet / 2_000], sheet % 2_000 + 1);
            let offset = sheet * 10;
            if row == 1 {
                firsts.push(format!("sheet {name}!A1 {offset}"));
            }
            places.add(offset, &format!("sheet {name}!A{row}"));
        }
        places.add(90_000, "notes");
        firsts.push("notes 90000".into());
        let text = "x".repeat(100_000);
        for end in [100_000, 91_000] {
            let shown = places.attribute(&text, 0, end);
            assert!(firsts.len() < shown.lines().count());
            for first in &firsts {
                assert!(shown.lines().any(|it| it == first), "{first}");
            }
        }
        // Too many sheets for any to be named.
        let mut places = Places::default();
        (0..=MARKS_MAX).for_each(|n| places.add(n, &format!("sheet {n}")));
        assert_eq!(places.attribute(&text, 0, text.len()), "");
    }

    #[test]
    fn lines_are_counted_from_the_first() {
        let text = "\n".to_owned() + &"some words\n".repeat(1_000);
        let shown = Places::Lines.attribute(&text, 1, text.len());
        let first = shown.lines().next().unwrap();
        let (number, offset) = first.strip_prefix("line ").unwrap().split_once(' ').unwrap();
        let (number, offset): (usize, usize) = (number.parse().unwrap(), offset.parse().unwrap());
        assert_eq!(offset, (number - 2) * 11);
        assert!((4..=8).contains(&shown.lines().count()), "{shown}");
    }

    /// Returns the names and offsets of the places in a record, and its text.
    fn places(r#type: Type, bytes: Vec<u8>) -> (Vec<(String, usize)>, String) {
        let object = Object::whole("http://h.example/a", bytes);
        let record = summarize(&object, r#type, &Settings::default(), &|| false).record;
        let lines = record.text("Text-Places").unwrap_or_default().into_owned();
        let places = lines.lines().map(|line| {
            let (name, offset) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), offset.parse().unwrap())
        });
        (places.collect(), record.text("Partial-Text").unwrap().into_owned())
    }

    #[test]
    fn places_are_where_their_parts_begin() {
        // Each part has a letter of its own.
        let parts: Vec<String> = ('b'..='g').map(|it| it.to_string().repeat(1_500)).collect();
        let font =
            [&[243], [0; 5].as_slice(), &[0, 10, 0, 0, 0, 10, 0, 0, 0, 5], b"cmr10\xab"].concat();
        let printed = parts.iter().map(|it| [&font, it.as_bytes()].concat());
        let drawn =
            parts.iter().map(|it| stream("", format!("BT /F1 9 Tf ({it}) Tj ET").as_bytes()));
        let shown = parts.iter().map(|it| format!("%%Page: 1 1\n({it}) show\n"));
        let message = |it: &String| format!("From: a@h.example\nSubject: {it}\n\n{it}\n\n");
        let box_of = parts.iter().map(|it| format!("From a@h.example\n{}", message(it)));
        let digest =
            parts.iter().map(|it| format!("--x\nContent-Type: message/rfc822\n\n{}", message(it)));
        let digest = format!(
            "From: a@h.example\nMIME-Version: 1.0\nContent-Type: multipart/digest; boundary=x\n\n{}--x--\n",
            digest.collect::<String>()
        );
        for (r#type, kind, bytes) in [
            (Type::Pdf, "page", paged(&drawn.collect::<Vec<_>>())),
            (Type::Dvi, "page", document(&printed.collect::<Vec<_>>())),
            (Type::PostScript, "page", format!("%!PS\n{}", shown.collect::<String>()).into()),
            (Type::Mailbox, "message", box_of.collect::<String>().into()),
            (Type::Mail, "message", digest.into()),
        ] {
            let (places, text) = places(r#type, bytes);
            assert_eq!(places.len(), parts.len(), "{type:?} {places:?}");
            for (number, ((name, offset), part)) in places.iter().zip(&parts).enumerate() {
                assert_eq!(*name, format!("{kind} {}", number + 1), "{type:?}");
                assert!(text[*offset..].starts_with(&part[..1_000]), "{type:?} {name}");
                assert!(!text[..*offset].contains(&part[..1]), "{type:?} {name}");
            }
        }
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let lines: String = (3..200).map(|n| format!("+w{n} {}\n", "x".repeat(70))).collect();
        for begin in ["\u{feff}\n\n", "\n\n", "\r\n\r\n"] {
            for r#type in [Type::Text, Type::Patch, Type::Source(crate::Language::C)] {
                let (places, text) = places(r#type, format!("{begin}{lines}").into());
                assert!(4 < places.len());
                for (name, offset) in places {
                    let number = name.strip_prefix("line ").unwrap();
                    assert!(text[offset..].starts_with(&format!("+w{number} ")), "{type:?} {name}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn places_take_one_byte_in_a_hundred(
            parts in proptest::collection::vec(0..4_000_usize, 0..40),
            cut in 0..60_000_usize,
            are_lines in any::<bool>(),
        ) {
            let (mut places, mut text) = (Places::default(), String::new());
            for (n, bytes) in parts.iter().enumerate() {
                places.add(text.len(), &format!("page {}", n + 1));
                text.push_str(&"a".repeat(*bytes));
                text.push('\n');
            }
            if are_lines {
                places = Places::Lines;
            }
            let end = text.len().min(cut);
            let shown = places.attribute(&text, 0, end);
            prop_assert!(shown.len() * SHARE <= end);
            for line in shown.lines() {
                let (name, offset) = line.rsplit_once(' ').unwrap();
                let offset: usize = offset.parse().unwrap();
                prop_assert!(offset < end || are_lines && offset == end);
                let number: usize = name.rsplit_once(' ').unwrap().1.parse().unwrap();
                prop_assert_eq!(text[..offset].matches('\n').count() + 1, number);
            }
        }
    }
}
