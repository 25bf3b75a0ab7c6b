//! Tests of the query language.

use proptest::prelude::*;

use super::*;

/// Renders a tree with its nesting.
fn shape(node: &Node) -> String {
    let list = |nodes: &[Node]| nodes.iter().map(shape).collect::<Vec<_>>().join(" ");
    match node {
        Node::All => "all".to_owned(),
        Node::Leaf(leaf) => {
            let field = leaf.field.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
            let value = match &leaf.value {
                Value::Word(text) => text.clone(),
                Value::Phrase(text) => format!("'{text}'"),
                Value::Prefix(text) => format!("prefix({text})"),
                Value::Fuzzy(text, edits) => format!("fuzzy{edits}({text})"),
                Value::Regex(text) => format!("regex({text})"),
                Value::Range(low, high) => {
                    let bound = |bound: &Bound| match bound {
                        Bound::Open => "Open".to_owned(),
                        Bound::Inclusive(text) => format!("={text}"),
                        Bound::Exclusive(text) => format!("<>{text}"),
                    };
                    format!("range({},{})", bound(low), bound(high))
                }
                Value::Present => "present".to_owned(),
            };
            format!("{field}{value}")
        }
        Node::And(nodes) => format!("(and {})", list(nodes)),
        Node::Beside(nodes) => format!("({})", list(nodes)),
        Node::Or(nodes) => format!("(or {})", list(nodes)),
        Node::Not(node) => format!("(not {})", shape(node)),
        Node::Prefer { required, optional } => {
            format!("(prefer {} | {})", list(required), list(optional))
        }
    }
}

/// Parses `text` and compares the tree, or the error's position in `«»` and its message.
fn check(text: &str, expected: &str) {
    let seen = match parse(text) {
        Ok(query) => {
            let again = query.to_string();
            assert_eq!(parse(&again), Ok(query.clone()), "{text:?} written as {again:?}");
            shape(&query.root)
        }
        Err(error) => {
            let (before, rest) = text.split_at(error.offset);
            let (spot, after) = rest.split_at(error.len);
            format!("{before}«{spot}»{after}: {}", error.message)
        }
    };
    assert_eq!(seen, expected, "{text:?}");
}

#[test]
fn words_side_by_side_are_all_wanted() {
    check("", "all");
    check("  ", "all");
    check("*", "all");
    check("gather", "gather");
    check(" gather\tstream ", "(gather stream)");
    check("and or not to", "(and or not to)");
    check("naïve café 日本語", "(naïve café 日本語)");
}

#[test]
fn not_binds_tighter_than_and_than_or() {
    check("a OR b AND c", "(or a (and b c))");
    check("a b OR c d AND e", "(or (a b) (and (c d) e))");
    check("a AND NOT b OR c", "(or (and a (not b)) c)");
    check("(a OR b) c", "((or a b) c)");
    check("NOT a b", "((not a) b)");
    check("NOT (a b)", "(not (a b))");
    check("NOT NOT a", "a");
    check("a AND (b AND (c))", "(and a b c)");
    check("a b AND (c d)", "(and (a b) (c d))");
    check("a (b (c d))", "(a b c d)");
    check("a (b AND c)", "(a (and b c))");
    check("a OR(b)", "(or a b)");
}

#[test]
fn signs() {
    check("a -b", "(a (not b))");
    check("--(a) --\"a b\"", "(a 'a b')");
    check("--no-ff -b", "(--no-ff (not b))");
    check("a ---no-ff +-NOT b", "(prefer (not --no-ff) b | a)");
    check("-(a OR b) c", "((not (or a b)) c)");
    check("+a b -c d", "(prefer a (not c) | b d)");
    check("+a +b", "(and a b)");
    check("+a +b -c AND d", "(and a b (not c) d)");
    check("+(-a) b", "(prefer (not a) | b)");
    check("+a (NOT b)", "(prefer a | (not b))");
    check("a OR +b c", "(or a (prefer b | c))");
    check("a - b + c", "(a - b + c)");
    check("c++ C# .NET foo-bar", "(c++ C# .NET foo-bar)");
    check("+C++ -C++ C++*", "(prefer C++ (not C++) | prefix(C++))");
}

#[test]
fn an_empty_pair_of_parentheses_belongs_to_the_word_before_it() {
    check("print() foo_bar().x()", "(print() foo_bar().x())");
    check("(f()) -g() f()~1", "(f() (not g()) fuzzy1(f()))");
    check("title:f() \"f()\"", "(title=f() 'f()')");
    check("f(x) f\\()", "f(x) f\\(«)»: this parenthesis closes nothing");
    assert_eq!(parse("f() --no-ff \\AND()").unwrap().to_string(), "f() --no-ff \\AND()");
    check("title:()", "title:«()»: nothing between the parentheses");
    check("NOT()", "NOT«()»: nothing between the parentheses");
}

#[test]
fn fields() {
    check("title:harvest", "title=harvest");
    check("File-Size:12", "File-Size=12");
    check("title:\"change log\"", "title='change log'");
    check("title:(a OR \"b c\" body:d)", "(or title=a (title='b c' body=d))");
    check("keywords:*", "keywords=present");
    check("-title:a", "(not title=a)");
    check("http://a.org/b?c=d", "http://a.org/b?c=d");
    check("std::io 12:30", "(std::io 12:30)");
    check("re\\: x", "(re: x)");
    check(
        "title: a",
        "«title:» a: expected a word right after title: without a space; write title\\: to look for the colon's word itself",
    );
    check("a title:", "a «title:»: expected a word right after title:");
}

#[test]
fn forms_of_a_word() {
    check("harv*", "prefix(harv)");
    check("harvst~ a~1 b~2", "(fuzzy1(harvst) fuzzy1(a) fuzzy2(b))");
    check("~user a~b", "(~user a~b)");
    check("a\\*b a\\~1 \\AND", "(a*b a~1 AND)");
    check("foo\\ bar", "foo bar");
    check("title:harv* title:h~2", "(title=prefix(harv) title=fuzzy2(h))");
    check(
        "a h*v b",
        "a h«*»v b: a * stands for any ending, so only at the end of a word; write /…/ for more",
    );
    check("word~3", "word«~3»: expected ~1 or ~2: one edit or two");
    check("\"a b\"~2", "\"a b\"«~»2: a phrase is looked for as written: expected a space after it");
}

#[test]
fn regular_expressions_and_paths() {
    check("/har.est/", "regex(har.est)");
    check("title:/a(b|c)/ d", "(title=regex(a(b|c)) d)");
    check("(/a\\/b/)", "regex(a/b)");
    check("/usr/share/doc", "/usr/share/doc");
    check("/usr", "/usr");
    check(
        "a /[bc",
        "a «/[bc»: this regular expression is never closed; expected a / at its end, before a space",
    );
    check("a /b(/ c", "a «/b(/» c: not a regular expression: unclosed group");
    check(
        "/^a/",
        "«/^a/»: ^ is not known here: a regular expression is held against whole words, from beginning to end",
    );
    check(
        "/a+?/",
        "«/a+?/»: lazy repetition is not known here: a regular expression is held against whole words, from beginning to end",
    );
    check(
        "/((a{99}){99}){99}/",
        "«/((a{99}){99}){99}/»: the regular expression is too large; write a simpler one",
    );
}

#[test]
fn ranges() {
    check("size:>1000", "size=range(<>1000,Open)");
    check("size:<=10k", "size=range(Open,=10k)");
    check("size:[1 TO 9]", "size=range(=1,=9)");
    check("size:{1 TO *]", "size=range(<>1,Open)");
    check("size:(>1 <9)", "(size=range(<>1,Open) size=range(Open,<>9))");
    check("modified:2024-01-01..2024-12-31", "modified=range(=2024-01-01,=2024-12-31)");
    check("modified:2024.. year:..2020", "(modified=range(=2024,Open) year=range(Open,=2020))");
    check("year:2024", "year=2024");
    check("shoe-size:4..5 file:../a..b", "(shoe-size=range(=4,=5) file=../a..b)");
    check("size:>x", "size:«>x»: expected a number such as 2024 or 10k for size");
    check(
        "modified:2024-13",
        "modified:«2024-13»: expected a date such as 2024, 2024-03 or 2024-03-09 for modified",
    );
    check("title:>a", "title:«>a»: title has no order: ranges are for numbers and dates");
    check("size:[1 9]", "size:«[1 9]»: expected a range [FROM TO UNTIL], with * for an open end");
    check("size:[1 TO", "size:«[»1 TO: this range is never closed; expected [FROM TO TO]");
    check("year:20*", "year:«20*»: expected a number such as 2024 or 10k for year");
}

#[test]
fn an_error_points_at_the_mistake() {
    check("(a b", "«(»a b: this parenthesis is never closed");
    check("a) b", "a«)» b: this parenthesis closes nothing");
    check("a ()", "a «()»: nothing between the parentheses");
    check("a OR", "a «OR»: expected a word after OR; write it in small letters to look for it");
    check(
        "AND a",
        "«AND» a: expected a word before this operator; write it in small letters to look for it",
    );
    check(
        "a OR AND b",
        "a OR «AND» b: expected a word before this operator; write it in small letters to look for it",
    );
    check("a NOT", "a «NOT»: expected a word after NOT; write it in small letters to look for it");
    check("a \"b c", "a «\"»b c: this quotation mark is never closed");
    check("a \"\"", "a «\"\"»: nothing between the quotation marks");
}

#[test]
fn carets_stand_under_the_mistake() {
    let text = "naïve\t(日本 x";
    let error = parse(text).unwrap_err();
    assert_eq!(error.caret(text), "naïve (日本 x\n      ^");
    assert_eq!(error.to_string(), "this parenthesis is never closed, at byte 7 of the query");
    let end = QueryError { offset: 3, len: 0, message: String::new() };
    assert_eq!(end.caret("abc"), "abc\n   ^");
}

#[test]
fn size_is_bounded() {
    let deep = format!("{}a{}", "(".repeat(DEPTH_MAX + 1), ")".repeat(DEPTH_MAX + 1));
    assert!(parse(&deep).unwrap_err().message.contains("deeper"));
    assert!(parse(&"-".repeat(QUERY_BYTES_MAX)).unwrap_err().message.contains("deeper"));
    assert!(parse(&"a ".repeat(LEAVES_MAX)).is_ok());
    assert!(parse(&"a ".repeat(LEAVES_MAX + 1)).unwrap_err().message.contains("more than"));
    assert!(parse(&"a* ".repeat(PATTERNS_MAX)).is_ok());
    let too_many = |query: &str, offset| {
        let error = parse(query).unwrap_err();
        assert!(error.message.contains("more than 16 patterns"), "{error}");
        assert_eq!(error.offset, offset, "{query}");
    };
    too_many(&"a* ".repeat(PATTERNS_MAX + 1), 3 * PATTERNS_MAX);
    // Everything that needs its own automaton in the index counts.
    assert!(parse(&format!("{}~1", ["a"; PATTERNS_MAX].join("-"))).is_ok());
    too_many(&format!("x {}~1", ["a"; PATTERNS_MAX + 1].join("-")), 2);
    too_many(&format!("{}~2", "日".repeat(PATTERNS_MAX + 1)), 0);
    too_many("/a.c/ /b.d/ /c.e/ a* b* c* d* e*", 30);
    let long = "é".repeat(QUERY_BYTES_MAX);
    let error = parse(&long).unwrap_err();
    assert_eq!((error.offset, error.len), (QUERY_BYTES_MAX, QUERY_BYTES_MAX));
}

#[test]
fn numbers_and_dates() {
    assert_eq!(number("10k"), Some(10_240));
    assert_eq!(number("3GiB"), Some(3 << 30));
    assert_eq!(number("-5"), Some(-5));
    assert_eq!(number("k"), None);
    assert_eq!(number("99999999999999999999"), None);
    let day = 86_400;
    assert_eq!(period("1970-01-02"), Some((day, 2 * day - 1)));
    assert_eq!(period("1970-02"), Some((31 * day, 59 * day - 1)));
    assert_eq!(period("1970"), Some((0, 365 * day - 1)));
    assert_eq!(period("1970-01-01T00:00:10Z"), Some((10, 10)));
    assert_eq!(period("1700000000"), Some((1_700_000_000, 1_700_000_000)));
    assert_eq!(period("1970-13"), None);
    assert_eq!(period("1970-02-30"), None);
    assert_eq!(period("日本"), None);
}

/// Returns text made of the tokens of the language.
fn syntax() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" "),
        Just("a"),
        Just("AND"),
        Just("OR"),
        Just("NOT"),
        Just("TO"),
        Just("("),
        Just(")"),
        Just("\""),
        Just("()"),
        Just("--"),
        Just("\\"),
        Just("/"),
        Just("*"),
        Just("~"),
        Just("1"),
        Just("2024"),
        Just("+"),
        Just("-"),
        Just(":"),
        Just("title:"),
        Just("size:"),
        Just("x:"),
        Just(">"),
        Just("<="),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(".."),
        Just("."),
        Just("é"),
        Just("["),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn reads_back(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(query) => {
            let written = query.to_string();
            // Escapes may make a query longer than what was typed.
            if written.len() <= QUERY_BYTES_MAX {
                prop_assert_eq!(parse(&written), Ok(query), "written as {:?}", written);
            }
        }
        Err(error) => {
            prop_assert!(
                text.is_char_boundary(error.offset) || text.len() < error.offset + error.len
            );
            prop_assert!(error.offset + error.len <= text.len());
            prop_assert!(error.caret(text).ends_with('^'));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_reads_back(text in any::<String>()) {
        reads_back(&text)?;
    }

    #[test]
    fn any_syntax_reads_back(text in syntax()) {
        reads_back(&text)?;
    }
}
