//! Places: where in its object an excerpt stands, by the attribute `Text-Places`.
//!
//! Each line of the attribute names a place and, after a space, the byte of the text at which it
//! begins: `page 3 5312`. A place reaches up to the next one named; those in between may be left
//! out. The lines come from foreign collections: a line of another form, or one that goes back in
//! the text, is skipped.
//!
//! Sans-I/O.

/// The attribute with the places of a record's text.
pub(crate) const TEXT_PLACES: &str = "Text-Places";
/// Maximum length of the part of the attribute that is read, in bytes.
const VALUE_BYTES_MAX: usize = 256 << 10;
/// Maximum length of a place's name, in bytes.
const NAME_BYTES_MAX: usize = 256;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    name: &'a str,
    /// Offset in the text, in bytes.
    start: usize,
}

impl<'a> Place<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?;
        let (name, start) = line.strip_suffix('\r').unwrap_or(line).rsplit_once(' ')?;
        let is_name = !name.is_empty()
            && name.trim() == name
            && name.len() <= NAME_BYTES_MAX
            && !name.contains(char::is_control);
        let start = usize::try_from(decimal(start)?).ok()?;
        is_name.then_some(Self { name, start })
    }

    /// Returns the first word of the name: `page`.
    fn kind(self) -> &'a str {
        self.name.split_once(' ').map_or(self.name, |(kind, _)| kind)
    }

    /// Returns the number after the kind; `None` if another name is there.
    fn number(self) -> Option<u64> {
        decimal(self.name.split_once(' ')?.1)
    }
}

/// Returns a number of digits alone, without the sign that `parse` would take.
fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the places of an attribute's value, in the order of the text.
fn parse(value: &[u8]) -> Vec<Place<'_>> {
    let value = match value.get(..=VALUE_BYTES_MAX) {
        // The last line of a cut value may have lost digits.
        Some(head) => head.rsplitn(2, |it| *it == b'\n').nth(1).unwrap_or_default(),
        None => value,
    };
    let mut reached = 0;
    let mut goes_on = |place: &Place<'_>| {
        let goes_on = reached <= place.start;
        reached = reached.max(place.start);
        goes_on
    };
    value.split(|it| *it == b'\n').filter_map(Place::parse).filter(|it| goes_on(it)).collect()
}

/// Returns the index of the place in which byte `at` of the text lies: the last that begins there
/// or before; `None` before the first.
fn find(places: &[Place<'_>], at: usize) -> Option<usize> {
    places.partition_point(|it| it.start <= at).checked_sub(1)
}

/// Returns the name, for people, of the place in which byte `at` of `text` lies, by an attribute's
/// value; `None` if it is unknown.
pub(crate) fn name(value: &[u8], text: &str, at: usize) -> Option<String> {
    let places = parse(value);
    let index = find(&places, at)?;
    let place = places.get(index)?;
    Some(match (place.kind(), place.number()) {
        ("line", Some(first)) => {
            let between = text.as_bytes().get(place.start..at).unwrap_or_default();
            let more = between.iter().filter(|it| **it == b'\n').count() as u64;
            format!("line {}", first.saturating_add(more))
        }
        ("sheet", _) => sheet(place.name),
        (kind, Some(number)) => numbered(&places, index, kind, number),
        _ => place.name.to_owned(),
    })
}

/// Splits the cell from the name of its sheet: `sheet Costs!B7`. A sheet's name may have a `!`.
fn sheet(name: &str) -> String {
    let is_cell =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it == b'$' || it.is_ascii_alphanumeric());
    match name.rsplit_once('!') {
        Some((sheet, cell)) if is_cell(cell) => format!("{sheet}, from {cell}"),
        _ => name.to_owned(),
    }
}

/// Returns the numbers that the place may stand for, as far as the places named around it tell.
fn numbered(places: &[Place<'_>], index: usize, kind: &str, number: u64) -> String {
    let leaps = |from: u64, to: u64| from.saturating_add(1) < to;
    let numbers = |from: usize| {
        let all = places.iter().skip(from).filter(|it| it.kind() == kind);
        all.filter_map(|it| it.number())
    };
    match numbers(index + 1).next() {
        Some(next) if leaps(number, next) => format!("{kind}s {number}–{}", next - 1),
        // A smaller number begins to count anew, as parts of a book do.
        Some(_) => format!("{kind} {number}"),
        // If places were left out before, they may be left out at the end, too.
        None if numbers(0).zip(numbers(0).skip(1)).any(|(from, to)| leaps(from, to)) => {
            format!("{kind} {number} or later")
        }
        None => format!("{kind} {number}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(value: &str, at: usize, expected: &str) {
        let text = "x\n".repeat(100);
        let seen = name(value.as_bytes(), &text, at);
        assert_eq!(seen.as_deref().unwrap_or_default(), expected, "{value:?} {at}");
    }

    #[test]
    fn a_place_reaches_up_to_the_next() {
        let pages = "page 1 4\npage 2 10\npage 3 20\n";
        for (at, expected) in
            [(0, ""), (3, ""), (4, "page 1"), (9, "page 1"), (10, "page 2"), (999, "page 3")]
        {
            check(pages, at, expected);
        }
        check("slide 1 0\nslide 2 7\nslide 3 7", 7, "slide 3");
        check("", 0, "");
    }

    #[test]
    fn places_left_out_make_a_range() {
        let pages = "page 1 0\npage 3 10\npage 6 20\npage 7 30\npage 9 40";
        for (at, expected) in [
            (0, "pages 1–2"),
            (10, "pages 3–5"),
            (20, "page 6"),
            (30, "pages 7–8"),
            (40, "page 9 or later"),
        ] {
            check(pages, at, expected);
        }
        check("page 1 0\nchapter 2 5\npage 2 9", 0, "page 1");
        check("chapter 1 0\npage 1 1\npage 2 2\nchapter 4 3", 0, "chapters 1–3");
        check("message 5 0\nmessage 1 9", 0, "message 5");
        check("page 18446744073709551615 0\npage 1 9", 0, "page 18446744073709551615");
    }

    #[test]
    fn lines_are_counted() {
        check("line 1 0\nline 50 98", 0, "line 1");
        check("line 1 0\nline 50 98", 7, "line 4");
        check("line 1 0\nline 50 98", 98, "line 50");
        check("line 1 0\nline 50 98", 102, "line 52");
        check("line 18446744073709551615 0", 9, "line 18446744073709551615");
        check("line 7 0", 9_999, "line 7");
    }

    #[test]
    fn cells_are_named_with_their_sheet() {
        check("sheet Costs!B7 0", 3, "sheet Costs, from B7");
        check("sheet Costs 2024 0", 3, "sheet Costs 2024");
        check("sheet Oh! no!B7 0", 3, "sheet Oh! no, from B7");
        check("sheet Oh! no 0", 3, "sheet Oh! no");
        check("sheet 3 0\nsheet 9 9", 3, "sheet 3");
    }

    #[test]
    fn names_without_number_stay_as_they_are() {
        check("chapter On knots 0\nchapter 3 9", 3, "chapter On knots");
        check("page iv 0", 3, "page iv");
        check("cover 0", 3, "cover");
    }

    #[test]
    fn malformed_lines_are_left_out() {
        for line in
            ["page 2 +3", "page 2 3 ", " 3", "page 2  3", "3", "page\t2 3", "page 2 \u{661}"]
        {
            check(&format!("page 1 0\n{line}\npage 2 9\r\n"), 5, "page 1");
        }
        check("page 1 5\npage 2 3\npage 3 8", 6, "pages 1–2");
        assert_eq!(name(b"page 1 0\npage \xff 3\npage 2 9", "", 5).as_deref(), Some("page 1"));
        let long = format!("{} 0", "x".repeat(NAME_BYTES_MAX + 1));
        check(&long, 0, "");
    }

    #[test]
    fn a_value_that_is_too_long_ends_with_a_whole_line() {
        let line = b"page 1 1000000\n";
        let places = parse(&line.repeat(VALUE_BYTES_MAX)).len();
        assert_eq!(places, VALUE_BYTES_MAX / line.len());
        assert_eq!(parse(&vec![b'x'; VALUE_BYTES_MAX + 1]), []);
    }

    /// Values with good and bad lines.
    fn values() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "(page|line|chapter) [0-9]{1,2} [0-9]{1,2}",
            "sheet [a-b!]{0,4}[A-C]?[0-9]? [0-9]{1,2}",
            ".{0,12}",
        ];
        prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(value: Vec<u8>, text: String, at: usize) {
            name(&value, &text, at);
        }

        #[test]
        fn the_place_is_the_last_that_begins_before(value in values(), at in 0..110_usize) {
            let places = parse(value.as_bytes());
            let last = places.iter().rposition(|it| it.start <= at);
            prop_assert_eq!(find(&places, at), last);
            let named = name(value.as_bytes(), "", at).is_some();
            prop_assert_eq!(named, last.is_some());
        }
    }
}
