//! Templates: what marks a class of documents, and where such a document says its title, its authors
//! and the rest. One TOML file a class, beside this file; the engine ([`super::extract`]) knows none
//! by heart.
//!
//! Source: Sharma, "Agent": a classifier that picks a template, and an engine that applies its rules
//! ("centered, bold and in the largest font" makes a title). What may stand in a file is in
//! docs/pdf.md.
//!
//! # Differences from the paper
//!
//! * Templates are TOML where the paper has XML, as every other file that a site may write here.
//! * The classifier's weights are in the templates too: a new class is one new file.
//!
//! Sans-I/O.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

/// The classes that are built in, each with its file; a tie goes to the first.
const BUILT_IN: &[(&str, &str)] = &[
    ("paper.toml", include_str!("templates/paper.toml")),
    ("manual.toml", include_str!("templates/manual.toml")),
    ("report.toml", include_str!("templates/report.toml")),
    ("thesis.toml", include_str!("templates/thesis.toml")),
    ("slides.toml", include_str!("templates/slides.toml")),
    ("form.toml", include_str!("templates/form.toml")),
    ("other.toml", include_str!("templates/other.toml")),
];

/// Returns the templates that are built in.
pub(super) fn built_in() -> &'static [Template] {
    static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
        // A test holds that all can be read.
        BUILT_IN.iter().filter_map(|(file, text)| parse(file, text).ok()).collect()
    });
    &TEMPLATES
}

/// One class of documents.
#[derive(Debug)]
pub(super) struct Template {
    /// What `Document-Class` says.
    pub(super) class: String,
    /// The class whose rules are tried after these.
    pub(super) like: Option<String>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) rules: Vec<Rule>,
}

/// Something that speaks for the class, or against it.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) weight: f64,
    /// All of these must hold.
    pub(super) when: Vec<Condition>,
}

/// What can be asked of a document as a whole.
#[derive(Debug)]
pub(super) enum Condition {
    /// A number within bounds.
    Number(Number, f64, f64),
    /// A text in which something stands.
    Text(Text, Regex),
}

/// Numbers of a document.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Number {
    Pages,
    /// Width of a page, in points.
    Width,
    /// Width over height.
    Aspect,
    /// Fields of a form.
    Fields,
    /// Entries of the outline.
    Outline,
    WordsPerPage,
    /// Words on the first page.
    FirstWords,
    /// The size of most text, in points.
    BodySize,
    /// The largest size on the front pages over the body's.
    Largest,
}

/// Texts of a document.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Text {
    /// The front pages.
    #[default]
    Front,
    /// All, in lines.
    Body,
    /// The title that the information says.
    SaidTitle,
    /// The authors that the information says.
    SaidAuthor,
    /// The programs that made it.
    MadeBy,
    /// The file's name.
    Name,
}

/// How a rule finds its value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Take {
    /// The block of lines in the largest type.
    Largest,
    /// The first block of lines.
    First,
    /// Every line.
    Lines,
    /// What stands below (or behind) a line that matches.
    Section,
    /// What matches in a text.
    Match,
    /// A text as it is.
    Whole,
}

/// Where one field may be found.
#[derive(Debug)]
pub(super) struct Rule {
    /// `Title`, `Author`, `Abstract`, or any other attribute.
    pub(super) field: String,
    pub(super) take: Take,
    pub(super) text: Text,
    /// The last page that is looked at.
    pub(super) pages: usize,
    /// Where on the page, as shares of its height.
    pub(super) top: Range<f64>,
    /// How large, as a multiple of the body's size.
    pub(super) size: Range<f64>,
    pub(super) centered: Option<bool>,
    pub(super) bold: Option<bool>,
    pub(super) italic: Option<bool>,
    /// What a line, or the text, has to have; the first group, if there is one, is the value.
    pub(super) matches: Option<Regex>,
    /// What a line must not have.
    pub(super) not: Vec<Regex>,
    /// The field that it stands below, on the same page or the next.
    pub(super) below: Option<String>,
    /// How far below, as a share of the page's height.
    pub(super) reach: f64,
    /// The line that ends the search.
    pub(super) until: Vec<Regex>,
    /// Whether what the document says of itself must stand on its front pages.
    pub(super) confirmed: bool,
    /// Whether superscripts belong to the value.
    pub(super) superscripts: bool,
    pub(super) replace: Vec<(Regex, String)>,
    pub(super) split: Option<Regex>,
    /// What each value must have.
    pub(super) keep: Option<Regex>,
    /// What no value may have.
    pub(super) drop: Vec<Regex>,
    /// What ends the list of values.
    pub(super) last: Option<Regex>,
    /// Whether later rules may add to what this one finds.
    pub(super) more: bool,
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateError {
    file: String,
    line: usize,
    message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

type Pattern = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTemplate {
    class: String,
    like: Option<String>,
    #[serde(default)]
    evidence: Vec<RawEvidence>,
    #[serde(default)]
    field: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvidence {
    weight: f64,
    when: Vec<RawCondition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCondition {
    number: Option<Spanned<Number>>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    text: Text,
    matches: Option<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReplace {
    find: Pattern,
    with: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRule {
    name: Spanned<String>,
    take: Take,
    #[serde(default)]
    text: Text,
    pages: Option<usize>,
    top: Option<[f64; 2]>,
    size: Option<[f64; 2]>,
    centered: Option<bool>,
    bold: Option<bool>,
    italic: Option<bool>,
    matches: Option<Pattern>,
    #[serde(default)]
    not: Vec<Pattern>,
    below: Option<String>,
    reach: Option<f64>,
    #[serde(default)]
    until: Vec<Pattern>,
    #[serde(default)]
    confirmed: bool,
    #[serde(default)]
    superscripts: bool,
    #[serde(default)]
    replace: Vec<RawReplace>,
    split: Option<Pattern>,
    keep: Option<Pattern>,
    #[serde(default)]
    drop: Vec<Pattern>,
    last: Option<Pattern>,
    #[serde(default)]
    more: bool,
}

/// Reads a template.
///
/// # Errors
///
/// Says in which line of `file` what is wrong.
pub(super) fn parse(file: &str, text: &str) -> Result<Template, TemplateError> {
    let source = Source { file, text };
    let raw: RawTemplate = toml::from_str(text)
        .map_err(|error| source.error(error.span().unwrap_or_default().start, error.message()))?;
    let evidence = raw.evidence.into_iter().map(|it| source.evidence(it));
    let rules = raw.field.into_iter().map(|it| source.rule(it));
    Ok(Template {
        class: raw.class,
        like: raw.like,
        evidence: evidence.collect::<Result<_, _>>()?,
        rules: rules.collect::<Result<_, _>>()?,
    })
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, at: usize, message: impl Into<String>) -> TemplateError {
        let line = self.text.bytes().take(at).filter(|it| *it == b'\n').count() + 1;
        TemplateError { file: self.file.to_owned(), line, message: message.into() }
    }

    fn pattern(&self, pattern: &Pattern) -> Result<Regex, TemplateError> {
        Regex::new(pattern.get_ref()).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            self.error(pattern.span().start, format!("not a regular expression: {last}"))
        })
    }

    fn patterns(&self, patterns: &[Pattern]) -> Result<Vec<Regex>, TemplateError> {
        patterns.iter().map(|it| self.pattern(it)).collect()
    }

    fn perhaps(&self, pattern: Option<&Pattern>) -> Result<Option<Regex>, TemplateError> {
        pattern.map(|it| self.pattern(it)).transpose()
    }

    fn evidence(&self, raw: RawEvidence) -> Result<Evidence, TemplateError> {
        let when = raw.when.into_iter().map(|it| {
            let (min, max) = (it.min.unwrap_or(f64::MIN), it.max.unwrap_or(f64::MAX));
            match (it.number, it.matches) {
                (Some(number), None) => Ok(Condition::Number(number.into_inner(), min, max)),
                (None, Some(pattern)) => Ok(Condition::Text(it.text, self.pattern(&pattern)?)),
                (Some(number), Some(_)) => {
                    Err(self.error(number.span().start, "asks for a number and for a text"))
                }
                (None, None) => Err(self.error(0, "a condition asks for nothing")),
            }
        });
        Ok(Evidence { weight: raw.weight, when: when.collect::<Result<_, _>>()? })
    }

    fn rule(&self, raw: RawRule) -> Result<Rule, TemplateError> {
        let replace = raw.replace.into_iter();
        let replace = replace.map(|it| Ok((self.pattern(&it.find)?, it.with)));
        if matches!(raw.take, Take::Match | Take::Section) && raw.matches.is_none() {
            return Err(self.error(raw.name.span().start, "the rule needs `matches`"));
        }
        let range = |it: Option<[f64; 2]>| it.map_or(f64::MIN..f64::MAX, |[from, to]| from..to);
        Ok(Rule {
            field: raw.name.into_inner(),
            take: raw.take,
            text: raw.text,
            pages: raw.pages.unwrap_or(1),
            top: range(raw.top),
            size: range(raw.size),
            centered: raw.centered,
            bold: raw.bold,
            italic: raw.italic,
            matches: self.perhaps(raw.matches.as_ref())?,
            not: self.patterns(&raw.not)?,
            below: raw.below,
            reach: raw.reach.unwrap_or(f64::MAX),
            until: self.patterns(&raw.until)?,
            confirmed: raw.confirmed,
            superscripts: raw.superscripts,
            replace: replace.collect::<Result<_, _>>()?,
            split: self.perhaps(raw.split.as_ref())?,
            keep: self.perhaps(raw.keep.as_ref())?,
            drop: self.patterns(&raw.drop)?,
            last: self.perhaps(raw.last.as_ref())?,
            more: raw.more,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_built_in_can_be_read() {
        for (file, text) in BUILT_IN {
            let template = parse(file, text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(format!("{}.toml", template.class), *file);
            if let Some(like) = template.like {
                assert!(built_in().iter().any(|it| it.class == like), "{like}");
            }
        }
        assert_eq!(built_in().len(), BUILT_IN.len());
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse("my.toml", text).unwrap_err().to_string(), expected);
        };
        check(
            "class = \"a\"\nlike = 3\n",
            "my.toml:2: invalid type: integer `3`, expected a string",
        );
        check(
            "class = \"a\"\n\n[[field]]\nname = \"Title\"\ntake = \"largest\"\nnot = ['[']\n",
            "my.toml:6: not a regular expression: unclosed character class",
        );
        check(
            "class = \"a\"\n[[field]]\nname = \"Date\"\ntake = \"match\"\n",
            "my.toml:3: the rule needs `matches`",
        );
        check(
            "class = \"a\"\n[[evidence]]\nweight = 1.0\nwhen = [{ number = \"pages\", matches = 'x' }]\n",
            "my.toml:4: asks for a number and for a text",
        );
    }
}
