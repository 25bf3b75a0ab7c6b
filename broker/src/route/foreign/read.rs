//! Answers of foreign engines: lists of SRU (Dublin Core, MARCXML, MODS), RSS and Atom, by the local names of their
//! elements.
//!
//! There are no entities but the five of XML, so that nothing expands.
//!
//! Sans-I/O.

use std::mem::take;

use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::Found;
use crate::answer::ForeignHit;

/// Maximum number of hits that count.
const HITS_MAX: usize = 50;
/// Longest address, title and description, in characters.
const CHARS_MAX: [usize; 3] = [2_000, 300, 500];
/// Longest text of an element, in bytes; the rest is left out.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Deepest nesting.
const DEPTH_MAX: usize = 64;

/// Where the reader is.
#[derive(Debug, Default)]
struct Walk {
    found: Found,
    depth: usize,
    /// The depth of the hit under way.
    item: Option<usize>,
    hit: ForeignHit,
    /// The tag of the field of MARC, and the code of its part.
    marc: (String, String),
    text: String,
    is_known: bool,
    /// What the engine has to say.
    problem: Option<String>,
}

/// Reads an answer.
///
/// # Errors
///
/// It is no list of hits, or says what was wrong with the question.
pub fn found(bytes: &[u8]) -> Result<Found, String> {
    let mut walk = Walk::default();
    let is_whole = walk.feed(&String::from_utf8_lossy(bytes), true);
    match walk.problem {
        _ if !walk.is_known => Err("it answers with no list of hits".to_owned()),
        Some(problem) if walk.found.hits.is_empty() => Err(format!("it answers: {problem}")),
        _ if !is_whole && walk.found.hits.is_empty() => Err("its answer is cut off".to_owned()),
        _ => Ok(walk.found),
    }
}

/// Returns the value of an attribute, by its local name.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.attributes().flatten().find(|it| it.key.local_name().as_ref() == name)?;
    unescape(&found.value).ok().map(|it| it.into_owned())
}

impl Walk {
    /// Takes a document, or one within another; returns whether it is whole.
    fn feed(&mut self, xml: &str, is_outermost: bool) -> bool {
        let mut reader = Reader::from_str(xml);
        reader.config_mut().expand_empty_elements = true;
        let outside = self.depth;
        loop {
            match reader.read_event() {
                Ok(Event::Start(tag)) if self.depth < DEPTH_MAX => self.start(&tag),
                Ok(Event::End(tag)) => self.end(tag.local_name().as_ref(), is_outermost),
                Ok(Event::Text(text)) => self.push(&text),
                Ok(Event::CData(text)) => self.push(&text),
                Ok(Event::GeneralRef(reference)) => self.refer(&reference),
                Ok(Event::Eof) => return self.depth == outside,
                Ok(Event::Start(_)) | Err(_) => {
                    self.depth = outside;
                    return false;
                }
                Ok(_) => {}
            }
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        self.depth += 1;
        self.text.clear();
        let name = tag.local_name();
        match name.as_ref() {
            "searchRetrieveResponse" | "rss" | "RDF" | "feed" => self.is_known = true,
            "record" | "item" | "entry" if self.item.is_none() => {
                (self.item, self.hit) = (Some(self.depth), ForeignHit::default());
            }
            "datafield" => self.marc.0 = attribute(tag, "tag").unwrap_or_default(),
            "subfield" => self.marc.1 = attribute(tag, "code").unwrap_or_default(),
            "link" if self.item.is_some() => {
                // Atom has other links beside the one to the entry.
                let rel = attribute(tag, "rel");
                if rel.is_none_or(|it| it == "alternate") {
                    self.address(attribute(tag, "href").unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() <= TEXT_BYTES_MAX {
            self.text.push_str(text);
        }
    }

    fn refer(&mut self, reference: &BytesRef<'_>) {
        match reference.resolve_char_ref() {
            Ok(Some(char)) => self.push(char.encode_utf8(&mut [0; 4])),
            _ => self.push(resolve_xml_entity(reference).unwrap_or_default()),
        }
    }

    fn end(&mut self, name: &str, is_outermost: bool) {
        let text = take(&mut self.text);
        if self.item == Some(self.depth) {
            self.item = None;
            // MARC marks the parts of a title.
            if !take(&mut self.marc.0).is_empty() {
                let end = self.hit.title.trim_end_matches([' ', '/', ':']).len();
                self.hit.title.truncate(end);
            }
            if !self.hit.title.is_empty() && self.found.hits.len() < HITS_MAX {
                self.found.hits.push(take(&mut self.hit));
            }
        } else if self.item.is_some() {
            self.field(name, text, is_outermost);
        } else {
            match name {
                "totalResults" | "numberOfRecords" => {
                    self.found.total = self.found.total.or_else(|| text.trim().parse().ok());
                }
                _ => self.complain(name, &text),
            }
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// Takes the text of an element within a hit.
    fn field(&mut self, name: &str, text: String, is_outermost: bool) {
        let [_, title, description] = CHARS_MAX;
        match name {
            "title" if self.hit.title.is_empty() => self.hit.title = plain(&text, title),
            "link" | "guid" | "id" | "identifier" | "url" => self.address(text),
            "description" | "summary" | "abstract" | "content"
                if self.hit.description.is_empty() =>
            {
                self.hit.description = plain(&text, description);
            }
            "subfield" => match (&*self.marc.0, &*self.marc.1) {
                ("245", "a" | "b") => {
                    let text = format!("{} {text}", self.hit.title);
                    self.hit.title = plain(&text, title);
                }
                ("520", "a") => self.hit.description = plain(&text, description),
                ("856", "u") => self.address(text),
                _ => {}
            },
            // A record as text.
            "recordData" if is_outermost && text.trim_start().starts_with('<') => {
                self.feed(&text, false);
            }
            // In place of a record that the server cannot give in this form.
            _ => self.complain(name, &text),
        }
    }

    /// Takes a part of a diagnostic of SRU.
    fn complain(&mut self, name: &str, text: &str) {
        if !matches!(name, "message" | "details") || text.trim().is_empty() {
            return;
        }
        let text = plain(text, CHARS_MAX[1]);
        self.problem = Some(match self.problem.take() {
            Some(before) if !before.contains(&text) => {
                format!("{text} ({before})").chars().take(CHARS_MAX[1]).collect()
            }
            Some(before) => before,
            None => text,
        });
    }

    /// Takes the first address of a hit that a browser opens.
    fn address(&mut self, text: String) {
        let text = text.trim();
        let is_web = text.starts_with("http://") || text.starts_with("https://");
        if self.hit.url.is_empty() && is_web && text.len() <= CHARS_MAX[0] {
            self.hit.url = text.to_owned();
        }
    }
}

/// Returns text without tags, on one line, with at most so many characters.
fn plain(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut is_tag = false;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '<' if chars.peek().is_some_and(|it| it.is_ascii_alphabetic() || *it == '/') => {
                is_tag = true;
            }
            '>' if is_tag => {
                is_tag = false;
                out.push(' ');
            }
            _ if is_tag => {}
            other => out.push(other),
        }
    }
    let out = unescape(&out).map(|it| it.into_owned()).unwrap_or(out);
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ").chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, total: Option<u64>, expected: &[[&str; 3]]) {
        let found = found(text.as_bytes()).unwrap();
        let hits: Vec<_> =
            found.hits.iter().map(|it| [&*it.title, &*it.url, &*it.description]).collect();
        assert_eq!((found.total, &*hits), (total, expected), "{text}");
    }

    #[test]
    fn lists_are_read() {
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:o='urn:o'><title>All</title>\
            <link href='http://h/'/><o:totalResults>7</o:totalResults><entry><title type='html'>A &lt;b&gt;red&lt;/b&gt; &amp;amp; old</title>\
            <link rel='edit' href='http://h/edit'/><link href='http://h/1'/><id>urn:1</id><summary>S</summary></entry></feed>";
        check(atom, Some(7), &[["A red & old", "http://h/1", "S"]]);
        let rss = "<rss><channel><title>All</title><link>http://h/</link><item><title><![CDATA[1 < 2]]></title>\
            <link>http://h/1</link><description>d</description><guid>http://h/guid</guid></item>\
            <item><title>no address</title><link>javascript:alert(1)</link></item></channel></rss>";
        check(rss, None, &[["1 < 2", "http://h/1", "d"], ["no address", "", ""]]);
        let sru = |data: &str| {
            format!(
                "<z:searchRetrieveResponse xmlns:z='urn:z'><z:numberOfRecords>2</z:numberOfRecords><z:records><z:record>\
                 <z:recordData>{data}</z:recordData></z:record></z:records></z:searchRetrieveResponse>"
            )
        };
        let dc = "<dc><title>T</title><identifier>isbn 1</identifier><identifier>https://h/2</identifier>\
                  <description>d</description><title>other</title></dc>";
        check(&sru(dc), Some(2), &[["T", "https://h/2", "d"]]);
        let escaped = dc.replace('<', "&lt;").replace('>', "&gt;");
        check(&sru(&escaped), Some(2), &[["T", "https://h/2", "d"]]);
        let marc = "<record><datafield tag='245'><subfield code='a'>Ice :</subfield><subfield code='b'>an age /</subfield>\
                    </datafield><datafield tag='856'><subfield code='u'>http://h/3</subfield></datafield></record>";
        check(&sru(marc), Some(2), &[["Ice : an age", "http://h/3", ""]]);
    }

    #[test]
    fn what_is_no_list_is_named() {
        for (text, part) in [
            ("<html><body>hello</body></html>", "no list"),
            ("{}", "no list"),
            ("", "no list"),
            ("<rss><channel><item><title>a", "cut off"),
            (
                "<searchRetrieveResponse><diagnostics><diagnostic><uri>info:srw/diagnostic/1/66</uri><details>dc</details>\
                 <message>Unknown schema</message></diagnostic></diagnostics></searchRetrieveResponse>",
                "Unknown schema (dc)",
            ),
        ] {
            let error = found(text.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let deep = format!("<rss>{}", "<a>".repeat(100_000));
        assert!(found(deep.as_bytes()).is_err());
    }
}
