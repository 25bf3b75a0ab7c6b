//! The summarizer of papers and memos in troff: title, authors, abstract and headings by the macros of ms, me
//! and mm, and plain text.
//!
//! Source: groff_ms(7), groff_me(7), groff_mm(7); M. E. Lesk, "Typing Documents on the UNIX System: Using
//! the -ms Macros" (1978). Essence's Troff summarizer.
//!
//! The package of a text follows from macros that only one package has. Without such macros the
//! text is summarized as a manual page. The package me has no macros for title and author: these
//! stand before the first paragraph, separated by space.

use super::man::{self, TroffStrings, unescape, words};
use crate::cancellable::TimeLimit;
use crate::text::{Body, HEADINGS_BYTES_MAX, squeezed};
use crate::{DateSource, Draft, Input};

/// Maximum number of lines in which the macros of packages are counted.
const LOOK_LINES: usize = 2_000;
/// The macro package of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Package {
    #[default]
    Man,
    Ms,
    Me,
    Mm,
}

/// Macros that only one package has, with few exceptions.
const PACKAGE_MACROS: &[(Package, &[&str])] = &[
    (Package::Ms, &["TL", "AB", "AI", "NH", "LP", "QP", "XP"]),
    (Package::Mm, &["H", "HU", "MT", "AF", "AS", "AL", "BL", "SA", "DL"]),
    (Package::Me, &["pp", "lp", "np", "ip", "sh", "uh", "tp", "(l", "(q", "(b", "(f"]),
];

/// Macros whose arguments are text in another font; most print the second argument right after the
/// first.
const FONTS: &[&str] =
    &["B", "I", "BI", "CW", "R", "SM", "LG", "UL", "BX", "b", "i", "bi", "u", "sm", "r", "q", "bx"];

/// Macros that begin a paragraph; some print their arguments.
const BREAKS: &[&str] = &[
    "PP", "LP", "QP", "XP", "P", "RS", "RE", "QS", "QE", "DS", "DE", "KS", "KF", "KE", "TE", "LE",
    "AL", "BL", "DL", "VL", "ML", "RL", "FS", "FE", "B1", "B2", "1C", "2C", "bp", "br", "sp", "SP",
    "SK", "pp", "lp", "np", "(q", ")q", "(l", ")l", "(b", ")b", "(z", ")z", "(c", ")c", "(f", ")f",
    "(x", ")x", "(d", ")d", "bl",
];

/// Parts without text, by first and last request: drawings, equations, citations, lines of contents tables.
const SKIPPED: &[(&str, &str)] =
    &[("EQ", "EN"), ("PS", "PE"), ("G1", "G2"), ("[", "]"), ("XS", "XE"), ("GS", "GE")];

/// The destination of lines of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot {
    #[default]
    Body,
    Title,
    Author,
    Institution,
    Abstract,
    Heading,
    /// The column formats of a table, up to a full stop.
    Columns,
    /// Text before the first paragraph, in the package me.
    Front,
}

#[derive(Default)]
struct Paper {
    package: Package,
    slot: Slot,
    title: Body,
    authors: Vec<String>,
    institutions: Vec<String>,
    date: String,
    r#abstract: Body,
    heading: Body,
    headings: Body,
    body: Body,
    references: Vec<String>,
    strings: TroffStrings,
    /// The index of the front's block that is being read, from 0.
    block: usize,
    /// Whether the next line is underlined.
    underlined: bool,
    line: String,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let package = package(&text);
    if package == Package::Man {
        return man::summarize(input);
    }
    let mut paper = Paper {
        package,
        slot: if package == Package::Me { Slot::Front } else { Slot::Body },
        title: Body::new(usize::MAX),
        r#abstract: Body::new(usize::MAX),
        heading: Body::new(usize::MAX),
        headings: Body::new(HEADINGS_BYTES_MAX),
        body: Body::new(input.text_bytes_max()),
        ..Paper::default()
    };
    // The request that ends a macro definition or a part without text.
    let mut until: Option<String> = None;
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines().take_while(|_| time.goes_on()) {
        match &until {
            None => until = paper.line(line),
            Some(end) if request(line).is_some_and(|(name, _)| name == end) => until = None,
            Some(_) => {}
        }
    }
    let mut draft = paper.draft();
    time.report("the text", &mut draft);
    input.report_text(&mut draft);
    draft
}

/// Returns the package with the most macros in the text.
fn package(text: &str) -> Package {
    let mut votes = [0_usize; PACKAGE_MACROS.len()];
    for (name, arguments) in text.lines().take(LOOK_LINES).filter_map(request) {
        // In tables of ms, `.TH` has no arguments.
        if name == "TH" && !arguments.trim().is_empty() || name == "Dt" {
            return Package::Man;
        }
        for ((_, names), votes) in PACKAGE_MACROS.iter().zip(&mut votes) {
            *votes += usize::from(names.contains(&name));
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    let first = PACKAGE_MACROS.iter().zip(votes).find(|(_, votes)| *votes == most && 0 < most);
    first.map_or(Package::Man, |((package, _), _)| *package)
}

/// Returns the name of a request or macro, and the text after it.
fn request(line: &str) -> Option<(&str, &str)> {
    let request = line.strip_prefix(['.', '\''])?.trim_start();
    let end = request.find(|it: char| it.is_whitespace() || it == '\\').unwrap_or(request.len());
    Some(request.split_at(end))
}

impl Paper {
    /// Handles one line; returns the request up to which the following lines are left out, if any.
    fn line(&mut self, line: &str) -> Option<String> {
        let Some((name, arguments)) = request(line) else {
            self.text(line);
            return None;
        };
        let first = || words(arguments).next();
        match name {
            "ig" => return Some(first().unwrap_or_else(|| ".".to_owned())),
            "de" | "am" | "de1" | "am1" => {
                return Some(words(arguments).nth(1).unwrap_or_else(|| ".".to_owned()));
            }
            "ds" | "ds1" => self.strings.define(arguments),
            "ul" | "cu" => self.underlined = true,
            "TS" => {
                self.paragraph();
                self.slot = Slot::Columns;
            }
            "TL" if self.package != Package::Me => self.slot = Slot::Title,
            "AU" => self.author(arguments),
            "AI" => self.slot = Slot::Institution,
            "AF" => self.name(&first().unwrap_or_default(), Slot::Institution),
            "AB" | "AS" => self.slot = Slot::Abstract,
            "AE" => self.slot = Slot::Body,
            "ND" | "DA" => {
                let date: Vec<String> = words(arguments).collect();
                self.date = squeezed(&date.join(" "));
            }
            "NH" | "SH" | "H" | "HU" | "sh" | "uh" | "+c" => self.heading(name, arguments),
            "URL" | "UR" | "pdfhref" => self.link(arguments),
            // Footnotes to a title or an author do not belong to the name.
            "FS" if matches!(self.slot, Slot::Title | Slot::Author | Slot::Institution) => {
                return Some("FE".to_owned());
            }
            "(f" if self.slot == Slot::Front => return Some(")f".to_owned()),
            "IP" | "ip" | "LI" => {
                self.paragraph();
                self.text(&first().unwrap_or_default());
            }
            name if FONTS.contains(&name) => {
                let line: String = words(arguments).take(2).collect();
                self.text(&line);
            }
            name if BREAKS.contains(&name) => self.r#break(name),
            name => return SKIPPED.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()),
        }
        None
    }

    /// Handles a macro that begins a paragraph.
    fn r#break(&mut self, name: &str) {
        match self.slot {
            // Title and authors may be set over several lines.
            Slot::Title | Slot::Author | Slot::Institution if matches!(name, "br" | "sp") => {}
            Slot::Front if name == "sp" => {
                self.block += usize::from(!self.title.as_str().is_empty());
            }
            Slot::Front if !matches!(name, "pp" | "lp" | "np") => {}
            Slot::Abstract => self.r#abstract.line(),
            _ => self.paragraph(),
        }
    }

    fn paragraph(&mut self) {
        self.end_heading();
        if self.slot != Slot::Abstract {
            self.slot = Slot::Body;
        }
        self.body.line();
    }

    /// `.NH 2` and the title in the next lines; `.H 2 "title"`; `.sh 2 "title"`.
    fn heading(&mut self, name: &str, arguments: &str) {
        self.end_heading();
        self.slot = Slot::Heading;
        let leveled = matches!((self.package, name), (_, "NH" | "H" | "sh"));
        let title: Vec<String> = words(arguments).skip(usize::from(leveled)).collect();
        // `.SH 2` only gives the font size.
        let is_size = title.concat().bytes().all(|it| it.is_ascii_digit());
        let in_lines = self.package == Package::Ms && (name == "NH" || is_size);
        let title = if name == "sh" || name == "H" {
            // The other arguments are a mark, and parts of the section's number.
            title.into_iter().next().unwrap_or_default()
        } else {
            title.join(" ")
        };
        if !in_lines && !title.is_empty() {
            self.text(&title);
            self.end_heading();
        } else if name == "+c" {
            // A chapter without a title; the first one has the title of the text.
            let is_first = self.title.as_str().is_empty();
            self.slot = if is_first { Slot::Front } else { Slot::Body };
        }
    }

    /// Ends the current heading, if there is one.
    fn end_heading(&mut self) {
        if self.slot != Slot::Heading {
            return;
        }
        self.slot = Slot::Body;
        let heading = self.heading.take();
        if heading.trim().eq_ignore_ascii_case("abstract") {
            self.slot = Slot::Abstract;
            return;
        }
        self.headings.push_line(heading.trim());
        self.body.line();
        self.body.push_line(heading.trim());
    }

    /// `.AU` and names in the next lines (ms), or `.AU "name" initials …` (mm).
    fn author(&mut self, arguments: &str) {
        match words(arguments).next().filter(|_| self.package == Package::Mm) {
            Some(name) => {
                self.name(&name, Slot::Author);
                self.slot = Slot::Body;
            }
            None => self.slot = Slot::Author,
        }
    }

    /// Adds an author or an institution.
    fn name(&mut self, name: &str, slot: Slot) {
        self.plain(name);
        let name = squeezed(self.line.trim_matches(['*', '\u{2020}', ' ']));
        let names = if slot == Slot::Author { &mut self.authors } else { &mut self.institutions };
        if !name.is_empty() {
            names.push(name);
        }
    }

    fn link(&mut self, arguments: &str) {
        let all: Vec<String> = words(arguments).collect();
        let Some(at) = all.iter().position(|it| it.contains("://")) else { return };
        let mut urls = all.into_iter().skip(at);
        let url = urls.next().unwrap_or_default().replace("\\:", "");
        self.text(&urls.next().unwrap_or_else(|| url.clone()));
        self.references.push(url);
    }

    fn text(&mut self, text: &str) {
        let underlined = std::mem::take(&mut self.underlined);
        match self.slot {
            Slot::Author | Slot::Institution => return self.name(text, self.slot),
            Slot::Front if self.block == 0 => {}
            Slot::Front => return self.front(text, underlined),
            Slot::Columns => {
                if text.trim_end().ends_with('.') {
                    self.slot = Slot::Body;
                }
                return;
            }
            _ => {}
        }
        self.plain(text);
        let into = match self.slot {
            Slot::Title | Slot::Front => &mut self.title,
            Slot::Heading => &mut self.heading,
            Slot::Abstract => &mut self.r#abstract,
            _ => &mut self.body,
        };
        if text.trim().is_empty() {
            into.line();
        } else {
            into.space();
            into.push_squeezed(&self.line);
        }
    }

    /// Handles text between the title and the first paragraph: the author is underlined, and the institution
    /// is below.
    fn front(&mut self, text: &str, underlined: bool) {
        if self.authors.is_empty() && underlined {
            self.name(text, Slot::Author);
        } else if !self.authors.is_empty() {
            self.name(text, Slot::Institution);
        }
    }

    /// Sets `self.line` to the text that `text` prints.
    fn plain(&mut self, text: &str) {
        let text = self.strings.interpolate(text);
        self.line.clear();
        unescape(&text, &mut self.line);
    }

    fn draft<'a>(mut self) -> Draft<'a> {
        self.end_heading();
        let mut draft = Draft {
            title: self.title.finish(),
            authors: self.authors,
            r#abstract: self.r#abstract.finish(),
            references: self.references,
            ..Draft::default()
        };
        self.strings.report(&mut draft);
        draft.other("Affiliation", self.institutions.join("\n"));
        draft.date(&self.date, DateSource::Header);
        draft.other("Headings", self.headings.finish());
        draft.set_body(self.body);
        draft
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(name: &str, text: &str, expected: &str) {
        assert_eq!(render(name, Type::Troff, text.as_bytes()), expected, "{name}");
    }

    #[test]
    fn a_paper_in_ms() {
        check(
            "x.ms",
            ".\\\" comment\n.ds U \\s-1UNIX\\s0\n.de XX\nno\n..\n.ND May 1, 1995\n.TL\nThe \\fBHarvest\\fP\n\
             System on \\*U\n.AU\nC. Mic Bowman\nJ\\*:urgen M\\*'e\n.FS\nNow elsewhere\n.FE\n.AI\n\
             Transarc \\(em Corp.\n.AB no\nIt is\n.I hard .\n.PP\nVery.\n.AE\n.NH 1\nFirst\nthings\n.PP\n\
             Text of \\fIit\\fP.\n.TS\ncenter;\nl l.\na\tb\n.TE\n.EQ\nx sup 2\n.EN\n.[\nbowman 1994\n.]\n\
             .IP \\(bu 2\nitem\n.SH 2\nReferences\n.LP\n.pdfhref W -D http://h.example/ -- here\n",
            "Title: The Harvest System on UNIX\n\
             Author: C. Mic Bowman | Jürgen Mé\n\
             Abstract: It is hard. | Very.\n\
             Affiliation: Transarc - Corp.\n\
             Date: 1995-05-01\nDate-Source: header\n\
             Headings: First things | References\n\
             URL-References: http://h.example/\n\
             Partial-Text: First things | Text of it. | a b | * item | References | --",
        );
    }

    #[test]
    fn a_paper_in_me() {
        check(
            "x.me",
            ".he 'X''%'\n.ds N \\s-1NROFF\\s0\n.(l C\n.sz 14\n.b \"Papers with \\*N\"\n.sz\n.sp 2\n\
             .i \"Version 2\"\n.sp\n.ul\nEric P. Allman*\n.(f\n*Elsewhere\n.)f\n.sp\nProject INGRES\n.)l\n.sp 4\n\
             .pp\nThis document\nis\n.b short .\n.sh 1 \"Begin\" 2\n.pp\nText.\n.+c\n.b More\n.uh Abstract\n.lp\nNone.\n",
            "Title: Papers with NROFF\n\
             Author: Eric P. Allman\n\
             Abstract: None.\n\
             Affiliation: Project INGRES\n\
             Headings: Begin\n\
             Partial-Text: This document is short. | Begin | Text. More",
        );
    }

    #[test]
    fn a_memorandum_in_mm() {
        check(
            "x.mm",
            ".ND \"3 May 1995\"\n.TL\nMoving\nbytes\n.AF \"Bell Labs\"\n.AU \"A. N. Author\" ANA MH 1 2 3\n.AU Bob\n\
             .AS 1\nAll of it.\n.AE\n.MT 1\n.H 1 \"First words\" \"*\"\n.P\nText.\n.AL\n.LI\none\n.LE\n\
             .HU Unnumbered\n.P\nEnd.\n",
            "Title: Moving bytes\n\
             Author: A. N. Author | Bob\n\
             Abstract: All of it.\n\
             Affiliation: Bell Labs\n\
             Date: 1995-05-03\nDate-Source: header\n\
             Headings: First words | Unnumbered\n\
             Partial-Text: First words | Text. | one | Unnumbered | End.",
        );
    }

    #[test]
    fn without_macros_of_papers_it_is_a_manual_page() {
        check(
            "x.tr",
            ".TH X 1\n.SH NAME\nx \\- does\n.SH USE\n.LP\nText.\n.LP\n.B b\n",
            "Title: x - does\nDescription: does\nHeadings: NAME | USE\nManual-Page: x(1)\n\
             Partial-Text: NAME | x - does | USE | Text. | b",
        );
        check("x.tr", "Words.\n.br\nMore.\n", "Title: x.tr\nPartial-Text: Words. | More.");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("x.ms", Type::Troff, &[b".NH\n", bytes.as_slice()].concat());
        }

        #[test]
        fn any_text_gives_a_record(lines in proptest::collection::vec(
            prop_oneof![Just(".TL"), Just(".AU"), Just(".AB"), Just(".AE"), Just(".NH 1"), Just(".PP"),
                Just(".H 1 \"x"), Just(".sh"), Just(".pp"), Just(".(l"), Just(".ds x \\*x\\*x"),
                Just("\\*x\\*(x"), Just("\\*'é"), Just(".TS"), Just(".["), Just("words")], 0..60)) {
            render("x.ms", Type::Troff, lines.join("\n").as_bytes());
        }
    }
}
