//! The table of limits: how much of an object is read or kept, and how a record says that there was more.
//!
//! Nothing is left out in silence. Each limit that can cost words, entries or members is a row of this table. Where
//! an object goes beyond one, the object has a problem of the kind [`ProblemKind::Limit`], and its record a line
//! of `Truncated`: the limit's name and how much was read, such as `pages 2000`. Limits that cost nothing (how far
//! a charset is looked for, how long a key of a syntax may be) are constants where they are used.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::object::ProblemKind;

/// Mebibyte, in bytes.
const MIB: usize = 1024 * 1024;

/// Defines the limits, each with its name, its bound and its unit.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $limit:ident = $name:literal, $bound:expr, $unit:literal;)+) => {
        /// A limit on what is read or kept of an object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Limit {
            $($(#[doc = $doc])+ $limit,)+
        }

        impl Limit {
            /// All limits, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$limit),+];

            /// Returns the name in `Truncated`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$limit => $name,)+ }
            }

            /// Returns the standard bound, in bytes or in things of the [unit](Self::unit); 0 if settings, or the object
            /// itself, give it.
            pub const fn standard(self) -> usize {
                match self { $(Self::$limit => $bound,)+ }
            }

            /// Returns what is counted, as a message says it after "more than 2".
            pub const fn unit(self) -> &'static str {
                match self { $(Self::$limit => $unit,)+ }
            }
        }
    };
}

limits! {
    // Every type.
    /// Front of an object that is read when it is fetched: `read_max`.
    Read = "read", 0, "bytes to read";
    /// Bytes behind the front that are read at once by seeking.
    Rest = "rest", 512 * MIB, "bytes to read behind its front";
    /// Text that is read for the record: `full_text_bytes_max` and the text for `Keywords`.
    Text = "text", 0, "bytes of text";
    /// Words in `Keywords`, in bytes.
    Keywords = "keywords", 0, "bytes of different words";
    /// Links in `URL-References`.
    References = "references", 0, "links";
    /// Authors.
    Authors = "authors", 1_000, "authors";
    /// Attributes that only some types have.
    Attributes = "attributes", 64, "attributes of its own";
    /// Value of an attribute that only some types have, in bytes.
    Value = "value", 16 * 1024, "bytes in one attribute";
    /// Problems of an object.
    Problems = "problems", 100, "problems";

    // Types that are read in memory.
    /// A document of markup or codes, in bytes.
    Document = "document", 64 * MIB, "bytes of a document";
    /// A page of HTML, in bytes.
    HtmlPage = "html-page", 16 * MIB, "bytes of a page";
    /// A message of mail or news, in bytes.
    Message = "message", 16 * MIB, "bytes of a message";
    /// A file of revisions, in bytes.
    Revisions = "revisions", 32 * MIB, "bytes of revisions";
    /// A drawing, in bytes.
    Drawing = "drawing", 16 * MIB, "bytes of a drawing";
    /// A list of media files, in bytes.
    Playlist = "playlist", MIB, "bytes of a list";
    /// Bytes of data in which words are looked for.
    Scan = "scan", 16 * MIB, "bytes to look for words in";
    /// Bytes of a program in which messages are looked for.
    ProgramScan = "program-scan", 32 * MIB, "bytes to look for messages in";

    // Packed objects.
    /// Directory of an archive, in bytes.
    Directory = "directory", 32 * MIB, "bytes in its directory";
    /// Directory of a 7z archive, in bytes.
    SevenZipDirectory = "7z-directory", MIB, "bytes in its directory";
    /// Entries of an archive's directory.
    Entries = "entries", 100_000, "directory entries";
    /// Dictionary of a packed stream, in bytes.
    Dictionary = "dictionary", 64 * MIB, "bytes in its dictionary";
    /// Path of a member, in bytes.
    Path = "path", 4 * 1024, "bytes in its path";
    /// Extended header of a member of a tar, in bytes.
    Extended = "extended-header", MIB, "bytes in an extended header";
    /// Files with several names in a cpio archive.
    LinkedFiles = "linked-files", 10_000, "files with several names";
    /// A package's own description of itself, in bytes.
    Metadata = "package-metadata", 256 * 1024, "bytes of metadata";
    /// A message in which attachments are looked for, in bytes.
    Attached = "attached", 64 * MIB, "bytes to look for attachments in";
    /// Messages in a message.
    NestedMessages = "nested-messages", 50, "messages in a message";
    /// Bytes that come out of an object.
    Opened = "opened", 0, "bytes when it is opened";
    /// Bytes that come out of an object for each byte of it.
    Ratio = "ratio", 0, "times its size when it is opened";
    /// Containers in containers.
    Depth = "depth", 0, "containers around it";
    /// Members of containers.
    Members = "members", 0, "members";
    /// Names of members, in bytes.
    Names = "names", 0, "bytes of names of its members";
    /// Records of members, in bytes.
    Records = "records", 0, "bytes of records of its members";
    /// Bytes of one member.
    Member = "member", 0, "bytes";
    /// Memory in which an object is read.
    Memory = "memory", 0, "bytes of memory";

    // Lists.
    /// A list of which entries are read.
    List = "list", 32 * MIB, "bytes";
    /// An entry of a list, in bytes.
    Entry = "entry", 256 * 1024, "bytes in an entry";
    /// Fields of a MARC record.
    MarcFields = "marc-fields", 2_000, "fields in a record";
    /// Messages of a mailbox.
    Messages = "messages", 10_000, "messages";
    /// Linked data of a page, in bytes.
    LinkedData = "linked-data", MIB, "bytes of linked data";

    // Markup and print.
    /// Piece of a page's linked data, in bytes: as a tree in memory, it takes up to forty times as much.
    LinkedDataPiece = "linked-data-piece", 256 * 1024, "bytes in a piece of linked data";
    /// Things of a piece of linked data, and values of one of its keys.
    LinkedThings = "linked-things", 256, "things or values in a piece of linked data";
    /// Results in a notebook, in bytes.
    Results = "results", 16 * 1024, "bytes of results";
    /// Values of an entry of a list.
    EntryValues = "entry-values", 1_000, "values in an entry";
    /// Description of one thing without a list, in bytes.
    Thing = "thing", MIB, "bytes about one thing";
    /// Short names that stand for texts.
    Abbreviations = "abbreviations", 10_000, "abbreviations";
    /// Commands of a printed document.
    Commands = "commands", 50_000_000, "commands";
    /// Fonts of a document.
    Fonts = "fonts", 10_000, "fonts";
    /// Packet of metadata in a file, in bytes.
    Packet = "packet", MIB, "bytes in a packet of metadata";
    /// Names of a program's symbols, in bytes.
    Symbols = "symbols", 64 * 1024, "bytes of names of symbols";
    /// Messages of a program, in bytes.
    ProgramText = "program-text", 12 * 1024, "bytes of messages";
    /// Marks of one kind in a program: versions, copyrights.
    Marks = "marks", 2_000, "marks of one kind";

    // Media.
    /// Pieces of a picture or a film.
    Pieces = "pieces", 1_000_000, "pieces";
    /// Packed texts of a picture.
    PackedTexts = "packed-texts", 64, "packed texts";
    /// Fonts of a collection.
    Faces = "faces", 256, "fonts in it";
    /// Elements of a drawing, one in another.
    DrawingDepth = "drawing-depth", 1_000, "elements in an element";
    /// Names of a font, in bytes.
    FontNames = "font-names", MIB, "bytes of names";

    // Data.
    /// Pages of a database's schema.
    SchemaPages = "schema-pages", 10_000, "pages of its schema";
    /// Text of a book, in bytes.
    BookText = "book-text", 16 * MIB, "bytes of text";
    /// Part of a book's text, in bytes.
    BookPart = "book-part", 64 * 1024, "bytes in a part of its text";
    /// Lines of a header of measurements.
    Cards = "cards", 20_000, "cards in its header";
    /// Files beside the object that hold parts of it.
    Beside = "beside", 0, "files";

    // Office.
    /// Properties of a document, a book, a picture or a font.
    Properties = "properties", 1_000, "properties";
    /// Value of a property, in bytes.
    Property = "property", 64 * 1024, "bytes in a property";
    /// Paragraph, or row or cell of a table, in bytes.
    Paragraph = "paragraph", 64 * 1024, "bytes in a paragraph, row or cell";
    /// References from a part of a package to others.
    Relationships = "relationships", 16 * 1024, "relationships of a part";
    /// Slides of a presentation.
    Slides = "slides", 5_000, "slides";
    /// Parts, and chapters, of a book.
    BookParts = "book-parts", 16 * 1024, "parts or chapters";
    /// Groups of an RTF document, one in another.
    Groups = "groups", 512, "groups in a group";
    /// Attachments of an Outlook item that are listed.
    Attachments = "attachments", 100, "attachments";
    /// Page within an RTF document, in bytes.
    RtfPage = "rtf-page", 16 * MIB, "bytes of a page in it";
    /// Headers and footers, in bytes.
    PageTexts = "page-texts", 8 * 1024, "bytes of headers and footers";
    /// Recipients of an Outlook item.
    Recipients = "recipients", 1_000, "recipients";
    /// Unpacked RTF text of an Outlook item, in bytes.
    OutlookText = "outlook-text", 32 * MIB, "bytes of text";
    /// Sections of a document.
    Sections = "sections", 1_000, "sections";
    /// Part of a package, in bytes.
    Part = "part", 32 * MIB, "bytes in one of its parts";
    /// Stream of a compound file, in bytes.
    Stream = "stream", 32 * MIB, "bytes in one of its streams";
    /// Streams of a compound file.
    Streams = "streams", 64 * 1024, "streams";
    /// Sheets of a workbook.
    Sheets = "sheets", 1_000, "sheets";
    /// Shared strings of a workbook.
    Strings = "strings", 1024 * 1024, "shared strings";
    /// Shared strings of a workbook, in bytes.
    StringBytes = "string-bytes", 16 * MIB, "bytes of shared strings";
    /// Drawings and comments of a document.
    SheetParts = "sheet-parts", 1_000, "drawings and comments";

    // PDF.
    /// Streams of a document, in bytes when they are opened.
    PdfStreams = "pdf-streams", 0, "bytes in its streams when they are opened";
    /// Contents of pages, in bytes when they are opened.
    PdfContents = "pdf-contents", 128 * MIB, "bytes in its pages when they are opened";
    /// Pages.
    Pages = "pages", 2_000, "pages";
    /// Drawing operations.
    Operations = "operations", 5_000_000, "drawing operations";

    // Programs of the site.
    /// Bytes of a fetched object, and of all in it, that go to programs of the site.
    Given = "given", 64 * MIB, "bytes for the programs of the site";
    /// Output of all programs of the site for a fetched object, in bytes.
    Output = "output", 0, "bytes of output of programs";
    /// Matches of the site's expressions for one attribute.
    Matches = "matches", 0, "matches";
}

impl Limit {
    /// Returns the bound that holds.
    pub(crate) fn bound(self) -> usize {
        #[cfg(test)]
        if let Some(bound) = lowered::bound(self) {
            return bound;
        }
        self.standard()
    }

    /// Returns what is said where there is more than the bound.
    pub(crate) fn cut(self) -> Cut {
        self.cut_at(self.bound())
    }

    /// Returns the kind of a problem that says more than [`Cut::message`] does.
    pub(crate) fn kind(self) -> ProblemKind {
        ProblemKind::Limit(self.cut())
    }

    /// Returns the kind of a problem where there is more than `kept`, bytes or things.
    pub fn kind_at(self, kept: impl TryInto<u64>) -> ProblemKind {
        ProblemKind::Limit(self.cut_at(kept))
    }

    /// Returns what is said where there is more than `kept`, bytes or things.
    pub fn cut_at(self, kept: impl TryInto<u64>) -> Cut {
        Cut { limit: self, kept: kept.try_into().unwrap_or(u64::MAX) }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A limit that an object went beyond. Its text is a line of `Truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cut {
    /// The limit.
    pub limit: Limit,
    /// How much was read or kept, in bytes or in things of the [unit](Limit::unit).
    pub kept: u64,
}

impl Cut {
    /// Returns the message of its problem.
    pub fn message(self) -> String {
        let advice = match self.limit {
            Limit::Read => "; raise `read_max` to read all of it",
            _ => "",
        };
        format!("has more than {} {}; the rest was left out{advice}", self.kept, self.limit.unit())
    }

    /// Returns the problem without its URL.
    pub fn problem(self) -> (ProblemKind, String) {
        (ProblemKind::Limit(self), self.message())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.limit, self.kept)
    }
}

/// Bounds that a test has lowered, so that small objects go beyond them.
#[cfg(test)]
pub(crate) mod lowered {
    use std::cell::Cell;

    use super::Limit;

    thread_local! {
        static LOWERED: Cell<Option<(Limit, usize)>> = const { Cell::new(None) };
    }

    pub(crate) fn bound(limit: Limit) -> Option<usize> {
        LOWERED.get().filter(|(it, _)| *it == limit).map(|(_, bound)| bound)
    }

    /// Runs `test` with a lower bound.
    pub(crate) fn with<T>(limit: Limit, bound: usize, test: impl FnOnce() -> T) -> T {
        LOWERED.set(Some((limit, bound)));
        let made = test();
        LOWERED.set(None);
        made
    }
}

#[cfg(test)]
mod tests;
