//! Overviews of news articles: one line each, with fields apart by TAB.
//!
//! Source: RFC 3977 §8.3. Lines that are no overviews are counted and left out.
//!
//! Sans-I/O.

use crate::fetch::decode;

/// Longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Overview of an article. Text is in UTF-8 or else Latin-1; encoded words (RFC 2047) are as they
/// came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Its number in the group.
    pub number: u64,
    /// Its subject.
    pub subject: String,
    /// Its author.
    pub from: String,
    /// Its date, as it came.
    pub date: String,
    /// Its message id, with the angle brackets.
    pub id: String,
    /// The message ids of those that it follows, apart by blanks.
    pub references: String,
    /// Its size in bytes, if it is known.
    pub bytes: Option<u64>,
    /// Number of lines of its body, if it is known.
    pub lines: Option<u64>,
}

impl Overview {
    /// Reads a line without its end; `None` if it is no overview.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if LINE_BYTES_MAX < line.len() {
            return None;
        }
        let mut fields = line.split(|it| *it == b'\t').map(|it| decode(it).trim().to_owned());
        let number = fields.next()?.parse().ok()?;
        let [subject, from, date, id] = [(); 4].map(|()| fields.next());
        let (subject, from, date, id) = (subject?, from?, date?, id?);
        if !id.starts_with('<') || !id.ends_with('>') {
            return None;
        }
        let references = fields.next().unwrap_or_default();
        let mut count = || fields.next()?.parse().ok();
        let (bytes, lines) = (count(), count());
        Some(Self { number, subject, from, date, id, references, bytes, lines })
    }
}

/// Overviews of a range of articles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overviews {
    /// Those of the articles that are there, as the server orders them.
    pub articles: Vec<Overview>,
    /// Number of lines that were left out: no overviews, or of articles outside the range.
    pub left_out: usize,
}

impl Overviews {
    /// Reads the block of a reply to `OVER first-last`.
    pub fn parse(block: &[u8], first: u64, last: u64) -> Self {
        let mut found = Self::default();
        for line in block.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match Overview::parse(line) {
                Some(it) if (first..=last).contains(&it.number) => found.articles.push(it),
                _ => found.left_out += 1,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_may_be_missing_or_wrong() {
        let block = b"7\tSub\tA <a@b>\tFri, 1 Jan 2021\t<1@x>\t<0@x>\t123\t4\tXref: h g:7\r\n\
            8\tcaf\xe9\t\t\t<2@x>\r\n9\tno id\t\t\t\t\t\t\r\nx\n10\t\t\t\t<3@x>\t\t\t\r\n";
        let found = Overviews::parse(block, 7, 9);
        assert_eq!(found.left_out, 3);
        let [first, second] = &found.articles[..] else { panic!("{found:?}") };
        assert_eq!((first.number, first.bytes, first.lines), (7, Some(123), Some(4)));
        assert_eq!((first.id.as_str(), first.references.as_str()), ("<1@x>", "<0@x>"));
        assert_eq!((second.subject.as_str(), second.bytes), ("café", None));
    }

    proptest! {
        #[test]
        fn overviews_are_read_as_they_were_written(
            number in 1_u64..1 << 31,
            fields in prop::array::uniform4("[a-z<@ä]{1,9}"),
            bytes in any::<Option<u64>>(),
        ) {
            let [subject, from, date, references] = fields;
            let id = format!("<{number}@h>");
            let count = bytes.map(|it| it.to_string()).unwrap_or_default();
            let line = format!("{number}\t{subject}\t{from}\t{date}\t{id}\t{references}\t{count}\t\t");
            let overview =
                Overview { number, subject, from, date, id, references, bytes, lines: None };
            prop_assert_eq!(Overview::parse(line.as_bytes()), Some(overview));
        }
    }
}
