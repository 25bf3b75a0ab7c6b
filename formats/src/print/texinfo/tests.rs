use proptest::prelude::*;

use crate::object::Object;
use crate::testing::render;
use crate::{Input, Settings, Type};

fn check(manual: &str, expected: &str) {
    assert_eq!(render("x.texi", Type::Texinfo, manual.as_bytes()), expected);
}

#[test]
fn a_manual() {
    check(
        "\\input texinfo   @c -*-texinfo-*-\n@setfilename x.info\n@settitle X @value{VERSION}\n\
         @set VERSION 2.1\n@set UPDATED 3 May 1995\n@documentlanguage de_AT\n@copying\n\
         This manual is for X\n(version @value{VERSION}).\n\n\
         Copyright @copyright{} 1995 F@,{c}oo.\n\nPermission under the GNU Free Documentation \
         License.\n@end copying\n@dircategory Tools\n@direntry\n* X: (x). It.\n@end direntry\n\
         @titlepage\n@title The @code{X} Manual\n@subtitle for users\n@author Ann Lee and Bob @'Elan\n\
         @author Harvest Group\n@page\n@insertcopying\n@end titlepage\n@contents\n\
         @node Top\n@top X\n@menu\n* Intro:: begin\n@end menu\n@iftex\nfor TeX\n@end iftex\n\
         @node Intro, Next, Top, Top\n@chapter Intro@-duction @c not shown\n@cindex sources, open\n\
         See @uref{http://x.example/, the site, here} @footnote{or\nnot}.\n@xref{Next,,Going on}.\n\n\
         @table @option\n@item -@var{n}\n@email{a@@x.example, Ann}\n@end table\n\
         @example\n$ @kbd{x} @{@}\n@end example\n@deffn Command run file\nRuns.\n@end deffn\n\
         @section Next\n@verbatim\n@raw{}\n@end verbatim\n@ignore\nno\n@end ignore\n@bye\nno\n",
        "Title: The X Manual\n\
         Author: Ann Lee | Bob Élan | Harvest Group\n\
         Description: for users\n\
         Language: de-AT\nLanguage-Source: declared\nCategory: Tools\nHeadings: Introduction | Next\n\
         Version: 2.1\nDate: 1995-05-03\nDate-Source: header\nCopyright: Copyright (C) 1995 Fçoo.\nLicense: GFDL\n\
         URL-References: http://x.example/\n\
         Partial-Text: Introduction | See here (or not). See Going on. | -n Ann | $ x {} | \
         Command run file | Runs. | Next | @raw{} | This manual is for X (version 2.1). | \
         Copyright (C) 1995 Fçoo. | Permission under the GNU Free Documentation License.",
    );
}

#[test]
fn titles_without_a_title_page() {
    check(
        "@settitle Short\n@top Long\ntext @@ @url{http://x.example/a}",
        "Title: Short\nURL-References: http://x.example/a\n\
         Partial-Text: text @ http://x.example/a",
    );
    check("@node Top\n@top Only", "Title: Only");
    let latin = b"@documentencoding ISO-8859-1\n@settitle \xdcbung".to_vec();
    assert_eq!(render("x.texi", Type::Texinfo, &latin), "Title: Übung");
}

#[test]
fn index_entries_are_keywords() {
    let object =
        Object::whole("http://h.example/x.texi", &b"@cindex kangaroos, grey\n@findex hop()\n"[..]);
    let settings = Settings::default();
    let seen = crate::testing::summarize(&object, Type::Texinfo, &settings, &|| false).record;
    let keywords = seen.text("Keywords").unwrap();
    assert!(keywords.contains("kangaroos") && keywords.contains("hop"), "{keywords}");
}

#[test]
fn variables_add_a_bounded_length() {
    let settings = Settings { keywords_text_bytes_max: 40_000, ..Settings::default() };
    let set = format!("@set a {}\n", "v".repeat(200));
    for (line, is_cut) in [
        ("@cindex @value{a}\n", true),
        ("@author @value{a}\n", true),
        ("@url{x:@value{a}}\n", true),
        ("@title @value{a}\n", true),
        ("@c @value{a}\n", false),
    ] {
        let text = [set.as_str(), &line.repeat(1_000)].concat();
        let object = Object::whole("http://h.example/x.texi", text.into_bytes());
        let (r#type, settings) = (Type::Texinfo, &settings);
        let input = Input { object: &object, r#type, settings, cancelled: &|| false };
        let draft = super::summarize(&input);
        let lists = [draft.authors.concat(), draft.references.concat()].concat();
        let length = draft.title.len() + draft.keywords.len() + lists.len();
        assert!(length <= 50_000, "{line} {length}");
        let is_said = draft.problems.iter().any(|it| it.1.contains("bytes of text"));
        assert_eq!(is_said, is_cut, "{line}");
    }
}

#[test]
fn variables_and_arguments_of_any_length_and_depth_are_read() {
    let long = "v".repeat(5_000);
    let set = format!("@set a {long}\n@set b @value{{a}}@value{{a}}\n");
    check(
        &format!("{set}@author @value{{b}}T\n"),
        &format!("Title: x.texi\nAuthor: {long}{long}T"),
    );
    let deep = format!("{}deep{}", "@footnote{".repeat(9), "}".repeat(9));
    assert!(render("x.texi", Type::Texinfo, deep.as_bytes()).contains("deep"));
}

#[test]
fn unended_commands_end() {
    for open in ["@url{", "@footnote{", "@value{", "@copying\n", "@menu\n", "@'{", "{"] {
        render("x.texi", Type::Texinfo, open.repeat(50_000).as_bytes());
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        render("x.texi", Type::Texinfo, &bytes);
    }

    #[test]
    fn any_manual_gives_a_record(parts in proptest::collection::vec(
        prop_oneof![Just("@title "), Just("@url{"), Just("@'"), Just("@"), Just("{"), Just("}"),
            Just(","), Just("é"), Just("\n"), Just("@end copying"), Just("@copying\n"),
            Just("@set a "), Just("@value{a}"), Just("@titlepage\n"), Just("@xref{"),
            Just("@cindex "), Just("@dotless{i}"), Just("@v")], 0..60)) {
        render("x.texi", Type::Texinfo, parts.concat().as_bytes());
    }
}
