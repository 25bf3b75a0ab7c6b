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
    /// A draft of an RFC.
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
    /// Electronic book as EPUB.
    Epub,
    /// Electronic book of another make: Mobipocket, FictionBook, Microsoft Reader …
    Ebook,
    /// Document of another word processor than Word: WordPerfect, Hangul, Works, Pages …
    WordProcessor,
    /// Spreadsheet of another program than Excel: Lotus 1-2-3, Quattro Pro, Numbers …
    Spreadsheet,
    /// Slides of another program than PowerPoint: Keynote, Corel Presentations …
    Presentation,
    /// Pages laid out for print: Publisher, InDesign, FrameMaker, XPS …
    PageLayout,
    /// Notes of OneNote.
    OneNote,
    /// Help for the users of a program: compiled HTML, Windows help.
    Help,
    /// Drawing, diagram or model of a program for design: AutoCAD, Visio …
    Drawing,
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
    /// Tables and other records in a file of their own: dBASE, SQLite, Access, Project, stores of mail …
    Database,
    /// Measurements and results for computing with: HDF, NetCDF, GRIB, FITS, SPSS …
    ScientificData,
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
    /// tar inside such a file.
    CompressedTar,
    /// Other archives (ar, cpio, packages, 7z, jar …).
    Archive,
    /// Pages of the web as they were crawled: WARC, ARC.
    Warc,
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

/// The built-in types in the order of the enum (those of program text by language), and their names in the
/// `Type` attribute: the TR's where it has one.
const NAMES: &[(Type, &str)] = &[
    (Type::Text, "Text"),
    (Type::FormattedText, "FormattedText"),
    (Type::Html, "HTML"),
    (Type::Markdown, "Markdown"),
    (Type::Rst, "reStructuredText"),
    (Type::AsciiDoc, "AsciiDoc"),
    (Type::Readme, "README"),
    (Type::Faq, "FAQ"),
    (Type::Rfc, "RFC"),
    (Type::InternetDraft, "Internet-Draft"),
    (Type::Fyi, "FYI"),
    (Type::Pdf, "PDF"),
    (Type::Source(Language::C), "C"),
    (Type::Source(Language::CHeader), "CHeader"),
    (Type::Source(Language::Cpp), "C++"),
    (Type::Source(Language::Rust), "Rust"),
    (Type::Source(Language::Python), "Python"),
    (Type::Source(Language::Perl), "Perl"),
    (Type::Source(Language::Shell), "ShellScript"),
    (Type::Source(Language::JavaScript), "JavaScript"),
    (Type::Source(Language::TypeScript), "TypeScript"),
    (Type::Source(Language::Java), "Java"),
    (Type::Source(Language::Go), "Go"),
    (Type::Source(Language::Awk), "Awk"),
    (Type::Source(Language::Tcl), "Tcl"),
    (Type::Source(Language::Other), "OtherCode"),
    (Type::Makefile, "Makefile"),
    (Type::ManPage, "ManPage"),
    (Type::Troff, "Troff"),
    (Type::Mail, "Mail"),
    (Type::Mailbox, "Mailbox"),
    (Type::News, "News"),
    (Type::BibTeX, "BibTeX"),
    (Type::Ris, "RIS"),
    (Type::CslJson, "CSL-JSON"),
    (Type::Marc, "MARC"),
    (Type::MarcXml, "MARCXML"),
    (Type::DataCite, "DataCite"),
    (Type::JsonLd, "JSON-LD"),
    (Type::Lsm, "LSM"),
    (Type::Iafa, "IAFA"),
    (Type::Soif, "SOIF"),
    (Type::WaisSource, "WaisSource"),
    (Type::Tex, "Tex"),
    (Type::Texinfo, "Texinfo"),
    (Type::Dvi, "Dvi"),
    (Type::PostScript, "PostScript"),
    (Type::Rtf, "RTF"),
    (Type::Word, "Word"),
    (Type::Excel, "Excel"),
    (Type::PowerPoint, "PowerPoint"),
    (Type::OpenDocument, "OpenDocument"),
    (Type::Epub, "EPUB"),
    (Type::Ebook, "Ebook"),
    (Type::WordProcessor, "WordProcessor"),
    (Type::Spreadsheet, "Spreadsheet"),
    (Type::Presentation, "Presentation"),
    (Type::PageLayout, "PageLayout"),
    (Type::OneNote, "OneNote"),
    (Type::Help, "Help"),
    (Type::Drawing, "Drawing"),
    (Type::Xml, "XML"),
    (Type::Svg, "SVG"),
    (Type::Sgml, "SGML"),
    (Type::Json, "JSON"),
    (Type::Notebook, "Notebook"),
    (Type::Configuration, "Configuration"),
    (Type::DotFile, "DotFile"),
    (Type::Data, "Data"),
    (Type::Csv, "CSV"),
    (Type::Database, "Database"),
    (Type::ScientificData, "ScientificData"),
    (Type::Patch, "Patch"),
    (Type::ChangeLog, "ChangeLog"),
    (Type::Rcs, "RCS"),
    (Type::Sccs, "SCCS"),
    (Type::Gzip, "GNUCompressed"),
    (Type::GzipTar, "GNUCompressedTar"),
    (Type::Tar, "Tar"),
    (Type::Zip, "PCCompressed"),
    (Type::Compressed, "Compressed"),
    (Type::CompressedTar, "CompressedTar"),
    (Type::Archive, "Archive"),
    (Type::Warc, "WARC"),
    (Type::Deb, "Debian-Package"),
    (Type::Rpm, "RPM"),
    (Type::Wheel, "Wheel"),
    (Type::Crate, "Crate"),
    (Type::Jar, "Jar"),
    (Type::SourceDistribution, "SourceDistribution"),
    (Type::MacCompressed, "MacCompressed"),
    (Type::ShellArchive, "ShellArchive"),
    (Type::Uuencoded, "Uuencoded"),
    (Type::Image, "Image"),
    (Type::Audio, "Audio"),
    (Type::Video, "Video"),
    (Type::Font, "Font"),
    (Type::Object, "Object"),
    (Type::Command, "Command"),
    (Type::SymbolicLink, "SymbolicLink"),
    (Type::Backup, "Backup"),
    (Type::Directory, "Directory"),
    (Type::Binary, "Binary"),
    (Type::Unknown, "Unknown"),
];

impl Type {
    /// Every built-in type, in the order of the enum; those of program text by language.
    pub const ALL: &[Self] = &{
        let mut all = [Self::Unknown; NAMES.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = NAMES[at].0;
            at += 1;
        }
        all
    };

    /// Returns the built-in type with this name in the `Type` attribute, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        let named = NAMES.iter().find(|(_, it)| it.eq_ignore_ascii_case(name));
        named.map(|(found, _)| *found)
    }

    /// Returns the name in the `Type` attribute; "Site" for all types of the site's own, whose names the
    /// recognizers know.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(it, _)| *it == self).map_or("Site", |(_, name)| name)
    }

    /// Returns whether objects of this type are opened when possible, so that no summarizer reads them.
    pub fn is_opened(self) -> bool {
        matches!(
            self,
            Self::Gzip
                | Self::Compressed
                | Self::GzipTar
                | Self::CompressedTar
                | Self::Crate
                | Self::SourceDistribution
                | Self::Tar
                | Self::Zip
                | Self::Archive
                | Self::Warc
                | Self::Deb
                | Self::Rpm
                | Self::Wheel
                | Self::Jar
                | Self::MacCompressed
                | Self::ShellArchive
                | Self::Uuencoded
        )
    }

    /// Returns whether the text in objects of this type was written as text: strings in programs were not.
    pub(crate) fn has_text(self) -> bool {
        !matches!(self, Self::Object | Self::Command | Self::Binary | Self::Font)
    }

    /// Returns whether objects of this type are text that people or editors can read as it is. The
    /// site's own types may be text, so they are included.
    pub fn is_text(self) -> bool {
        use Type::*;
        match self {
            ShellArchive | Uuencoded => true,
            Pdf | Dvi | Word | Excel | PowerPoint | OpenDocument | Epub | Image | Audio | Video
            | Font | Object | Command | Backup | Binary | Unknown | Marc => false,
            other => !other.is_opened() && !other.is_stored(),
        }
    }

    /// Returns whether objects of this type are the data of one of many programs, told apart by
    /// their marks: see [`crate::mark_of`].
    pub fn is_stored(self) -> bool {
        use Type::*;
        matches!(
            self,
            Ebook
                | WordProcessor
                | Spreadsheet
                | Presentation
                | PageLayout
                | OneNote
                | Help
                | Drawing
                | Database
                | ScientificData
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
