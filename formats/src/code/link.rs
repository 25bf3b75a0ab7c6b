//! Symbolic links and their targets.
//!
//! Source: Cygwin User's Guide, "Symbolic links" (a file that begins with `!<symlink>`); gathered links have
//! the same form. Essence's SymbolicLink.

use std::ffi::OsStr;

use url::Url;

use crate::text::decode;
use crate::{Draft, Input, path};

/// First bytes of a file that stands for a symbolic link; the link's target follows.
pub const LINK_MARK: &[u8] = b"!<symlink>";
/// Longest target, in bytes, as in systems.
const TARGET_BYTES_MAX: usize = 4 * 1024;

/// Summarizes a link by its target, which is not opened.
pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.head(LINK_MARK.len() + TARGET_BYTES_MAX);
    let target = decode(bytes.strip_prefix(LINK_MARK).unwrap_or(bytes), None);
    let target = target.trim_end_matches(['\0', '\n']);
    let mut draft = Draft { description: format!("Symbolic link to {target}"), ..Draft::default() };
    draft.other("Link-Target", target);
    draft.references.extend(reference(&input.object.url, target));
    draft
}

/// Returns the URL of the target of the link at `url`; `None` if the target is absolute, or the
/// link is in an archive.
fn reference(url: &str, target: &str) -> Option<String> {
    let base = Url::parse(url).ok().filter(|it| it.fragment().is_none())?;
    if target.is_empty() || target.starts_with('/') {
        return None;
    }
    // After `./`, a colon in the first segment does not end a scheme.
    let relative = format!("./{}", path::encode(OsStr::new(target)));
    base.join(&relative).ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Type;
    use crate::testing::render;

    fn check(target: &[u8], expected: &str) {
        let content = [LINK_MARK, target].concat();
        assert_eq!(render("a.pdf", Type::SymbolicLink, &content), expected);
    }

    #[test]
    fn a_link_has_its_target() {
        check(
            b"../papers/one two.pdf",
            "Title: a.pdf\nDescription: Symbolic link to ../papers/one two.pdf\n\
             Link-Target: ../papers/one two.pdf\n\
             URL-References: http://h.example/papers/one%20two.pdf",
        );
        check(
            b"b:c\0",
            "Title: a.pdf\nDescription: Symbolic link to b:c\nLink-Target: b:c\n\
             URL-References: http://h.example/d/b:c",
        );
        check(b"/srv/x", "Title: a.pdf\nDescription: Symbolic link to /srv/x\nLink-Target: /srv/x");
        check(
            b"\xff\xfex\0y\0\0\0",
            "Title: a.pdf\nDescription: Symbolic link to xy\nLink-Target: xy\n\
             URL-References: http://h.example/d/xy",
        );
    }

    #[test]
    fn in_an_archive_only_the_name_is_known() {
        assert_eq!(reference("http://h.example/a.tar#b/c", "d"), None);
        assert_eq!(reference("nonsense", "d"), None);
    }

    proptest! {
        #[test]
        fn any_target_gives_a_record(target in proptest::collection::vec(any::<u8>(), 0..100)) {
            render("x", Type::SymbolicLink, &[LINK_MARK, &target].concat());
        }
    }
}
