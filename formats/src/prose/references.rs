//! The references of a text document: each URL once, in order, resolved against the document's own URL.
//!
//! Source: RFC 3986 §5 (by `url`); TR Figure 3 (`URL-References`).

use std::collections::HashSet;

use url::Url;

use crate::Input;

/// Schemes of URLs in running text.
const BARE_SCHEMES: [&str; 3] = ["http://", "https://", "ftp://"];

#[derive(Debug, Default)]
pub(crate) struct References {
    base: Option<Url>,
    seen: HashSet<String>,
    urls: Vec<String>,
    links_max: usize,
}

impl References {
    pub(crate) fn of(input: &Input<'_>) -> Self {
        let (base, links_max) = (input.base(), input.settings.references_max);
        Self { base, seen: HashSet::new(), urls: Vec::new(), links_max }
    }

    /// Adds a link as written, unless there is one more than a record has already.
    pub(crate) fn add(&mut self, written: &str) {
        let target = written.split('#').next().unwrap_or_default().trim();
        if target.is_empty()
            || self.links_max < self.urls.len()
            || !self.seen.insert(target.to_owned())
        {
            return;
        }
        self.urls.extend(followed(self.base.as_ref(), target));
    }

    /// Adds the URLs in running text.
    pub(crate) fn add_bare(&mut self, text: &str) {
        let mut rest = text;
        while let Some(colon) = memchr::memmem::find(rest.as_bytes(), b"://") {
            let after = rest.get(colon + 3..).unwrap_or_default();
            let end = after.find(ends_a_url).unwrap_or(after.len());
            let up_to = rest.get(..colon + 3 + end).unwrap_or_default();
            let scheme = rest.get(..colon + 3).unwrap_or_default();
            if let Some(it) = BARE_SCHEMES.iter().find(|it| scheme.ends_with(**it))
                && let Some(url) = up_to.get(colon + 3 - it.len()..)
            {
                self.add(without_end_of_sentence(url));
            }
            rest = after.get(end..).unwrap_or_default();
        }
    }

    /// Adds the link in a word processor's field: `HYPERLINK "target" \l "mark"`.
    pub(crate) fn add_field(&mut self, instruction: &str) {
        let Some(rest) = instruction.trim_start().strip_prefix("HYPERLINK") else { return };
        let rest = rest.trim_start();
        let target = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            // A mark without a target is in the same document.
            None => rest.split_whitespace().next().filter(|it| !it.starts_with('\\')),
        };
        self.add(target.unwrap_or_default());
    }

    pub(crate) fn finish(self) -> Vec<String> {
        self.urls
    }
}

/// Resolves a link; returns its URL if the scheme is one of those that users can follow.
pub(super) fn followed(base: Option<&Url>, link: &str) -> Option<String> {
    // Data in place of a link may be long.
    if link.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("data:")) {
        return None;
    }
    let url = Url::options().base_url(base).parse(link).ok()?;
    matches!(url.scheme(), "http" | "https" | "ftp" | "file").then(|| url.into())
}

fn ends_a_url(it: char) -> bool {
    it.is_whitespace() || it.is_control() || matches!(it, '<' | '>' | '"' | '`' | '[' | ']' | '|')
}

/// Removes punctuation after a URL in a sentence; a closing bracket stays if it is opened in the URL.
fn without_end_of_sentence(url: &str) -> &str {
    let opened = url.matches('(').count();
    let mut closed = url.matches(')').count();
    let mut url = url;
    loop {
        let shorter = match url.strip_suffix(')') {
            Some(inner) if opened < closed => {
                closed -= 1;
                Some(inner)
            }
            _ => url.strip_suffix(['.', ',', ';', ':', '!', '?', '\'', '*', '\\']),
        };
        match shorter {
            Some(shorter) => url = shorter,
            None => return url,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::{Settings, Type};

    fn urls(each: impl FnOnce(&mut References)) -> Vec<String> {
        let object = Object::whole("http://h.example/d/x.rst", "");
        let settings = Settings { references_max: 3, ..Settings::default() };
        let input =
            Input { object: &object, r#type: Type::Rst, settings: &settings, cancelled: &|| false };
        let mut references = References::of(&input);
        each(&mut references);
        references.finish()
    }

    #[test]
    fn links_are_resolved_once_and_bounded() {
        // One link more shows that there are more.
        let links = ["../a#b", "../a", "#c", "http://i.example", "d", "e", "f"];
        assert_eq!(
            urls(|it| links.iter().for_each(|link| it.add(link))),
            [
                "http://h.example/a",
                "http://i.example/",
                "http://h.example/d/d",
                "http://h.example/d/e"
            ]
        );
        assert_eq!(urls(|it| it.add("javascript:x")), [""; 0]);
    }

    #[test]
    fn fields() {
        let fields = [" HYPERLINK \"http://a.example/\" \\l \"b\"", "HYPERLINK c", "PAGEREF d"];
        assert_eq!(
            urls(|it| fields.iter().for_each(|field| it.add_field(field))),
            ["http://a.example/", "http://h.example/d/c"]
        );
        assert_eq!(urls(|it| it.add_field("HYPERLINK \\l \"mark\"")), [""; 0]);
    }

    #[test]
    fn urls_in_sentences() {
        let text = "See (http://a.example/b(c)), <https://d.example>; or git+ssh://e.example. \
                    (ftp://f.example/g.)";
        assert_eq!(
            urls(|it| it.add_bare(text)),
            ["http://a.example/b(c)", "https://d.example/", "ftp://f.example/g"]
        );
        // Counting the brackets again for each of them would take hours.
        let brackets = format!("http://a.example/b(c){}", ").".repeat(2_000_000));
        assert_eq!(urls(|it| it.add_bare(&brackets)), ["http://a.example/b(c)"]);
    }
}
