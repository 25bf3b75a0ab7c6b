//! Tests of PostScript: documents of the common programs.

use proptest::prelude::*;

use super::tokens::{PsToken, PsTokens};
use crate::Type;
use crate::testing::render;

fn check(document: &str, expected: &str) {
    assert_eq!(render("p.ps", Type::PostScript, document.as_bytes()), expected);
}

#[test]
fn the_header_and_the_trailer() {
    check(
        "%!PS-Adobe-3.0 EPSF-3.0\n%%Title: (A map \\(old\\))\n%%Creator: draw 1.0\n\
         %%Copyright: (c) Ann\n%%CreationDate: Mon Jan 2 2020\n%%For: Ann\n%%BoundingBox: 10 10 110 60\n%%Pages: (atend)\n\
         %%EndComments\n/x (no) def\n%%Trailer\n%%Pages: 7\n%%DocumentFonts: Times-Roman\n%%EOF\n",
        "Title: A map (old)\nDate: 2020-01-02\nDate-Source: media metadata\nCopyright: (c) Ann\nGenerator: draw 1.0\nPages: 7\n\
         Dimensions: 100x50\nFonts: Times-Roman\nFor: Ann",
    );
}

#[test]
fn pages_of_dvips() {
    check(
        "%!PS-Adobe-2.0\n%%Creator: dvips(k) 2022.1\n%%Title: paper.dvi\n%%Pages: 2\n%%EndComments\n\
         %%BeginProcSet: texc.pro\n/p{show}N(not shown)print\n%%EndProcSet\n\
         TeXDict begin\n/Fa 134[50 2[48{}3 143.462 /CMBX12 rf /Fb 1[4{}1 83.022 /CMR10 rf\n\
         %DVIPSBitmapFont: Fc ecti1000 10 3\n/Fc 3 119 df\n\
         %%EndProlog\n%%BeginSetup\n%%EndSetup\n%%Page: 1 1\nTeXDict begin 1 0 bop 900 300 a\n\
         Fa(Knots)-30 500 y Fb(W)-7 b(e)27 b(tie)h(t)-1 b(w)n(o)25 b(\\014ne)g(con-)0 600 y(nections)\n\
         28 b Fc(na\\357ve)p eop end\n%%Page: 2 2\nTeXDict begin 2 1 bop 0 0 a Fb(End.)p eop end\n\
         %%Trailer\nuserdict /end-hook known{end-hook}if\n%%EOF\n",
        "Title: Knots\nGenerator: dvips(k) 2022.1\nPages: 2\n\
         Partial-Text: Knots | We tie two fine connections naïve | End.",
    );
}

#[test]
fn pages_of_groff() {
    check(
        "%!PS-Adobe-3.0\n%%Creator: groff version 1.22.4\n%%EndComments\n/A{show}bind def\n\
         %%EndProlog\n%%Page: 1 1\n%%BeginPageSetup\nBP\n%%EndPageSetup\n/F0 10/Times-Roman@0 SF\n\
         (Hello w)72 120 Q(orld)-.1 E(next)2.5 E .15(one two)72 132 R(\\214sh)2.5 E 2.6(,o)-.1 G(r)-2.6 E 0 Cg EP\n\
         %%Trailer\nend\n%%EOF\n",
        "Title: Hello world next\nGenerator: groff version 1.22.4\nPages: 1\n\
         Partial-Text: Hello world next | one two fish, or",
    );
}

#[test]
fn pages_of_other_programs() {
    check(
        "%!\n/Times-Roman findfont 12 scalefont setfont\n/L { (no) pop } def\n72 720 moveto\n\
         (Hello) show ( world) show\n72 700 moveto (second line) show\n(here) 72 680 S\n(%no) cvn\n\
         1 0 0 1 72 660 Tm [(Ker) 20 (ned) -300 (words)] TJ\nshowpage\n",
        "Title: Hello world\nPartial-Text: Hello world | second line | here | Kerned words",
    );
}

#[test]
fn pdfmarks_give_metadata_and_links() {
    check(
        "%!PS-Adobe-2.0\n%%Title: x.dvi\n%%EndComments\n%%EndProlog\n%%Page: 1 1\n\
         [ /Title (Knots) /Author (\\376\\377\\000A\\000n\\000n) /Keywords (a, b) /DOCINFO pdfmark\n\
         [ /Rect [1 2 3 4] /Action << /Subtype /URI /URI (http://o.example/) >> /ANN pdfmark\n",
        "Title: Knots\nAuthor: Ann\nSubject: a | b\nPages: 1\nURL-References: http://o.example/",
    );
}

#[test]
fn unreadable_strings_are_left_out() {
    check("%!\n72 720 moveto <010203040506> show (\\001\\002#$%&*) show\n", "Title: p.ps");
}

#[test]
fn tokens() {
    let mut tokens = PsTokens::new(
        b"/a//b c1 -1.5 (a\\(\\051(b)\\101\\\nc)<4a 4>[1]{x}<<>>%c\n%%BeginData: 3 Binary Bytes\n(((\n1",
    );
    let mut next = || tokens.next();
    assert_eq!(next(), Some(PsToken::Literal(b"a")));
    assert_eq!(next(), Some(PsToken::Literal(b"b")));
    assert_eq!(next(), Some(PsToken::Name(b"c1")));
    assert_eq!(next(), Some(PsToken::Number(-1.5)));
    assert_eq!(next(), Some(PsToken::String(b"a()(b)Ac".to_vec())));
    assert_eq!(next(), Some(PsToken::String(b"J@".to_vec())));
    assert_eq!(next(), Some(PsToken::OpenArray));
    assert_eq!(next(), Some(PsToken::Number(1.0)));
    assert_eq!(next(), Some(PsToken::CloseArray));
    assert_eq!(next(), Some(PsToken::OpenProcedure));
    assert_eq!(next(), Some(PsToken::Name(b"x")));
    assert_eq!(next(), Some(PsToken::CloseProcedure));
    assert_eq!(next(), Some(PsToken::Comment(b"%c")));
    assert_eq!(next(), Some(PsToken::Comment(b"%%BeginData: 3 Binary Bytes")));
}

#[test]
fn strings_of_any_length_are_read() {
    let long = "a".repeat(100_000);
    let text = format!("({long})<{}>", "61".repeat(100_000));
    let mut tokens = PsTokens::new(text.as_bytes());
    let expected = Some(PsToken::String(long.into_bytes()));
    assert_eq!((tokens.next(), tokens.next()), (expected.clone(), expected));
}

#[test]
fn hostile_documents_end() {
    check("%!\n{ (a) show } loop\n", "Title: p.ps");
    render("p.ps", Type::PostScript, &[b"%!\n".as_slice(), &b"(".repeat(5_000_000)].concat());
    render("p.ps", Type::PostScript, &[b"%!\n".as_slice(), &b"{[".repeat(2_000_000)].concat());
    render("p.ps", Type::PostScript, &[b"%!\n".as_slice(), &b"1 ".repeat(2_000_000)].concat());
    render("p.ps", Type::PostScript, &[b"%!\n<".as_slice(), &b"f".repeat(5_000_000)].concat());
    check("%!\n%%BeginData: 18446744073709551615\n(a) show", "Title: p.ps");
    render("p.eps", Type::PostScript, b"\xc5\xd0\xd3\xc6\xff\xff\xff\xff\xff\xff\xff\xff");
}

#[test]
fn time_ends_the_reading() {
    let object = crate::object::Object::whole("http://h.example/p.ps", &b"%!\n(a) show"[..]);
    let settings = crate::Settings::default();
    let summary = crate::testing::summarize(&object, Type::PostScript, &settings, &|| true);
    assert_eq!(summary.problems.len(), 1);
}

proptest! {
    #[test]
    fn any_document_gives_a_record(
        creator in "(%%Creator: (dvips|groff)\n|)",
        tokens in "([(<\\[{]?[a-zA-Z0-9./ ]{0,8}[)>\\]}]?[ \n]?(p|Q|show|TJ|rf|df|SF|b|y)? ){0,60}",
    ) {
        render("p.ps", Type::PostScript, format!("%!\n{creator}{tokens}").as_bytes());
    }

    #[test]
    fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        render("p.ps", Type::PostScript, &[b"%!\n".to_vec(), bytes].concat());
    }
}
