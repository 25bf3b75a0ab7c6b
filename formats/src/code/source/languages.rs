//! Patterns of definitions: for each language, one regular expression for single lines.

use std::sync::LazyLock;

use regex::Regex;

use crate::Language;

/// The kind of a defined name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Type,
    Include,
}

/// The expression of a language and the kinds of its groups.
#[derive(Debug)]
pub(super) struct Rules {
    /// The expression. Groups are named `p…`, `t…` and `i…` by their kind. `None` means a pattern that does
    /// not compile; the tests exclude that.
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
                b'p' => Kind::Function,
                b't' => Kind::Type,
                _ => Kind::Include,
            };
            Some((group, kind))
        });
        let groups = groups.collect();
        Self { regex, groups, column_one }
    }

    /// Returns whether a line may have a definition: a cheap test that most lines fail.
    pub(super) fn may_define(&self, line: &str) -> bool {
        let first = line.bytes().next();
        let inside = first.is_none_or(|it| matches!(it, b' ' | b'\t' | b'}' | b'{' | b'/' | b'*'));
        !(self.column_one && inside)
    }
}

/// Functions start in the first column, and their line does not end with `;` (in headers it may). The GNU
/// style puts the result's type on the line before. A declaration for compilers before 1989 has its
/// parameters in a macro: `int f OF((int));`. A typedef of a function pointer defines a type.
const C: &str = r#"(?x) ^\#\s*include\s*[<"](?P<i>[^>"]+)
    | ^(?:typedef\s+|static\s+|const\s+)*(?:struct|union|enum)\s+(?P<t>\w+)\s*(?:\{|$)
    | ^typedef\b[^;(]*\(\s*\*\s*(?P<t2>\w+)\s*\)
    | ^[A-Za-z_][\w\s*]*?[\s*](?P<p2>\w+)\s+[A-Z_][A-Z_\d]*\s*\(\(
    | ^(?:[A-Za-z_][\w\s*]*?[\s*]+)??(?P<p>[A-Za-z_]\w*)\s*\([^;={}]*(?:\{.*)?$"#;

const CPP: &str = r#"(?x) ^\s*\#\s*include\s*[<"](?P<i>[^>"]+)
    | ^\s*(?:template\s*<.*>\s*)?(?:typedef\s+|export\s+)*(?:class|struct|union|enum(?:\s+class)?|namespace|concept)\s+(?:[A-Z_]+\s+)?(?P<t>\w+)\s*(?:final\s*)?(?:[:{<]|$)
    | ^typedef\b[^;(]*\(\s*\*\s*(?P<t2>\w+)\s*\)
    | ^[A-Za-z_][\w\s*]*?[\s*](?P<p2>\w+)\s+[A-Z_][A-Z_\d]*\s*\(\(
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

/// The keywords of most other languages, in any case.
const OTHER: &str = r"(?xi) ^\s*(?:(?:public|private|protected|static|pure|elemental|recursive|local|override|abstract|export|create(?:\s+or\s+replace)?)\s+)*
    (?: (?:def|defn|defun|function|func|fun|fn|sub|subroutine|procedure|proc|macro|method)\s+(?P<p>[\w.:?!-]+)
      | (?:class|struct|interface|trait|module|object|protocol|record|enum|table|view)\s+(?P<t>[\w.:]+)
      | (?:import|include|require|using|uses|open)\s+[\x22\x27<(]?(?P<i>[\w./:-]+) )
    | ^\s*\((?:defun|defmacro|define|defn)\s+\(?(?P<p2>[\w.:?!*/<>=+-]+)";

const RUBY: &str = r#"(?x) ^\s*def\s+(?P<p>(?:self\.)?[\w.]+[?!=]?) | ^\s*(?:class|module)\s+(?P<t>[\w:]+)
    | ^\s*(?:require|require_relative|load)\s*\(?\s*['"](?P<i>[^'"]+)"#;

const PHP: &str = r#"(?x) ^\s*(?:(?:public|private|protected|static|final|abstract)\s+)*function\s+&?(?P<p>\w+)
    | ^\s*(?:(?:final|abstract|readonly)\s+)*(?:class|interface|trait|enum)\s+(?P<t>\w+)
    | ^use\s+(?P<i>[\w\\]+) | ^\s*(?:require|include)(?:_once)?\s*\(?\s*['"](?P<i2>[^'"]+)"#;

const R: &str = r#"(?x) ^\s*["'`]?(?P<p>[\w.]+)["'`]?\s*(?:<-|=)\s*function\b
    | ^\s*set(?:Class|RefClass)\(\s*["'](?P<t>[\w.]+) | ^\s*setGeneric\(\s*["'](?P<p2>[\w.]+)
    | ^\s*(?:library|require)\(\s*["']?(?P<i>[\w.]+)"#;

const HASKELL: &str = r"(?x) ^(?P<p>[a-z_][\w']*)\s*::\s
    | ^(?:data|newtype|type|class)\s+(?:instance\s+|family\s+)?(?:[^=]*=>\s*)?(?P<t>[A-Z][\w']*)
    | ^import\s+(?:safe\s+)?(?:qualified\s+)?(?P<i>[A-Z][\w.']*)";

const OCAML: &str = r"(?x) ^\s*let\s+(?:rec\s+)?(?P<p>[a-z_][\w']*)\s+[\w(~?'] | ^\s*val\s+(?P<p2>[a-z_][\w']*)\s*:
    | ^\s*(?:type|class|module|exception)\s+(?:rec\s+|type\s+|'\w+\s+|\([^)]*\)\s+)*(?P<t>\w+)
    | ^\s*open!?\s+(?P<i>[A-Z][\w.]*)";

const ERLANG: &str = r"(?x) ^(?P<p>[a-z]\w*)\s*\( | ^-(?:module|record|type|opaque)\(?\s*(?P<t>[a-z]\w*)
    | ^-(?:include|include_lib|import)\(\s*\x22?(?P<i>[\w/.-]+)";

const LUA: &str = r#"(?x) ^\s*(?:local\s+)?function\s+(?P<p>[\w.:]+) | ^\s*(?:local\s+)?(?P<p2>[\w.]+)\s*=\s*function\b
    | \brequire\s*\(?\s*['"](?P<i>[^'"]+)"#;

/// Swift, Kotlin, Scala, C#: modifiers and annotations, then the keyword.
const MODERN: &str = r"(?x) ^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|protected|internal|open|final|static|override|abstract|sealed|virtual|async|inline|suspend|implicit|lazy|case|data|partial|readonly|mutating|unsafe|inner|annotation|fileprivate|operator|infix|tailrec|external|expect|actual)\s+)*
    (?: (?:func|fun|def)\s+(?:<[^>]*>\s*)?(?:\w+\.)?(?P<p>\w+)
      | (?:class|struct|interface|trait|object|protocol|record|enum|extension|actor|typealias)\s+(?:class\s+|struct\s+)?(?P<t>[\w.]+)
      | (?:import|using|open)\s+(?:static\s+)?(?P<i>[\w.]+) )
    | ^\s*(?:(?:public|private|protected|internal|static|override|virtual|async|sealed|extern|unsafe|abstract)\s+)+[\w.<>\[\],?]+\s+(?P<p2>\w+)\s*(?:<[^>]*>)?\(";

const FORTRAN: &str = r"(?xi) ^\s*(?:(?:pure|elemental|recursive|integer|real|double\s+precision|complex|logical|character|type)(?:\s*\([^)]*\)|\s*\*\s*\d+)?\s+)*(?:subroutine|function)\s+(?P<p>\w+)
    | ^\s*(?:module|program|type\s*::|type(?:\s*,[^:]*::)?)\s+(?P<t>[a-z]\w*)\s*(?:!.*)?$
    | ^\s*use\s*(?:,\s*\w+\s*::)?\s*(?P<i>\w+) | ^\s*include\s+['\x22](?P<i2>[^'\x22]+)";

const SQL: &str = r"(?xi) ^\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|global\s+|unique\s+|materialized\s+|virtual\s+)*
    (?: (?:function|procedure|trigger|macro)\s+(?:if\s+not\s+exists\s+)?[\x22`\[]?(?P<p>[\w.]+)
      | (?:table|view|type|domain|sequence|schema)\s+(?:if\s+not\s+exists\s+)?[\x22`\[]?(?P<t>[\w.]+) )
    | ^\s*(?:\\i|source|@@?)\s+(?P<i>[\w/.-]+)";

/// Expressions of the languages without a type of their own, by extension.
static DIALECTS: LazyLock<Vec<(&'static [&'static str], Rules)>> = LazyLock::new(|| {
    let dialect =
        |extensions: &'static [&'static str], pattern| (extensions, Rules::new(pattern, false));
    vec![
        dialect(&["rb", "rake", "gemspec"], RUBY),
        dialect(&["php", "phtml"], PHP),
        dialect(&["r"], R),
        dialect(&["hs", "lhs"], HASKELL),
        dialect(&["ml", "mli"], OCAML),
        dialect(&["erl", "hrl"], ERLANG),
        dialect(&["lua"], LUA),
        dialect(&["kt", "kts", "swift", "scala", "cs"], MODERN),
        dialect(&["f", "f77", "f90", "f95", "f03", "for", "ftn"], FORTRAN),
        dialect(&["sql"], SQL),
    ]
});

/// Returns the rules of a language without a type of its own, by the file's extension.
fn dialect(name: &str) -> Option<&'static Rules> {
    let (_, extension) = name.rsplit_once('.')?;
    let matches =
        |it: &&(&[&str], Rules)| it.0.iter().any(|own| own.eq_ignore_ascii_case(extension));
    DIALECTS.iter().find(matches).map(|(_, rules)| rules)
}

/// Returns the rules of a language; the file's `name` decides for languages without a type of their own.
pub(super) fn rules(language: Language, name: &str) -> &'static Rules {
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
        Language::Other => dialect(name).unwrap_or_else(|| compiled!(OTHER, false)),
    }
}

/// Keywords that look like the names of functions.
pub(super) const KEYWORDS: [&str; 17] = [
    "if", "else", "for", "while", "do", "switch", "case", "return", "sizeof", "defined", "catch",
    "new", "delete", "goto", "assert", "extern", "static",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_has_named_groups() {
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
            let rules = rules(language, "x");
            assert!(rules.regex.is_some(), "{language:?}");
            assert!(rules.groups.len() >= 2, "{language:?}");
        }
        for (extensions, rules) in DIALECTS.iter() {
            assert!(rules.regex.is_some() && rules.groups.len() >= 3, "{extensions:?}");
        }
    }
}
