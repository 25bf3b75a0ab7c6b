//! Program text: its definitions, includes and first comment.
//!
//! Source: Essence's C, CHeader, Perl, ShellScript and Makefile summarizers (procedures, includes,
//! comments; targets).
//!
//! # Differences from the paper
//!
//! * One table of regular expressions, applied line by line, serves all languages. Of a definition over
//!   several lines, only the first is read.
//! * There is no grammar and no syntax tree: a scanner of lines is fast enough for thousands of files a
//!   second, and reads broken programs, too.
//! * The text itself is kept, so that any identifier can be found.

mod comment;
mod languages;
pub(crate) mod legal;
mod pod;

use languages::{Kind, Rules};
use regex::CaptureLocations;

use crate::cancellable::TimeLimit;
use crate::{Draft, Input, Language};

/// Longest line, in bytes; longer lines are data.
const LINE_BYTES_MAX: usize = 400;
/// Maximum number of names of one kind.
const NAMES_MAX: usize = 1_000;
/// Maximum number of programs of a makefile.
const PROGRAMS_MAX: usize = 40;

pub(crate) fn summarize<'a>(input: &Input<'a>, language: Language) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut definitions = Definitions::default();
    let mut time = TimeLimit::new(input.cancelled);
    definitions.scan(&text, languages::rules(language, &input.object.name), &mut time);
    time.report("the program text", &mut draft);
    draft.description = comment::leading(&text, language);
    if language == Language::Perl {
        let pod = pod::read(&text);
        if !pod.description.is_empty() {
            draft.title = pod.title;
            draft.description = pod.description;
        }
        draft.other("Headings", pod.headings);
    }
    draft.authors = comment::authors(&text);
    draft.other("Functions", definitions.functions.join("\n"));
    draft.other("Types", definitions.types.join("\n"));
    // C and similar languages include text; others import by name.
    let includes = matches!(
        language,
        Language::C | Language::CHeader | Language::Cpp | Language::Shell | Language::Awk
    );
    let name = if includes { "Includes" } else { "Imports" };
    draft.other(name, definitions.includes.join("\n"));
    draft.other("License", legal::license(&text));
    draft.other("Copyright", legal::copyright(&text));
    input.set_text(text, &mut draft);
    draft
}

pub(crate) fn makefile<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let (mut targets, mut programs): (Vec<String>, Vec<&str>) = Default::default();
    let mut draft = Draft::default();
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines() {
        if NAMES_MAX <= targets.len() || !time.goes_on() {
            break;
        }
        if let Some(value) = programs_of(line).filter(|_| programs.len() < PROGRAMS_MAX) {
            let new = value.split_whitespace().filter(|it| !it.starts_with(['$', '\\']));
            programs.extend(new.filter(|it| !programs.contains(it)).collect::<Vec<_>>());
        }
        let Some(names) = rule(line) else { continue };
        for name in names.split_whitespace().filter(|it| !it.starts_with('.')) {
            if !targets.iter().rev().take(20).any(|it| it == name) {
                targets.push(name.to_owned());
            }
        }
    }
    time.report("the rules", &mut draft);
    draft.description = comment::leading(&text, Language::Shell);
    draft.other("Targets", targets.join("\n"));
    draft.other("Programs", programs.join("\n"));
    draft.other("License", legal::license(&text));
    draft.other("Copyright", legal::copyright(&text));
    input.set_text(text, &mut draft);
    draft
}

/// Endings of the names of variables that list a makefile's programs: `PROG` of BSD, `bin_PROGRAMS`
/// and the like of automake.
const PROGRAMS: &[&str] = &["PROG", "PROGS", "PROGRAM", "_PROGRAMS", "_LTLIBRARIES", "_SCRIPTS"];

/// Returns the value of a variable that lists programs.
fn programs_of(line: &str) -> Option<&str> {
    if !line.starts_with(|it: char| it.is_ascii_alphabetic()) || LINE_BYTES_MAX < line.len() {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '+', '?', ' ', '\t']);
    PROGRAMS.iter().any(|it| name.ends_with(it)).then_some(value)
}

/// Returns the targets of a rule's first line.
fn rule(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t', '#']) || LINE_BYTES_MAX < line.len() {
        return None;
    }
    let (names, after) = line.split_once(':')?;
    let plain = |it: char| it.is_ascii_alphanumeric() || " ._-/+%".contains(it);
    (!after.starts_with('=') && !names.trim().is_empty() && names.chars().all(plain))
        .then_some(names)
}

/// Names in order of definition.
#[derive(Default)]
struct Definitions {
    functions: Vec<String>,
    types: Vec<String>,
    includes: Vec<String>,
}

impl Definitions {
    fn scan(&mut self, text: &str, rules: &Rules, time: &mut TimeLimit<'_>) {
        let Some(regex) = &rules.regex else { return };
        let mut locations = regex.capture_locations();
        for line in text.lines().take_while(|_| time.goes_on()) {
            if LINE_BYTES_MAX < line.len() || !rules.may_define(line) {
                continue;
            }
            if regex.captures_read(&mut locations, line).is_some() {
                self.take(line, rules, &locations);
            }
        }
    }

    fn take(&mut self, line: &str, rules: &Rules, locations: &CaptureLocations) {
        for (group, kind) in &rules.groups {
            let Some((start, end)) = locations.get(*group) else { continue };
            let name = line.get(start..end).unwrap_or_default().trim();
            let names = match kind {
                Kind::Function => &mut self.functions,
                Kind::Type => &mut self.types,
                Kind::Include => &mut self.includes,
            };
            let new = !names.iter().rev().take(8).any(|it| it == name);
            if !name.is_empty()
                && new
                && names.len() < NAMES_MAX
                && !languages::KEYWORDS.contains(&name)
            {
                names.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::render;
    use crate::{Language, Type};

    /// Checks everything but the text itself.
    fn check(r#type: Type, text: &str, expected: &str) {
        let seen = render("x", r#type, text.as_bytes());
        let seen = seen.split("\nPartial-Text: ").next().unwrap_or_default();
        assert_eq!(seen, format!("Title: x\n{expected}"));
    }

    #[test]
    fn c() {
        check(
            Type::Source(Language::C),
            "/* Copyright 1995 X. All rights reserved. */\n/*\n * Prints a list.\n * Twice.\n */\n\
             #include <stdio.h>\n# include \"list.h\"\nstruct list {\n  int x;\n};\n\
             static int\nprint_list (struct list *l)\n{\n  if (l) return foo(l);\n}\n\
             int main(int argc, char **argv)\n{\n",
            "Description: Prints a list. Twice.\nFunctions: print_list | main\nTypes: list\n\
             Includes: stdio.h | list.h\nCopyright: Copyright 1995 X. All rights reserved.",
        );
    }

    #[test]
    fn headers() {
        check(
            Type::Source(Language::CHeader),
            "// SPDX-License-Identifier: GPL-2.0-only\n#define X 1\nextern int f(int);\nclass Foo : Bar {\n",
            "Functions: f\nTypes: Foo\nLicense: GPL-2.0-only",
        );
    }

    #[test]
    fn headers_of_before_1989() {
        check(
            Type::Source(Language::CHeader),
            "typedef voidpf (*alloc_func) OF((voidpf opaque, uInt items));\n\
             ZEXTERN int ZEXPORT deflate OF((z_streamp strm, int flush));\n\
             extern char *getname __P((int, char *));\n",
            "Functions: deflate | getname\nTypes: alloc_func",
        );
    }

    #[test]
    fn rust() {
        check(
            Type::Source(Language::Rust),
            "//! What it is.\n//!\n//! More.\nuse std::io;\npub struct A;\nimpl A {\n    pub(crate) async fn b() {}\n}\n",
            "Description: What it is.\nFunctions: b\nTypes: A\nImports: std::io",
        );
    }

    #[test]
    fn python() {
        check(
            Type::Source(Language::Python),
            "#!/usr/bin/python3\n# -*- coding: utf-8 -*-\n\"\"\"Does it.\n\nIn detail.\"\"\"\nimport os, sys\n\
             from a.b import c\nclass D(E):\n    def f(self):\n        pass\n",
            "Description: Does it.\nFunctions: f\nTypes: D\nImports: os, sys | a.b",
        );
    }

    #[test]
    fn scripts() {
        check(
            Type::Source(Language::Perl),
            "#!/usr/bin/perl\n# Sorts mail.\nuse strict;\nuse Mail::Box;\npackage P;\nsub sort_it {\n",
            "Description: Sorts mail.\nFunctions: sort_it\nTypes: P\nImports: Mail::Box",
        );
        check(
            Type::Source(Language::Shell),
            "#!/bin/sh -e\n\n# Starts it.\n. /etc/default/x\nstart_it () {\nfunction stop {\n",
            "Description: Starts it.\nFunctions: start_it | stop\nIncludes: /etc/default/x",
        );
    }

    #[test]
    fn other_languages_are_known_by_extension() {
        let check = |name: &str, text: &str, expected: &str| {
            let seen = render(name, Type::Source(Language::Other), text.as_bytes());
            let seen = seen.split("\nPartial-Text: ").next().unwrap_or_default();
            assert_eq!(seen, format!("Title: {name}\n{expected}"));
        };
        check(
            "a.rb",
            "# Sorts them all.\nrequire 'set'\nclass A < B\n  def empty?\n",
            "Description: Sorts them all.\nFunctions: empty?\nTypes: A\nImports: set",
        );
        check(
            "a.php",
            "use A\\B;\nfinal class C {\n  public static function f()\n",
            "Functions: f\nTypes: C\nImports: A\\B",
        );
        check(
            "a.R",
            "library(stats)\nmean.it <- function(x) 1\n",
            "Functions: mean.it\nImports: stats",
        );
        check(
            "a.hs",
            "import qualified Data.Map as M\ndata T = A\nf :: Int -> Int\nf x = x\n",
            "Functions: f\nTypes: T\nImports: Data.Map",
        );
        check(
            "a.ml",
            "open List\ntype t = A\nlet rec f x = x\n",
            "Functions: f\nTypes: t\nImports: List",
        );
        check(
            "a.erl",
            "-module(m).\n-include(\"a.hrl\").\nstart(X) ->\n",
            "Functions: start\nTypes: m\nImports: a.hrl",
        );
        check("a.lua", "local x = require('y')\nlocal function f()\n", "Functions: f\nImports: y");
        check(
            "a.kt",
            "import a.b.C\ndata class D(val x: Int)\nprivate suspend fun f() {\n",
            "Functions: f\nTypes: D\nImports: a.b.C",
        );
        check(
            "a.cs",
            "using System;\npublic class D\n  public static int Main(string[] a)\n",
            "Functions: Main\nTypes: D\nImports: System",
        );
        check(
            "a.f90",
            "module m\n use iso_c\n integer function f(x)\nend module m\n",
            "Functions: f\nTypes: m\nImports: iso_c",
        );
        check(
            "a.sql",
            "CREATE TABLE IF NOT EXISTS t (\ncreate function f() returns int\n",
            "Functions: f\nTypes: t",
        );
    }

    #[test]
    fn pod_and_owners() {
        check(
            Type::Source(Language::Awk),
            "# Author: A. Body <a@h.example>\n# Copyright 1999 A. Body\nfunction f(x) { }\n",
            "Author: A. Body <a@h.example>\nFunctions: f\nCopyright: Copyright 1999 A. Body",
        );
        let seen = render("x", Type::Source(Language::Perl), b"=head1 NAME\n\nA - does it\n");
        assert!(seen.starts_with("Title: A - does it\nDescription: does it\nHeadings: NAME\n"));
    }

    #[test]
    fn the_rest() {
        check(
            Type::Source(Language::JavaScript),
            "/** Shows it. */\nimport x from './x.js';\nexport function show(a) {}\nclass V {}\n",
            "Description: Shows it.\nFunctions: show\nTypes: V\nImports: ./x.js",
        );
        check(
            Type::Source(Language::Java),
            "import java.util.List;\npublic final class A {\n  public static void main(String[] a) {\n",
            "Functions: main\nTypes: A\nImports: java.util.List",
        );
        check(
            Type::Source(Language::Go),
            "// Package p does it.\npackage p\nimport \"fmt\"\ntype T struct {\nfunc (t *T) M() {\nfunc f() {\n",
            "Description: Package p does it.\nFunctions: M | f\nTypes: T\nImports: fmt",
        );
        check(
            Type::Source(Language::Other),
            "-- A module.\nprocedure Put (X : Integer) is\n",
            "Description: A module.\nFunctions: Put",
        );
        check(
            Type::Makefile,
            "# Builds it.\nCC := gcc\nbin_PROGRAMS = ls cat $(X)\nall: a b\n\tgcc\n.PHONY: all\nclean distclean:\n",
            "Description: Builds it.\nTargets: all | clean | distclean\nPrograms: ls | cat",
        );
    }
}
