//! The elements of a page that parsing or line breaks treat specially.

/// Longest name of an element known here, in bytes.
const NAME_BYTES_MAX: usize = 13;

/// The class of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Title,
    /// `h1` to `h6`.
    Heading,
    /// A cell of a table.
    Cell,
    Base,
    Meta,
    Link,
    /// An element with lines of its own.
    Block,
    /// `xmp`, which shows tags as written.
    Example,
    Script,
    /// Text that is not shown.
    Hidden,
    /// Text that users fill in.
    TextArea,
    PlainText,
    /// `svg` and `math`, which have rules of their own.
    Foreign,
    /// `foreignObject` and `desc`: parts of a picture that hold elements of pages.
    Island,
    Other,
}

/// The content of an element that holds no other elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text that is shown.
    Text,
    /// Text that is shown as written.
    Verbatim,
    /// Text that is not shown.
    Hidden,
    Script,
    /// Linked data.
    Data,
    /// The rest of the page.
    Everything,
}

impl Element {
    /// Returns the class of the element `name`, in any case.
    pub(super) fn of(name: &[u8]) -> Self {
        let mut lower = [0; NAME_BYTES_MAX];
        let Some(lower) = lower.get_mut(..name.len()) else { return Self::Other };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"title" => Self::Title,
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Self::Heading,
            b"td" | b"th" => Self::Cell,
            b"base" => Self::Base,
            b"meta" => Self::Meta,
            b"link" => Self::Link,
            b"p" | b"div" | b"br" | b"li" | b"tr" | b"dt" | b"dd" | b"pre" | b"ul" | b"ol"
            | b"dl" | b"table" | b"section" | b"article" | b"header" | b"footer" | b"nav"
            | b"main" | b"aside" | b"blockquote" | b"hr" | b"form" | b"figure" | b"figcaption"
            | b"center" | b"caption" | b"option" | b"summary" | b"details" | b"fieldset"
            | b"body" | b"address" => Self::Block,
            b"script" => Self::Script,
            b"xmp" => Self::Example,
            b"style" | b"noembed" | b"noframes" | b"noscript" | b"iframe" => Self::Hidden,
            b"textarea" => Self::TextArea,
            b"plaintext" => Self::PlainText,
            b"svg" | b"math" => Self::Foreign,
            b"foreignobject" | b"desc" => Self::Island,
            _ => Self::Other,
        }
    }

    /// Returns the kind of content, if the element holds no other elements.
    pub(super) fn content(self) -> Option<Content> {
        match self {
            Self::Title | Self::TextArea => Some(Content::Text),
            Self::Example => Some(Content::Verbatim),
            Self::Script => Some(Content::Script),
            Self::Hidden => Some(Content::Hidden),
            Self::PlainText => Some(Content::Everything),
            _ => None,
        }
    }

    /// Returns whether the element cannot lie in `svg` or `math`.
    pub(super) fn ends_foreign(self) -> bool {
        matches!(self, Self::Heading | Self::Block | Self::Cell | Self::Meta | Self::Base)
    }
}
