//! Patches: changed files, counts of changed lines, and the header of a mail or of DEP 3.
//!
//! Source: POSIX diff, "Diff -u Output Format" and "Diff -c"; git-format-patch(1); Essence's Patch
//! summarizer (names of files).

use crate::cancellable::TimeLimit;
use crate::{DateSource, Draft, Input};

/// Longest description, in lines.
const DESCRIPTION_LINES_MAX: usize = 40;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut files: Vec<&str> = Vec::new();
    let (mut hunks, mut added, mut removed) = (0_u64, 0_u64, 0_u64);
    let mut description: Vec<&str> = Vec::new();
    // Whether no file has been named yet; lines before the first name are for people.
    let mut front = true;
    let mut lines = text.lines().peekable();
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(line) = lines.next().filter(|_| time.goes_on()) {
        let next = lines.peek().copied().unwrap_or_default();
        let name = if line.starts_with("--- ") && next.starts_with("+++ ") {
            let old = line.get(4..).map(file_of).unwrap_or_default();
            let new = next.get(4..).map(file_of).unwrap_or_default();
            lines.next();
            Some(if new == "/dev/null" { old } else { new })
        } else if line.starts_with("*** ") && next.starts_with("--- ") {
            lines.next();
            line.get(4..).map(file_of)
        } else {
            line.strip_prefix("Index: ").map(str::trim)
        };
        if let Some(name) = name {
            front = false;
            if files.last() != Some(&name) && !name.is_empty() {
                files.push(name);
            }
        } else if line.starts_with("@@ ") || line == "***************" {
            hunks += 1;
        } else if line.starts_with("--- ") && line.ends_with(" ----") {
            // The line numbers of a context difference in the new file.
        } else if line.starts_with("diff ") || line.starts_with("---") && front {
            front = false;
        } else if front {
            head(line, &mut draft, &mut description);
        } else if line.starts_with('+') {
            added += 1;
        } else if line.starts_with('-') {
            removed += 1;
        }
    }
    time.report("the changes", &mut draft);
    draft.description = description.join("\n");
    draft.other("Files", files.join("\n"));
    if 0 < hunks {
        draft.other("Hunks", hunks.to_string());
    }
    if 0 < added + removed {
        draft.other("Lines-Added", added.to_string());
        draft.other("Lines-Removed", removed.to_string());
    }
    input.set_text(text, &mut draft);
    draft
}

/// Reads a line before the changes: a field of a mail or of DEP 3, or a line of the description.
fn head<'t>(line: &'t str, draft: &mut Draft<'_>, description: &mut Vec<&'t str>) {
    let field = line.split_once(": ").filter(|(name, _)| !name.contains(' '));
    match field {
        Some(("From" | "Author", who)) => draft.authors.push(who.trim().to_owned()),
        Some(("Subject", subject)) => {
            // `[PATCH 1/3]` does not describe the patch.
            let bare = subject.trim_start().strip_prefix('[').and_then(|it| it.split_once(']'));
            draft.title = bare.map_or(subject, |(_, it)| it).trim().to_owned();
        }
        Some(("Date" | "Last-Update", date)) => draft.date(date, DateSource::Mail),
        Some(("Description", text)) => description.push(text),
        Some(("Origin" | "Bug" | "Forwarded" | "Bug-Debian", url)) if url.contains("://") => {
            let url = url.split_whitespace().find(|it| it.contains("://"));
            draft.references.extend(url.map(str::to_owned));
        }
        Some(("Index" | "MIME-Version" | "Content-Type" | "Content-Transfer-Encoding", _)) => {}
        _ if line.starts_with("From ") || line.starts_with("====") => {}
        _ if description.len() < DESCRIPTION_LINES_MAX => description.push(line.trim()),
        _ => {}
    }
}

/// Returns the name in `a/name<tab>date`, without `a/` or `b/`.
fn file_of(after: &str) -> &str {
    let name = after.split('\t').next().unwrap_or_default().trim();
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(patch: &str, expected: &str) {
        let seen = render("x.patch", Type::Patch, patch.as_bytes());
        assert_eq!(seen.split("\nPartial-Text: ").next(), Some(expected));
    }

    #[test]
    fn a_patch_by_mail() {
        check(
            "From 0123 Mon Sep 17 00:00:00 2001\nFrom: A. Body <a@h.example>\n\
             Date: Mon, 1 May 1995 10:00:00 +0000\nSubject: [PATCH 1/2] Sort faster\n\n\
             It was slow.\n---\n a.c | 2 +-\n\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n\
             @@ -1,2 +1,3 @@\n-old\n+new\n+newer\n x\n--- a/gone.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            "Title: Sort faster\nAuthor: A. Body <a@h.example>\nDescription: It was slow.\n\
             Date: 1995-05-01T10:00:00Z\nDate-Source: mail header\nFiles: a.c | gone.c\nHunks: 2\n\
             Lines-Added: 2\nLines-Removed: 2",
        );
    }

    #[test]
    fn all_files_are_listed() {
        let patch: String = (0..2_000).map(|it| format!("Index: {it}\n")).collect();
        let seen = render("x.patch", Type::Patch, patch.as_bytes());
        assert!(seen.contains(" | 1999\n"), "{seen}");
    }

    #[test]
    fn context_differences() {
        check(
            "*** old/a.c\tMon May  1\n--- new/a.c\tTue May  2\n***************\n*** 1,2 ****\n",
            "Title: x.patch\nFiles: old/a.c\nHunks: 1",
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("x.patch", Type::Patch, &bytes);
        }
    }
}
