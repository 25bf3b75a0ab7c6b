//! License and copyright statements in texts.
//!
//! Source: the SPDX License List; REUSE Specification 3.0 (`SPDX-License-Identifier`,
//! `SPDX-FileCopyrightText`). Well-known licenses are recognized by a phrase.

/// Maximum number of bytes at the front that are searched for licenses and owners.
const FRONT_BYTES_MAX: usize = 6 * 1024;
/// Longest statement of an owner, in bytes.
const OWNER_BYTES_MAX: usize = 160;
/// Maximum number of statements of owners.
const OWNERS_MAX: usize = 16;

/// Well-known licenses, with phrases separated by bars; the first found in this order wins.
const LICENSES: &[(&str, &str)] = &[
    ("AGPL", "GNU Affero General Public|GNU AFFERO GENERAL PUBLIC"),
    ("LGPL", "GNU Lesser General Public|GNU LESSER GENERAL PUBLIC|GNU Library General Public"),
    ("GFDL", "GNU Free Documentation License"),
    ("GPL", "GNU General Public|GNU GENERAL PUBLIC"),
    ("Apache", "Apache License"),
    ("MPL", "Mozilla Public License"),
    ("EPL", "Eclipse Public License"),
    ("CDDL", "COMMON DEVELOPMENT AND DISTRIBUTION LICENSE"),
    ("Artistic", "Artistic License"),
    ("LPPL", "LaTeX Project Public License"),
    ("CC", "Creative Commons"),
    ("MIT", "Permission is hereby granted, free of charge|MIT License|MIT license"),
    ("BSD", "Redistribution and use in source and binary forms|BSD-style license|BSD license"),
    ("ISC", "Permission to use, copy, modify, and/or distribute"),
    ("ISC", "Permission to use, copy, modify, and distribute"),
    ("BSL-1.0", "Boost Software License"),
    ("Zlib", "zlib License|This software is provided 'as-is', without any express or implied"),
    ("Public-Domain", "public domain"),
];

/// Returns the license in the front of the text: an SPDX expression, or a family; "" if none.
pub(crate) fn license(text: &str) -> String {
    let front = crate::text::front(text, FRONT_BYTES_MAX);
    if let Some((_, after)) = front.split_once("SPDX-License-Identifier:") {
        let line = after.lines().next().unwrap_or_default();
        let line = line.split("*/").next().unwrap_or_default();
        return line
            .trim_matches(|it: char| it.is_whitespace() || "*-#\"'>/;".contains(it))
            .to_owned();
    }
    let is_in = |(_, phrases): &&(&str, &str)| phrases.split('|').any(|it| front.contains(it));
    LICENSES.iter().find(is_in).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

/// Returns the copyright statements in the front of the text, one on each line: lines with
/// `Copyright` and a year or a copyright sign, as written, without comment signs.
pub(crate) fn copyright(text: &str) -> String {
    let mut owners: Vec<&str> = Vec::new();
    for line in crate::text::front(text, FRONT_BYTES_MAX).lines() {
        let Some(at) = line.find("opyright").filter(|it| 0 < *it) else { continue };
        let statement = match line.find("SPDX-FileCopyrightText:") {
            Some(start) => line.get(start + "SPDX-FileCopyrightText:".len()..),
            None => line.get(at - 1..).filter(|it| it.starts_with(['C', 'c'])),
        };
        let Some(statement) = statement.and_then(|it| it.split("*/").next()) else { continue };
        let statement = statement.trim_end().strip_suffix("-->").unwrap_or(statement);
        let end = |it: char| it.is_whitespace() || "*-#\"'/;\\".contains(it);
        let statement = crate::text::front(statement.trim_matches(end), OWNER_BYTES_MAX);
        let signed = ["(c)", "(C)", "\u{a9}"].iter().any(|it| statement.contains(it));
        if (signed || has_year(statement)) && !owners.contains(&statement) {
            owners.push(statement);
        }
        if OWNERS_MAX <= owners.len() {
            break;
        }
    }
    owners.join("\n")
}

/// Returns whether a text has a year from 1900 to 2099.
fn has_year(text: &str) -> bool {
    text.as_bytes().windows(4).any(|it| {
        (it.starts_with(b"19") || it.starts_with(b"20")) && it.iter().all(u8::is_ascii_digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses() {
        assert_eq!(
            license("/* SPDX-License-Identifier: MIT OR Apache-2.0 */"),
            "MIT OR Apache-2.0"
        );
        assert_eq!(license("under the terms of the GNU General Public License"), "GPL");
        assert_eq!(license("no word of it"), "");
    }

    #[test]
    fn owners() {
        assert_eq!(
            copyright(
                " * Copyright (C) 1995, 1996 A. Body\n * Copyright 2001 B, Inc. */\n\
                 // SPDX-FileCopyrightText: 2020 C <c@h.example>\nthe copyright notice above\n\
                 # Copyright (C) 1995, 1996 A. Body\ncopyright"
            ),
            "Copyright (C) 1995, 1996 A. Body\nCopyright 2001 B, Inc.\n2020 C <c@h.example>"
        );
    }
}
