//! Program text: what it defines, what it includes, what its first comment says.
//!
//! Source: Essence's C, CHeader, Perl, ShellScript and Makefile summarizers (procedures, includes,
//! comments; targets).
//!
//! # Differences from the paper
//!
//! * One table of regular expressions, applied line by line, serves all languages: a definition that
//!   is spread over lines is known by its first one.
//! * The text itself is kept too, so that any identifier can be found.
//!
//! Sans-I/O.

mod comment;
mod languages;

use regex::CaptureLocations;

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::typing::Language;
use languages::{Kind, Rules};

/// Lines between two looks at the clock.
const POLL_LINES: usize = 4096;
/// Longer lines are data, in bytes.
const LINE_BYTES_MAX: usize = 400;
/// Most names of one kind.
const NAMES_MAX: usize = 1_000;
/// How far a license is looked for, in bytes.
const LICENSE_BYTES: usize = 6 * 1024;

/// Summarizes a program in `language`.
pub(super) fn summarize<'a>(input: &Input<'a>, language: Language) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut found = Found::default();
    if !found.scan(&text, languages::rules(language), input.cancelled) {
        draft.problem(ProblemKind::Time, "ran out of time on the program text");
    }
    draft.description = comment::leading(&text, language);
    draft.other("Procedures", found.procedures.join("\n"));
    draft.other("Data-Types", found.types.join("\n"));
    draft.other("Includes", found.includes.join("\n"));
    draft.other("License", license(&text));
    draft.body = text;
    draft
}

/// Summarizes a makefile.
pub(super) fn makefile<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut targets: Vec<String> = Vec::new();
    for line in text.lines() {
        if NAMES_MAX <= targets.len() {
            break;
        }
        let Some(names) = rule(line) else { continue };
        for name in names.split_whitespace().filter(|it| !it.starts_with('.')) {
            if !targets.iter().rev().take(20).any(|it| it == name) {
                targets.push(name.to_owned());
            }
        }
    }
    let mut draft =
        Draft { description: comment::leading(&text, Language::Shell), ..Draft::default() };
    draft.other("Targets", targets.join("\n"));
    draft.other("License", license(&text));
    draft.body = text;
    draft
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

/// Names in the order in which they are defined.
#[derive(Default)]
struct Found {
    procedures: Vec<String>,
    types: Vec<String>,
    includes: Vec<String>,
}

impl Found {
    /// Looks at every line; false when the time was up before the end.
    fn scan(&mut self, text: &str, rules: &Rules, cancelled: &dyn Fn() -> bool) -> bool {
        let Some(regex) = &rules.regex else { return true };
        let mut places = regex.capture_locations();
        for (number, line) in text.lines().enumerate() {
            if number.is_multiple_of(POLL_LINES) && cancelled() {
                return false;
            }
            if LINE_BYTES_MAX < line.len() || !rules.may_define(line) {
                continue;
            }
            if regex.captures_read(&mut places, line).is_some() {
                self.take(line, rules, &places);
            }
        }
        true
    }

    fn take(&mut self, line: &str, rules: &Rules, places: &CaptureLocations) {
        for (group, kind) in &rules.groups {
            let Some((start, end)) = places.get(*group) else { continue };
            let name = line.get(start..end).unwrap_or_default().trim();
            let names = match kind {
                Kind::Procedure => &mut self.procedures,
                Kind::Type => &mut self.types,
                Kind::Include => &mut self.includes,
            };
            let new = !names.iter().rev().take(8).any(|it| it == name);
            if !name.is_empty() && new && names.len() < NAMES_MAX && !languages::is_keyword(name) {
                names.push(name.to_owned());
            }
        }
    }
}

/// Phrases of well-known licenses; the first found in this order wins.
const LICENSES: &[(&str, &str)] = &[
    ("GNU Affero General Public", "AGPL"),
    ("GNU Lesser General Public", "LGPL"),
    ("GNU Library General Public", "LGPL"),
    ("GNU General Public", "GPL"),
    ("Apache License", "Apache"),
    ("Mozilla Public License", "MPL"),
    ("Eclipse Public License", "EPL"),
    ("Artistic License", "Artistic"),
    ("Permission is hereby granted, free of charge", "MIT"),
    ("MIT License", "MIT"),
    ("MIT license", "MIT"),
    ("Redistribution and use in source and binary forms", "BSD"),
    ("BSD-style license", "BSD"),
    ("BSD license", "BSD"),
    ("Permission to use, copy, modify, and/or distribute", "ISC"),
    ("Boost Software License", "BSL-1.0"),
    ("public domain", "Public-Domain"),
];

/// Returns the license that the front of the text names: an SPDX expression, or a family.
fn license(text: &str) -> String {
    let front = crate::text::front(text, LICENSE_BYTES);
    if let Some((_, after)) = front.split_once("SPDX-License-Identifier:") {
        let line = after.lines().next().unwrap_or_default();
        let line = line.split("*/").next().unwrap_or_default();
        return line
            .trim_matches(|it: char| it.is_whitespace() || "*-#\"'>/".contains(it))
            .to_owned();
    }
    let found = LICENSES.iter().find(|(phrase, _)| front.contains(phrase));
    found.map(|(_, name)| (*name).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::render;
    use crate::typing::{Language, Type};

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
            "Description: Prints a list. Twice.\nProcedures: print_list | main\nData-Types: list\n\
             Includes: stdio.h | list.h",
        );
    }

    #[test]
    fn headers() {
        check(
            Type::Source(Language::CHeader),
            "// SPDX-License-Identifier: GPL-2.0-only\n#define X 1\nextern int f(int);\nclass Foo : Bar {\n",
            "Procedures: f\nData-Types: Foo\nLicense: GPL-2.0-only",
        );
    }

    #[test]
    fn rust() {
        check(
            Type::Source(Language::Rust),
            "//! What it is.\n//!\n//! More.\nuse std::io;\npub struct A;\nimpl A {\n    pub(crate) async fn b() {}\n}\n",
            "Description: What it is.\nProcedures: b\nData-Types: A\nIncludes: std::io",
        );
    }

    #[test]
    fn python() {
        check(
            Type::Source(Language::Python),
            "#!/usr/bin/python3\n# -*- coding: utf-8 -*-\n\"\"\"Does it.\n\nIn detail.\"\"\"\nimport os, sys\n\
             from a.b import c\nclass D(E):\n    def f(self):\n        pass\n",
            "Description: Does it.\nProcedures: f\nData-Types: D\nIncludes: os, sys | a.b",
        );
    }

    #[test]
    fn scripts() {
        check(
            Type::Source(Language::Perl),
            "#!/usr/bin/perl\n# Sorts mail.\nuse strict;\nuse Mail::Box;\npackage P;\nsub sort_it {\n",
            "Description: Sorts mail.\nProcedures: sort_it\nData-Types: P\nIncludes: Mail::Box",
        );
        check(
            Type::Source(Language::Shell),
            "#!/bin/sh -e\n\n# Starts it.\n. /etc/default/x\nstart_it () {\nfunction stop {\n",
            "Description: Starts it.\nProcedures: start_it | stop\nIncludes: /etc/default/x",
        );
    }

    #[test]
    fn the_rest() {
        check(
            Type::Source(Language::JavaScript),
            "/** Shows it. */\nimport x from './x.js';\nexport function show(a) {}\nclass V {}\n",
            "Description: Shows it.\nProcedures: show\nData-Types: V\nIncludes: ./x.js",
        );
        check(
            Type::Source(Language::Java),
            "import java.util.List;\npublic final class A {\n  public static void main(String[] a) {\n",
            "Procedures: main\nData-Types: A\nIncludes: java.util.List",
        );
        check(
            Type::Source(Language::Go),
            "// Package p does it.\npackage p\nimport \"fmt\"\ntype T struct {\nfunc (t *T) M() {\nfunc f() {\n",
            "Description: Package p does it.\nProcedures: M | f\nData-Types: T\nIncludes: fmt",
        );
        check(
            Type::Source(Language::Other),
            "-- A module.\nprocedure Put (X : Integer) is\n",
            "Description: A module.\nProcedures: Put",
        );
        check(
            Type::Makefile,
            "# Builds it.\nCC := gcc\nall: a b\n\tgcc\n.PHONY: all\nclean distclean:\n",
            "Description: Builds it.\nTargets: all | clean | distclean",
        );
    }
}
