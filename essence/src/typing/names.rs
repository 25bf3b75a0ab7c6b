//! Typing by name: extensions and special whole names.
//!
//! Source: the naming conventions of Essence (`byname.cf` in the user's manual), continued.
//!
//! Sans-I/O.

use formats::Type;

use super::tables::{EXTENSIONS, Names, SPECIAL};

/// Returns the type that the name alone promises.
pub(super) fn by_name(name: &str) -> Option<Type> {
    let name = name.to_lowercase();
    if name.ends_with('~') || (name.starts_with('#') && name.ends_with('#')) {
        return Some(Type::Backup);
    }
    if name.ends_with(",v") {
        return Some(Type::Rcs);
    }
    if let Some(found) = look_up(SPECIAL, &name) {
        return Some(found);
    }
    if is_packed_tar(&name) {
        let gzip = name.ends_with("gz") || name.ends_with("taz");
        return Some(if gzip { Type::GzipTar } else { Type::CompressedTar });
    }
    let (stem, extension) = split(&name);
    let by_extension = extension.and_then(|extension| look_up(EXTENSIONS, extension));
    match by_extension {
        None | Some(Type::Text | Type::Configuration) => {
            document(&name, stem).or(by_extension).or_else(|| fallback(&name, extension))
        }
        found => found,
    }
}

/// Returns the built-in extensions and the built-in whole names of objects of this type, in lower
/// case.
pub fn names_of(r#type: Type) -> (Vec<&'static str>, Vec<&'static str>) {
    let all = |table: Names| {
        let own = table.iter().filter(|(it, _)| *it == r#type);
        own.flat_map(|(_, names)| names.split(' ')).collect()
    };
    (all(EXTENSIONS), all(SPECIAL))
}

/// Returns the type of a document whose name starts with a characteristic word.
fn document(name: &str, stem: &str) -> Option<Type> {
    if name.starts_with("readme") || name.starts_with("read.me") || name.starts_with("00readme") {
        return Some(Type::Readme);
    }
    if stem.ends_with("faq") || stem.starts_with("faq-") {
        return Some(Type::Faq);
    }
    if is_numbered(stem, "rfc") {
        return Some(Type::Rfc);
    }
    if is_numbered(stem, "fyi") {
        return Some(Type::Fyi);
    }
    if name.starts_with("draft-") && name.ends_with(".txt") {
        return Some(Type::InternetDraft);
    }
    if name.starts_with("makefile.") {
        return Some(Type::Makefile);
    }
    let after = name.strip_prefix("changelog").map(str::as_bytes);
    if after.is_some_and(|it| matches!(it.first(), Some(b'.' | b'-' | b'_'))) || stem == "changes" {
        return Some(Type::ChangeLog);
    }
    if name.starts_with("news.") || name.starts_with("copying") {
        return Some(Type::Text);
    }
    // A source of a page, which is shown as text: `index.rst.txt`.
    let shown = name.ends_with(".txt").then(|| split(stem).1).flatten();
    let source = shown.and_then(|extension| look_up(EXTENSIONS, extension));
    source.filter(|it| matches!(it, Type::Rst | Type::AsciiDoc | Type::Markdown))
}

/// Returns whether the stem is the series name with a number: `rfc822`, `rfc-822`.
fn is_numbered(stem: &str, series: &str) -> bool {
    let number = stem.strip_prefix(series).map(|rest| rest.trim_start_matches('-'));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn fallback(name: &str, extension: Option<&str>) -> Option<Type> {
    let section = extension.filter(|it| it.len() <= 6).map(str::as_bytes).and_then(<[u8]>::first);
    if section.is_some_and(u8::is_ascii_digit) {
        return Some(if name.contains(".so.") { Type::Object } else { Type::ManPage });
    }
    name.starts_with('.').then_some(Type::DotFile)
}

/// Returns the type by the first part of the media type registered for the extension.
pub(super) fn by_media(name: &str) -> Option<Type> {
    let guess = mime_guess::from_path(name).first()?;
    match guess.type_().as_str() {
        "image" => Some(Type::Image),
        "audio" => Some(Type::Audio),
        "video" => Some(Type::Video),
        "font" => Some(Type::Font),
        _ => None,
    }
}

/// Returns whether the name is that of a compressed tar file, in either spelling.
pub(super) fn is_packed_tar(name: &str) -> bool {
    let (stem, extension) = split(name);
    let Some(extension) = extension else { return false };
    let short = ["tgz", "taz", "tbz", "tbz2", "txz", "tzst", "tlz"];
    let end = stem.len().checked_sub(4).and_then(|at| stem.get(at..));
    short.iter().any(|it| extension.eq_ignore_ascii_case(it))
        || end.is_some_and(|it| it.eq_ignore_ascii_case(".tar"))
}

/// Splits off the last extension; a leading dot does not start one.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.rfind('.') {
        Some(at) if 0 < at && at + 1 < name.len() => {
            let (stem, extension) = name.split_at(at);
            (stem, extension.get(1..))
        }
        _ => (name, None),
    }
}

fn look_up(table: Names, wanted: &str) -> Option<Type> {
    let is_named = |names: &str| names.split(' ').any(|it| it == wanted);
    table.iter().find(|(_, names)| is_named(names)).map(|(found, _)| *found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<Type>) {
        assert_eq!(by_name(name), expected, "{name:?}");
    }

    #[test]
    fn special_names_and_extensions() {
        check("Makefile.PL", Some(Type::Makefile));
        check("x.tar.GZ", Some(Type::GzipTar));
        check("x.tar.bz2", Some(Type::CompressedTar));
        check("libz.so.1", Some(Type::Object));
        check("open.2", Some(Type::ManPage));
        check("file.c~", Some(Type::Backup));
        check("file.c,v", Some(Type::Rcs));
        check("foo-1.0.crate", Some(Type::Crate));
        check("foo-1.0-py3-none-any.whl", Some(Type::Wheel));
        check("ChangeLog.old", Some(Type::Backup));
        check("CHANGELOG-2.x", Some(Type::ChangeLog));
        check("Changes.txt", Some(Type::ChangeLog));
        check("changelogs", None);
        check("fyi17.txt", Some(Type::Fyi));
        check("sedfaq.txt", Some(Type::Faq));
        check("errors.rst.txt", Some(Type::Rst));
        check("sort.c.txt", Some(Type::Text));
        check("00FAQ", Some(Type::Faq));
        check("rfc-822", Some(Type::Rfc));
        check("rfc", None);
        check("noidea", None);
        check("x.", None);
        check("", None);
        check(".", Some(Type::DotFile));
    }

    #[test]
    fn every_extension_and_name_stands_once() {
        for table in [EXTENSIONS, SPECIAL] {
            let mut all: Vec<&str> = table.iter().flat_map(|(_, names)| names.split(' ')).collect();
            all.sort_unstable();
            let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
    }
}
