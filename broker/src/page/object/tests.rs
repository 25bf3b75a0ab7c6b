//! Tests of an object's page: what stands where, and that everything is bounded and harmless.

use super::*;

fn page(record: &Record, query: &str) -> ObjectShown {
    let asked = ObjectParameters::parse(Some(query)).unwrap();
    let text = asked.results.as_ref().and_then(|it| it.text.clone());
    let query = text.map(|it| query::parse(&it).unwrap());
    let results = (&asked, query.as_ref());
    ObjectPage::new("g:http://h/a", record, results, &Answer::default()).object
}

fn names(page: &ObjectShown) -> Vec<&'static str> {
    page.facts.iter().map(|it| it.name).collect()
}

#[test]
fn what_people_read_is_not_among_the_technical_attributes() {
    let mut record = Record::new("FILE", "http://h/a");
    for (name, value) in [
        ("MD5", "00"),
        ("Title", "An old oak"),
        ("Author", "Ada\nGrace\n"),
        ("Date", "1995-03"),
        ("Last-Modification-Time", "1700000000"),
        ("Language", "de-AT"),
        ("Type", "HTML"),
        ("File-Size", "2048"),
        ("Abstract", " A tree. "),
        ("Full-Text", "oak"),
        ("Partial-Text", "oa"),
        ("Keywords", "tree\n\nleaf"),
        ("Title", "Another"),
    ] {
        record.push(name, value);
    }
    let page = page(&record, "oid=x");
    assert_eq!(names(&page), ["Author", "Date", "Changed", "Language", "Type", "Size"]);
    assert_eq!(page.facts[0].values, ["Ada", "Grace"]);
    assert_eq!(page.facts[2].values, ["2023-11-14"]);
    assert_eq!(page.facts[3].values, ["German (de-AT)"]);
    assert_eq!((page.title.as_str(), page.description.as_str()), ("An old oak", "A tree."));
    assert_eq!(page.keywords, ["tree", "leaf"]);
    let rest = serde_json::to_value(&page.rows).unwrap();
    let rest: Vec<&str> =
        rest.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    let expected = ["MD5", "Last-Modification-Time", "File-Size", "Partial-Text", "Title"];
    assert_eq!(rest, expected);
}

#[test]
fn the_results_are_one_link_away_and_on_this_site() {
    let record = Record::new("FILE", "http://h/a");
    let check = |query: &str, expected: Option<&str>| {
        let page = page(&record, query);
        assert_eq!(page.back.as_deref(), expected, "{query}");
        assert!(page.soif.starts_with("object?oid=") && !page.soif.contains("q="), "{query}");
    };
    check("oid=x&q=old+oak&type=PDF&offset=20", Some("?q=old+oak&type=PDF&offset=20"));
    check("oid=x&type=PDF", Some("?type=PDF"));
    check("oid=x", None);
    check("oid=x&q=", None);
    check("oid=x&limit=5", None);
    check("oid=x&q=a&limit=99999", None);
    check("oid=x&q=//evil.example/", Some("?q=%2F%2Fevil.example%2F"));
    check("oid=x&q=javascript:alert(1)%0d%0a", Some("?q=javascript%3Aalert%281%29%0D%0A"));
    check("oid=x&back=http://evil.example/", None);
}

#[test]
fn a_long_text_is_shown_by_parts_that_keep_the_results() {
    let mut record = Record::new("FILE", "http://h/a");
    record.push("Description", "filler\nline filler");
    record.push("Full-Text", "filler line\n".repeat(9_000) + "an old oak\n" + &"x ".repeat(20_000));
    let found = page(&record, "oid=x&q=oak");
    let text = found.text.unwrap();
    assert_eq!((text.part, text.parts), (7, 10));
    let oid = "object?oid=g%3Ahttp%3A%2F%2Fh%2Fa";
    assert_eq!(found.next, Some(format!("{oid}&q=oak&part=8")));
    assert_eq!(found.previous, Some(format!("{oid}&q=oak&part=6")));
    assert_eq!(found.first, format!("{oid}&q=oak&part=1"));
    let first = page(&record, "oid=x&q=oak&part=1");
    assert_eq!((first.text.unwrap().part, first.previous), (1, None));
    assert_eq!(page(&record, "oid=x").description, "", "the text begins with it");
    assert_eq!(page(&record, "oid=x&part=10").description, "filler\nline filler");
    assert_eq!(page(&record, "oid=x&part=10").next, None);
    assert_eq!(page(&record, "oid=x&part=-4").text.unwrap().part, 1);
}

#[test]
fn everything_is_bounded() {
    let mut record = Record::new("FILE", "http://h/a");
    for name in ["Title", "Author", "Type", "Abstract", "Full-Text", "Keywords", "X-Any", "Date"] {
        record.push(name, "k\u{e9} ".repeat(2 << 20));
        record.push(name, vec![0xff; 1 << 20]);
    }
    record.set("URL-References", "http://h/\n".repeat(100_000));
    record.set("Language", "x\n".repeat(100_000));
    for n in 0..1_000 {
        record.push(format!("X-{n}"), "v".repeat(10_000));
    }
    let page = page(&record, "oid=x&q=k");
    assert!(0 < page.rows_left_out && 0 < page.links_left_out);
    let bytes = serde_json::to_vec(&page).unwrap().len();
    assert!(bytes < 2 << 20, "{bytes} bytes");
}

#[test]
fn many_keywords_are_folded() {
    let mut record = Record::new("FILE", "http://h/a");
    record.push("Keywords", (0..600).map(|it| format!("word{it}\n")).collect::<String>());
    let page = page(&record, "oid=x");
    assert_eq!((page.keywords.len(), page.keywords_folded.len()), (12, 500));
    assert_eq!((page.keywords_folded[0].as_str(), page.keywords_left_out), ("word12", 88));
}

#[test]
fn a_cut_is_between_characters() {
    let check = |text: &str, bytes_max: usize, expected: &str| {
        assert_eq!(head(text.as_bytes(), bytes_max), expected.as_bytes(), "{text} {bytes_max}");
    };
    check("aé日x", 0, "");
    check("aé日x", 2, "a");
    check("aé日x", 3, "aé");
    check("aé日x", 5, "aé");
    check("aé日x", 6, "aé日");
    check("aé日x", 99, "aé日x");
    assert_eq!(head(&[0x80; 9], 5).len(), 5, "no character begins there");
}

#[test]
fn an_object_outside_the_web_opens_at_its_landing_page() {
    let check = |url: &str, landing: &str, expected: Option<&str>| {
        let mut record = Record::new("FILE", url);
        record.push(LANDING_PAGE, landing);
        let page = page(&record, "oid=x");
        assert_eq!(page.href.as_deref(), expected, "{url} {landing}");
    };
    check("oai:h:1", "https://h/1\n", Some("https://h/1"));
    check("oai:h:1", "javascript:alert(1)", None);
    check("http://h/2", "https://h/1", Some("http://h/2"));
}

#[test]
fn parameters_are_read() {
    let check = |query: &str, oid: Option<&str>, format| {
        let oid = oid.map(str::to_owned);
        let expected = ObjectParameters { oid, format, ..ObjectParameters::default() };
        assert_eq!(ObjectParameters::parse(Some(query)), Ok(expected), "{query}");
    };
    check("", None, None);
    check("oid=a%3Ab&x=y", Some("a:b"), None);
    check("oid=a&format=soif", Some("a"), Some(Format::Soif));
    assert!(
        ObjectParameters::parse(Some("format=xml")).unwrap_err().contains("html, soif or json")
    );
}

#[test]
fn an_object_without_title_has_the_last_part_of_its_url() {
    let check = |url: &str, expected: &str| {
        let page = page(&Record::new("FILE", url), "oid=x");
        assert_eq!(page.title, expected);
    };
    check("file:///a/b%20c.txt", "b c.txt");
    check("http://h/a/", "a");
    check("http://h/", "h");
}
