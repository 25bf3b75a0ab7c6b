//! The types of objects, and their names in the `Type` attribute.
//!
//! Source: the list of Essence types in the user's manual, whose names are kept.

use serde::{Deserialize, Serialize};

/// The type of an object. The `Type` attribute is its [`Type::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Type {
    /// Plain text.
    Text,
    /// Text for a printer: overstruck, with page breaks.
    FormattedText,
    /// A web page.
    Html,
    /// CommonMark and its dialects.
    Markdown,
    /// reStructuredText.
    Rst,
    /// AsciiDoc.
    AsciiDoc,
    /// A file that describes its directory.
    Readme,
    /// Questions and answers.
    Faq,
    /// Request for comments.
    Rfc,
    /// A draft of one.
    InternetDraft,
    /// For your information: an RFC for everybody.
    Fyi,
    /// Portable Document Format.
    Pdf,
    /// Program text.
    Source(Language),
    /// Rules for make.
    Makefile,
    /// Manual page in troff, with `man` or `mdoc` macros.
    ManPage,
    /// Other troff.
    Troff,
    /// One mail message, or a mailbox of them.
    Mail,
    /// Mail messages one after the other.
    Mailbox,
    /// An article of a newsgroup.
    News,
    /// Bibliography database.
    BibTeX,
    /// Bibliography in the format of reference managers.
    Ris,
    /// Bibliography in the JSON of the Citation Style Language.
    CslJson,
    /// Library catalogue in MARC 21 (ISO 2709).
    Marc,
    /// Library catalogue in MARCXML.
    MarcXml,
    /// Metadata of a data set, as registered with DataCite.
    DataCite,
    /// Linked data: schema.org and others.
    JsonLd,
    /// Linux Software Map entries.
    Lsm,
    /// IAFA templates: descriptions of an FTP archive.
    Iafa,
    /// Summary objects.
    Soif,
    /// Description of a WAIS database: its host and name.
    WaisSource,
    /// TeX and LaTeX.
    Tex,
    /// GNU Texinfo.
    Texinfo,
    /// Device-independent output of TeX.
    Dvi,
    /// PostScript.
    PostScript,
    /// Rich Text Format.
    Rtf,
    /// Word processor document.
    Word,
    /// Spreadsheet.
    Excel,
    /// Slides.
    PowerPoint,
    /// OASIS office document.
    OpenDocument,
    /// Electronic book.
    Epub,
    /// XML that is none of the more special types.
    Xml,
    /// Scalable vector graphics.
    Svg,
    /// Standard Generalized Markup Language.
    Sgml,
    /// JSON.
    Json,
    /// Notebook of text, code and results.
    Notebook,
    /// Settings.
    Configuration,
    /// A file whose name starts with a dot.
    DotFile,
    /// Tables and other text for programs.
    Data,
    /// Table as comma- or tab-separated values.
    Csv,
    /// Differences between files.
    Patch,
    /// Changes from version to version.
    ChangeLog,
    /// Revision Control System archive.
    Rcs,
    /// Source Code Control System archive.
    Sccs,
    /// gzip.
    Gzip,
    /// tar inside gzip.
    GzipTar,
    /// tar.
    Tar,
    /// zip.
    Zip,
    /// Compressed by another program (compress, bzip2, xz, zstd …).
    Compressed,
    /// tar inside one of those.
    CompressedTar,
    /// Other archives (ar, cpio, packages, 7z, jar …).
    Archive,
    /// Debian package.
    Deb,
    /// RPM package.
    Rpm,
    /// Python package, as wheel or egg.
    Wheel,
    /// Rust package.
    Crate,
    /// Java archive.
    Jar,
    /// Sources of a program: an archive with what builds it.
    SourceDistribution,
    /// Macintosh compression.
    MacCompressed,
    /// Shell archive.
    ShellArchive,
    /// uuencoded.
    Uuencoded,
    /// Pictures, raster and vector.
    Image,
    /// Sound and music.
    Audio,
    /// Moving pictures.
    Video,
    /// Typefaces.
    Font,
    /// Relocatable code and libraries.
    Object,
    /// Executable binary.
    Command,
    /// A link to another file.
    SymbolicLink,
    /// An editor's backup copy.
    Backup,
    /// List of a directory's files.
    Directory,
    /// Binary data of no known type.
    Binary,
    /// Empty, and without a telling name.
    Unknown,
    /// A type of the site's own: the recognizer that matched knows its name.
    Site(u16),
}

/// Languages of program text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Language {
    /// C.
    C,
    /// C and C++ headers.
    CHeader,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
    /// Python.
    Python,
    /// Perl, with its modules.
    Perl,
    /// Bourne shell and its kin.
    Shell,
    /// JavaScript.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// Java.
    Java,
    /// Go.
    Go,
    /// awk.
    Awk,
    /// Tcl.
    Tcl,
    /// Any other.
    Other,
}

impl Language {
    /// Returns the TR's name of the type where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::CHeader => "CHeader",
            Self::Cpp => "C++",
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Perl => "Perl",
            Self::Shell => "ShellScript",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::Java => "Java",
            Self::Go => "Go",
            Self::Awk => "Awk",
            Self::Tcl => "Tcl",
            Self::Other => "OtherCode",
        }
    }
}

impl Type {
    /// Every built-in type, in the order of the enum; those of program text by language.
    pub const ALL: &[Self] = &[
        Self::Text,
        Self::FormattedText,
        Self::Html,
        Self::Markdown,
        Self::Rst,
        Self::AsciiDoc,
        Self::Readme,
        Self::Faq,
        Self::Rfc,
        Self::InternetDraft,
        Self::Fyi,
        Self::Pdf,
        Self::Source(Language::C),
        Self::Source(Language::CHeader),
        Self::Source(Language::Cpp),
        Self::Source(Language::Rust),
        Self::Source(Language::Python),
        Self::Source(Language::Perl),
        Self::Source(Language::Shell),
        Self::Source(Language::JavaScript),
        Self::Source(Language::TypeScript),
        Self::Source(Language::Java),
        Self::Source(Language::Go),
        Self::Source(Language::Awk),
        Self::Source(Language::Tcl),
        Self::Source(Language::Other),
        Self::Makefile,
        Self::ManPage,
        Self::Troff,
        Self::Mail,
        Self::Mailbox,
        Self::News,
        Self::BibTeX,
        Self::Ris,
        Self::CslJson,
        Self::Marc,
        Self::MarcXml,
        Self::DataCite,
        Self::JsonLd,
        Self::Lsm,
        Self::Iafa,
        Self::Soif,
        Self::WaisSource,
        Self::Tex,
        Self::Texinfo,
        Self::Dvi,
        Self::PostScript,
        Self::Rtf,
        Self::Word,
        Self::Excel,
        Self::PowerPoint,
        Self::OpenDocument,
        Self::Epub,
        Self::Xml,
        Self::Svg,
        Self::Sgml,
        Self::Json,
        Self::Notebook,
        Self::Configuration,
        Self::DotFile,
        Self::Data,
        Self::Csv,
        Self::Patch,
        Self::ChangeLog,
        Self::Rcs,
        Self::Sccs,
        Self::Gzip,
        Self::GzipTar,
        Self::Tar,
        Self::Zip,
        Self::Compressed,
        Self::CompressedTar,
        Self::Archive,
        Self::Deb,
        Self::Rpm,
        Self::Wheel,
        Self::Crate,
        Self::Jar,
        Self::SourceDistribution,
        Self::MacCompressed,
        Self::ShellArchive,
        Self::Uuencoded,
        Self::Image,
        Self::Audio,
        Self::Video,
        Self::Font,
        Self::Object,
        Self::Command,
        Self::SymbolicLink,
        Self::Backup,
        Self::Directory,
        Self::Binary,
        Self::Unknown,
    ];

    /// Returns the built-in type with this name in the `Type` attribute, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name in the `Type` attribute; "Site" for all types of the site's own, whose names the
    /// recognizers know.
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::FormattedText => "FormattedText",
            Self::Html => "HTML",
            Self::Markdown => "Markdown",
            Self::Rst => "reStructuredText",
            Self::AsciiDoc => "AsciiDoc",
            Self::Readme => "README",
            Self::Faq => "FAQ",
            Self::Rfc => "RFC",
            Self::InternetDraft => "Internet-Draft",
            Self::Fyi => "FYI",
            Self::Pdf => "PDF",
            Self::Source(language) => language.name(),
            Self::Makefile => "Makefile",
            Self::ManPage => "ManPage",
            Self::Troff => "Troff",
            Self::Mail => "Mail",
            Self::Mailbox => "Mailbox",
            Self::News => "News",
            Self::BibTeX => "BibTeX",
            Self::Ris => "RIS",
            Self::CslJson => "CSL-JSON",
            Self::Marc => "MARC",
            Self::MarcXml => "MARCXML",
            Self::DataCite => "DataCite",
            Self::JsonLd => "JSON-LD",
            Self::Lsm => "LSM",
            Self::Iafa => "IAFA",
            Self::Soif => "SOIF",
            Self::WaisSource => "WaisSource",
            Self::Tex => "Tex",
            Self::Texinfo => "Texinfo",
            Self::Dvi => "Dvi",
            Self::PostScript => "PostScript",
            Self::Rtf => "RTF",
            Self::Word => "Word",
            Self::Excel => "Excel",
            Self::PowerPoint => "PowerPoint",
            Self::OpenDocument => "OpenDocument",
            Self::Epub => "EPUB",
            Self::Xml => "XML",
            Self::Svg => "SVG",
            Self::Sgml => "SGML",
            Self::Json => "JSON",
            Self::Notebook => "Notebook",
            Self::Configuration => "Configuration",
            Self::DotFile => "DotFile",
            Self::Data => "Data",
            Self::Csv => "CSV",
            Self::Patch => "Patch",
            Self::ChangeLog => "ChangeLog",
            Self::Rcs => "RCS",
            Self::Sccs => "SCCS",
            Self::Gzip => "GNUCompressed",
            Self::GzipTar => "GNUCompressedTar",
            Self::Tar => "Tar",
            Self::Zip => "PCCompressed",
            Self::Compressed => "Compressed",
            Self::CompressedTar => "CompressedTar",
            Self::Archive => "Archive",
            Self::Deb => "Debian-Package",
            Self::Rpm => "RPM",
            Self::Wheel => "Wheel",
            Self::Crate => "Crate",
            Self::Jar => "Jar",
            Self::SourceDistribution => "SourceDistribution",
            Self::MacCompressed => "MacCompressed",
            Self::ShellArchive => "ShellArchive",
            Self::Uuencoded => "Uuencoded",
            Self::Image => "Image",
            Self::Audio => "Audio",
            Self::Video => "Video",
            Self::Font => "Font",
            Self::Object => "Object",
            Self::Command => "Command",
            Self::SymbolicLink => "SymbolicLink",
            Self::Backup => "Backup",
            Self::Directory => "Directory",
            Self::Binary => "Binary",
            Self::Unknown => "Unknown",
            Self::Site(_) => "Site",
        }
    }

    /// Returns whether objects of this type are text that people or editors can read as it is. The site's own
    /// types may be.
    pub fn is_text(self) -> bool {
        !matches!(
            self,
            Self::Pdf
                | Self::Dvi
                | Self::Word
                | Self::Excel
                | Self::PowerPoint
                | Self::OpenDocument
                | Self::Epub
                | Self::Gzip
                | Self::GzipTar
                | Self::Tar
                | Self::Zip
                | Self::Compressed
                | Self::CompressedTar
                | Self::Archive
                | Self::MacCompressed
                | Self::Image
                | Self::Audio
                | Self::Video
                | Self::Font
                | Self::Object
                | Self::Command
                | Self::Backup
                | Self::Binary
                | Self::Unknown
                | Self::Marc
                | Self::Deb
                | Self::Rpm
                | Self::Wheel
                | Self::Crate
                | Self::Jar
                | Self::SourceDistribution
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_name() {
        for it in Type::ALL {
            assert_eq!(Type::by_name(it.name()), Some(*it));
            assert_eq!(Type::by_name(&it.name().to_lowercase()), Some(*it));
        }
        assert_eq!(Type::by_name("Nonsense"), None);
    }
}
