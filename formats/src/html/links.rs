//! The links of a page: each once, in order, resolved against the page's URL or its `<base>`.

use std::borrow::Cow;
use std::collections::HashSet;

use foldhash::fast::RandomState;
use url::Url;

use super::characters::in_attribute;
use crate::Settings;
use crate::object::Leads;

/// Beginnings of links that hold data or programs, which may be long, and lead nowhere.
const WITHIN: [&str; 2] = ["data:", "javascript:"];
/// Schemes of links that lead to objects.
const SCHEMES: [&str; 8] = ["http", "https", "ftp", "ftps", "gopher", "file", "news", "snews"];
/// Longest base, in bytes: each relative link has a copy of it.
const BASE_BYTES_MAX: usize = 8 * 1024;
/// Room for a link that a crawl follows, in bytes.
const LEAD_BYTES: usize = 256;
/// Names of `<meta>` elements for robots: all, and this one.
const ROBOTS: [&str; 2] = ["robots", "harvest"];
/// Maximum number of `<meta>` elements for robots.
const ROBOTS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Links<'t> {
    base: Option<Url>,
    /// The front of `base` before the part that relative links replace, if `base` has the usual form.
    directory: Option<String>,
    /// Links so far, as written, with character references replaced.
    seen: HashSet<Cow<'t, str>, RandomState>,
    urls: Vec<String>,
    /// What the page says to a crawl; its links are those of `urls` that may be followed.
    pub(super) leads: Option<Box<Leads>>,
    /// Whether links that follow are not for robots.
    pub(super) is_apart: bool,
    links_max: usize,
    /// Length of the URLs that fit into a record one by one, each with its line end.
    bytes: usize,
    bytes_max: usize,
    /// Whether there is a URL that is longer than all may be.
    has_too_long: bool,
}

impl<'t> Links<'t> {
    /// Returns an empty list for a page at `base`, with room for the links of a record, or of a crawl if
    /// these are more, and one that shows that there are more.
    pub(super) fn new(base: Option<Url>, settings: &Settings) -> Self {
        Self {
            directory: base.as_ref().and_then(directory),
            base,
            seen: HashSet::default(),
            urls: Vec::new(),
            leads: (0 < settings.leads_max).then(Box::default),
            is_apart: false,
            links_max: settings.references_max.max(settings.leads_max),
            bytes: 0,
            bytes_max: settings
                .references_bytes_max
                .max(settings.leads_max.saturating_mul(LEAD_BYTES)),
            has_too_long: false,
        }
    }

    /// Sets the base of the links that follow, unless it is too long.
    pub(super) fn move_base(&mut self, written: &str) {
        if BASE_BYTES_MAX < written.len() {
            return;
        }
        if let Some(base) = self.resolve(written).filter(|it| it.as_str().len() <= BASE_BYTES_MAX) {
            self.directory = directory(&base);
            self.base = Some(base);
        }
    }

    /// Returns whether the list is full.
    pub(super) fn is_full(&self) -> bool {
        self.links_max < self.urls.len() || self.bytes_max < self.bytes.saturating_sub(1)
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
            self.push(url);
        } else if let Some(url) = self.resolve(&link)
            && SCHEMES.contains(&url.scheme())
        {
            self.push(url.into());
        }
        self.seen.insert(link);
    }

    /// Adds a URL. Of those that are longer than all may be, one is enough to show that links are missing.
    fn push(&mut self, url: String) {
        if let Some(leads) = self.leads.as_mut().filter(|_| !self.is_apart)
            && leads.links.len() < self.links_max
        {
            leads.links.push(url.clone());
        }
        if url.len() < self.bytes_max {
            self.bytes += url.len() + 1;
            self.urls.push(url);
        } else if !self.has_too_long {
            self.has_too_long = true;
            self.urls.push(url);
        }
    }

    /// Notes the URL that the page calls its own, as written; the first counts.
    pub(super) fn canonical(&mut self, written: &str) {
        let url = self.resolve(&in_attribute(written)).filter(|_| written.len() <= BASE_BYTES_MAX);
        if let (Some(leads), Some(url)) = (&mut self.leads, url) {
            leads.canonical.get_or_insert_with(|| url.into());
        }
    }

    /// Notes a `<meta>` element that may be for robots.
    pub(super) fn robots(&mut self, name: &str, content: &str) {
        let is_for_robots = ROBOTS.iter().any(|it| name.eq_ignore_ascii_case(it));
        if let Some(leads) = self.leads.as_mut().filter(|_| is_for_robots)
            && leads.robots.len() < ROBOTS_MAX
            && content.len() <= BASE_BYTES_MAX
        {
            leads.robots.push((name.to_owned(), in_attribute(content).into_owned()));
        }
    }

    pub(super) fn finish(self) -> (Vec<String>, Option<Box<Leads>>) {
        (self.urls, self.leads)
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
    fn urls_and_bases_are_bounded() {
        let settings = Settings { references_bytes_max: 30_000, ..Settings::default() };
        let mut links = Links::new(Url::parse("http://h.example/a").ok(), &settings);
        links.move_base(&format!("http://long.example/{}/", "x".repeat(BASE_BYTES_MAX)));
        links.add_text(&"y".repeat(40_000));
        links.add_text(&"z".repeat(40_000));
        links.add_text("b");
        let long = format!("http://h.example/{}/", "d".repeat(8_000));
        links.move_base(&long);
        // A base that grows step by step stays below the bound, too.
        (0..10).for_each(|_| links.move_base(&format!("{}/", "e".repeat(100))));
        (0..1_000).for_each(|it| links.add_text(&it.to_string()));
        assert!(links.is_full());
        let (urls, leads) = links.finish();
        assert_eq!(leads, None);
        assert_eq!(urls[0].len(), 40_000 + "http://h.example/".len());
        assert_eq!(urls[1], "http://h.example/b");
        assert!(urls[2].starts_with(&long) && urls[2].len() <= BASE_BYTES_MAX + 1);
        // Three fit, and one shows that there are more.
        assert_eq!(urls.len(), 2 + 4);
    }

    #[test]
    fn links_lead_to_objects_of_all_protocols() {
        let page = Url::parse("ftps://h.example/d/p.html").ok();
        let mut links = Links::new(page, &Settings::default());
        let written = "a.html /b FTPS://f.example/c snews://n.example/comp.x snews:1@x news:comp.x ftp://f/ \
                       mailto:a@b telnet://t/ tel:1 ldap://l/ sftp://s/ nntps://n/";
        written.split(' ').for_each(|it| links.add(it));
        let expected = "ftps://h.example/d/a.html ftps://h.example/b ftps://f.example/c \
                        snews://n.example/comp.x snews:1@x news:comp.x ftp://f/";
        assert_eq!(links.finish().0, expected.split(' ').collect::<Vec<_>>());
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
