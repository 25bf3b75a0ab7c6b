//! The main text of a document apart from the text around it: menus, lists of links, footers.
//!
//! Elements that the tables call `aside` are around it, and with an element that they call `main`, all text
//! outside of that. Besides, in a page a run of lines that are hardly more than links is taken for a menu.
//! Nothing is lost: text around the main text is put after it.

use crate::Draft;
use crate::limit::Limit;
use crate::text::Body;

/// Number of links from which a run of lines is a menu. A shorter one may be a sentence or a signature.
const MENU_LINKS_MIN: u32 = 4;
/// Share of a line's text that is in links, in percent, from which it may be a line of a menu. The rest are
/// separators, numbers and the like.
const MENU_LINK_PERCENT: usize = 70;
/// Longest text of one link in a menu on average, in bytes: titles in a list of works are longer.
const MENU_LINK_BYTES_MAX: usize = 48;

/// The text of a document while it is read.
#[derive(Debug, Default)]
pub(super) struct MainText<'t> {
    own: Body,
    around: Body,
    /// The open element whose text is not the document's own, and whether its text is kept.
    aside: Option<(OpenElement<'t>, bool)>,
    main: Main<'t>,
    in_link: bool,
    line: LinkLine,
    menu: Menu,
}

/// The element that holds the main text.
#[derive(Debug, Default)]
enum Main<'t> {
    #[default]
    Unknown,
    Open(OpenElement<'t>),
    Closed,
}

/// An open element whose end matters.
#[derive(Debug)]
struct OpenElement<'t> {
    name: &'t str,
    /// Count of elements of the same name that are open in it.
    nested: u32,
}

/// The line at the end of the text.
#[derive(Debug, Default)]
struct LinkLine {
    start: usize,
    links: u32,
    /// Bytes of it that are in links.
    link_bytes: usize,
}

/// A run of lines that are hardly more than links, at the end of the text.
#[derive(Debug, Default)]
struct Menu {
    start: usize,
    links: u32,
}

impl OpenElement<'_> {
    fn enter(&mut self, name: &str) {
        if self.name.eq_ignore_ascii_case(name) {
            self.nested += 1;
        }
    }

    /// Returns whether the end tag `name` ends it.
    fn is_ended(&mut self, name: &str) -> bool {
        if !self.name.eq_ignore_ascii_case(name) {
            return false;
        }
        let inner = self.nested.checked_sub(1);
        self.nested = inner.unwrap_or(0);
        inner.is_none()
    }
}

impl<'t> MainText<'t> {
    /// Returns an empty text that takes at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { own: Body::new(bytes_max), around: Body::new(bytes_max), ..Self::default() }
    }

    /// Returns whether no text fits any more.
    pub(super) fn is_full(&self) -> bool {
        self.own.is_full()
    }

    /// Returns whether an element is open whose end matters.
    pub(super) fn is_inside(&self) -> bool {
        self.aside.is_some() || matches!(self.main, Main::Open(_))
    }

    /// Returns whether an element is open whose text is put last, or left out.
    pub(super) fn is_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Enters an element inside the open ones.
    pub(super) fn enter(&mut self, name: &str) {
        if let Some((aside, _)) = &mut self.aside {
            aside.enter(name);
        }
        if let Main::Open(main) = &mut self.main {
            main.enter(name);
        }
    }

    /// Starts an element whose text is put last, or left out.
    pub(super) fn start_aside(&mut self, name: &'t str, is_shown: bool) {
        if self.aside.is_none() {
            self.aside = Some((OpenElement { name, nested: 0 }, is_shown));
        }
    }

    /// Starts an element that holds the main text.
    pub(super) fn start_main(&mut self, name: &'t str) {
        if self.aside.is_some() || matches!(self.main, Main::Open(_)) {
            return;
        }
        self.line();
        if matches!(self.main, Main::Unknown) {
            self.move_around(0);
        }
        self.main = Main::Open(OpenElement { name, nested: 0 });
    }

    /// Ends an element.
    pub(super) fn end(&mut self, name: &str) {
        if self.aside.as_mut().is_some_and(|(aside, _)| aside.is_ended(name)) {
            self.line();
            self.aside = None;
        }
        if let Main::Open(main) = &mut self.main
            && main.is_ended(name)
        {
            self.line();
            self.main = Main::Closed;
        }
    }

    /// Starts or ends a link.
    pub(super) fn link(&mut self, is_open: bool) {
        self.in_link = is_open;
        self.line.links += u32::from(is_open && self.is_own());
    }

    fn is_own(&self) -> bool {
        self.aside.is_none() && !matches!(self.main, Main::Closed)
    }

    /// Returns the text that shown text goes to.
    fn target(&mut self) -> Option<&mut Body> {
        match &self.aside {
            Some((_, is_shown)) => is_shown.then_some(&mut self.around),
            None if matches!(self.main, Main::Closed) => Some(&mut self.around),
            None => Some(&mut self.own),
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        let before = self.own.as_str().len();
        if let Some(target) = self.target() {
            target.push_squeezed(text);
        }
        if self.in_link {
            self.line.link_bytes += self.own.as_str().len() - before;
        }
    }

    pub(super) fn space(&mut self) {
        if let Some(target) = self.target() {
            target.space();
        }
    }

    pub(super) fn line(&mut self) {
        if let Some(target) = self.target() {
            target.line();
        }
        if self.is_own() {
            self.end_line();
        }
    }

    /// Looks at the line that has ended: it may be one of a menu, or the first after one.
    fn end_line(&mut self) {
        let end = self.own.as_str().len();
        let LinkLine { start, links, link_bytes } = self.line;
        if end <= start {
            return;
        }
        let is_menu = 0 < links
            && (end - start) * MENU_LINK_PERCENT <= link_bytes * 100
            && end - start <= links as usize * MENU_LINK_BYTES_MAX;
        if !is_menu {
            self.end_menu(start);
        } else if self.menu.links == 0 {
            self.menu = Menu { start, links };
        } else {
            self.menu.links += links;
        }
        self.line = LinkLine { start: self.own.as_str().len(), ..LinkLine::default() };
    }

    /// Ends a run of lines of links before `end`; if it is long enough, it is moved.
    fn end_menu(&mut self, end: usize) {
        let Menu { start, links } = std::mem::take(&mut self.menu);
        if links < MENU_LINKS_MIN {
            return;
        }
        let after = self.own.split_off(end);
        self.move_around(start);
        self.own.push(&after);
    }

    /// Moves the text from `start` on behind the main text.
    fn move_around(&mut self, start: usize) {
        let moved = self.own.split_off(start);
        self.around.push(&moved);
        self.menu = Menu::default();
        self.line = LinkLine { start: self.own.as_str().len(), ..LinkLine::default() };
    }

    /// Puts the main text, and behind it the text around it, at most `bytes_max` bytes together, into a draft.
    pub(super) fn finish(mut self, bytes_max: usize, draft: &mut Draft<'_>) {
        self.aside = None;
        self.end_line();
        self.end_menu(self.own.as_str().len());
        if self.own.is_cut() || self.around.is_cut() {
            draft.cut(Limit::Text.cut_at(bytes_max));
        }
        let (own, around) = (self.own.as_str(), self.around.as_str().trim());
        let mut body = Body::new(bytes_max);
        body.push(if around.is_empty() { own } else { own.trim_end() });
        if !around.is_empty() {
            body.line();
            body.push(around);
        }
        draft.set_body(body);
    }
}

#[cfg(test)]
mod tests {
    use crate::Type;
    use crate::testing::render;

    fn check(page: &str, expected: &str) {
        let seen = render("p.html", Type::Html, page.as_bytes());
        let text = seen.split("Partial-Text: ").nth(1).unwrap_or_default();
        assert_eq!(text, expected, "{page}");
    }

    #[test]
    fn menus_come_last() {
        let menu = "<ul><li><a href=1>Home</a><li><a href=2>News</a><li><a href=3>People</a>\
            <li><a href=4>Contact</a></ul>";
        let text = "<p>The text <a href=5>with a link</a> of the page.";
        let expected = "The text with a link of the page. | Home | News | People | Contact";
        check(&format!("{menu}{text}"), expected);
        check(&format!("{text}{menu}"), expected);
        check(
            &format!("<h1>Head</h1>{menu}{text}<div>End"),
            "Head | The text with a link of the page. | End | Home | News | People | Contact",
        );
        let row = "<table><tr><td><a href=1>Prev</a><td><a href=2>Up</a><td><a href=3>Next</a>\
            <td><a href=4>Index</a></table>";
        check(&format!("{row}{text}"), "The text with a link of the page. | Prev Up Next Index");
    }

    #[test]
    fn other_links_stay_where_they_are() {
        let few = "<p><a href=1>Home</a> | <a href=2>News</a> | <a href=3>People</a><p>Text.";
        check(few, "Home | News | People | Text.");
        let title = "On the reaping of wheat in the northern parts of the country, part two";
        let works = format!("<ul>{}</ul><p>Text.", format!("<li><a href=w>{title}</a>").repeat(5));
        check(&works, &format!("{}Text.", format!("{title} | ").repeat(5)));
        let anchors = "<p><a name=a>One</a><p><a name=b>Two</a><p><a name=c>Three</a><p><a name=d>Four</a><p>Text.";
        check(anchors, "One | Two | Three | Four | Text.");
        let places = "<p>Reaped in <a href=1>Kent</a>, <a href=2>Sussex</a>, <a href=3>Essex</a> and, as is \
            told by all who were there, in <a href=4>Wales</a>.<p>Text.";
        check(
            places,
            "Reaped in Kent, Sussex, Essex and, as is told by all who were there, in Wales. | Text.",
        );
    }

    #[test]
    fn the_main_element_comes_first() {
        check(
            "<div>Skip</div><header><b>Site</b></header><main><h1>Head</h1><main>in</main>Text</main>\
             <p>After<nav>Up</nav>",
            "Head | in | Text | Skip | Site | After | Up",
        );
        check(
            "<div>Before</div><div role=main><div>x</div>Text</div>End",
            "x | Text | Before | End",
        );
        check("<p>Before<main></main><p>After", "Before | After");
        check(
            "<p>Before<nav><main>no</main></nav><main>Never closed",
            "Never closed | no | Before",
        );
    }

    proptest::proptest! {
        /// Every word of a page is in its text, once, wherever it stands.
        #[test]
        fn no_word_is_lost(
            tags in proptest::collection::vec("<(/?(a href=x|nav|main|aside|p|div|ul|li|table|tr|td|h1))>", 0..60),
        ) {
            let page: String =
                tags.iter().enumerate().map(|(number, tag)| format!("{tag}w{number}")).collect();
            let seen = render("p.html", Type::Html, page.as_bytes());
            let text = seen.split("Partial-Text: ").nth(1).unwrap_or_default();
            let mut numbers: Vec<usize> = text
                .split('w')
                .skip(1)
                .filter_map(|it| it.trim_matches(|it: char| !it.is_ascii_digit()).parse().ok())
                .collect();
            numbers.sort_unstable();
            proptest::prop_assert_eq!(numbers, (0..tags.len()).collect::<Vec<_>>(), "{} {}", page, text);
        }
    }
}
