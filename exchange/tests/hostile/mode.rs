//! Modes of the hostile repository, and the expected outcome of a harvest in each.
//!
//! The outcomes follow from the faults, and were written before any harvester ran against them.

/// The expected outcome of a harvest during the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Every record and every deletion, unchanged.
    Whole,
    /// As `Whole`, but the damaged record may come repaired, or be named as left out.
    Damaged,
    /// A failure that names the problem; nothing is lost after the healing.
    Fails,
    /// [`Whole`](Self::Whole) or [`Fails`](Self::Fails): both are right.
    WholeOrFails,
    /// [`Damaged`](Self::Damaged) or [`Fails`](Self::Fails).
    DamagedOrFails,
    /// An end with a warning that records are missing, without their names.
    Warned,
    /// Any of [`Whole`](Self::Whole), [`Warned`](Self::Warned) and [`Fails`](Self::Fails).
    Any,
}

macro_rules! modes {
    ($($name:ident: $expected:ident, $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Mode { $(#[doc = $text] $name,)* }

        impl Mode {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Describes the mode in a line.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub(crate) fn expected(self) -> Expected {
                match self { $(Self::$name => Expected::$expected,)* }
            }
        }
    };
}

modes! {
    Honest: Whole, "nothing is wrong";

    BusySeconds: Whole, "503 with Retry-After in seconds, once";
    BusyDate: Whole, "503 with Retry-After as an HTTP date, once";
    BusyPastDate: Whole, "503 with a Retry-After that is over, once";
    BusyUnsaid: Whole, "503 without Retry-After, once";
    BusyAbsurd: WholeOrFails, "503 with Retry-After of 30 years, once";
    BusyNegative: Whole, "503 with a negative Retry-After, once";
    BusyForEver: Fails, "503 without Retry-After from the third page on";
    BusyAtIdentify: Whole, "503 to the first Identify";
    TooMany: Whole, "429 with Retry-After, once";
    BrokenTwice: Whole, "500 twice in a row";
    BrokenForEver: Fails, "500 from the third page on";
    NotFound: Fails, "404 from the third page on";
    Forbidden: Fails, "403 from the third page on";

    TokenSame: WholeOrFails, "a page whose token leads to itself";
    TokenCycle: WholeOrFails, "two pages whose tokens lead to each other";
    TokenFirst: WholeOrFails, "the last page's token leads to the second page";
    TokenRefusedOnce: Whole, "a token refused after three pages, once";
    TokenRefused: WholeOrFails, "every token that leads to a third page refused";
    TokenExpired: Whole, "a token that has expired when it is handed out, and is refused once";
    TokenEmptyLast: Whole, "an empty token on the last page, as the standard has it";
    TokenBlankLast: Whole, "a token of white space on the last page";
    TokenNoneLast: Whole, "no token on the last page";
    TokenNoneEarly: Whole, "no token on the third page of six";
    TokenPadded: Whole, "tokens with line ends around them";
    TokenOdd: Whole, "tokens of characters that mean something in URLs and XML";
    TokenLong: Whole, "tokens too long for a URL: 414, but POST is taken";
    TokenOnOnePage: Whole, "an empty token on a list of one page";
    TokenUnread: WholeOrFails, "a token element that never ends";
    TokenNoRecords: Whole, "noRecordsMatch to the third page's token";
    SetLost: Whole, "the set forgotten by the second page of a harvest by set";

    CutMidRecordOnce: Whole, "a page cut within a record, its length announced, once";
    CutMidRecord: Fails, "a page cut within a record, its length announced";
    TruncatedMidRecord: Fails, "a page that ends within a record, its length said to be that";
    TruncatedMidHeader: Fails, "a page that ends within a header, its length said to be that";
    TruncatedAtEnd: Fails, "a page that ends exactly before its end tag";
    TruncatedAfterRecord: Fails, "a page that ends after a whole record";
    TruncatedUnframed: Fails, "a page without length that ends within a record";
    TruncatedInCharacter: Fails, "a page that ends within a character of UTF-8";
    ResetOnce: Whole, "the connection reset within a page, once";
    ResetForEver: Fails, "the connection reset within the third page, always";
    ClosedUnanswered: Fails, "the connection closed without an answer";
    LengthTooLong: WholeOrFails, "Content-Length greater than the page";
    LengthTooShort: Fails, "Content-Length smaller than the page";
    ChunkedEarly: Whole, "a chunked page without its last chunk, once";
    ChunkedBad: Fails, "a chunk whose length is no number";
    Chunked: Whole, "chunked pages";
    Unframed: Whole, "pages without length, HTTP/1.0";
    ClosesKept: Whole, "connections closed that were to be kept";
    ContinueFirst: Whole, "100 Continue before every answer";
    NoHttp: Fails, "an answer that is not HTTP";
    HeadersHuge: Fails, "megabytes of headers";

    HtmlPage: Fails, "an HTML error page with status 200";
    HtmlIdentify: Fails, "an HTML page with status 200 to Identify";
    EmptyPage: Fails, "status 200 and nothing";
    BlankPage: Fails, "status 200 and white space";
    NoContent: Fails, "status 204";
    OtherRoot: Fails, "XML of something else";

    SizeTooSmall: Whole, "completeListSize smaller than the list";
    SizeTooLarge: Warned, "completeListSize greater than the list";
    SizeZero: Whole, "completeListSize 0";
    SizeNegative: Whole, "completeListSize negative";
    SizeGarbage: Whole, "completeListSize that is no number";
    SizeOverflow: Whole, "completeListSize of 30 digits";
    CursorWrong: Whole, "cursor 0 on every page";

    InvalidUtf8: Damaged, "bytes that are no UTF-8";
    ControlCharacters: Damaged, "control characters";
    IllegalReference: Damaged, "references to control characters";
    SurrogateReference: Damaged, "references to halves of surrogate pairs";
    BareAmpersand: Damaged, "an ampersand that is not escaped";
    HtmlEntities: Damaged, "entities of HTML";
    BareLess: DamagedOrFails, "a less-than sign that is not escaped";
    TagsCrossed: DamagedOrFails, "end tags in the wrong order";
    PrefixUndeclared: Damaged, "a namespace prefix that is not declared";
    AttributeTwice: Damaged, "an attribute that is there twice";
    SpaceBefore: Whole, "white space before the XML declaration";
    MarkBefore: Whole, "a byte order mark before the XML declaration";
    NoticeBefore: Whole, "a PHP notice before the XML declaration";
    NoticeAfter: Whole, "a PHP notice after the root";
    Latin1: Whole, "ISO 8859-1, declared";
    Latin1Undeclared: Damaged, "ISO 8859-1, not declared";
    Utf16: Whole, "UTF-16 with a byte order mark";
    Utf8AsLatin1: Damaged, "UTF-8 that is declared as ISO 8859-1";

    EntityBomb: DamagedOrFails, "entities that double, and double again";
    ExternalEntity: DamagedOrFails, "entities that name a file and a URL";
    Doctype: WholeOrFails, "a DOCTYPE without entities";
    RecordHuge: Fails, "a record of a gigabyte";
    PageEndless: Fails, "a page of records without end";
    HeadDrips: Fails, "a head without end, byte by byte";
    BodyDrips: Fails, "a body without end, byte by byte";
    Silent: Fails, "a connection taken and never answered";
    NestedDeep: DamagedOrFails, "a hundred thousand elements within each other";
    AttributesMany: DamagedOrFails, "an element with fifty thousand attributes";
    GzipBomb: Fails, "a page that unpacks to a quarter of a gigabyte";
    GzipTruncated: Fails, "a gzip stream that ends early";
    GzipCorrupt: Fails, "a gzip stream with a wrong checksum";
    GzipUnsaid: WholeOrFails, "gzip that is not announced";
    GzipSaid: WholeOrFails, "gzip announced and not done";
    EncodingUnknown: Fails, "a Content-Encoding that was not asked for";
    Gzip: Whole, "pages in gzip";

    DayOnly: Whole, "granularity of days: refuses datestamps with seconds";
    DayOnlyUnsaid: WholeOrFails, "says seconds, and refuses them";
    DayWithSeconds: Whole, "says days, and has seconds";
    GranularityMissing: Whole, "no granularity in Identify";
    ClockAhead: Whole, "its clock an hour ahead";
    ClockBehind: Whole, "its clock an hour behind";
    ClockBack: Whole, "its clock goes back two hours between pages";
    DateMissing: Whole, "no responseDate";
    DateGarbage: Whole, "a responseDate that is no date";
    DateFraction: Whole, "a responseDate with fractions of a second";
    StampEmpty: Whole, "empty datestamps";
    StampMissing: Whole, "headers without datestamp";
    StampLocal: Whole, "datestamps with an offset from UTC";
    StampFraction: Whole, "datestamps with fractions of a second";
    EarliestLate: Whole, "earliestDatestamp later than the data";
    EarliestGarbage: Whole, "earliestDatestamp that is no date";

    DeletionsUnsaid: Whole, "deletedRecord no: records go without a word";
    DeletedWithMetadata: Whole, "deleted records that have metadata";
    DeletedMany: Whole, "twenty thousand deleted records before all others";

    RedirectMoved: Whole, "a permanent redirect to another path";
    RedirectOnce: Whole, "a temporary redirect of one page";
    RedirectLoop: Fails, "a redirect to itself";
    RedirectHost: Whole, "a redirect to another host";
    RedirectDead: Fails, "a redirect to where nobody speaks TLS";
    RedirectScheme: Fails, "a redirect to a file";

    Prefixed: Whole, "a namespace prefix on every element";
    NamespaceMissing: WholeOrFails, "no namespace";
    NamespaceOther: WholeOrFails, "the namespace of version 1.1";
    VerbMissing: Fails, "a page without its verb element";
    VerbOther: Fails, "a page with another verb's element";
    VerbTwice: WholeOrFails, "the page's records in two verb elements";
    ErrorUnknown: Fails, "an error with a code of its own";
    ErrorUncoded: Fails, "an error without code";
    ErrorAndRecords: WholeOrFails, "noRecordsMatch, and the records";
    ErrorStatus: WholeOrFails, "errors with status 400";
    FormatMissing: Fails, "no oai_dc";

    Repeats: Whole, "every page begins with the last page's last three records";
    MovesKept: Whole, "records that change during the harvest, and come again at its end";
    MovesLost: Any, "records that change during the harvest, and others slip by";
    Unsorted: Whole, "a list in no order";
    CaseAlone: Whole, "identifiers that differ in case alone";
    IdentifierOdd: Whole, "identifiers that are no URLs";
    IdentifierMissing: Damaged, "a header without identifier";
    MetadataMissing: Damaged, "a record that is not deleted, and has no metadata";
    MetadataUnspaced: Damaged, "metadata without namespace";
    AboutMuch: Whole, "records with containers about them";
    PagesOfOne: Whole, "a page for each record";
    PageEmpty: Whole, "a page without records, and a token";
}
