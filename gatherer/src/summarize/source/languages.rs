//! How definitions look in each language: one regular expression each, for single lines.
//!
//! Sans-I/O.

use std::sync::LazyLock;

use regex::Regex;

use crate::typing::Language;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Procedure,
    Type,
    Include,
}

/// The expression of a language and what its groups mean.
#[derive(Debug)]
pub(super) struct Rules {
    /// Groups are named `p…`, `t…` and `i…` by their kind. `None` would be a pattern that does not
    /// compile, which the tests rule out.
    pub(super) regex: Option<Regex>,
    /// Group numbers and their kinds.
    pub(super) groups: Vec<(usize, Kind)>,
    /// Whether definitions start in the first column.
    column_one: bool,
}

impl Rules {
    fn new(pattern: &str, column_one: bool) -> Self {
        let regex = Regex::new(pattern).ok();
        let names = regex.iter().flat_map(Regex::capture_names).enumerate();
        let groups = names.filter_map(|(group, name)| {
            let kind = match name?.as_bytes().first()? {
                b'p' => Kind::Procedure,
                b't' => Kind::Type,
                _ => Kind::Include,
            };
            Some((group, kind))
        });
        let groups = groups.collect();
        Self { regex, groups, column_one }
    }

    /// A cheap test that most lines fail.
    pub(super) fn may_define(&self, line: &str) -> bool {
        let first = line.bytes().next();
        let inside = first.is_none_or(|it| matches!(it, b' ' | b'\t' | b'}' | b'{' | b'/' | b'*'));
        !(self.column_one && inside)
    }
}

/// Functions start in the first column and do not end their line with `;` (in headers they may);
/// the GNU style puts the result's type on the line before.
const C: &str = r#"(?x) ^\#\s*include\s*[<"](?P<i>[^>"]+)
    | ^(?:typedef\s+|static\s+|const\s+)*(?:struct|union|enum)\s+(?P<t>\w+)\s*(?:\{|$)
    | ^(?:[A-Za-z_][\w\s*]*?[\s*]+)??(?P<p>[A-Za-z_]\w*)\s*\([^;={}]*(?:\{.*)?$"#;

const CPP: &str = r#"(?x) ^\s*\#\s*include\s*[<"](?P<i>[^>"]+)
    | ^\s*(?:template\s*<.*>\s*)?(?:typedef\s+|export\s+)*(?:class|struct|union|enum(?:\s+class)?|namespace|concept)\s+(?:[A-Z_]+\s+)?(?P<t>\w+)\s*(?:final\s*)?(?:[:{<]|$)
    | ^(?:[A-Za-z_][\w\s*&:<>,]*?[\s*&]+)??(?P<p>[A-Za-z_~][\w:~]*)\s*\([^;={}]*\)?[^;={}]*(?:;|\{.*)?$"#;

const RUST: &str = r#"(?x) ^\s*(?:pub(?:\([^)]*\))?\s+)?
    (?: (?:default\s+|const\s+|async\s+|unsafe\s+|extern\s+"[^"]*"\s+)*fn\s+(?P<p>\w+)
      | (?:unsafe\s+)?(?:struct|enum|trait|union|type)\s+(?P<t>\w+)
      | use\s+(?P<i>[\w:]+\w) )
    | ^\s*macro_rules!\s+(?P<p2>\w+)"#;

const PYTHON: &str = r"(?x) ^\s*(?:async\s+)?def\s+(?P<p>\w+) | ^\s*class\s+(?P<t>\w+)
    | ^\s*(?:from\s+(?P<i>[\w.]+)\s+import\b|c?import\s+(?P<i2>[\w.]+(?:\s*,\s*[\w.]+)*))";

const PERL: &str = r"(?x) ^\s*sub\s+(?P<p>[\w:]+) | ^\s*package\s+(?P<t>[\w:]+)
    | ^\s*(?:use|require)\s+(?P<i>[A-Z][\w:]*)";

const SHELL: &str = r"(?x) ^\s*(?:function\s+)?(?P<p>[\w:.-]+)\s*\(\s*\) | ^\s*function\s+(?P<p2>[\w:.-]+)
    | ^\s*(?:\.|source)\s+(?P<i>[\w/.$\{\}-]+)";

const JAVASCRIPT: &str = r#"(?x) ^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\s*\*?\s*(?P<p>[\w$]+)
    | ^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:class|interface|enum|type|namespace)\s+(?P<t>[\w$]+)
    | ^\s*(?:export\s+)?(?:const|let|var)\s+(?P<p2>[\w$]+)\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>|[\w$]+\s*=>)
    | ^\s*(?:import|export)\b.*\bfrom\s+['"](?P<i>[^'"]+) | ^\s*import\s+['"](?P<i2>[^'"]+)
    | \brequire\(\s*['"](?P<i3>[^'"]+)"#;

const JAVA: &str = r"(?x) ^\s*import\s+(?:static\s+)?(?P<i>[\w.]+)
    | ^\s*(?:(?:public|protected|private|static|final|abstract|sealed)\s+)*(?:class|interface|enum|record|@interface)\s+(?P<t>\w+)
    | ^\s*(?:(?:public|protected|private|static|final|abstract|synchronized|native|default)\s+)+(?:<[^>]*>\s*)?(?:[\w.<>\[\],?\s]+\s)?(?P<p>\w+)\s*\(";

const GO: &str = r#"(?x) ^func\s+(?:\([^)]*\)\s*)?(?P<p>\w+) | ^type\s+(?P<t>\w+)
    | ^import\s+(?:\w+\s+)?"(?P<i>[^"]+)" | ^\s+(?:[\w.]+\s+)?"(?P<i2>[\w./-]+/[\w./-]+)"$"#;

const AWK: &str = r#"(?x) ^\s*func(?:tion)?\s+(?P<p>\w+) | ^@include\s+"(?P<i>[^"]+)"#;

const TCL: &str = r"(?x) ^\s*proc\s+(?P<p>[\w:]+)
    | ^\s*(?:oo::class\s+create|itcl::class|namespace\s+eval)\s+(?P<t>[\w:]+)
    | ^\s*package\s+require\s+(?P<i>[\w:]+)";

/// What most other languages call them, in any case of letters.
const OTHER: &str = r"(?xi) ^\s*(?:(?:public|private|protected|static|pure|elemental|recursive|local|override|abstract|export|create(?:\s+or\s+replace)?)\s+)*
    (?: (?:def|defn|defun|function|func|fun|fn|sub|subroutine|procedure|proc|macro|method)\s+(?P<p>[\w.:?!-]+)
      | (?:class|struct|interface|trait|module|object|protocol|record|enum|table|view)\s+(?P<t>[\w.:]+)
      | (?:import|include|require|using|uses|open)\s+[\x22\x27<(]?(?P<i>[\w./:-]+) )
    | ^\s*\((?:defun|defmacro|define|defn)\s+\(?(?P<p2>[\w.:?!*/<>=+-]+)";

/// Returns the rules of a language.
pub(super) fn rules(language: Language) -> &'static Rules {
    macro_rules! compiled {
        ($pattern:expr, $column_one:expr) => {{
            static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new($pattern, $column_one));
            &RULES
        }};
    }
    match language {
        Language::C => compiled!(C, true),
        Language::CHeader | Language::Cpp => compiled!(CPP, false),
        Language::Rust => compiled!(RUST, false),
        Language::Python => compiled!(PYTHON, false),
        Language::Perl => compiled!(PERL, false),
        Language::Shell => compiled!(SHELL, false),
        Language::JavaScript | Language::TypeScript => compiled!(JAVASCRIPT, false),
        Language::Java => compiled!(JAVA, false),
        Language::Go => compiled!(GO, false),
        Language::Awk => compiled!(AWK, false),
        Language::Tcl => compiled!(TCL, false),
        Language::Other => compiled!(OTHER, false),
    }
}

/// Whether a word that looks like a function's name is none.
pub(super) fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "if" | "else"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "case"
            | "return"
            | "sizeof"
            | "defined"
            | "catch"
            | "new"
            | "delete"
            | "goto"
            | "assert"
            | "extern"
            | "static"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_says_what_it_finds() {
        for language in [
            Language::C,
            Language::CHeader,
            Language::Rust,
            Language::Python,
            Language::Perl,
            Language::Shell,
            Language::JavaScript,
            Language::Java,
            Language::Go,
            Language::Awk,
            Language::Tcl,
            Language::Other,
        ] {
            let rules = rules(language);
            assert!(rules.regex.is_some(), "{language:?}");
            assert!(rules.groups.len() >= 2, "{language:?}");
        }
    }
}
