//! Tests of the robots exclusion protocol.

use proptest::prelude::*;

use super::*;

mod published;

const HOUR_MS: u64 = 60 * 60 * 1000;

fn url(path: &str) -> Url {
    Url::parse("http://h.example").unwrap().join(path).unwrap()
}

/// Checks which line of a file decides about a path, and how.
#[track_caller]
fn check(file: &str, path: &str, expected: Option<(u32, bool)>) {
    let rules = Rules::parse(file.as_bytes(), PRODUCT);
    let found = rules.rule(&url(path)).map(|it| (it.line, it.allow));
    assert_eq!(found, expected, "{path} by {file:?}");
}

#[test]
fn the_line_that_decides_is_named() {
    let file =
        "User-agent: *\nDisallow: /a\n\nUser-agent: harvest\rAllow: /a/b # c\r\nDisallow: /a";
    check(file, "/a", Some((6, false)));
    check(file, "/a/b/c", Some((5, true)));
    check(file, "/b", None);
    let rules = Rules::parse(file.as_bytes(), PRODUCT);
    let line = rules.rule(&url("/a/b")).unwrap().to_string();
    assert_eq!(line, "line 5, Allow: /a/b");
}

#[test]
fn of_equal_lines_the_first_is_named() {
    check("User-agent: *\nDisallow: /a\nDisallow: /a", "/a", Some((2, false)));
}

#[test]
fn the_rfcs_comparisons_hold() {
    // RFC 9309 §2.2.2, and §2.2.3 on special characters.
    for (pattern, path, expected) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", true),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar", true),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", false),
        ("/foo/bar/U+E38384", "/foo/bar/%E3%83%84", false),
        ("/foo/bar/ツ", "/foo/bar/%e3%83%84", true),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ", true),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A", true),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", false),
        ("/path/foo-%24", "/path/foo-$", true),
        ("/path/foo-$", "/path/foo-$", false),
        ("/a$b", "/a$b", true),
        ("/a**c$", "/abc", true),
        ("/*/*/c", "/a/c", false),
        ("/*a*a$", "/a", false),
        ("/*aab", "/aaab", true),
        ("*", "/", true),
        ("*.gif$", "/a.gif", true),
        ("/$", "/", true),
        ("a", "/a", false),
    ] {
        let file = format!("User-agent: *\nDisallow: {pattern}");
        check(&file, path, expected.then_some((2, false)));
    }
}

#[test]
fn groups_are_those_of_the_product_or_of_everybody() {
    let all = "user-agent: *\ndisallow: /all\n";
    let own =
        "user-agent: x\nuser-agent: HARVEST/1.0\ndisallow: /own\nuser-agent: x\ndisallow: /x\n";
    check(all, "/all", Some((2, false)));
    check(&format!("{all}{own}"), "/all", None);
    check(&format!("{own}{all}{own}"), "/own", Some((3, false)));
    check("user-agent: harvester\ndisallow: /", "/", None);
    check("user-agent: *\n\nuser-agent: x\ncrawl-delay: 1\ndisallow: /", "/", Some((5, false)));
    // Empty groups of the product allow everything.
    check("user-agent: *\ndisallow: /\nuser-agent: harvest\n", "/", None);
}

#[test]
fn delays_and_sitemaps_are_bounded() {
    for (value, expected) in [
        ("10", Some(10_000)),
        ("0.5", Some(500)),
        ("0", Some(0)),
        ("1e300", Some(CRAWL_DELAY_MS_MAX)),
        ("inf", Some(CRAWL_DELAY_MS_MAX)),
        ("-1", None),
        ("NaN", None),
        ("ten", None),
        ("", None),
    ] {
        let file = format!("user-agent: *\ncrawl-delay: {value}");
        let rules = Rules::parse(file.as_bytes(), PRODUCT);
        assert_eq!(rules.crawl_delay_ms(), expected, "{value:?}");
    }
    let two = Rules::parse(b"user-agent: *\ncrawl-delay: 3\nuser-agent: a\ncrawl-delay: 2", "a");
    assert_eq!(two.crawl_delay_ms(), Some(2_000));
    let many = "Sitemap: http://h.example/s.xml\n".repeat(SITEMAPS_MAX + 1);
    let rules = Rules::parse(many.as_bytes(), PRODUCT);
    assert_eq!(rules.sitemaps().len(), SITEMAPS_MAX);
    assert_eq!(rules.sitemaps()[0], "http://h.example/s.xml");
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    let head = b"user-agent: *\ndisallow: /a\ndisallow: /b";
    let mut file = vec![b'\n'; BYTES_MAX - head.len()];
    file.extend_from_slice(head);
    assert!(Rules::parse(&file, PRODUCT).rule(&url("/b")).is_some());
    // The last line goes on beyond the limit, so that what it says is not known.
    file.extend_from_slice(b"c\ndisallow: /d");
    let rules = Rules::parse(&file, PRODUCT);
    assert!(rules.rule(&url("/a")).is_some());
    assert!(rules.rule(&url("/bc")).is_none());
    assert!(rules.rule(&url("/d")).is_none());
}

#[test]
fn an_answer_means_rules_everything_or_nothing() {
    let file = Answer::Body(b"user-agent: *\ndisallow: /a");
    let (a, b) = (url("/a"), url("/b"));
    for (answer, expected) in [
        (file, [false, true]),
        (Answer::Status(404), [true, true]),
        (Answer::Status(403), [true, true]),
        (Answer::Status(302), [true, true]),
        (Answer::Status(429), [false, false]),
        (Answer::Status(500), [false, false]),
        (Answer::Status(503), [false, false]),
        (Answer::Unreachable, [false, false]),
    ] {
        let known = Known::new(answer, PRODUCT, 0);
        let allowed = [&a, &b].map(|it| known.decide(it, HOUR_MS).is_allowed());
        assert_eq!(allowed, expected, "{answer:?}");
        assert_eq!(known.decide(&url("/robots.txt"), 0), Decision::Itself);
    }
}

#[test]
fn a_file_that_cannot_be_had_stops_the_host_for_thirty_days() {
    let mut known = Known::new(Answer::Body(b"user-agent: *\ndisallow: /a"), PRODUCT, 0);
    assert_eq!(known.due_ms(), FETCH_MS);
    known.update(Answer::Unreachable, PRODUCT, FETCH_MS);
    known.update(Answer::Status(503), PRODUCT, FETCH_MS + RETRY_MS);
    assert_eq!(known.due_ms(), FETCH_MS + 2 * RETRY_MS);
    let end_ms = FETCH_MS + LOST_MS;
    assert_eq!(known.state(end_ms), State::Unreachable { since_ms: FETCH_MS });
    // What was read before holds again.
    assert!(!known.decide(&url("/a"), end_ms + 1).is_allowed());
    assert_eq!(known.decide(&url("/b"), end_ms + 1), Decision::NoLine);
    known.update(Answer::Status(410), PRODUCT, end_ms);
    assert_eq!(known.state(end_ms), State::Missing);
    let never_had = Known::new(Answer::Unreachable, PRODUCT, 0);
    assert_eq!(never_had.state(LOST_MS), State::Unreachable { since_ms: 0 });
    assert_eq!(never_had.state(LOST_MS + 1), State::Missing);
}

/// Matching as it is defined, in exponential time.
fn matches_slowly(pattern: &[u8], path: &[u8]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((b'$', [])) => path.is_empty(),
        Some((b'*', rest)) => (0..=path.len()).any(|at| matches_slowly(rest, &path[at..])),
        Some((byte, rest)) => path.first() == Some(byte) && matches_slowly(rest, &path[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_match_as_defined(pattern in "/[ab*/]{0,8}[$]?", path in "/[ab/]{0,10}") {
        let normal = pattern::normal(pattern.as_bytes());
        let expected = matches_slowly(normal.as_bytes(), path.as_bytes());
        prop_assert_eq!(pattern::matches(&normal, &path), expected);
    }

    #[test]
    fn a_path_is_matched_by_itself(path in "/x[ -~ä]{0,20}") {
        let url = url(&path.replace(['\\', '#', '?'], "x"));
        let literal = url.path().replace('*', "%2A").replace('$', "%24");
        let file = format!("user-agent: *\ndisallow: {literal}$");
        prop_assert!(Rules::parse(file.as_bytes(), PRODUCT).rule(&url).is_some());
    }
}
