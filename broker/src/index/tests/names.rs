//! Tests of names in which signs matter: they are found as they are written.

use super::*;

#[test]
fn names_with_signs_are_found_as_they_are_written() {
    let site = Site::new();
    let texts = [
        ("node", "Servers in node.js, since version 18.19.1"),
        ("apart", "The js of each node; chapter 18, section 19, page 1"),
        ("call", "Then foo_bar() is called"),
        ("words", "A foo in every bar"),
        ("cpp", "Templates of C++ and C++17"),
        ("c", "Pointers of C, since 17 years"),
        ("option", "Merge with --no-ff, always"),
        ("no", "There is no such ff"),
        ("version", "Python 3.11.2 and libfoo-1.2.3-rc4"),
        ("numbers", "3 of 11, 2 of 4, and libfoo 1 or 2 or 3"),
    ];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}"), &[("Partial-Text", text)]);
    }
    site.apply();
    for (query, expected) in [
        ("node.js", "node"),
        ("\"node.js\"", "node"),
        ("node js", "apart node"),
        ("18.19.1", "node"),
        ("18.19", "node"),
        ("foo_bar()", "call"),
        ("foo_bar", "call"),
        ("+foo_bar()", "call"),
        ("\"foo_bar()\"", "call"),
        ("foo bar", "call words"),
        ("C++", "cpp"),
        ("c++17", "cpp"),
        ("C", "c cpp"),
        ("--no-ff", "option"),
        ("merge --no-ff", "option"),
        ("3.11.2", "version"),
        ("1.2.3", "version"),
        ("libfoo-1.2.3", "version"),
        ("libfoo-1.2.3-rc4", "version"),
        ("v1.2.3", ""),
    ] {
        site.check(query, expected);
    }
}
