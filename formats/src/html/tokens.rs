//! The markup tokenizer: text, start tags with their attributes, end tags.
//!
//! Source: the HTML standard, §13.2.5 (tokenization); XML 1.0 for what is not HTML.
//!
//! One pass over the text, by searches for the next byte that matters. Tokens borrow from the text, and
//! nothing is allocated. A page of any bytes takes linear time and constant memory.
//!
//! This is our own tokenizer, because it bounds the speed of gathering documentation. With `lol_html`,
//! which is made to rewrite pages, summarizing a page took three times as long.
//!
//! # Differences from the standard
//!
//! * There is no tree: an element ends at its end tag. Only `svg` and `math` are counted, since in them
//!   `<title>` is ordinary text and `<style/>` has no content.
//! * An attribute's name is not checked for duplicates; the first one found is taken.
//! * In XML every element may be empty (`<title/>`), CDATA sections are text, and the internal subset
//!   belongs to the document type.

use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memmem};

use super::elements::{Content, Element};

/// Farthest end tag that [`Tokenizer::has_end`] finds, in bytes.
const END_BYTES_MAX: usize = 16 * 1024;

/// A piece of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkupToken<'t> {
    /// Text with character references.
    Text(&'t str),
    /// Text without character references.
    Verbatim(&'t str),
    /// The start of an element, with its name as written. The title of a picture is [`Element::Other`].
    Start(Element, &'t str, Attributes<'t>),
    /// The end of an element, with its name as written.
    End(Element, &'t str),
    /// Linked data in a script.
    Data(&'t str),
}

/// The attributes of a tag as written, between its name and its `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes<'t>(&'t str);

impl<'t> Attributes<'t> {
    /// Returns whether the start tag ends the element, as in XML.
    pub(super) fn are_all(&self) -> bool {
        self.0.ends_with('/')
    }

    /// Returns the value of the attribute `name` (lower-case) as written.
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        let mut rest = self.0;
        while let Some((own, value, after)) = attribute(rest) {
            if own.eq_ignore_ascii_case(name) {
                return Some(value);
            }
            rest = after;
        }
        None
    }
}

/// Splits the first attribute off: its name, its value, and the rest.
fn attribute(rest: &str) -> Option<(&str, &str, &str)> {
    let rest = rest.trim_start_matches(|it: char| is_space(it) || it == '/');
    if rest.is_empty() {
        return None;
    }
    // An equals sign at the start is part of the name.
    let ends =
        |(at, it): (usize, char)| (is_space(it) || it == '/' || it == '=' && 0 < at).then_some(at);
    let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let Some(value) = after.trim_start_matches(is_space).strip_prefix('=') else {
        return Some((name, "", after));
    };
    let value = value.trim_start_matches(is_space);
    let (value, after) = match value.as_bytes() {
        [quote @ (b'"' | b'\''), inner @ ..] => {
            let end = memchr(*quote, inner).map_or(value.len(), |at| at + 1);
            let inner = value.get(1..end).unwrap_or_default();
            (inner, value.get(end + 1..).unwrap_or_default())
        }
        _ => value.split_at(value.find(is_space).unwrap_or(value.len())),
    };
    Some((name, value, after))
}

fn is_space(it: char) -> bool {
    matches!(it, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn is_space_byte(it: u8) -> bool {
    is_space(char::from(it))
}

#[derive(Debug)]
pub(super) struct Tokenizer<'t> {
    rest: &'t str,
    html: bool,
    /// The content of the element that has just begun, and its name as written.
    inside: Option<(Content, &'t str)>,
    /// Count of open `svg` and `math`.
    foreign: u32,
    /// Count of open islands in them, which hold elements of pages.
    islands: u32,
    /// Whether a `]>` may still follow. Once none is found, the search is not repeated.
    subset_ends: bool,
}

impl<'t> Tokenizer<'t> {
    pub(super) fn new(text: &'t str, html: bool) -> Self {
        Self { rest: text, html, inside: None, foreign: 0, islands: 0, subset_ends: true }
    }

    /// Returns whether the element `name`, which has just begun, has an end tag before the next element
    /// of that name.
    pub(super) fn has_end(&self, name: &str) -> bool {
        let (bytes, name) = (self.rest.as_bytes(), name.as_bytes());
        let near = bytes.get(..bytes.len().min(END_BYTES_MAX)).unwrap_or_default();
        let mut tags = memchr_iter(b'<', near).map(|at| bytes.get(at + 1..));
        let next = tags.find_map(|tag| match tag {
            Some([b'/', rest @ ..]) if is_tag(Some(rest), name) => Some(true),
            _ if is_tag(tag, name) => Some(false),
            _ => None,
        });
        next == Some(true)
    }

    /// Takes the next `bytes` bytes, at most the rest.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Returns the content of an element that holds no other elements.
    fn content(&mut self, content: Content, name: &str) -> Option<MarkupToken<'t>> {
        let end = match content {
            Content::Everything => self.rest.len(),
            _ => {
                let is_script = matches!(content, Content::Script | Content::Data);
                end_of_raw(self.rest.as_bytes(), name.as_bytes(), is_script)
            }
        };
        let text = self.take(end);
        match content {
            Content::Hidden | Content::Script => None,
            Content::Text => Some(MarkupToken::Text(text)),
            Content::Verbatim | Content::Everything => Some(MarkupToken::Verbatim(text)),
            Content::Data => Some(MarkupToken::Data(text)),
        }
        .filter(|_| !text.is_empty())
    }

    /// Takes the markup that starts with `<`; `None` if it gives no token.
    fn markup(&mut self) -> Option<MarkupToken<'t>> {
        let bytes = self.rest.as_bytes();
        match bytes.get(1) {
            Some(it) if it.is_ascii_alphabetic() => self.start(),
            Some(b'/') => match bytes.get(2) {
                Some(it) if it.is_ascii_alphabetic() => self.end(),
                // `</>` is dropped, `</1>` is a comment.
                _ => {
                    self.take(memchr(b'>', bytes).map_or(bytes.len(), |at| at + 1));
                    None
                }
            },
            Some(b'!') => self.declaration(),
            Some(b'?') => {
                let end = if self.html {
                    memchr(b'>', bytes)
                } else {
                    let ends = |at: &usize| bytes.get(at - 1) == Some(&b'?');
                    memchr_iter(b'>', bytes).find(ends)
                };
                self.take(end.map_or(bytes.len(), |at| at + 1));
                None
            }
            _ => {
                // A plain "less than" sign: text up to the next one.
                let rest = bytes.get(1..).unwrap_or_default();
                let end = memchr(b'<', rest).map_or(bytes.len(), |at| at + 1);
                Some(MarkupToken::Text(self.take(end)))
            }
        }
    }

    /// Takes a comment, a document type, or a CDATA section.
    fn declaration(&mut self) -> Option<MarkupToken<'t>> {
        let bytes = self.rest.as_bytes();
        if bytes.starts_with(b"<!--") {
            self.take(end_of_comment(bytes));
            return None;
        }
        if bytes.starts_with(b"<![CDATA[") && (!self.html || 0 < self.foreign) {
            self.take(b"<![CDATA[".len());
            let length = memmem::find(self.rest.as_bytes(), b"]]>");
            let text = self.take(length.unwrap_or(self.rest.len()));
            self.take(b"]]>".len());
            return Some(MarkupToken::Verbatim(text)).filter(|_| !text.is_empty());
        }
        let mut end = memchr(b'>', bytes);
        if !self.html
            && self.subset_ends
            && let Some(subset) =
                memchr2(b'[', b'>', bytes).filter(|at| bytes.get(*at) == Some(&b'['))
        {
            let rest = bytes.get(subset..).unwrap_or_default();
            let close = memmem::find(rest, b"]>").map(|at| subset + at + 1);
            self.subset_ends = close.is_some();
            end = close.or(end);
        }
        self.take(end.map_or(bytes.len(), |at| at + 1));
        None
    }

    fn start(&mut self) -> Option<MarkupToken<'t>> {
        let bytes = self.rest.as_bytes();
        let name_end = end_of_name(bytes, 1);
        // A tag that the end of the page cuts off is not shown.
        let Some(end) = end_of_tag(bytes, name_end) else {
            self.rest = "";
            return None;
        };
        let whole = self.take(end + 1);
        let name = whole.get(1..name_end).unwrap_or_default();
        let inner = whole.get(name_end..end).unwrap_or_default();
        let empty = inner.ends_with('/');
        let mut element = Element::of(name.as_bytes());
        let foreign = 0 < self.foreign;
        if self.html {
            match element {
                Element::Foreign if !empty => self.foreign += 1,
                Element::Title if foreign => element = Element::Other,
                Element::Island if foreign && !empty => self.islands += 1,
                // These elements cannot lie in a picture: its end tag was forgotten.
                it if it.ends_foreign() && self.islands == 0 => self.foreign = 0,
                _ => {}
            }
        }
        // In XML, `svg` and `math`, only scripts and hidden text, if not empty, are unparsed.
        let xml = !self.html || foreign;
        let content = element.content().filter(|it| match it {
            Content::Script | Content::Hidden => !(xml && empty),
            Content::Data => false,
            Content::Text | Content::Verbatim | Content::Everything => !xml,
        });
        let content = match content {
            Some(Content::Script) if is_data(&Attributes(inner)) => Some(Content::Data),
            content => content,
        };
        self.inside = content.map(|content| (content, name));
        Some(MarkupToken::Start(element, name, Attributes(inner)))
    }

    fn end(&mut self) -> Option<MarkupToken<'t>> {
        let bytes = self.rest.as_bytes();
        let name_end = end_of_name(bytes, 2);
        let end = end_of_tag(bytes, name_end);
        let whole = self.take(end.map_or(bytes.len(), |at| at + 1));
        let name = whole.get(2..name_end).unwrap_or_default();
        let element = Element::of(name.as_bytes());
        match element {
            Element::Foreign => {
                self.foreign = self.foreign.saturating_sub(1);
                self.islands = self.islands.min(self.foreign);
            }
            Element::Island => self.islands = self.islands.saturating_sub(1),
            _ => {}
        }
        Some(MarkupToken::End(element, name))
    }
}

impl<'t> Iterator for Tokenizer<'t> {
    type Item = MarkupToken<'t>;

    fn next(&mut self) -> Option<MarkupToken<'t>> {
        while !self.rest.is_empty() {
            let token = if let Some((content, name)) = self.inside.take() {
                self.content(content, name)
            } else {
                match memchr(b'<', self.rest.as_bytes()) {
                    Some(0) => self.markup(),
                    Some(at) => Some(MarkupToken::Text(self.take(at))),
                    None => Some(MarkupToken::Text(self.take(self.rest.len()))),
                }
            };
            if token.is_some() {
                return token;
            }
        }
        None
    }
}

/// Returns the end of a tag's name that starts at `start`.
fn end_of_name(bytes: &[u8], start: usize) -> usize {
    let name = bytes.get(start..).unwrap_or_default();
    let ends = |it: &u8| matches!(*it, b'>' | b'/') || is_space_byte(*it);
    start + name.iter().position(ends).unwrap_or(name.len())
}

/// Returns the position of a tag's `>` outside quoted values; its attributes start at `at`.
fn end_of_tag(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let sign = memchr_near(bytes, at, |it| it == b'>' || it == b'=')?;
        if bytes.get(sign) == Some(&b'>') {
            return Some(sign);
        }
        at = memchr_near(bytes, sign + 1, |it| !is_space_byte(it))?;
        at = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let value = bytes.get(at + 1..).unwrap_or_default();
                at + 1 + memchr(*quote, value)? + 1
            }
            _ => memchr_near(bytes, at, |it| it == b'>' || is_space_byte(it))?,
        };
    }
}

/// Returns the position of the next `wanted` byte from `at` on. In tags it is a few bytes away.
fn memchr_near(bytes: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.get(at..)?.iter().position(|it| wanted(*it)).map(|it| at + it)
}

/// Returns the position after the comment that `bytes` starts with.
fn end_of_comment(bytes: &[u8]) -> usize {
    let ends = |at: &usize| {
        let before = bytes.get(..*at).unwrap_or_default();
        // `<!-->` and `<!--->` are whole comments; `--!>` ends one too.
        before.ends_with(b"--")
            || before.ends_with(b"--!") && 6 < before.len()
            || before == b"<!---"
    };
    memchr_iter(b'>', bytes).find(ends).map_or(bytes.len(), |at| at + 1)
}

/// Returns the start of the end tag of an element whose content is not parsed.
fn end_of_raw(bytes: &[u8], name: &[u8], is_script: bool) -> usize {
    // A script in a comment may hold `<script>` with its end tag.
    let (mut commented, mut nested) = (false, false);
    for at in memchr2_iter(b'<', b'>', bytes) {
        let from = bytes.get(at..).unwrap_or_default();
        if from.starts_with(b">") {
            if commented && bytes.get(..at).is_some_and(|it| it.ends_with(b"--")) {
                (commented, nested) = (false, false);
            }
        } else if is_script && from.starts_with(b"<!--") {
            commented = true;
        } else if is_tag(from.get(2..), name) && from.get(1) == Some(&b'/') {
            if !nested {
                return at;
            }
            nested = false;
        } else if commented && is_tag(from.get(1..), name) {
            nested = true;
        }
    }
    bytes.len()
}

fn is_data(attributes: &Attributes<'_>) -> bool {
    let r#type = attributes.get("type").map(str::trim);
    r#type.is_some_and(|it| it.eq_ignore_ascii_case("application/ld+json"))
}

/// Returns whether the text of a tag starts with the name `name`.
fn is_tag(text: Option<&[u8]>, name: &[u8]) -> bool {
    let Some((front, after)) = text.and_then(|it| it.split_at_checked(name.len())) else {
        return false;
    };
    let ends = |it: &u8| matches!(it, b'>' | b'/') || is_space_byte(*it);
    front.eq_ignore_ascii_case(name) && after.first().is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Renders tokens: text in quotes, `<Element attributes`, `/Element`.
    fn render(page: &str, html: bool) -> String {
        let tokens = Tokenizer::new(page, html).map(|token| match token {
            MarkupToken::Text(text) => format!("{text:?}"),
            MarkupToken::Verbatim(text) => format!("={text:?}"),
            MarkupToken::Start(element, _, Attributes(written)) => {
                format!("<{element:?}{}", written.trim_end())
            }
            MarkupToken::End(element, _) => format!("/{element:?}"),
            MarkupToken::Data(text) => format!("#{text:?}"),
        });
        tokens.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(page: &str, expected: &str) {
        assert_eq!(render(page, true), expected, "{page}");
    }

    #[test]
    fn tags_and_text() {
        check("a<P class=x>b</p >c<BR/>", r#""a" <Block class=x "b" /Block "c" <Block/"#);
        check("1 < 2 <3> <- </> </ x>y", r#""1 " "< 2 " "<3> " "<- " " " "y""#);
        check("<a b='>' c=\">\" d=e>f", r#"<Other b='>' c=">" d=e "f""#);
        check("<a title=don't>b", r#"<Other title=don't "b""#);
        check("<h7><header><x-y>", "<Other <Block <Other");
        check("<a href='no end", "");
        check("text<", r#""text" "<""#);
    }

    #[test]
    fn comments_and_hidden_elements_give_no_text() {
        check("a<!-- b > -- c -->d<!-->e<!--->f<!-- g --!>h", r#""a" "d" "e" "f" "h""#);
        check("<!DOCTYPE html [x]>a<?php b ?>c<![CDATA[d]]>e", r#""a" "c" "e""#);
        check("a<!-- no end", r#""a""#);
        check("<style>a</styles></b></STYLE >c", r#"<Hidden /Hidden "c""#);
        check("<noscript><p>a</noscript>b", r#"<Hidden /Hidden "b""#);
    }

    #[test]
    fn scripts_end_where_browsers_end_them() {
        check("<script>a<b</script>c", r#"<Script /Script "c""#);
        check("<script>'<script>'</script>c", r#"<Script /Script "c""#);
        check("<script><!-- a </script>c", r#"<Script /Script "c""#);
        check("<script><!-- <script> </script> </script>c", r#"<Script /Script "c""#);
        check("<script><!-- <script> --></script>c", r#"<Script /Script "c""#);
        check("<script>no end", "<Script");
    }

    #[test]
    fn text_that_holds_no_elements() {
        check("<title>a<b>&amp;</title>c", r#"<Title "a<b>&amp;" /Title "c""#);
        check("<textarea><p></textarea>", r#"<TextArea "<p>" /TextArea"#);
        check("<xmp><b>&amp;</xmp>c", r#"<Example ="<b>&amp;" /Example "c""#);
        check("<plaintext>a</plaintext>&", r#"<PlainText ="a</plaintext>&""#);
    }

    #[test]
    fn pictures_and_formulas_are_parsed_as_xml() {
        check("<svg><title>a</title><style/>b", r#"<Foreign <Other "a" /Title <Hidden/ "b""#);
        check("<svg><![CDATA[a]]></svg><title>b<", r#"<Foreign ="a" /Foreign <Title "b<""#);
        check("<svg><p><title><b></title>", r#"<Foreign <Block <Title "<b>" /Title"#);
        check(
            "<svg><desc><p>a</desc><title>b</title></svg><title>c<",
            r#"<Foreign <Island <Block "a" /Island <Other "b" /Title /Foreign <Title "c<""#,
        );
        check("<math/><title><b></title>", r#"<Foreign/ <Title "<b>" /Title"#);
    }

    #[test]
    fn markup_that_is_not_html() {
        let check =
            |page: &str, expected: &str| assert_eq!(render(page, false), expected, "{page}");
        check(
            "<title/>a<title>b<c>d</c></title>",
            r#"<Title/ "a" <Title "b" <Other "d" /Other /Title"#,
        );
        check("<a><![CDATA[<b>&]]></a>", r#"<Other ="<b>&" /Other"#);
        check("<!DOCTYPE a [<!ENTITY b \"c\">]>d", r#""d""#);
        check("<!DOCTYPE a>d[e]>", r#""d[e]>""#);
        check("<?a b=\">\"?>c", r#""c""#);
        check("<script/>a<script>b</script>", r#"<Script/ "a" <Script /Script"#);
        check("<xmp>a<b>c", r#"<Example "a" <Other "c""#);
    }

    #[test]
    fn an_element_may_lack_its_end() {
        let check = |page: &str, expected: bool| {
            let mut tokens = Tokenizer::new(page, false);
            tokens.next();
            assert_eq!(tokens.has_end("title"), expected, "{page}");
        };
        check("<title>a\n<sect>b", false);
        check("<title>a<title>b</TITLE >c", false);
        check("<title>a<titles></titles></title>", true);
        check(&format!("<title>a{}</title>", " ".repeat(END_BYTES_MAX)), false);
    }

    #[test]
    fn linked_data_is_a_token() {
        check(
            "<script type='application/LD+JSON'>{\"a\": \"<b>\"}</script>c",
            r##"<Script type='application/LD+JSON' #"{\"a\": \"<b>\"}" /Script "c""##,
        );
        check(
            "<script type=text/javascript>{}</script>c",
            r#"<Script type=text/javascript /Script "c""#,
        );
    }

    #[test]
    fn a_missing_subset_end_is_searched_once() {
        // A search at each declaration would take most of an hour.
        let page = format!("{}text", "<!a[>".repeat(3_000_000));
        let mut tokens = Tokenizer::new(&page, false);
        assert_eq!(tokens.next(), Some(MarkupToken::Text("text")));
        assert!(!tokens.subset_ends);
    }

    #[test]
    fn attributes() {
        let get = |tag: &str, name: &str| match Tokenizer::new(tag, true).next() {
            Some(MarkupToken::Start(_, _, attributes)) => attributes.get(name).map(str::to_owned),
            _ => None,
        };
        let tag = "<a A='1' b = 2 c d=\"3 > 4\"e=5 / f=6/g href=x?y=z&amp;w A=7>";
        for (name, value) in [
            ("a", "1"),
            ("b", "2"),
            ("c", ""),
            ("d", "3 > 4"),
            ("e", "5"),
            ("f", "6/g"),
            ("href", "x?y=z&amp;w"),
        ] {
            assert_eq!(get(tag, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(get(tag, "g"), None);
        assert_eq!(get("<br/>", "br"), None);
    }

    proptest! {
        #[test]
        fn every_page_ends_and_every_text_is_its_own(
            page in "(<|</|<!--|-->|<!|<[?]|>|=|['\"]|/| |script|style|title|svg|p|<!\\[CDATA\\[|\\]\\]>|ä|\\PC){0,60}",
            html in any::<bool>(),
        ) {
            let mut rest = page.as_str();
            let mut tokens = 0;
            for token in Tokenizer::new(&page, html) {
                tokens += 1;
                if let MarkupToken::Text(text) | MarkupToken::Verbatim(text) = token {
                    prop_assert!(!text.is_empty());
                    let at = rest.find(text);
                    prop_assert!(at.is_some(), "{text:?} is not in {rest:?}");
                    rest = rest.get(at.unwrap() + text.len()..).unwrap();
                }
                if let MarkupToken::Start(_, _, attributes) = token {
                    attributes.get("href");
                }
            }
            prop_assert!(tokens <= page.len());
        }

        #[test]
        fn text_without_signs_is_one_token(page in "[^<]{1,60}", html in any::<bool>()) {
            prop_assert_eq!(Tokenizer::new(&page, html).collect::<Vec<_>>(), [MarkupToken::Text(&page)]);
        }
    }
}
