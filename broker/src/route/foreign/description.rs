//! OpenSearch descriptions: where an engine answers in a form that programs read.
//!
//! Source: OpenSearch 1.1 draft 6, "OpenSearch description elements" and "OpenSearch URL template syntax".
//!
//! Sans-I/O.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use url::Url;

use super::HITS;

/// The forms of answers that are read, the best one first.
const TYPES: [&str; 4] =
    ["application/atom+xml", "application/rss+xml", "application/rdf+xml", "text/xml"];

/// Where an engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The address, with its parameters in braces.
    text: String,
    /// The numbers of the first hit, and of the first page.
    first: [u32; 2],
}

/// Returns where an engine answers in a form that can be read.
///
/// # Errors
///
/// It is no description, or there is no such form; the text says which.
pub fn template(text: &str) -> Result<Template, String> {
    let mut reader = Reader::from_str(text);
    let mut best: Option<(usize, Template)> = None;
    let mut is_described = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                let name = tag.local_name();
                is_described |= name.as_ref() == "OpenSearchDescription";
                let read = (name.as_ref() == "Url").then(|| ranked(&tag)).flatten();
                if let Some(read) = read
                    && best.as_ref().is_none_or(|it| read.0 < it.0)
                {
                    best = Some(read);
                }
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => return Err("its description is no XML".to_owned()),
        }
    }
    match best {
        _ if !is_described => Err("there is no OpenSearch description".to_owned()),
        Some((_, template)) => Ok(template),
        None => Err("its description names no answers as Atom or RSS".to_owned()),
    }
}

/// Returns what an element `Url` says, after its rank; `None`: it is of no use.
fn ranked(tag: &BytesStart<'_>) -> Option<(usize, Template)> {
    let value = |name: &str| super::read::attribute(tag, name);
    if value("rel").is_some_and(|it| !it.split_whitespace().any(|it| it == "results")) {
        return None;
    }
    let r#type = value("type")?;
    let rank = TYPES.iter().position(|it| r#type.split(';').next().map(str::trim) == Some(it))?;
    let number = |name: &str| value(name).and_then(|it| it.parse().ok()).unwrap_or(1);
    let first = [number("indexOffset"), number("pageOffset")];
    Some((rank, Template { text: value("template")?, first }))
}

impl Template {
    /// Returns the address of the answer to `query`; `base` is that of the description.
    ///
    /// # Errors
    ///
    /// A parameter must be given that we do not know, or it is no address of the Web.
    pub fn filled(&self, base: &Url, query: &str) -> Result<Url, String> {
        let (mut filled, mut rest) = (String::new(), &*self.text);
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|it| Some((it.0, it.1.split_once('}')?)))
        {
            filled.push_str(before);
            let value = match name.trim_end_matches('?') {
                "searchTerms" => query.to_owned(),
                "count" => HITS.to_string(),
                "startIndex" => self.first[0].to_string(),
                "startPage" => self.first[1].to_string(),
                "language" => "*".to_owned(),
                "inputEncoding" | "outputEncoding" => "UTF-8".to_owned(),
                _ if name.ends_with('?') => String::new(),
                other => return Err(format!("its description asks for {other:?}")),
            };
            filled.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
            rest = after;
        }
        filled.push_str(rest);
        let url = base.join(&filled).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
        url.ok_or_else(|| "its description leads to no address of the Web".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(urls: &str) -> String {
        format!(
            "<?xml version='1.0'?><OpenSearchDescription xmlns='http://a9.com/-/spec/opensearch/1.1/'>\
             <ShortName>s</ShortName>{urls}</OpenSearchDescription>"
        )
    }

    #[test]
    fn the_best_form_is_chosen_and_its_address_filled() {
        let text = described(
            "<Url type='text/html' template='http://h/?q={searchTerms}'/>\
             <Url type='application/rss+xml' template='http://h/rss?q={searchTerms}'/>\
             <Url type='application/atom+xml' rel='suggestions' template='http://h/no'/>\
             <Url type='application/atom+xml; charset=utf-8' indexOffset='0' \
             template='/atom/{searchTerms}?n={count}&amp;from={startIndex?}&amp;p={startPage?}&amp;x={geo:box?}'/>",
        );
        let base = Url::parse("http://h/os.xml").unwrap();
        let url = template(&text).unwrap().filled(&base, "ice/age \"é\"").unwrap();
        assert_eq!(url.as_str(), "http://h/atom/ice%2Fage%20%22%C3%A9%22?n=10&from=0&p=1&x=");
    }

    #[test]
    fn what_is_of_no_use_is_named() {
        let base = Url::parse("http://h/").unwrap();
        for (text, part) in [
            ("<html><p>not found</p></html>".to_owned(), "no OpenSearch description"),
            ("<a><b></a>".to_owned(), "no XML"),
            (described("<Url type='text/html' template='http://h/'/>"), "no answers as Atom"),
            (described(""), "no answers as Atom"),
        ] {
            assert!(template(&text).unwrap_err().contains(part), "{text}");
        }
        for (address, part) in [
            ("http://h/{key}", "asks for"),
            ("javascript:alert('{searchTerms}')", "no address"),
            ("file:///etc/{searchTerms}", "no address"),
        ] {
            let text =
                described(&format!("<Url type='application/rss+xml' template=\"{address}\"/>"));
            let error = template(&text).unwrap().filled(&base, "a").unwrap_err();
            assert!(error.contains(part), "{address}: {error}");
        }
    }
}
