//! Tests of the settings reader: each mistake is found with its position and message.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

const ANY: &str = "127.0.0.1:1";

/// Reads `text` as a daemon would, and compares all mistakes with `expected`, one per line.
fn check(text: &str, expected: &[&str]) {
    let mistakes = match Document::parse(text) {
        Err(mistakes) => mistakes,
        Ok(document) => {
            ask(&document);
            document.finish().err().unwrap_or_default()
        }
    };
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected, "in {text}");
}

fn ask(document: &Document<'_>) {
    let root = document.root();
    root.required_string("name");
    root.addr("listen", ANY.parse::<SocketAddr>().unwrap());
    root.boolean("follow", false);
    root.bytes("limit");
    root.integer("count", 1..=100);
    root.strings("include");
    root.base_url("base_url");
    root.path("data");
    let freshness = root.table("freshness");
    freshness.choice("policy", &["oap", "fixed"]);
    freshness.float("theta", 0.0..=1.0);
    freshness.duration_within("interval", Duration::from_secs(1)..=Duration::from_secs(60));
    let sources = root.tables("source");
    for source in &sources {
        if source.require("url", "\"http://host:8500/\"") {
            source.url("url");
        }
    }
    refuse_repeats(&sources, "url");
}

#[test]
fn a_right_file_has_no_mistakes() {
    check(
        "name = 'x'\nlisten = '[::1]:8501'\nfollow = true\nlimit = '64 MiB'\ncount = 0x10\n\
         include = ['*.txt']\nbase_url = 'https://h/x'\ndata = 'd'\n\
         [freshness]\npolicy = 'oap'\ntheta = 0.9\ninterval = '5 s'\n\
         [[source]]\nurl = 'http://a/'\n[[source]]\nurl = 'http://b/'\n",
        &[],
    );
}

#[test]
fn values_are_read() {
    let document = Document::parse(
        "text = \"a\\tb\"\nempty = ''\nn = 1_000\nf = 1\nt = '1 h'\nb = '1 KiB'\n\
         u = 'http://h:1/a'\np = 'x/y'\nl = ['a', 'b']\naddr = 'localhost:80'\n[t1]\nx = 'y'\n[[t2]]\n[[t2]]\n",
    )
    .unwrap();
    let root = document.root();
    assert_eq!(root.string("text").as_deref(), Some("a\tb"));
    assert_eq!(root.string("empty").as_deref(), Some(""));
    assert_eq!(root.string("none"), None);
    assert_eq!(root.string_or("none", "d"), "d");
    assert_eq!(root.integer("n", 0..=1_000), Some(1_000));
    assert_eq!(root.float("f", 0.0..=1.0), Some(1.0));
    assert_eq!(root.duration("t"), Some(Duration::from_secs(3_600)));
    assert_eq!(root.bytes("b"), Some(1_024));
    assert_eq!(root.base_url("u").unwrap().as_str(), "http://h:1/a/");
    assert_eq!(root.path("p"), Some(PathBuf::from("x/y")));
    assert_eq!(root.strings("l"), ["a", "b"]);
    assert_eq!(root.one_or_more("l"), ["a", "b"]);
    assert_eq!(root.one_or_more("p"), ["x/y"]);
    assert!(root.one_or_more("none").is_empty());
    assert_eq!(root.addr("addr", ANY.parse().unwrap()).to_string(), "127.0.0.1:80");
    assert_eq!(root.addr("other", ANY.parse().unwrap()).to_string(), ANY);
    assert_eq!(root.table("t1").string("x").as_deref(), Some("y"));
    assert!(!root.table("t3").is_present());
    let lines: Vec<_> = root.tables("t2").iter().map(Table::line).collect();
    assert_eq!(lines, [13, 14]);
    assert_eq!(document.finish(), Ok(()));
}

#[test]
fn every_wrong_value_is_named_with_its_place() {
    check(
        "listen = '127.0.0.1:99999'\nfollow = 'yes'\nlimit = 64\ncount = 101\n\
         include = ['a', 7]\nbase_url = 'ftp://h/'\ndata = ''\n\
         [freshness]\npolicy = 'oak'\ntheta = 1.5\ninterval = '5 mim'\n\
         [[source]]\n  url = 'http://a/ b'\n[[source]]\n",
        &[
            r#"1:1: "name" is missing; expected name = a text in quotes"#,
            r#"1:10: "listen" has port 99999, but ports end at 65535; expected an address and a port, such as "127.0.0.1:8501" or "[::]:8501""#,
            r#"2:10: "follow" is a text; expected true or false"#,
            r#"3:9: "limit" is a whole number; expected a size with its unit, such as "512 KiB" or "64 MiB""#,
            r#"4:9: "count" is 101; expected a whole number from 1 to 100"#,
            r#"5:17: "include" is a whole number; expected a text in quotes"#,
            r#"6:12: the URL ftp://h/ is not of a web server; expected an http:// or https:// URL, such as "http://host:8500/""#,
            r#"7:8: "data" is ""; expected a path, such as "/var/lib/harvest""#,
            r#"9:10: "policy" is "oak"; expected one of "oap", "fixed""#,
            r#"10:9: "theta" is 1.5; expected a number from 0 to 1"#,
            r#"11:12: "interval" is "5 mim"; expected a length of time with its unit, such as "5 min" or "30 days""#,
            r#"13:9: the URL "http://a/ b" contains ' '; expected a URL without white space (write %20)"#,
            r#"14:1: "url" is missing in [source 2]; expected url = "http://host:8500/""#,
        ],
    );
}

#[test]
fn unknown_keys_get_the_nearest_known_name() {
    check(
        "name = 'x'\nlisen = '127.0.0.1:1'\n[freshnes]\ntheta = 2\n[[source]]\nurl = 'http://a/'\nurk = 1\nzebra = 2\n",
        &[
            r#"2:1: unknown key "lisen"; expected "listen""#,
            r#"3:2: unknown key "freshnes"; expected "freshness""#,
            r#"7:1: unknown key "urk" in [source 1]; expected "url""#,
            r#"8:1: unknown key "zebra" in [source 1]; expected only "url""#,
        ],
    );
}

#[test]
fn a_table_where_a_list_belongs_and_the_other_way_round() {
    check(
        "name = 'x'\n[source]\nurl = 'http://a/'\n[[freshness]]\ntheta = 0.9\n",
        &[
            r#"2:1: "source" is a table; expected [[source]], once for each"#,
            r#"4:1: "freshness" is a list; expected [freshness], and its keys below"#,
        ],
    );
}

#[test]
fn repeated_keys_and_repeated_tables() {
    check("name = 'a'\nname = 'b'\n", &[r#"2:1: "name" is set twice; expected each key once"#]);
    check(
        "name = 'x'\n[[source]]\nurl = 'http://a/'\n[[source]]\nurl = 'http://a/'\n",
        &[r#"5:7: "url" is "http://a/", as in [source 1] already; expected each url once"#],
    );
}

#[test]
fn every_syntax_error_is_reported() {
    let mistakes =
        Document::parse("name = \nlisten = 'x\ncount = 1 2\nok = 1\n[source\n").unwrap_err();
    let lines: Vec<_> = mistakes.iter().map(|it| it.line).collect();
    assert_eq!(lines, [1, 2, 3, 5], "{mistakes:#?}");
}

#[test]
fn columns_count_characters() {
    check(
        "name = 'x' # ä\n\"ä\" = 1\ncount = 'é'\n",
        &[
            "2:1: unknown key \"ä\"; expected one of base_url, count, data, follow, freshness, include, limit, listen, name, source",
            "3:9: \"count\" is a text; expected a whole number from 1 to 100",
        ],
    );
    assert_eq!(
        Document::parse("name = 'é' 1").unwrap_err()[0].column,
        12,
        "a character is one column, however many bytes it has"
    );
}

#[test]
fn a_mistake_names_its_file() {
    let mistake = Document::parse("a = 1\na = 2").unwrap_err().remove(0);
    assert_eq!(
        mistake.with_file(Path::new("/etc/broker.toml")),
        "/etc/broker.toml:2:1: \"a\" is set twice; expected each key once"
    );
}

#[test]
fn odd_input_is_only_a_mistake() {
    for text in
        ["", "\u{feff}name = 'x'", "\r\n", "a", "=", "[", "[[", "a = [", "a = {", "\"", "\0"]
    {
        if let Ok(document) = Document::parse(text) {
            ask(&document);
            let _ = document.finish();
        }
    }
}
