//! Hostile texts, sources and catalogs: macros that double, endless lines, expressions that
//! backtrack, revisions in a circle.

use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("line.txt", "", || b"word ".repeat(20 * MIB)),
    case("letter.txt", "", || vec![b'a'; 100 * MIB]),
    case("lines.txt", "", || vec![b'\n'; 31 * MIB]),
    case("nul.txt", "", || b"words\0".repeat(MIB)),
    case("invalid.txt", "", || {
        (0..32 * MIB).map(|it| u8::try_from(it % 251).unwrap() | 0x80).collect()
    }),
    case("lone.txt", "", || [&b"\xfe\xff"[..], &b"\xd8\x00".repeat(4 * MIB)].concat()),
    case("koi8.txt", "", || b"\xd0\xd2\xc9\xd7\xc5\xd4 \x81\xff ".repeat(MIB)),
    case("accents.txt", "", || "e\u{301}\u{302}\u{303}".repeat(2 * MIB).into_bytes()),
    case("mark.txt", "", || [b"\xef\xbb\xbf".repeat(MIB), b"\xff\xfe".repeat(MIB)].concat()),
    case("overstruck.txt", "", || b"a\x08a_\x08b".repeat(4 * MIB)),
    case("tabs.txt", "", || b"a\t".repeat(10 * MIB)),
    case("README", "", || b"=====\nx\n-----\n".repeat(MIB)),
    case("rfc9999.txt", "", || {
        [
            &b"Network Working Group\nRequest for Comments: 9999\n\n"[..],
            &b"1.  A\n\nAbstract\n\n\x0c".repeat(MIB),
        ]
        .concat()
    }),
    case("rfc9998.txt", "", || {
        [&b"Request for Comments: 9998\n\n"[..], &b"          a          ".repeat(MIB)].concat()
    }),
    case("ChangeLog", "", || b"2001-02-03  A <a@b>\n\n\t* x.c (f): y\n".repeat(600_000)),
    case("paths.patch", "", || {
        b"diff -u a b\n--- a/x\n+++ b/x\n@@ -1,9999999999999999999 +1 @@\n-x\n+y\n".repeat(300_000)
    }),
    case("line.patch", "", || {
        [&b"--- a\n+++ b\n@@ -1 +1 @@\n+"[..], &vec![b'x'; 30 * MIB]].concat()
    }),
    case("circle.c,v", "", || {
        b"head 1.1;\naccess;\nsymbols;\nlocks;\n\n1.1\ndate 2001.01.01.00.00.00; author a; state Exp;\nbranches 1.1 1.2;\nnext 1.2;\n\n1.2\ndate 2001.01.01.00.00.00; author a; state Exp;\nbranches 1.1;\nnext 1.1;\n\ndesc\n@@\n\n1.1\nlog\n@x@\ntext\n@y@\n".to_vec()
    }),
    case("many.c,v", "", || {
        let revision = |it: usize| {
            format!(
                "1.{it}\ndate 2001.01.01.00.00.00; author a{it}; state Exp;\nbranches;\nnext 1.{};\n\n",
                it + 1
            )
        };
        format!(
            "head 1.1;\naccess;\nsymbols;\nlocks;\n\n{}desc\n@{}",
            (1..300_000).map(revision).collect::<String>(),
            "@@".repeat(MIB)
        )
        .into_bytes()
    }),
    case("s.deltas", "", || {
        b"\x01h12345\n\x01s 1/1/1\n\x01d D 1.1 01/01/01 00:00:00 a 1 1\n\x01e\n".repeat(500_000)
    }),
    case("macros.tex", "", || {
        let define = |it: u8| {
            format!("\\newcommand{{\\{}}}{{\\{1}\\{1}\\{1}}}\n", char::from(it + 1), char::from(it))
        };
        format!("\\documentclass{{article}}\n\\newcommand{{\\a}}{{ha\\z}}\n{}\\title{{\\z}}\\begin{{document}}\\z\\z\\end{{document}}", (0..25).map(|it| define(b'a' + it)).collect::<String>()).into_bytes()
    }),
    case("itself.tex", "", || {
        b"\\documentclass{article}\\def\\x{\\x\\x}\\input{itself}\\title{\\x}\\begin{document}\\x\\loop\\iftrue\\repeat".repeat(1000)
    }),
    case("deep.tex", "", || {
        [&b"\\documentclass{article}\\begin{document}"[..], &b"{\\bf ".repeat(4 * MIB)].concat()
    }),
    case("math.tex", "", || {
        [
            &b"\\documentclass{article}\\begin{document}"[..],
            &b"$\\frac{a}{$ \\begin{x} \\verb|".repeat(MIB),
        ]
        .concat()
    }),
    case("environments.tex", "", || {
        [
            &b"\\documentclass{article}\n"[..],
            &b"\\begin{abstract}\\begin{verbatim}\\section{x}".repeat(MIB / 2),
        ]
        .concat()
    }),
    case("menu.texi", "", || {
        [&b"\\input texinfo\n"[..], &b"@menu\n@macro x\n@x{@x{\n@node a, b\n".repeat(MIB / 2)]
            .concat()
    }),
    case("brackets.json", "", || {
        format!("{{\"a\": \"x http://a{}\"}}", ")".repeat(8 * MIB)).into_bytes()
    }),
    case("authors.ipynb", "", || {
        let authors = "\"a\",".repeat(6 * MIB);
        format!("{{\"cells\":[],\"metadata\":{{\"authors\":[{authors}\"b\"]}},\"nbformat\":4}}")
            .into_bytes()
    }),
    case("long-keys.json", "", || {
        format!("{{\"{}\": [{}]}}", "k".repeat(MIB), "1,".repeat(300)).into_bytes()
    }),
    case("doubling.bib", "", || {
        let string = |it: usize| format!("@string{{s{} = s{it} # s{it}}}\n", it + 1);
        format!(
            "@string{{s0 = \"words \"}}\n{}@article{{a, title = s60, author = s60 # s60}}\n",
            (0..60).map(string).collect::<String>()
        )
        .into_bytes()
    }),
    case("strings.bib", "", || {
        let string = |it: usize| {
            format!(
                "@string{{s{it} = \"journal {it}\"}}\n@article{{k{it}, title = s{it} # {{x}}, journal = s{it}}}\n"
            )
        };
        (0..100_000).map(string).collect::<String>().into_bytes()
    }),
    case("circle.bib", "", || {
        b"@string{a = b}\n@string{b = a}\n@article{x, title = a, crossref = {y}}\n@article{y, title = b, crossref = {x}}\n".to_vec()
    }),
    case("braces.bib", "", || [&b"@article{a, title = "[..], &b"{".repeat(8 * MIB)].concat()),
    case("names.bib", "", || {
        format!("@book{{a, author = {{{}}}}}", "A, B and ".repeat(2 * MIB)).into_bytes()
    }),
    case("ats.bib", "", || [&b"@article{a,\n"[..], &b"@".repeat(16 * MIB)].concat()),
    case("record.ris", "", || {
        [&b"TY  - GEN\n"[..], &b"AU  - A, B\nKW  - x\n".repeat(MIB)].concat()
    }),
    case("records.ris", "limit", || b"TY  - GEN\nTI  - A\nER  - \n".repeat(MIB)),
    case("lengths.mrc", "limit", || b"99999nam a2299998 a 4500".repeat(MIB)),
    case("directory.mrc", "broken|limit", || {
        let entries = "245999999999".repeat(8_000);
        format!("99999cam a2296025 a 4500{entries}\u{1e}\u{1d}").repeat(50).into_bytes()
    }),
    case("deep.marcxml", "", || {
        [
            &b"<?xml version=\"1.0\"?><collection xmlns=\"http://www.loc.gov/MARC21/slim\">"[..],
            &b"<record><datafield tag=\"245\"><subfield>".repeat(400_000),
        ]
        .concat()
    }),
    case("sizes.soif", "broken", || {
        b"@FILE { http://h.example/x\nTitle{18446744073709551615}:\tx\n}\n".repeat(100_000)
    }),
    case("records.soif", "", || b"@FILE { http://h.example/x\nTitle{1}:\tx\n}\n".repeat(600_000)),
    case("fields.lsm", "", || {
        [&b"Begin4\nTitle: x\n"[..], &b"Description: y\n z\n".repeat(MIB)].concat()
    }),
    case("templates.iafa", "", || {
        b"Template-Type: DOCUMENT\nHandle: x\nTitle: y\nAuthor-Name-v1: z\n\n".repeat(400_000)
    }),
    case("columns.csv", "", || b"a,".repeat(15 * MIB)),
    case("quotes.csv", "", || [&b"a,b,c\n1,2,\""[..], &b"x,y\"\"\n".repeat(5 * MIB)].concat()),
    case("rows.csv", "", || b"a\tb\n".repeat(7 * MIB)),
    case("groups.rtf", "", || [&b"{\\rtf1 "[..], &b"{\\b ".repeat(5 * MIB)].concat()),
    case("binary.rtf", "", || {
        b"{\\rtf1 {\\pict\\bin2147483647 xx}\\bin-1 \\u-99999999999 \\'zz words}".to_vec()
    }),
    case("tables.rtf", "", || {
        [&b"{\\rtf1 {\\fonttbl"[..], &b"{\\f1\\fcharset999 x;}".repeat(MIB)].concat()
    }),
    case("objects.rtf", "", || {
        [&b"{\\rtf1 "[..], &b"{\\*\\generator x{\\info{\\title y}".repeat(MIB / 2)].concat()
    }),
    case("macros.1", "", || {
        b".TH X 1\n.de A\n.A\n.A\n..\n.A\n.so macros.1\n.while 1 .A\n.ds x \\*x\\*x\n\\*x\n"
            .repeat(100_000)
    }),
    case("escapes.1", "", || {
        [&b".TH X 1\n.SH NAME\n"[..], &b"\\f[\\*(\\s+9\\h'\\w'".repeat(MIB)].concat()
    }),
    case("line.1", "", || {
        [&b".TH X 1\n.SH NAME\nx \\- "[..], &b"\\&\\\n".repeat(8 * MIB)].concat()
    }),
    case("quotes.md", "", || b"> ".repeat(8 * MIB)),
    case("stars.md", "", || b"*a **b ".repeat(2 * MIB)),
    case("brackets.md", "", || b"[".repeat(10 * MIB)),
    case("links.md", "", || b"[a](".repeat(4 * MIB)),
    case("references.md", "", || {
        let reference = |it: usize| format!("[a{it}]: http://h{it}.example/ 'x'\n");
        format!(
            "{}\n{}",
            (0..100_000).map(reference).collect::<String>(),
            "[a1][a2]".repeat(500_000)
        )
        .into_bytes()
    }),
    case("ticks.md", "", || {
        (1..5_000).map(|it| "`".repeat(it) + " ").collect::<String>().into_bytes()
    }),
    case("lists.md", "", || {
        (0..4_000).map(|it| " ".repeat(it * 2) + "- x\n").collect::<String>().into_bytes()
    }),
    case("cells.md", "", || [&b"|a|b|\n|-|-|\n"[..], &b"|".repeat(10 * MIB)].concat()),
    case("tags.md", "", || b"<a <!-- <?x <![CDATA[".repeat(MIB)),
    case("front.md", "", || {
        [&b"---\ntitle: &a [*a, *a]\n"[..], &b"b: &b\n  ".repeat(MIB)].concat()
    }),
    case("deep.rst", "", || {
        (0..5_000).map(|it| " ".repeat(it) + ".. note::\n\n").collect::<String>().into_bytes()
    }),
    case("substitutions.rst", "", || {
        [&b".. |a| replace:: |a| |a|\n\n"[..], &b"|a| `x <y_>`_ ::\n".repeat(MIB)].concat()
    }),
    case("titles.rst", "", || b"A\n=\n\nB\n-\n\n.. include:: titles.rst\n".repeat(400_000)),
    case("itself.adoc", "", || {
        [
            &b"= T\n:a: {a}{a}\n:b: {a}{a}\ninclude::itself.adoc[]\n\n"[..],
            &b"{a} {b} ifdef::a[]\n".repeat(MIB),
        ]
        .concat()
    }),
    case("blocks.adoc", "", || {
        [&b"= T\n\n== S\n"[..], &b"====\n----\n|===\n* x\n** y\n".repeat(MIB)].concat()
    }),
    case("comment.c", "", || b"/*".repeat(15 * MIB)),
    case("functions.c", "", || {
        (0..500_000)
            .map(|it| format!("int f{it}(int a) {{\n  return g{it}(a);\n}}\n"))
            .collect::<String>()
            .into_bytes()
    }),
    case("braces.c", "", || b"struct a { int (*f)(".repeat(MIB)),
    case("line.js", "", || b"function a(b){return b}var c='\\';".repeat(MIB)),
    case("string.py", "", || [&b"\"\"\"x\n"[..], &b"'\\\n\"\"".repeat(4 * MIB)].concat()),
    case("spaces.py", "", || [&b"def"[..], &vec![b' '; 30 * MIB], b"x"].concat()),
    case("nested.rs", "", || b"/* // \" r#\"".repeat(2 * MIB)),
    case("pod.pl", "", || b"=head1 NAME\n\nx - y\n\n=begin\n\n".repeat(MIB / 2)),
    case("here.sh", "", || [&b"#!/bin/sh\n"[..], &b"cat <<EOF\n$(( `x\n".repeat(MIB)].concat()),
    case("Makefile", "", || [b"a: b\\\n".repeat(MIB), b"X = $(X)$(X)\n".repeat(MIB)].concat()),
    case("settings.toml", "", || b"[[a]]\nb = [[[[\n".repeat(MIB)),
    case("license.c", "", || {
        [&b"/*\n * Copyright (c) "[..], &b"2001, ".repeat(4 * MIB), b"\n */\n"].concat()
    }),
    case("faq-list.txt", "", || b"Q: why?\nA: so\n\nSubject: 1) x\n".repeat(600_000)),
];
