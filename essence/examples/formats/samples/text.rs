//! Samples that are text.

use formats::{Language, Type};

use super::{Sample, sample};

/// A sample for each type of text.
pub(crate) fn all() -> Vec<Sample> {
    [prose(), markup(), sources(), around_sources(), messages(), catalogs(), others()]
        .into_iter()
        .flatten()
        .collect()
}

fn prose() -> Vec<Sample> {
    vec![
        sample(Type::Text, "note.txt", "A short note\n\nAbout the word harvest.\n"),
        sample(
            Type::FormattedText,
            "ls.txt",
            "N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n     _\u{8}l_\u{8}s - list files\n",
        ),
        sample(Type::Readme, "README", "Sort\n====\n\nSorts lines, faster.\n"),
        sample(
            Type::Faq,
            "sort-faq.txt",
            "Questions about sort\n\n1. Why is it fast?\n\nIt is short.\n",
        ),
        sample(
            Type::Rfc,
            "rfc1945.txt",
            "Network Working Group                  T. Berners-Lee\nRequest for Comments: 1945                    MIT/LCS\n\
             Category: Informational                      May 1996\n\n\n        Hypertext Transfer Protocol -- HTTP/1.0\n\n\
             Abstract\n\n   A protocol with lightness.\n\nContents\n",
        ),
        sample(
            Type::InternetDraft,
            "draft-ietf-http-01.txt",
            "INTERNET-DRAFT                            T. Berners-Lee\n\n        A Protocol\n\nAbstract\n\n   In short.\n\n",
        ),
        sample(
            Type::Fyi,
            "fyi17.txt",
            "Network Working Group                        G. Malkin\nRequest for Comments: 1391\nFYI: 17\n\n        The Tao of IETF\n\n\
             Abstract\n\n   A guide.\n\n",
        ),
        sample(
            Type::ChangeLog,
            "ChangeLog",
            "1995-05-02  A. Body  <a@h.example>\n\n\t* sort.c (f): Faster.\n",
        ),
        sample(Type::Configuration, "sort.conf", "# How lines are sorted\norder = \"up\"\n"),
        sample(Type::DotFile, ".sortrc", "# How lines are sorted\norder up\n"),
        sample(Type::Data, "towns.dat", "Ulm 126790\nBonn 336465\n"),
        sample(Type::Csv, "towns.csv", "Town,People\nUlm,126790\nBonn,336465\n"),
    ]
}

fn markup() -> Vec<Sample> {
    vec![
        sample(
            Type::Html,
            "page.html",
            "<!DOCTYPE html><html lang=en><head><title>About knots</title><meta name=author content='Ann Other'>\
             <meta name=description content='How they hold.'><meta name=keywords content='rope, knot'>\
             <meta name=DC.date content='1995'></head><body><h1>Knots</h1><p>They <a href='../rope.html'>hold</a>.</body></html>",
        ),
        sample(
            Type::Markdown,
            "page.md",
            "# Knots\n\nHow they [hold](rope.md).\n\n## Bends\n\nTwo ropes.\n",
        ),
        sample(
            Type::Rst,
            "page.rst",
            "Knots\n=====\n\n:Author: Ann Other\n:Date: 2024-01-02\n\nHow they `hold <rope.html>`__.\n\nBends\n-----\n\nTwo ropes.\n",
        ),
        sample(
            Type::AsciiDoc,
            "page.adoc",
            "= Knots\nAnn Other <a@h.example>\nv1.2, 2024-01-02\n:keywords: rope, knot\n\nHow they link:rope.html[hold].\n\n== Bends\n\nTwo ropes.\n",
        ),
        sample(
            Type::Tex,
            "paper.tex",
            "\\documentclass{article}\n\\title{On Knots}\n\\author{Ann Other}\n\\date{March 1995}\n\\begin{document}\n\\begin{abstract}\nThey hold.\n\\end{abstract}\n\
             \\section{Bends}\nTwo ropes, see \\href{http://h.example/}{here}.\n\\end{document}\n",
        ),
        sample(
            Type::Texinfo,
            "knots.texi",
            "\\input texinfo\n@settitle Knots\n@author Ann Other\n@node Top\n@chapter Bends\nTwo ropes.\n@bye\n",
        ),
        sample(
            Type::Rtf,
            "page.rtf",
            "{\\rtf1\\ansi{\\stylesheet{\\s1 heading 1;}}{\\info{\\title Knots}{\\author Ann Other}{\\keywords rope, knot}{\\creatim\\yr2004\\mo5\\dy6}}\
             \\pard\\s1 Bends\\par\\pard Two ropes.\\par}",
        ),
        sample(
            Type::Xml,
            "book.xml",
            "<?xml version=\"1.0\"?>\n<book xmlns=\"http://docbook.org/ns/docbook\"><info><title>Knots</title><author><personname>Ann Other</personname></author></info><chapter><title>Bends</title><para>Two ropes.</para></chapter></book>",
        ),
        sample(
            Type::Svg,
            "knot.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10\"><title>A knot</title><desc>Of one rope.</desc><text>over</text></svg>",
        ),
        sample(
            Type::Sgml,
            "page.sgml",
            "<!DOCTYPE linuxdoc SYSTEM>\n<linuxdoc><article><title>Knots<author>Ann Other<sect>Bends<p>Two ropes.</article></linuxdoc>",
        ),
        sample(
            Type::Json,
            "knot.json",
            "{\"title\": \"Knots\", \"uses\": [\"bends\", \"hitches\"]}",
        ),
        sample(
            Type::Notebook,
            "knots.ipynb",
            "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": [\"# Knots\\n\", \"\\n\", \"About [them](http://w.example/).\"]},\
             {\"cell_type\": \"code\", \"source\": [\"import rope\"], \"outputs\": []}], \"metadata\": {\"authors\": [{\"name\": \"Ann\"}],\
             \"language_info\": {\"name\": \"python\", \"version\": \"3.11.2\"}}, \"nbformat\": 4, \"nbformat_minor\": 5}",
        ),
    ]
}

fn sources() -> Vec<Sample> {
    let source = |language, name, text: &str| sample(Type::Source(language), name, text);
    vec![
        source(
            Language::C,
            "list.c",
            "/*\n * Prints a list.\n * Copyright 1995 Ann Other\n */\n#include <stdio.h>\nstruct list {\n  int x;\n};\nint print_list(struct list *l)\n{\n}\n",
        ),
        source(
            Language::CHeader,
            "list.h",
            "// SPDX-License-Identifier: GPL-2.0-only\n#include \"x.h\"\nextern int print_list(int);\n",
        ),
        source(
            Language::Cpp,
            "list.cc",
            "// Prints a list.\n#include <list>\nclass List {\n};\nint main()\n{\n}\n",
        ),
        source(
            Language::Rust,
            "list.rs",
            "//! Prints a list.\nuse std::io;\npub struct List;\nimpl List {\n    pub fn print() {}\n}\n",
        ),
        source(
            Language::Python,
            "list.py",
            "\"\"\"Prints a list.\"\"\"\nimport os\nclass List:\n    def print(self):\n        pass\n",
        ),
        source(
            Language::Perl,
            "list.pl",
            "# Prints a list.\npackage List;\nuse strict;\nsub print_list {\n}\n",
        ),
        source(
            Language::Shell,
            "list.sh",
            "#!/bin/sh\n# Prints a list.\nprint_list() {\n  ls\n}\n",
        ),
        source(
            Language::JavaScript,
            "list.js",
            "// Prints a list.\nimport x from 'x';\nclass List {}\nfunction print() {}\n",
        ),
        source(
            Language::TypeScript,
            "list.ts",
            "// Prints a list.\nimport { x } from 'x';\ninterface List {}\nfunction print(): void {}\n",
        ),
        source(
            Language::Java,
            "List.java",
            "/** Prints a list. */\npackage x;\nimport java.util.List;\npublic class Main {\n  public void print() {\n  }\n}\n",
        ),
        source(
            Language::Go,
            "list.go",
            "// Package list prints a list.\npackage list\n\nimport \"fmt\"\n\ntype List struct{}\n\nfunc Print() {\n}\n",
        ),
        source(Language::Awk, "list.awk", "# Prints a list.\nfunction out(x) {\n  print x\n}\n"),
        source(Language::Tcl, "list.tcl", "# Prints a list.\nproc out {x} {\n  puts $x\n}\n"),
        source(Language::Other, "list.rb", "# Prints a list.\ndef out(x)\n  puts x\nend\n"),
    ]
}

fn around_sources() -> Vec<Sample> {
    vec![
        sample(
            Type::Makefile,
            "Makefile",
            "# Builds sort.\nall: sort\n\nsort: sort.o\n\tcc -o sort sort.o\n",
        ),
        sample(
            Type::ManPage,
            "ls.1",
            ".TH LS \"1\" \"May 2024\"\n.SH NAME\nls \\- list directory contents\n.SH SEE ALSO\n.BR mv (1)\n",
        ),
        sample(Type::Troff, "letter.ms", ".TL\nOn Knots\n.AU\nAnn Other\n.PP\nThey hold.\n"),
        sample(
            Type::Patch,
            "sort.patch",
            "Subject: Sort faster\nFrom: Ann Other <a@h.example>\n\nIt was slow.\n---\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,3 @@\n-old\n+new\n+newer\n",
        ),
        sample(
            Type::Rcs,
            "sort.c,v",
            "head\t1.1;\naccess;\nsymbols;\nlocks; strict;\ncomment\t@ * @;\n\n1.1\ndate\t95.05.01.10.00.00;\tauthor al;\tstate Exp;\nbranches;\nnext\t;\n\n\
             desc\n@Sorts.\n@\n\n1.1\nlog\n@first\n@\ntext\n@int x;\n@\n",
        ),
        sample(
            Type::Sccs,
            "s.sort.c",
            "\u{1}h12345\n\u{1}s 00001/00001/00001\n\u{1}d D 1.1 95/05/01 10:00:00 al 1 0\n\u{1}c first\n\u{1}e\n\u{1}u\n\u{1}U\n\u{1}t\nSorts.\n\u{1}T\n\u{1}I 1\nint x;\n\u{1}E 1\n",
        ),
    ]
}

fn messages() -> Vec<Sample> {
    let message = "From: Ann Other <a@a.example>\nTo: b@b.example\nSubject: On knots\nDate: Wed, 1 Mar 1995 10:00:00 +0000\nMessage-ID: <1@a.example>\n\nThey hold.\n";
    vec![
        sample(Type::Mail, "knots.eml", message),
        sample(
            Type::Mailbox,
            "knots.mbox",
            format!("From a@a Wed Mar  1 10:00:00 1995\n{message}"),
        ),
        sample(
            Type::News,
            "1234",
            "Path: news.h.example!not-for-mail\nFrom: a@a.example (Ann Other)\nNewsgroups: rec.knots\nSubject: On knots\nDate: 1 Mar 1995 10:00:00 GMT\n\
             Message-ID: <1@a.example>\n\nThey hold.\n",
        ),
        sample(
            Type::ShellArchive,
            "knots.shar",
            "# This is a shell archive\nsed 's/^X//' >'knots.txt' <<'END'\nXThey hold.\nEND\n",
        ),
        sample(Type::Uuencoded, "cat.uu", "begin 644 cat.txt\n#0V%T\n`\nend\n"),
    ]
}

fn catalogs() -> Vec<Sample> {
    vec![
        sample(
            Type::BibTeX,
            "refs.bib",
            "@article{other95,\n author = {Ann Other},\n title = {On {Knots}}, journal = {Ropes}, year = 1995}\n",
        ),
        sample(
            Type::Ris,
            "refs.ris",
            "TY  - JOUR\nID  - other95\nAU  - Other, Ann\nTI  - On knots\nPY  - 1995\nER  - \nTY  - BOOK\nT1  - Bends\nER  - \n",
        ),
        sample(
            Type::CslJson,
            "refs.csl.json",
            "[{\"id\": \"other95\", \"type\": \"article-journal\", \"title\": \"On knots\", \"author\": [{\"family\": \"Other\", \"given\": \"Ann\"}], \"issued\": {\"date-parts\": [[1995]]}}]",
        ),
        sample(
            Type::Marc,
            "books.mrc",
            b"00060nam a2200037 a 4500245002200000\x1e00\x1faOn knots /\x1fcAnn O.\x1e\x1d",
        ),
        sample(
            Type::MarcXml,
            "books.marcxml",
            "<?xml version='1.0'?>\n<collection xmlns='http://www.loc.gov/MARC21/slim'><record><leader>00000nam a2200000 a 4500</leader><controlfield tag='001'>7</controlfield>\
             <datafield tag='245' ind1='0' ind2='0'><subfield code='a'>On knots</subfield></datafield></record></collection>",
        ),
        sample(
            Type::DataCite,
            "ice.datacite.json",
            "{\"doi\": \"10.5072/1\", \"titles\": [{\"title\": \"Ice cores\"}], \"creators\": [{\"name\": \"Miller, Ann\"}], \"publisher\": \"Archive\", \"publicationYear\": 2020}",
        ),
        sample(
            Type::JsonLd,
            "ice.jsonld",
            "{\"@context\": \"https://schema.org\", \"@type\": \"Dataset\", \"name\": \"Ice cores\", \"description\": \"Depth and age.\", \"creator\": {\"name\": \"Ann Miller\"}, \"datePublished\": \"2020-05-01\"}",
        ),
        sample(
            Type::Lsm,
            "sort.lsm",
            "Begin4\nTitle: sort\nVersion: 1.3\nEntered-date: 2001-02-03\nDescription: Sorts lines.\nAuthor: a@h.example (Ann Other)\nPrimary-site: http://h.example/sort\nEnd\n",
        ),
        sample(
            Type::Iafa,
            "docs.iafa",
            "Template-Type: DOCUMENT\nHandle: d1\nTitle: On knots\nAuthor-Name-v1: Ann Other\nKeywords: rope, knot\n",
        ),
        sample(
            Type::Soif,
            "docs.soif",
            "@FILE { http://h.example/knots\nTitle{8}:\tOn knots\nAuthor{9}:\tAnn Other\n}\n",
        ),
        sample(
            Type::WaisSource,
            "knots.src",
            "(:source\n :version 3\n :database-name \"knots\"\n :description \"On knots\"\n)\n",
        ),
    ]
}

fn others() -> Vec<Sample> {
    vec![
        sample(
            Type::PostScript,
            "knots.ps",
            "%!PS-Adobe-3.0\n%%Title: On knots\n%%Creator: draw 1.0\n%%Pages: 1\n%%EndComments\n/Times-Roman findfont 12 scalefont setfont\n72 720 moveto (They hold.) show\nshowpage\n",
        ),
        sample(Type::MacCompressed, "knots.hqx", crate::made::binhex("knots", 4, b"rope")),
    ]
}
