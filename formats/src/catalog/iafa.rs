//! IAFA templates: descriptions of an archive's documents, programs, people and services.
//!
//! Source: draft-ietf-iiir-publishing (Publishing Information on the Internet with Anonymous FTP); variants
//! and handles by ROADS. A template begins with `Template-Type`. Continuation lines are indented. Repeated
//! fields have a suffix for their variant (`-v1`).

use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::names::NameTable;

/// Fields in lower case, without their variants, and the attributes that they become.
static ATTRIBUTES: NameTable = NameTable::of(
    "title:Title short-title:Alternative-Title alternative-title:Alternative-Title \
     description:Description abstract:Abstract template-type:Template-Type \
     category:Resource-Type uri:URL-References url:URL-References language:Language \
     publisher-name:Publisher publisher:Publisher copyright:Copyright copying-policy:License \
     creation-date:Date publication-date:Date last-revision-date:Date-Modified version:Version \
     source:Source format:Format platform-supported:Platforms platforms-supported:Platforms \
     handle:Handle",
);

/// Fields that replace a missing title, in order of precedence.
const NAMES: &str = "name organization-name organisation-name service-name host-name user-name \
    group-name project-name handle";

/// One template.
#[derive(Debug)]
pub struct Template<'t> {
    start: usize,
    line: usize,
    fields: Vec<(&'t str, String)>,
    raw: &'t str,
}

/// An iterator over the templates of a text, line by line.
#[derive(Debug)]
pub struct Templates<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    open: Option<Template<'t>>,
}

/// Returns an iterator that yields, for each line, the template that has ended before it, if any.
pub fn templates(text: &str) -> Templates<'_> {
    Templates { text, at: 0, line: 0, open: None }
}

impl<'t> Iterator for Templates<'t> {
    type Item = Option<Template<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(line) = rest.split_inclusive('\n').next() else {
            return self.open.take().map(|it| Some(it.ended(self.text, self.text.len())));
        };
        let start = self.at;
        self.at += line.len();
        self.line += 1;
        let field = field(line);
        let mut ended = None;
        if field.is_some_and(|(name, _)| name.eq_ignore_ascii_case("template-type")) {
            let new = Template { start, line: self.line, fields: Vec::new(), raw: "" };
            ended = self.open.replace(new).map(|it| it.ended(self.text, start));
        }
        let is_read = |it: &&mut Template<'_>| self.at - it.start <= Limit::Entry.bound();
        if let Some(template) = self.open.as_mut().filter(is_read) {
            match (field, template.fields.last_mut()) {
                (Some((name, value)), _) => template.fields.push((name, value.to_owned())),
                (None, Some((_, value))) if !line.trim().is_empty() => {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                _ => {}
            }
        }
        Some(ended)
    }
}

pub(crate) fn read(text: &str, reading: &mut Reading<'_>) {
    for ended in templates(text) {
        if !reading.goes_on() || ended.is_some_and(|it| !it.hand_out(reading)) {
            return;
        }
    }
}

/// Returns a field and its value; `None` for other lines.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim_start_matches('\u{feff}').split_once(':')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*()".contains(&byte);
    let name = name.trim_end();
    (!name.is_empty() && name.bytes().all(is_name)).then(|| (name, value.trim()))
}

/// Splits the variant off: `Author-Name-v2` is `author-name` and `2`.
fn variant(name: &str) -> (String, &str) {
    let lower = name.to_ascii_lowercase();
    let digits = name.len() - name.trim_end_matches(|it: char| it.is_ascii_digit()).len();
    let (base, number) = name.split_at(name.len() - digits);
    match lower.get(..base.len()).and_then(|it| it.strip_suffix("-v")) {
        Some(base) if 0 < digits => (base.to_owned(), number),
        _ => (lower, ""),
    }
}

/// A field: its name in lower case, its variant, its name as written, and its value.
type SplitField<'w> = (String, &'w str, &'w str, &'w str);

impl<'t> Template<'t> {
    /// Returns the whole template, which ends at `end`.
    fn ended(self, text: &'t str, end: usize) -> Self {
        Self { raw: text.get(self.start..end).unwrap_or_default(), ..self }
    }

    /// Returns the number of the template's first line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the URLs of the objects that the template describes.
    pub fn uris(&self) -> Vec<&str> {
        let is_uri = |name: &str| matches!(&*variant(name).0, "uri" | "url");
        let uris = self.fields.iter().filter(|(name, value)| is_uri(name) && !value.is_empty());
        uris.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns attributes for the objects that the template describes; `None` if it is too long.
    pub fn attributes(&self) -> Option<Vec<(String, String)>> {
        if Limit::Entry.bound() < self.raw.len() {
            return None;
        }
        let attributes = self.fields(&self.split_fields()).into_attributes().into_iter();
        let left_out = ["Template-Type", "URL-References"];
        Some(attributes.filter(|(name, _)| !left_out.contains(&name.as_str())).collect())
    }

    fn split_fields(&self) -> Vec<SplitField<'_>> {
        let parts = self.fields.iter().map(|(name, value)| {
            let (base, variant) = variant(name);
            let bare = name.get(..base.len()).unwrap_or(name);
            (base, variant, bare, value.as_str())
        });
        parts.collect()
    }

    fn fields(&self, parts: &[SplitField<'_>]) -> EntryFields {
        let mut fields = EntryFields::default();
        for (base, variant, written, value) in parts {
            match base.as_str() {
                "author-name" | "author" => {
                    // Fields of one person have the same variant.
                    let email =
                        parts.iter().find(|(it, of, ..)| it == "author-email" && of == variant);
                    let email = email.map_or("", |(.., it)| it);
                    let both = format!("{value} <{email}>");
                    fields.put(
                        "Author",
                        if email.is_empty() || value.is_empty() { value } else { &both },
                    );
                }
                "author-email" => {}
                "keywords" | "keyword" | "subject-descriptor" => {
                    fields.put_all("Subject", value, &[',', ';']);
                }
                "isbn" => fields.put_identifier("isbn", value),
                "issn" => fields.put_identifier("issn", value),
                base => match ATTRIBUTES.get(base) {
                    Some(attribute) => fields.put(attribute, value),
                    None => fields.put_foreign("", written, value),
                },
            }
        }
        fields
    }

    fn hand_out(&self, reading: &mut Reading<'_>) -> bool {
        if Limit::Entry.bound() < self.raw.len() {
            return reading.too_long(Limit::Entry, self.raw.as_bytes());
        }
        let parts = self.split_fields();
        let mut fields = self.fields(&parts);
        let find =
            |base: &str| parts.iter().find(|(it, .., value)| it == base && !value.is_empty());
        if fields.first("Title").is_empty() {
            let name = NAMES.split(' ').find_map(find).map_or("", |(.., value)| value);
            fields.put("Title", name);
        }
        let key = ["handle", "uri"].iter().find_map(|it| find(it)).map_or("", |(.., value)| value);
        reading.entry(key, self.raw.as_bytes(), fields)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::Iafa, text.as_bytes()), expected);
    }

    #[test]
    fn templates_of_an_archive() {
        check(
            "Template-Type:\tDOCUMENT\nTitle: The Archie\n  System\nAuthor-Name-v1: Alan Emtage\n\
             Author-Email-v1: bajan@h.example\nAuthor-Name-v2: Peter Deutsch\nURI-v1: ftp://h.example/a.ps\n\
             Format-v1: PostScript\nURI-v2: http://h.example/a\nKeywords: archie, indexing\n\
             Creation-Date: 1 Mar 1991\nLanguage-v1: English\nISSN: 0169-7552\nBibliography: In it.\n\
             Gatherer-Id: evil\n\nTemplate-Type: USER\nHandle: u1\nName: Ann\nWork-Phone: 1\n\n\
             Template-Type: SITEINFO\nHost-Name: ftp.h.example\nDescription: An archive.\n",
            &[
                "ftp://h.example/a.ps: Title=The Archie System; \
                 Author=Alan Emtage <bajan@h.example>|Peter Deutsch; Template-Type=DOCUMENT; \
                 Format=PostScript; Subject=archie|indexing; Date=1991-03-01; Date-Source=entry; Language=en; \
                 Identifier=urn:issn:0169-7552; Bibliography=In it.; \
                 URL-References=ftp://h.example/a.ps|http://h.example/a",
                "u1: Title=Ann; Template-Type=USER; Handle=u1; Name=Ann; Work-Phone=1",
                ": Title=ftp.h.example; Description=An archive.; Template-Type=SITEINFO; \
                 Host-Name=ftp.h.example",
            ],
        );
    }

    #[test]
    fn the_list_s_own_record() {
        assert_eq!(
            render(
                "a.iafa",
                Type::Iafa,
                b"junk\nTemplate-Type: SOFTWARE\nTitle: gopher\nVersion-v1: 2\n"
            ),
            "Title: a.iafa\nDescription: Archive index with 1 entry\nEntries: 1\nTitles: gopher\n\
             Partial-Text: gopher. SOFTWARE. 2"
        );
        render("a", Type::Iafa, "Template-Type:\n".repeat(200_000).as_bytes());
        render(
            "a",
            Type::Iafa,
            format!("Template-Type: x\n{}", "a-v1: b\n".repeat(200_000)).as_bytes(),
        );
    }

    proptest! {
        #[test]
        fn templates_are_read_as_written(list in prop::collection::vec(
            ("[!-~é]{1,12}", "[!-~é]{1,8}( [!-~é]{1,8}){0,3}", prop::collection::vec("[!-~é]{1,9}", 0..3)), 0..6))
        {
            let mut text = String::new();
            let mut expected = Vec::new();
            for (handle, title, authors) in &list {
                let title_written = title.replacen(' ', "\n ", 1);
                text.push_str(&format!("Template-Type: DOCUMENT\nHandle: {handle}\nTitle: {title_written}\n"));
                for (at, author) in authors.iter().enumerate() {
                    text.push_str(&format!("Author-Name-v{at}: {author}\n"));
                }
                text.push('\n');
                let authors = if authors.is_empty() { String::new() } else { format!("Author={}; ", authors.join("|")) };
                expected.push(format!("{handle}: Title={title}; {authors}Template-Type=DOCUMENT; Handle={handle}"));
            }
            prop_assert_eq!(entries(Type::Iafa, text.as_bytes()), expected);
        }

        #[test]
        fn any_bytes_give_a_record(text in "((Template-Type|Title|Author-Name-v[0-9]{0,3}|-v1|é):? {0,2}[a-z0-9/.é]{0,9}\r?\n?){0,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a", Type::Iafa, text.as_bytes());
            render("a", Type::Iafa, &bytes);
        }
    }
}
