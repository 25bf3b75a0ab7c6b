use std::collections::HashSet;
use std::time::Duration;

use net::clock;
use proptest::prelude::*;

use super::*;
use crate::rules::IDENTITY;

fn statement(written: &str, value: &str) -> Statement {
    Statement::new(written, value).unwrap()
}

fn record(url: &str, attributes: &[(&str, &str)]) -> Record {
    let mut record = Record::new("FILE", url);
    attributes.iter().for_each(|(name, value)| record.push(*name, *value));
    record
}

fn render(record: &Record) -> Vec<String> {
    let value = |it: &[u8]| String::from_utf8_lossy(it).replace('\n', "|");
    record.attributes().iter().map(|it| format!("{}={}", it.name, value(&it.value))).collect()
}

/// Reads valid files, each with its name and text.
fn annotations(files: &[(&str, &str)]) -> Annotations {
    let read = |(name, text): &(&str, &str)| {
        let path: Arc<Path> = Path::new(name).into();
        let read = read(&path, text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        (path, Arc::from(read))
    };
    Annotations::new(files.iter().map(read))
}

fn soif_of(url: &str, attributes: &[(&str, &str)]) -> String {
    let mut text = Vec::new();
    ::soif::write_record(&mut text, &record(url, attributes));
    String::from_utf8(text).unwrap()
}

#[test]
fn a_statement_replaces_adds_or_takes_away() {
    let before = [("Title", "Old"), ("Keywords", "a\nb"), ("Note", "one"), ("Note", "two")];
    let check = |written, value, expected: &[&str]| {
        let mut record = record("file:///a", &before);
        lay_over([statement(written, value)].iter(), &mut record);
        assert_eq!(render(&record), expected, "{written} {value}");
    };
    check("title", "New", &["Title=New", "Keywords=a|b", "Note=one", "Note=two"]);
    check("Title", "", &["Keywords=a|b", "Note=one", "Note=two"]);
    check("Title+", "Sub", &["Title=Old|Sub", "Keywords=a|b", "Note=one", "Note=two"]);
    check("Keywords", "b\nc\n\nc", &["Title=Old", "Keywords=a|b|c", "Note=one", "Note=two"]);
    check("KEYWORDS=", "c", &["Title=Old", "Keywords=c", "Note=one", "Note=two"]);
    check("Keywords", "", &["Title=Old", "Note=one", "Note=two"]);
    check("Note+", "two\nthree", &["Title=Old", "Keywords=a|b", "Note=one|two|three"]);
    check("New+", "x", &["Title=Old", "Keywords=a|b", "Note=one", "Note=two", "New=x"]);
}

#[test]
fn many_lines_are_added_in_time_by_their_number() {
    let many = (0..130_000).map(|it| format!("{it:x}\n")).collect::<String>();
    let several = (0..20_000).map(|it| statement("Keywords+", &format!("-{it}")));
    let statements: Vec<Statement> =
        [statement("Keywords+", &many)].into_iter().chain(several).collect();
    let mut record = record("file:///a", &[("Keywords", "0\n1")]);
    let begun = clock::monotonic();
    lay_over(statements.iter(), &mut record);
    // Comparing each line with all others would take minutes.
    assert!(clock::monotonic() - begun < Duration::from_secs(10));
    let keywords = record.text("Keywords").unwrap();
    assert_eq!(keywords.lines().count(), 150_000);
    assert!(keywords.starts_with("0\n1\n2\n") && keywords.ends_with("\n-19999"));
}

#[test]
fn identifying_attributes_cannot_be_changed() {
    for name in IDENTITY.iter().chain(&["gatherer-name", "Gatherer-Host", "md5", "MD5+", "MD5="]) {
        assert!(Statement::new(name, "x").unwrap_err().contains("cannot be changed"), "{name}");
    }
    for name in ["", "a b", "@a", "a{b", "+", "a+b"] {
        assert!(Statement::new(name, "x").unwrap_err().contains("no name"), "{name}");
    }
    assert!(Statement::new("Title+", "").unwrap_err().contains("nothing is added"));
    assert!(
        Statement::new("Title", vec![b'x'; VALUE_BYTES_MAX + 1]).unwrap_err().contains("longer")
    );
    assert_eq!(statement("Gatherers", "x").attribute, "Gatherers");
}

#[test]
fn an_object_has_what_all_files_say_of_it_in_order() {
    let all = annotations(&[
        ("1.soif", &soif_of("http://h/a.pdf", &[("Title", "First"), ("Keywords", "k")])),
        (
            "2.toml",
            "[[term]]\nscheme = 'LCC'\ncode = 'QA76'\nlabel = 'Data'\n\
             objects = ['http://h/a.pdf', 'http://h/**/x.*', 'http://h/z.tar#src/**']\n\
             [[term]]\nscheme = 'S'\nlabel = 'L'\nobjects = 'http://h/l.bib#k'\n",
        ),
        ("3.soif", &soif_of("http://h/a.pdf", &[("Title", "Last")])),
        (
            "4.iafa",
            "Template-Type: DOCUMENT\nTitle: From\n the archive\nDescription:\nURI-v1: http://h/b\n\
             URI-v2: http://h/c\nKeywords: one; two\nGatherer-Id: evil\n\n\
             Template-Type: USER\nName: Ann\n",
        ),
    ]);
    assert_eq!(all.len(), 8);
    let check = |url: &str, expected: &[&str]| {
        let mut record = record(url, &[("Title", "Made"), ("Keywords", "w")]);
        assert_eq!(all.lay_over(&mut record) == 0, expected.is_empty(), "{url}");
        let lines = render(&record);
        assert_eq!(lines.len() == 2 && lines[0] == "Title=Made", expected.is_empty(), "{url}");
        for it in expected {
            assert!(lines.contains(&(*it).to_owned()), "{url}: {lines:?}");
        }
    };
    check(
        "http://h/a.pdf",
        &["Title=Last", "Keywords=w|k", "Subject=Data", "Subject-Code=LCC:QA76"],
    );
    for url in ["http://h/x.c", "http://h/d/e/x.c", "http://h/z.tar#src/a/b.c"] {
        check(url, &["Title=Made", "Subject=Data"]);
    }
    check("http://h/l.bib#k", &["Subject=L", "Subject-Code=S:L"]);
    for url in ["http://h/b", "http://h/c"] {
        check(url, &["Title=From the archive", "Subject=one|two", "Keywords=w"]);
    }
    for url in [
        "http://h/a.pdf#x",
        "http://h/d/y.c",
        "http://h/z.tar",
        "http://h/z.tar#doc/a",
        "http://h/x.tar#x.c",
    ] {
        check(url, &[]);
    }
    let places: Vec<String> = all.about("http://h/a.pdf").map(ToString::to_string).collect();
    assert_eq!(places, ["1.soif:1", "2.toml:1", "3.soif:1"]);
}

#[test]
fn a_fingerprint_depends_on_statements_and_not_on_lines() {
    let one = soif_of("http://h/a", &[("Title", "T")]);
    let member = soif_of("http://h/a#m", &[("Title", "T")]);
    let fingerprint =
        |text: &str| annotations(&[("x.soif", text)]).fingerprint_of_file("http://h/a");
    assert_ne!(fingerprint(&one), 0);
    assert_eq!(fingerprint(&one), fingerprint(&format!("\n\n{one}")));
    assert_eq!(
        fingerprint(&one),
        fingerprint(&format!("{}{one}", soif_of("http://h/b", &[("Title", "x")])))
    );
    let all = [
        fingerprint(&one),
        fingerprint(&member),
        fingerprint(&one.replace("\tT\n", "\tU\n")),
        fingerprint(&one.replace("Title{", "Title+{")),
        fingerprint(&format!("{one}{member}")),
        fingerprint(&format!("{one}{one}")),
        fingerprint(""),
    ];
    let different: HashSet<u64> = all.into();
    assert_eq!(different.len(), all.len());
    assert_eq!(fingerprint(""), 0);
}

#[test]
fn annotations_without_an_object_are_unmatched() {
    let all = annotations(&[
        (
            "x.soif",
            &format!("{}{}", soif_of("http://h/a", &[("A", "b")]), soif_of("http://h/b#m", &[])),
        ),
        (
            "y.toml",
            "[[term]]\nlabel = 'L'\nobjects = ['http://h/*.c', 'http://h/*.d', 'http://h/a']\n",
        ),
    ]);
    all.fingerprint_of_file("http://h/x.c");
    let unmatched = |all: &Annotations| -> Vec<String> {
        let found = all.unmatched(|url| Ok::<_, ()>(url == "http://h/a")).unwrap();
        found.iter().map(|it| format!("{it} {}", it.about())).collect()
    };
    assert_eq!(unmatched(&all), ["x.soif:4 http://h/b#m", "y.toml:1 http://h/*.d"]);
    all.reset_matches();
    assert_eq!(unmatched(&all).len(), 3);
    assert_eq!(all.unmatched(|_| Err("gone")).unwrap_err(), "gone");
}

#[test]
fn a_pattern_of_members_is_unmatched_until_a_member_is_noted() {
    let text = "[[term]]\nlabel = 'L'\nobjects = ['http://h/*.tar#src/*.c']\n";
    let all = annotations(&[("a.toml", text)]);
    let unmatched = || all.unmatched(|_| Ok::<_, ()>(true)).unwrap().len();
    assert_eq!((all.pending_members(), unmatched()), (0, 1));
    all.fingerprint_of_file("http://h/x.tar");
    assert_eq!((all.pending_members(), unmatched()), (1, 1));
    assert_eq!(["http://h/x.tar", "http://h/x.tar#src/a.h"].map(|it| all.note_member(it)), [0, 0]);
    assert_eq!(["http://h/x.tar#src/a.c"; 2].map(|it| all.note_member(it)), [1, 0]);
    assert_eq!((all.pending_members(), unmatched()), (0, 0));
}

#[test]
fn another_text_has_no_places() {
    let mut record = Record::new("FILE", "http://h/a");
    record.push("Partial-Text", "one two");
    record.push("Text-Places", "page 1 0");
    lay_over([statement("Partial-Text", "one two")].iter(), &mut record);
    assert!(record.get("Text-Places").is_some());
    lay_over([statement("Partial-Text", "two one")].iter(), &mut record);
    assert_eq!(record.get("Text-Places"), None);
}

#[test]
fn every_mistake_has_its_line() {
    let check = |name: &str, text: &str, expected: &[&str]| {
        let found = read(Path::new(name), text.as_bytes()).unwrap_err();
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), expected.len(), "{shown:?}");
        for (shown, expected) in shown.iter().zip(expected) {
            let (position, part) = expected.split_once(' ').unwrap();
            assert!(shown.starts_with(position) && shown.contains(part), "{shown}");
        }
    };
    let good = soif_of("http://h/a", &[("Title", "T")]);
    check(
        "a.soif",
        &format!("{good}@FILE {{ http://h/b\nMD5{{1}}:\tx\nA B{{1}}:\tx\n}}\n"),
        &["6:1: bad"],
    );
    check(
        "a.soif",
        &format!("{good}{}", soif_of("http://h/b", &[("A", "x\ny"), ("MD5", "x"), ("B+", "")])),
        &["8:1: nothing is added to B"],
    );
    check("a.soif", &format!("{good}@FILE {{ http://h/b\nTitle{{9}}:\tx\n}}\n"), &["4:1: "]);
    check("a.soif", &good[..good.len() - 3], &["1:1: "]);
    check("a.soif", &soif_of("-", &[("A", "b")]), &["1:1: has no URL"]);
    check("a.soif", &format!("@DELETE {{\n{good}}}\n"), &["1:1: DELETE"]);
    check("a.iafa", "words\n", &["1:1: no template"]);
    check("a.iafa", "\nTemplate-Type: x\nURI: a b\n", &["2:1: \"a b\" is no URL"]);
    check("a.iafa", &format!("Template-Type: x\n{}", "A: b\n".repeat(60_000)), &["1:1: too long"]);
    check("a.toml", "[[term]]\nobjects = ['http://h/a']\n", &["1:1: no name"]);
    check("a.toml", "[[term]]\nlabel = 'a'\n", &["1:1: \"objects\" is missing"]);
    check(
        "a.toml",
        "[[term]]\nlabel = 'a'\nobjects = ['http://h/a', 'x']\nlabl = 'b'\n",
        &["3:26: \"x\": is no URL", "4:1: unknown key \"labl\""],
    );
    check("a.toml", "[[term]\n", &["1: "]);
    check("a.txt", "", &["1:1: no sort of annotations"]);
    assert_eq!(read(Path::new("a.iafa"), b"Template-Type: \xff").unwrap_err()[0].column, 16);
}

#[test]
fn a_record_printed_by_a_gatherer_can_be_read() {
    let mut object =
        formats::object::Object::whole("http://h/a.txt", &b"A note\n\nOf wells.\n"[..]);
    object.modified = Some(1);
    let settings = crate::summarize::Settings::default();
    let summary = crate::summarize::summarize(&object, formats::Type::Text, &settings, &|| false);
    assert!(summary.record.get("MD5").is_some() && summary.record.get("File-Size").is_some());
    let mut printed = Vec::new();
    ::soif::write_record(&mut printed, &summary.record);
    let read = read(Path::new("a.soif"), &printed).unwrap();
    let names: Vec<&str> = read[0].statements.iter().map(|it| it.attribute.as_str()).collect();
    assert!(names.contains(&"Title") && names.contains(&"Type"), "{names:?}");
    assert!(!names.iter().any(|it| IDENTITY.contains(it)), "{names:?}");
}

#[test]
fn one_file_gives_no_more_than_all_may_have() {
    let texts = [("a.soif", "@FILE { u:/\n}\n"), ("a.iafa", "Template-Type: A\nURI: u:/\n\n")];
    for (name, one) in texts {
        let read = read(Path::new(name), one.repeat(ANNOTATIONS_MAX + 9).as_bytes()).unwrap();
        assert_eq!(read.len(), ANNOTATIONS_MAX + 1, "{name}");
    }
}

#[test]
fn other_encodings_are_decoded() {
    let text = b"@FILE { http://h/a\nTitle{4}:\tCaf\xe9\n}\n";
    let read = read(Path::new("a.soif"), text).unwrap();
    assert_eq!(read[0].statements[0].value, "Caf\u{e9}".as_bytes());
}

#[test]
fn many_mistakes_take_linear_time() {
    let wrong = soif_of("http://h/b", &[("Note", "x"), ("B+", "")]);
    let text = wrong.repeat(200_000);
    let began = clock::monotonic();
    let found = read(Path::new("a.soif"), text.as_bytes()).unwrap_err();
    // Counting lines from the start for each would take hours.
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(found.len(), 100);
    assert_eq!((found[1].line, found[1].column), (7, 1));
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["Title", "Keywords", "Subject", "Note", "title"])
        .prop_map(str::to_owned)
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let one = (names(), prop::sample::select(vec!["", "+", "="]), "([a-c]{0,2}\n?){0,3}");
    let one = one.prop_filter_map("nothing to add", |(name, mark, value)| {
        Statement::new(&format!("{name}{mark}"), value).ok()
    });
    prop::collection::vec(one, 0..8)
}

proptest! {
    #[test]
    fn laying_over_twice_is_laying_over_once(
        statements in statements(),
        before in prop::collection::vec((names(), "([a-c]{0,2}\n?){0,3}"), 0..5),
    ) {
        let mut once = record("http://h/a", &[]);
        before.iter().for_each(|(name, value)| once.push(name.as_str(), value.as_str()));
        lay_over(statements.iter(), &mut once);
        let mut twice = once.clone();
        lay_over(statements.iter(), &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn identifying_attributes_never_change(
        written in "[A-Za-z0-9-]{1,16}[+=]?",
        name in prop::sample::select(IDENTITY.to_vec()),
        mark in prop::sample::select(vec!["", "+", "="]),
        value in "[a-z\n]{0,9}",
    ) {
        let protected = Statement::new(&format!("{name}{mark}"), value.as_str());
        prop_assert!(protected.is_err());
        let identity: Vec<(&str, &str)> = IDENTITY.iter().map(|it| (*it, "1")).collect();
        let mut record = record("http://h/a", &identity);
        if let Ok(statement) = Statement::new(&written, value.as_str()) {
            lay_over([statement].iter(), &mut record);
        }
        for name in IDENTITY {
            prop_assert_eq!(record.get(name), Some(&b"1"[..]));
        }
        prop_assert_eq!(record.url, "http://h/a");
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
        let whole = soif_of("http://h/a", &[("Title", "T"), ("Abstract", "a\nb")]);
        for name in ["a.soif", "a.iafa", "a.toml"] {
            let _any = read(Path::new(name), &bytes);
        }
        let cut = cut.min(whole.len());
        let read = read(Path::new("a.soif"), &whole.as_bytes()[..cut]);
        // A record that is cut gives no annotation.
        prop_assert!(read.map_or(true, |it| it.is_empty() == whole[..cut].trim_end().is_empty() ));
    }

    #[test]
    fn annotations_written_as_soif_are_read_unchanged(list in prop::collection::vec(("[a-z]{1,5}", "[A-Z][a-z]{1,5}", "[a-zé\n]{1,9}"), 0..5)) {
        let text: String = list.iter().map(|(url, name, value)| soif_of(&format!("http://h/{url}"), &[(name, value)])).collect();
        let back = read(Path::new("a.soif"), text.as_bytes()).unwrap();
        prop_assert_eq!(back.len(), list.len());
        for (it, (url, name, value)) in back.iter().zip(&list) {
            prop_assert_eq!(&it.about, &format!("http://h/{url}"));
            prop_assert_eq!((&it.statements[0].attribute, it.statements[0].value.as_slice()), (name, value.as_bytes()));
        }
    }
}
