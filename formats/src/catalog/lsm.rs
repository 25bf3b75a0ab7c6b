//! The Linux Software Map: descriptions of programs and their download sites, from `Begin3` to `End`.
//!
//! Source: the templates of LSM, versions 1 to 4 (`Field: value`, continuation lines are indented).

use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::names::NameTable;

/// Fields in lower case, and the attributes that they become.
static ATTRIBUTES: NameTable = NameTable::of(
    "title:Title version:Version description:Description desc1:Description author:Author \
     maintained-by:Maintainer maintainer:Maintainer primary-site:Primary-Site \
     alternate-site:Alternate-Site original-site:Original-Site platforms:Platforms \
     platform:Platforms copying-policy:License",
);

/// One entry as written.
struct LsmEntry<'t> {
    start: usize,
    line: usize,
    /// Field names, each with its lines, in order.
    fields: Vec<(&'t str, Vec<&'t str>)>,
    bytes: usize,
}

pub(crate) fn read(text: &str, reading: &mut Reading<'_>) {
    let mut open: Option<LsmEntry<'_>> = None;
    let (mut at, mut number) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        number += 1;
        if !reading.goes_on() {
            return;
        }
        let (begins, ends) = (begins(line), line.trim().eq_ignore_ascii_case("end"));
        if (begins || ends)
            && let Some(entry) = open.take()
        {
            let raw = text.get(entry.start..if ends { at } else { start }).unwrap_or_default();
            if !entry.hand_out(raw, ends, reading) {
                return;
            }
        }
        if begins {
            open = Some(LsmEntry { start, line: number, fields: Vec::new(), bytes: 0 });
        } else if let Some(entry) = &mut open {
            entry.take(line);
        }
    }
    if let Some(entry) = open {
        let raw = text.get(entry.start..).unwrap_or_default();
        entry.hand_out(raw, false, reading);
    }
}

/// Returns whether a line is `Begin` with the version of the template.
fn begins(line: &str) -> bool {
    let line = line.trim_end();
    let rest =
        line.get(5..).filter(|_| line.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("begin")));
    rest.is_some_and(|it| it.len() <= 1 && it.bytes().all(|it| it.is_ascii_digit()))
}

impl<'t> LsmEntry<'t> {
    fn take(&mut self, line: &'t str) {
        self.bytes += line.len();
        if Limit::Entry.bound() < self.bytes {
            return;
        }
        let is_name = |it: &str| {
            !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
        };
        match line.split_once(':').filter(|(name, _)| is_name(name.trim_end())) {
            Some((name, value)) => self.fields.push((name.trim_end(), vec![value.trim()])),
            None => {
                if let Some((_, lines)) = self.fields.last_mut() {
                    lines.push(line.trim());
                }
            }
        }
    }

    fn hand_out(&self, raw: &str, ended: bool, reading: &mut Reading<'_>) -> bool {
        if Limit::Entry.bound() < raw.len() {
            return reading.too_long(Limit::Entry, raw.as_bytes());
        }
        let mut fields = EntryFields::default();
        for (name, lines) in &self.fields {
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "description" => fields.put("Description", &lines.join(" ")),
                "entered-date" => lines.iter().for_each(|it| fields.put("Date", &date(it))),
                "keywords" | "keyword" => fields.put_all("Subject", &lines.join(" "), &[',', ';']),
                lower => match ATTRIBUTES.get(lower) {
                    Some(attribute) => lines.iter().for_each(|it| fields.put(attribute, it)),
                    None => lines.iter().for_each(|it| fields.put_foreign("", name, it)),
                },
            }
            if lower.ends_with("-site") {
                addresses(lines, &mut fields);
            }
        }
        if !ended || fields.first("Title").is_empty() {
            return reading.broken(raw, || format!("in line {}", self.line));
        }
        let key = fields.first("Title").to_owned();
        reading.entry(&key, raw.as_bytes(), fields)
    }
}

/// Adds the century to dates of the third template (`14NOV94`); returns others unchanged.
fn date(text: &str) -> String {
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let (day, month, year) = (part(0..2), part(2..5), part(5..7));
    let is_number = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
    if text.len() != 7 || !is_number(day) || !is_number(year) {
        return text.to_owned();
    }
    // The map began in 1992.
    let century = if year < "70" { "20" } else { "19" };
    format!("{day} {month} {century}{year}")
}

/// Adds URLs from lines like `sunsite.unc.edu /pub/Linux/apps`, followed by `120kB program.tgz`.
fn addresses(lines: &[&str], fields: &mut EntryFields) {
    let mut folder = String::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let (Some(first), second) = (words.next(), words.next()) else { continue };
        if first.contains("://") {
            fields.put("URL-References", first);
            continue;
        }
        match second {
            Some(path) if path.starts_with('/') && first.contains('.') => {
                folder = format!("ftp://{first}{}/", path.trim_end_matches('/'));
                fields.put("URL-References", &folder);
            }
            // A file and its size, in either order.
            Some(name) if !folder.is_empty() => {
                let is_size =
                    |it: &str| it.starts_with(|it: char| it.is_ascii_digit()) && !it.contains('.');
                let name = if is_size(first) { name } else { first };
                fields.put("URL-References", &format!("{folder}{name}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::Lsm, text.as_bytes()), expected);
    }

    #[test]
    fn entries_of_the_map() {
        check(
            "Begin3\nTitle:          xgopher\nVersion:        1.3.3\nEntered-date:   14NOV94\n\
             Description:    A client for\n                Gopher: with windows.\nKeywords: X11, gopher\n\
             Author:         allan@h.example (Allan Tuchman)\n                b@h.example (Ben)\n\
             Primary-site:   sunsite.unc.edu /pub/Linux/X11\n                120kB xgopher.tgz\n\
             Platforms: Linux\nCopying-policy: GPL\nEnd\n\nnot in an entry: x\n\
             Begin4\nTitle: second\nEntered-date: 2001-02-03\nPrimary-site: http://h.example/second\n\
             Mystery-field: kept\nMD5: no\nEnd\n",
            &[
                "xgopher: Title=xgopher; Author=allan@h.example (Allan Tuchman)|b@h.example (Ben); \
                 Description=A client for Gopher: with windows.; Version=1.3.3; Date=1994-11-14; Date-Source=entry; \
                 Subject=X11|gopher; Primary-Site=sunsite.unc.edu /pub/Linux/X11|120kB xgopher.tgz; \
                 Platforms=Linux; License=GPL; \
                 URL-References=ftp://sunsite.unc.edu/pub/Linux/X11/|ftp://sunsite.unc.edu/pub/Linux/X11/xgopher.tgz",
                "second: Title=second; Date=2001-02-03; Date-Source=entry; Primary-Site=http://h.example/second; \
                 Mystery-field=kept; URL-References=http://h.example/second",
            ],
        );
    }

    #[test]
    fn an_unfinished_entry_is_broken() {
        check("Begin3\nTitle: a\nBegin3\nTitle: b\nEnd\n", &["broken", "b: Title=b"]);
        check("Begin3\nVersion: 1\nEnd\nBegin3\nTitle: c\n", &["broken", "broken"]);
        assert_eq!(
            render("a.lsm", Type::Lsm, b"Begin3\nTitle: a\nEnd\nBegin3\nTitle: b\n"),
            "Title: a.lsm\nDescription: Software map with 2 entries\nEntries: 2\nTitles: a\n\
             Partial-Text: a | Begin3 | Title: b\n\
             ! broken: 1 of 2 entries cannot be parsed, the first in line 4"
        );
        render("a.lsm", Type::Lsm, "Begin3\n".repeat(300_000).as_bytes());
        render("a.lsm", Type::Lsm, format!("Begin3\n{}End\n", "a:\n".repeat(300_000)).as_bytes());
    }

    proptest! {
        #[test]
        fn entries_are_read_as_written(list in prop::collection::vec(
            ("[!-9;-~é]{1,12}", "[0-9]\\.[0-9]{1,3}", "[!-9;-~é]{1,8}( [!-9;-~é]{1,8}){0,3}"), 0..6))
        {
            let mut text = String::new();
            let mut expected = Vec::new();
            for (title, version, description) in &list {
                let folded = description.replacen(' ', "\n\t\t", 1);
                text.push_str(&format!("Begin4\nTitle:\t{title}\nVersion: {version}\nDescription: {folded}\nEnd\n\n"));
                expected.push(format!("{title}: Title={title}; Description={description}; Version={version}"));
            }
            prop_assert_eq!(entries(Type::Lsm, text.as_bytes()), expected);
        }

        #[test]
        fn any_bytes_give_a_record(text in "((Begin3|End|Title|Primary-site|é):? {0,2}[a-z0-9/.é]{0,9}\r?\n?){0,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a.lsm", Type::Lsm, text.as_bytes());
            render("a.lsm", Type::Lsm, &bytes);
        }
    }
}
