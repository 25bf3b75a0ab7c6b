//! Perl's plain old documentation (POD) inside a program.
//!
//! Source: perlpod(1): commands start a paragraph with `=`, `=cut` ends the documentation.

use crate::text::Body;

/// Maximum length of all headings together, in bytes.
const HEADINGS_BYTES_MAX: usize = 4 * 1024;

/// The title, description and headings of the documentation.
#[derive(Debug, Default)]
pub(super) struct Pod {
    /// `Name - purpose`, from the section `NAME`.
    pub(super) title: String,
    /// The purpose alone.
    pub(super) description: String,
    /// Titles of sections.
    pub(super) headings: String,
}

/// Reads the documentation, if there is any.
pub(super) fn read(text: &str) -> Pod {
    let mut pod = Pod::default();
    if !text.contains("\n=head1") && !text.starts_with("=head1") {
        return pod;
    }
    let mut headings = Body::new(HEADINGS_BYTES_MAX);
    let mut in_name = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("=head1").or_else(|| line.strip_prefix("=head2")) {
            headings.push_line(heading.trim());
            in_name = heading.trim() == "NAME" && pod.title.is_empty();
        } else if in_name && !line.trim().is_empty() {
            line.trim().clone_into(&mut pod.title);
            if let Some((_, purpose)) = line.split_once(" - ") {
                purpose.trim().clone_into(&mut pod.description);
            }
            in_name = false;
        }
    }
    pod.headings = headings.finish();
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_headings_are_read() {
        let pod =
            read("package A;\n\n=head1 NAME\n\nA - does it\n\n=head1 USE\n\ntext\n\n=cut\n1;\n");
        assert_eq!(
            (pod.title.as_str(), pod.description.as_str(), pod.headings.as_str()),
            ("A - does it", "does it", "NAME\nUSE\n")
        );
        assert_eq!(read("sub f {}\n").title, "");
    }
}
