//! Typing by name: extensions, and names that are special as a whole.
//!
//! Source: the naming conventions of Essence (`byname.cf` in the user's manual), continued.
//!
//! Sans-I/O.

use super::{Language, Type};

/// Extensions, lower-case and without the dot, by type.
const EXTENSIONS: &[(Type, &[&str])] = &[
    (Type::Html, &["html", "htm", "xhtml", "xht", "shtml", "htmlz"]),
    (
        Type::Text,
        &[
            "txt", "text", "asc", "log", "rst", "adoc", "asciidoc", "org", "pod", "nfo", "wiki",
            "textile", "me", "1st", "srt", "vtt", "po", "pot", "news", "debian", "doc-base",
        ],
    ),
    (Type::Markdown, &["md", "markdown", "mkd", "mdown", "mdx", "rmd", "qmd"]),
    (Type::Pdf, &["pdf"]),
    (Type::Source(Language::C), &["c", "xs"]),
    (Type::Source(Language::CHeader), &["h", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tcc"]),
    (Type::Source(Language::Cpp), &["cc", "cpp", "cxx", "c++", "cu", "ino"]),
    (Type::Source(Language::Rust), &["rs"]),
    (Type::Source(Language::Python), &["py", "pyw", "pyi", "pyx", "pxd"]),
    (Type::Source(Language::Perl), &["pl", "pm", "plx", "t", "perl", "al"]),
    (
        Type::Source(Language::Shell),
        &["sh", "bash", "zsh", "ksh", "csh", "tcsh", "fish", "dash", "bats"],
    ),
    (Type::Source(Language::JavaScript), &["js", "mjs", "cjs", "jsx"]),
    (Type::Source(Language::TypeScript), &["ts", "tsx", "mts", "cts"]),
    (Type::Source(Language::Java), &["java"]),
    (Type::Source(Language::Go), &["go"]),
    (Type::Source(Language::Awk), &["awk", "gawk"]),
    (Type::Source(Language::Tcl), &["tcl", "tk", "itcl", "exp"]),
    (
        Type::Source(Language::Other),
        &[
            "rb", "php", "phtml", "lua", "sql", "f", "f77", "f90", "f95", "f03", "for", "ftn",
            "ada", "adb", "ads", "pas", "pp", "asm", "s", "nasm", "hs", "lhs", "ml", "mli", "mll",
            "mly", "erl", "hrl", "ex", "exs", "clj", "cljs", "scala", "kt", "kts", "swift", "cs",
            "fs", "fsx", "vb", "vbs", "bas", "el", "lisp", "lsp", "cl", "scm", "ss", "rkt", "jl",
            "m", "mm", "nim", "zig", "d", "dart", "groovy", "gradle", "r", "pro", "cob", "cbl",
            "cmake", "bat", "cmd", "ps1", "psm1", "y", "l", "yy", "ll", "lex", "m4", "css", "scss",
            "sass", "less", "vue", "svelte", "proto", "thrift", "idl", "graphql", "v", "sv", "vhd",
            "vhdl", "cocci", "glsl", "vert", "frag", "wgsl", "hx", "vala", "sol", "nix", "tf",
            "stan", "do", "ado", "sage", "mac", "max", "gp", "gms", "mod", "vim", "nse",
        ],
    ),
    (Type::Makefile, &["mk", "mak", "make"]),
    (Type::Troff, &["roff", "tr", "ms", "mom", "mdoc", "man"]),
    (Type::Mail, &["eml", "mbox", "mbx", "msg"]),
    (Type::BibTeX, &["bib", "bibtex"]),
    (Type::Tex, &["tex", "latex", "ltx", "sty", "cls", "dtx", "ins", "rnw", "snw", "bst"]),
    (Type::Texinfo, &["texi", "texinfo", "txi"]),
    (Type::Dvi, &["dvi"]),
    (Type::PostScript, &["ps", "eps", "epsf", "epsi", "ai"]),
    (Type::Rtf, &["rtf"]),
    (Type::Word, &["doc", "docx", "docm", "dot", "dotx", "wpd", "wps"]),
    (Type::Excel, &["xls", "xlsx", "xlsm", "xlt", "xltx", "xlsb"]),
    (Type::PowerPoint, &["ppt", "pptx", "pps", "ppsx", "potx", "pptm"]),
    (
        Type::OpenDocument,
        &["odt", "ods", "odp", "odg", "odf", "ott", "ots", "otp", "sxw", "sxc", "sxi"],
    ),
    (Type::Epub, &["epub"]),
    (
        Type::Xml,
        &[
            "xml", "xsl", "xslt", "xsd", "rng", "rdf", "owl", "rss", "atom", "dbk", "docbook",
            "mml", "opf", "ncx", "page", "glade", "ui", "plist", "svgz", "gml", "kml", "gpx",
            "wsdl", "dia", "xmi",
        ],
    ),
    (Type::Sgml, &["sgml", "sgm", "dtd", "ent"]),
    (Type::Json, &["json", "jsonl", "ndjson", "geojson", "json5", "ipynb", "jsonld", "map"]),
    (
        Type::Configuration,
        &[
            "conf",
            "cfg",
            "cf",
            "ini",
            "toml",
            "yaml",
            "yml",
            "properties",
            "config",
            "cnf",
            "rc",
            "service",
            "desktop",
            "socket",
            "timer",
            "mount",
            "target",
            "rules",
            "pc",
            "env",
            "reg",
            "lock",
            "nsi",
            "spec",
            "dsc",
            "control",
            "in",
            "ac",
            "am",
        ],
    ),
    (
        Type::Data,
        &[
            "csv", "tsv", "dat", "data", "tab", "lst", "list", "arff", "fasta", "fa", "gff", "bed",
            "pdb", "cif", "ics", "vcf", "ldif", "idx", "soif", "warc",
        ],
    ),
    (Type::Patch, &["patch", "diff", "dif", "rej"]),
    (Type::Gzip, &["gz", "gzip"]),
    (Type::GzipTar, &["tgz", "taz"]),
    (Type::Tar, &["tar", "gem", "ova"]),
    (Type::Zip, &["zip"]),
    (Type::Compressed, &["z", "bz2", "bz", "xz", "lzma", "zst", "lz4", "lz", "lzo", "br"]),
    (Type::CompressedTar, &["tbz", "tbz2", "txz", "tzst", "tlz"]),
    (
        Type::Archive,
        &[
            "a", "ar", "deb", "udeb", "rpm", "cpio", "7z", "rar", "jar", "war", "ear", "apk",
            "whl", "egg", "xpi", "crate", "iso", "dmg", "cab", "msi", "arj", "lha", "lzh", "zoo",
            "arc", "img", "qcow2", "squashfs", "snap",
        ],
    ),
    (Type::MacCompressed, &["hqx", "sit", "sitx", "sea", "cpt", "bin"]),
    (Type::ShellArchive, &["shar"]),
    (Type::Uuencoded, &["uu", "uue"]),
    (
        Type::Image,
        &[
            "png", "jpg", "jpeg", "jpe", "gif", "bmp", "tif", "tiff", "webp", "ico", "svg", "xpm",
            "xbm", "ppm", "pgm", "pbm", "pnm", "pcx", "tga", "xcf", "psd", "heic", "heif", "avif",
            "jp2", "j2k", "jxl", "djvu", "djv", "fig", "cdr", "wmf", "emf", "ras", "rgb", "icns",
            "cur", "mng", "exr", "hdr", "dng", "cr2", "nef", "fits", "dcm",
        ],
    ),
    (
        Type::Audio,
        &[
            "mp3", "ogg", "oga", "opus", "flac", "wav", "au", "snd", "aif", "aiff", "aifc", "m4a",
            "aac", "wma", "mid", "midi", "s3m", "xm", "it", "ra", "ape", "wv", "spx", "amr", "m3u",
        ],
    ),
    (
        Type::Video,
        &[
            "mp4", "m4v", "mov", "qt", "avi", "mkv", "webm", "mpg", "mpeg", "mpe", "m2v", "ogv",
            "wmv", "flv", "3gp", "fli", "flc", "asf", "rm", "swf",
        ],
    ),
    (
        Type::Font,
        &[
            "ttf", "otf", "ttc", "woff", "woff2", "pfa", "pfb", "pfm", "afm", "bdf", "pcf", "snf",
            "tfm", "vf", "pk", "gf", "mf", "eot", "sfd", "fnt",
        ],
    ),
    (
        Type::Object,
        &[
            "o", "so", "obj", "lo", "la", "ko", "dll", "dylib", "lib", "class", "pyc", "pyo",
            "elc", "rlib", "rmeta", "hi", "beam", "cmi", "cmo", "cmx", "cmxa", "wasm", "mo", "gmo",
        ],
    ),
    (Type::Command, &["exe", "com", "elf", "sys"]),
    (
        Type::Backup,
        &["bak", "old", "orig", "swp", "swo", "dpkg-old", "dpkg-dist", "rpmsave", "rpmnew", "save"],
    ),
    (
        Type::Binary,
        &[
            "db",
            "sqlite",
            "sqlite3",
            "pickle",
            "pkl",
            "npy",
            "npz",
            "rda",
            "rdata",
            "rds",
            "rdb",
            "rdx",
            "h5",
            "hdf5",
            "hdf",
            "nc",
            "mat",
            "parquet",
            "feather",
            "gpg",
            "pgp",
            "sig",
            "cache",
            "core",
            "ds_store",
            "mdb",
            "dbf",
            "shp",
            "gresource",
            "qch",
            "qm",
            "inv",
        ],
    ),
];

/// Whole names, lower-case, that say what the file is.
const SPECIAL: &[(Type, &[&str])] = &[
    (
        Type::Text,
        &[
            "changelog",
            "changes",
            "news",
            "copyright",
            "copying",
            "copying.lib",
            "license",
            "licence",
            "authors",
            "thanks",
            "credits",
            "todo",
            "install",
            "history",
            "maintainers",
            "contributors",
            "bugs",
            "notice",
            "release-notes",
            "relnotes",
            "announce",
            "hacking",
            "unlicense",
            "version",
            "changelog.debian",
            "news.debian",
            "manifest",
            "index",
            "contents",
            "abstract",
        ],
    ),
    (
        Type::Makefile,
        &[
            "makefile",
            "gnumakefile",
            "bsdmakefile",
            "imakefile",
            "makefile.in",
            "makefile.am",
            "makefile.pl",
            "makefile.pre",
            "makefile.common",
            "makefile.inc",
            "kbuild",
            "justfile",
        ],
    ),
    (
        Type::Source(Language::Other),
        &[
            "rakefile",
            "gemfile",
            "jenkinsfile",
            "cmakelists.txt",
            "sconstruct",
            "meson.build",
            "build.bazel",
        ],
    ),
    (
        Type::Configuration,
        &[
            "dockerfile",
            "containerfile",
            "vagrantfile",
            "procfile",
            "kconfig",
            "fstab",
            "crontab",
            "configure.ac",
            "configure.in",
        ],
    ),
    (
        Type::Source(Language::Shell),
        &["configure", ".bashrc.sh", "postinst", "preinst", "prerm", "postrm"],
    ),
    (Type::Command, &["a.out"]),
    (Type::Binary, &["core"]),
];

/// Returns what the name alone promises.
pub(super) fn by_name(name: &str) -> Option<Type> {
    let name = name.to_lowercase();
    if name.ends_with('~') || (name.starts_with('#') && name.ends_with('#')) {
        return Some(Type::Backup);
    }
    if name.ends_with(",v") {
        return Some(Type::Rcs);
    }
    if name.starts_with("s.") && 2 < name.len() {
        return Some(Type::Sccs);
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

/// Documents whose name starts with a word that says what they are.
fn document(name: &str, stem: &str) -> Option<Type> {
    if name.starts_with("readme") || name.starts_with("read.me") || name.starts_with("00readme") {
        return Some(Type::Readme);
    }
    if stem == "faq" || stem.ends_with("-faq") || stem.starts_with("faq-") || stem.ends_with("_faq")
    {
        return Some(Type::Faq);
    }
    let number = stem.strip_prefix("rfc").map(|rest| rest.trim_start_matches('-'));
    if number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some(Type::Rfc);
    }
    if name.starts_with("draft-") && name.ends_with(".txt") {
        return Some(Type::InternetDraft);
    }
    if name.starts_with("makefile.") {
        return Some(Type::Makefile);
    }
    if name.starts_with("changelog") || name.starts_with("news.") || name.starts_with("copying") {
        return Some(Type::Text);
    }
    None
}

fn fallback(name: &str, extension: Option<&str>) -> Option<Type> {
    let section = extension.filter(|it| it.len() <= 6).map(str::as_bytes).and_then(<[u8]>::first);
    if section.is_some_and(u8::is_ascii_digit) {
        return Some(if name.contains(".so.") { Type::Object } else { Type::ManPage });
    }
    name.starts_with('.').then_some(Type::DotFile)
}

/// Returns what the registered media types say about the extension: only their first half is used.
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

/// Returns whether the name is that of a compressed tar, in either spelling.
pub(super) fn is_packed_tar(name: &str) -> bool {
    let (stem, extension) = split(name);
    let Some(extension) = extension else { return false };
    let packed = |it: &str| {
        let it = it.to_ascii_lowercase();
        matches!(it.as_str(), "tgz" | "taz" | "tbz" | "tbz2" | "txz" | "tzst" | "tlz" | "crate")
    };
    packed(extension)
        || (stem.len().checked_sub(4).and_then(|at| stem.get(at..)))
            .is_some_and(|it| it.eq_ignore_ascii_case(".tar"))
}

/// Returns `name` without its last extension: `ls.1.gz` gives `ls.1`, `a.tgz` gives `a.tar`.
pub fn stem(name: &str) -> String {
    let (stem, extension) = split(name);
    match extension {
        Some(it) if it.eq_ignore_ascii_case("tgz") || it.eq_ignore_ascii_case("taz") => {
            format!("{stem}.tar")
        }
        _ => stem.to_owned(),
    }
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

fn look_up(table: &[(Type, &[&str])], wanted: &str) -> Option<Type> {
    table.iter().find(|(_, names)| names.contains(&wanted)).map(|(found, _)| *found)
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
        check("noidea", None);
        check("x.", None);
        check("", None);
        check(".", Some(Type::DotFile));
    }

    #[test]
    fn every_extension_and_name_stands_once() {
        for table in [EXTENSIONS, SPECIAL] {
            let mut all: Vec<&str> =
                table.iter().flat_map(|(_, names)| names.iter().copied()).collect();
            all.sort_unstable();
            let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
    }

    #[test]
    fn stems() {
        assert_eq!(stem("ls.1.gz"), "ls.1");
        assert_eq!(stem("a.tgz"), "a.tar");
        assert_eq!(stem("plain"), "plain");
        assert_eq!(stem(".gz"), ".gz");
    }
}
