//! Types of content, by the endings of names and by the types of Gopher.
//!
//! Sans-I/O.

use net::gopher::Kind;

/// The type of content of which nothing is known.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// Types by endings, in lower case.
const ENDINGS: [(&str, &str); 41] = [
    ("7z", "application/x-7z-compressed"),
    ("atom", "application/atom+xml"),
    ("avif", "image/avif"),
    ("bz2", "application/x-bzip2"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("deb", "application/vnd.debian.binary-package"),
    ("diff", "text/plain"),
    ("doc", "application/msword"),
    ("epub", "application/epub+zip"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("iso", "application/x-iso9660-image"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpeg", "video/mpeg"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ps", "application/postscript"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tgz", "application/gzip"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("xz", "application/x-xz"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Names without an ending that are text.
const TEXTS: [&str; 7] = ["readme", "index", "copying", "license", "changelog", "makefile", "news"];

/// Returns the type of a file, by the last part of its path.
pub(super) fn of_name(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let Some((_, ending)) = name.rsplit_once('.') else {
        return if TEXTS.contains(&name.as_str()) { "text/plain" } else { UNKNOWN };
    };
    ENDINGS.iter().find(|it| it.0 == ending).map_or(UNKNOWN, |it| it.1)
}

/// Returns the type of an object of Gopher that is no menu.
pub(super) fn of_kind(kind: Kind, path: &str) -> &'static str {
    let named = of_name(path);
    let or = |default| if named == UNKNOWN { default } else { named };
    match kind {
        Kind::Text => "text/plain",
        Kind::Html => "text/html",
        Kind::File(b'g') => "image/gif",
        Kind::File(b'p') => "image/png",
        Kind::File(b'd' | b'P') => or("application/pdf"),
        Kind::File(b'r') => "application/rtf",
        Kind::File(b'x') => "application/xml",
        Kind::File(b'4') => "application/mac-binhex40",
        // Uuencoded.
        Kind::File(b'6') => "text/plain",
        _ => named,
    }
}

/// Returns the type of text with its character set, as it is read elsewhere, too: UTF-8 or else
/// Latin-1.
pub(super) fn with_charset(content_type: &str, content: &[u8]) -> String {
    if !content_type.starts_with("text/") {
        return content_type.to_owned();
    }
    let charset = if str::from_utf8(content).is_ok() { "utf-8" } else { "iso-8859-1" };
    format!("{content_type}; charset={charset}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_names_and_types() {
        let seen = ["/a/B.TXT", "README", "/a.b/c", "x.tar.gz", ".html"].map(of_name);
        assert_eq!(seen, ["text/plain", "text/plain", UNKNOWN, "application/gzip", "text/html"]);
        assert_eq!(of_kind(Kind::File(b'I'), "/I/a.png"), "image/png");
        assert_eq!(of_kind(Kind::File(b'9'), "/9/a"), UNKNOWN);
        assert_eq!(of_kind(Kind::Text, "/0/a.html"), "text/plain");
        assert_eq!(with_charset("text/plain", b"caf\xe9"), "text/plain; charset=iso-8859-1");
        assert_eq!(with_charset("image/gif", b"a"), "image/gif");
    }
}
