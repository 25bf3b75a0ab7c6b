//! The links of a page: each once, in order, resolved against the page's URL or its `<base>`.

use std::borrow::Cow;
use std::collections::HashSet;

use foldhash::fast::RandomState;
use url::Url;

use super::characters::in_attribute;

/// Beginnings of links that hold data or programs, which may be long, and lead nowhere.
const WITHIN: [&str; 2] = ["data:", "javascript:"];

#[derive(Debug)]
pub(super) struct Links<'t> {
    base: Option<Url>,
    /// The front of `base` before the part that relative links replace, if `base` has the usual form.
    directory: Option<String>,
    /// Links so far, as written, with character references replaced.
    seen: HashSet<Cow<'t, str>, RandomState>,
    urls: Vec<String>,
    links_max: usize,
}

impl<'t> Links<'t> {
    /// Returns an empty list for a page at `base`, with room for `links_max` links and one that shows that
    /// there are more.
    pub(super) fn new(base: Option<Url>, links_max: usize) -> Self {
        let directory = base.as_ref().and_then(directory);
        Self { base, directory, seen: HashSet::default(), urls: Vec::new(), links_max }
    }

    /// Sets the base of the links that follow.
    pub(super) fn move_base(&mut self, written: &str) {
        if let Some(base) = self.resolve(written) {
            self.directory = directory(&base);
            self.base = Some(base);
        }
    }

    /// Returns whether the list is full.
    pub(super) fn is_full(&self) -> bool {
        self.links_max < self.urls.len()
    }

    /// Adds a link as written in the page.
    pub(super) fn add(&mut self, written: &'t str) {
        let written = written.trim();
        let begins =
            |it: &&str| written.get(..it.len()).is_some_and(|front| front.eq_ignore_ascii_case(it));
        if self.is_full() || WITHIN.iter().any(begins) {
            return;
        }
        self.add_once(match in_attribute(written) {
            Cow::Borrowed(written) => Cow::Borrowed(without_fragment(written)),
            Cow::Owned(written) => Cow::Owned(without_fragment(&written).to_owned()),
        });
    }

    /// Adds a link whose character references are replaced.
    pub(super) fn add_text(&mut self, text: &str) {
        self.add_once(Cow::Owned(without_fragment(text).to_owned()));
    }

    fn add_once(&mut self, link: Cow<'t, str>) {
        if link.is_empty() || self.is_full() || self.seen.contains(&link) {
            return;
        }
        if let Some(url) = self.directory.as_deref().and_then(|it| beside(it, &link)) {
            self.urls.push(url);
        } else if let Some(url) = self.resolve(&link)
            && matches!(url.scheme(), "http" | "https" | "ftp" | "gopher" | "file" | "news")
        {
            self.urls.push(url.into());
        }
        self.seen.insert(link);
    }

    pub(super) fn finish(self) -> Vec<String> {
        self.urls
    }

    fn resolve(&self, written: &str) -> Option<Url> {
        Url::options().base_url(self.base.as_ref()).parse(written).ok()
    }
}

fn without_fragment(written: &str) -> &str {
    memchr::memchr(b'#', written.as_bytes()).and_then(|at| written.get(..at)).unwrap_or(written)
}

/// Returns a URL up to its last slash, if relative links can be appended there.
fn directory(base: &Url) -> Option<String> {
    // Paths that look like a drive have special rules.
    let usual = matches!(base.scheme(), "http" | "https" | "ftp" | "file")
        && !base.path().contains([':', '|']);
    let end = base.path().rfind('/').filter(|_| usual)?;
    let whole = base.as_str();
    let rest = [base.query(), base.fragment()].into_iter().flatten().map(|it| it.len() + 1);
    let path_start = whole.len().checked_sub(rest.sum::<usize>() + base.path().len())?;
    Some(whole.get(..=path_start + end)?.to_owned())
}

/// Resolves a link of the most common form: a plain name below or beside the page's directory, without
/// characters that need encoding or have a meaning. Parsing a URL takes ten times as long.
fn beside(directory: &str, written: &str) -> Option<String> {
    let (mut directory, mut written) = (directory, written);
    let root =
        directory.find("://").and_then(|at| Some(at + 3 + directory.get(at + 3..)?.find('/')?))?;
    while let Some(rest) = written.strip_prefix("../") {
        written = rest;
        let above = directory.get(..directory.len() - 1)?.rfind('/')?;
        // `..` at the top stays at the top.
        directory = directory.get(..=above.max(root))?;
    }
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b'/');
    let segments = || written.split('/');
    let is_plain = written.bytes().all(plain)
        && !written.starts_with('/')
        && !segments().any(|it| matches!(it, "." | ".."));
    is_plain.then(|| [directory, written].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_cut_resolves_as_the_url_parser_does(
            base in "(http://h|https://h:81|file://|ftp://u@h)(/|/a|/a/b|/a/b/|/a//b/c|/%41 b/ä)([?]q/x=1)?(#f/g)?",
            written in "(\\.\\./){0,4}(\\./)?[a-zA-C0-9._/-]{1,8}(/(\\.\\.|\\.|x|)){0,2}",
        ) {
            let base = Url::parse(&base).unwrap();
            if let Some(url) = directory(&base).and_then(|it| beside(&it, &written)) {
                prop_assert_eq!(url, String::from(base.join(&written).unwrap()));
            }
        }
    }

    #[test]
    fn short_cut_resolves_plain_links_only() {
        let base = Url::parse("http://h.example/a/b/p.html?q=a/b#x/y").unwrap();
        let directory = directory(&base).unwrap();
        assert_eq!(directory, "http://h.example/a/b/");
        let check = |written: &str, expected: Option<&str>| {
            assert_eq!(beside(&directory, written).as_deref(), expected, "{written}");
        };
        check("q.html", Some("http://h.example/a/b/q.html"));
        check("c/q.html", Some("http://h.example/a/b/c/q.html"));
        check("../q-1_2.html", Some("http://h.example/a/q-1_2.html"));
        check("../../../../q.html", Some("http://h.example/q.html"));
        for other in
            ["/q", "//h/q", "./q", "c/../q", "..", "q?x", "mailto:a", "q%2e", "ä", "a b", "a&amp;b"]
        {
            check(other, None);
        }
    }
}
