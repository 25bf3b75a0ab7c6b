//! The place of a hit's excerpt in its object, on a page.
//!
//! Sans-I/O.

use serde::Serialize;
use web::foreign::harmless;

use super::display_url::DisplayUrl;
use crate::answer::Hit;

/// Schemes of URLs behind which browsers show a PDF and understand its fragment.
const SCHEMES: [&str; 2] = ["http:", "https:"];

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TextPlace {
    name: String,
    /// URL that opens the object at this place; `None` if no URL does.
    href: Option<String>,
}

impl TextPlace {
    pub(crate) fn of(hit: &Hit) -> Option<Self> {
        let name = hit.snippet.place.clone()?;
        let href = page(&name).and_then(|page| address(hit, page));
        Some(Self { href, name: harmless(&name).into_owned() })
    }
}

/// Returns the number of one exact page.
fn page(name: &str) -> Option<&str> {
    name.strip_prefix("page ").filter(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns the URL of a page of a PDF (RFC 8118, section 3).
fn address(hit: &Hit, page: &str) -> Option<String> {
    let url = DisplayUrl::of(&hit.url).href.filter(|_| hit.r#type == "PDF")?;
    // Another fragment, such as the name of an archive's member, leaves no room for the page.
    let takes = !url.contains('#') && SCHEMES.iter().any(|it| url.starts_with(it));
    takes.then(|| format!("{url}#page={page}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Snippet;

    fn check(kind: &str, url: &str, name: &str, expected: Option<&str>) {
        let snippet = Snippet { place: Some(name.to_owned()), ..Snippet::default() };
        let hit = Hit { r#type: kind.to_owned(), url: url.to_owned(), snippet, ..Hit::default() };
        let expected = TextPlace { name: name.to_owned(), href: expected.map(str::to_owned) };
        assert_eq!(TextPlace::of(&hit), Some(expected), "{kind} {url}");
    }

    #[test]
    fn one_page_of_a_pdf_has_a_link() {
        check("PDF", "http://h/a.pdf?b", "page 3", Some("http://h/a.pdf?b#page=3"));
        check("PDF", "file:///a%20b.pdf", "page 3", None);
        check("PDF", "https://h/a.zip#b.pdf", "page 3", None);
        check("PDF", "ftp://h/a.pdf", "page 3", None);
        check("PDF", "javascript:alert(1)", "page 3", None);
        check("PDF", "http://h/a.pdf", "pages 3–5", None);
        check("PDF", "http://h/a.pdf", "page 3 or later", None);
        check("PDF", "http://h/a.pdf", "line 3", None);
        check("HTML", "http://h/a.html", "page 3", None);
        assert_eq!(TextPlace::of(&Hit::default()), None);
    }
}
