//! The Texinfo commands that are treated alike.
//!
//! Source: the Texinfo manual (version 7), "@-Command List".

/// The treatment that many commands have in common.
pub(super) enum Treatment {
    /// An environment that Info does not show.
    Hidden,
    /// The beginning of a chapter or section.
    Heading,
    /// A command whose line has no text for readers.
    Silent,
}

/// Returns the treatment of a command, if many have the same.
pub(super) fn treatment(command: &str) -> Option<Treatment> {
    Some(match command {
        "ignore" | "menu" | "detailmenu" | "direntry" | "iftex" | "tex" | "ifhtml" | "html"
        | "ifdocbook" | "docbook" | "ifxml" | "xml" | "iflatex" | "latex" | "ifnotinfo"
        | "ifnotplaintext" | "macro" | "rmacro" | "linemacro" | "docbookfiguretext" => {
            Treatment::Hidden
        }
        "part" | "chapter" | "section" | "subsection" | "subsubsection" | "unnumbered"
        | "unnumberedsec" | "unnumberedsubsec" | "appendix" | "appendixsec" | "appendixsection"
        | "appendixsubsec" | "appendixsubsubsec" | "centerchap" | "majorheading"
        | "chapheading" | "heading" | "subheading" | "subsubheading" => Treatment::Heading,
        "unnumberedsubsubsec" => Treatment::Heading,
        "c" | "comment" | "node" | "setfilename" | "clear" | "include" | "table" | "ftable"
        | "vtable" | "itemize" | "enumerate" | "multitable" | "example" | "smallexample"
        | "lisp" | "smalllisp" | "display" | "smalldisplay" | "format" | "smallformat"
        | "quotation" | "smallquotation" | "cartouche" | "flushleft" | "flushright" | "group"
        | "raggedright" | "indentedblock" | "ifinfo" | "ifplaintext" | "ifnottex" | "ifnothtml"
        | "ifnotdocbook" | "ifnotxml" | "ifset" | "ifclear" | "ifcommanddefined"
        | "setchapternewpage" | "finalout" | "smallbook" | "afourpaper" | "paragraphindent"
        | "headings" | "oddheading" | "evenheading" | "everyheading" | "oddfooting"
        | "evenfooting" | "everyfooting" | "syncodeindex" | "synindex" | "defindex"
        | "defcodeindex" | "printindex" | "contents" | "shortcontents" | "summarycontents"
        | "insertcopying" | "page" | "sp" | "vskip" | "need" | "noindent" | "indent"
        | "kbdinputstyle" | "exampleindent" | "footnotestyle" | "novalidate" | "shorttitlepage"
        | "documentencoding" | "alias" | "float" | "listoffloats" | "frenchspacing"
        | "urefbreakstyle" | "allowcodebreaks" | "unmacro" | "definfoenclose" | "pagesizes"
        | "everyheadingmarks" | "lowersections" | "raisesections" => Treatment::Silent,
        "firstparagraphindent" => Treatment::Silent,
        "codequoteundirected" => Treatment::Silent,
        "xrefautomaticsectiontitle" => Treatment::Silent,
        _ => return None,
    })
}
