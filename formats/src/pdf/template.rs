//! Templates of document classes: the evidence for a class, and the rules for its title, authors and other
//! fields. Each class is one TOML file beside this one; the extractor ([`super::extract`]) has no rules of
//! its own.
//!
//! Source: Sharma, "Agent": a classifier that chooses a template, and an engine that applies its rules
//! ("centered, bold and in the largest font" makes a title). docs/pdf.md describes the files.
//!
//! # Differences from the paper
//!
//! * Templates are TOML where the paper has XML, like all other files that a site writes here.
//! * The classifier's weights are in the templates too: a new class is one new file.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use settings::Mistake;
use toml::Spanned;

use crate::markup::{is_attribute_name, is_reserved};

/// The built-in classes, each with its file; of equal evidence the first class wins.
const BUILT_IN: &[(&str, &str)] = &[
    ("paper.toml", include_str!("templates/paper.toml")),
    ("manual.toml", include_str!("templates/manual.toml")),
    ("report.toml", include_str!("templates/report.toml")),
    ("thesis.toml", include_str!("templates/thesis.toml")),
    ("slides.toml", include_str!("templates/slides.toml")),
    ("form.toml", include_str!("templates/form.toml")),
    ("other.toml", include_str!("templates/other.toml")),
];

/// Maximum number of classes of a site's own.
const CLASSES_MAX: usize = 100;
/// Maximum number of fields of one class, and of pieces of evidence.
const PARTS_MAX: usize = 1_000;
/// Longest name of a class, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The templates in use: a site's own before the built-in ones. Cheap to clone. Serialized as the text of the
/// site's files.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(into = "Vec<SiteFile>", from = "Vec<SiteFile>")]
pub struct Templates(
    /// `None`: the built-in ones alone, whose expressions take a tenth of a second to compile, when the first PDF
    /// is read.
    Option<Arc<Compiled>>,
);

/// A template file of the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SiteFile {
    path: PathBuf,
    text: String,
}

/// Templates ready for use.
#[derive(Debug, Default)]
struct Compiled {
    written: Vec<SiteFile>,
    all: Vec<Template>,
}

impl From<Templates> for Vec<SiteFile> {
    fn from(templates: Templates) -> Self {
        templates.written().to_vec()
    }
}

impl From<Vec<SiteFile>> for Templates {
    /// This program wrote the text, and so reads it without mistakes.
    fn from(written: Vec<SiteFile>) -> Self {
        if written.is_empty() {
            return Self::default();
        }
        Self(Compiled::read(written).ok().map(Arc::new))
    }
}

/// Equal when made of the same files.
impl PartialEq for Templates {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl Eq for Templates {}

/// Prints the texts of the site's files, on which records depend.
impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.written().iter().map(|it| it.text.as_str()).collect();
        f.debug_tuple("Templates").field(&texts).finish()
    }
}

impl Templates {
    /// Reads a site's templates, each with its file's name and text. A template with the name of a built-in
    /// class replaces it; the others are tried before the built-in ones.
    ///
    /// # Errors
    ///
    /// Mistakes of every file, with the file's name.
    pub fn read(files: &[(PathBuf, String)]) -> Result<Self, Vec<Mistake>> {
        if files.is_empty() {
            return Ok(Self::default());
        }
        let file =
            |(path, text): &(PathBuf, String)| SiteFile { path: path.clone(), text: text.clone() };
        Compiled::read(files.iter().map(file).collect()).map(|it| Self(Some(Arc::new(it))))
    }

    fn written(&self) -> &[SiteFile] {
        self.0.as_ref().map_or(&[], |it| &it.written)
    }

    /// Returns the templates in the order of trying.
    pub(super) fn all(&self) -> &[Template] {
        static BUILT_IN_ALONE: LazyLock<Compiled> =
            LazyLock::new(|| Compiled::read(Vec::new()).unwrap_or_default());
        &self.0.as_ref().map_or(&*BUILT_IN_ALONE, |it| it).all
    }
}

impl Compiled {
    fn read(written: Vec<SiteFile>) -> Result<Self, Vec<Mistake>> {
        // A test ensures that all built-in templates can be read.
        let built_in = BUILT_IN.iter().filter_map(|(_, text)| parse(text).ok());
        let mut all: Vec<Template> = built_in.collect();
        let (mut own, mut likes, mut mistakes) = (Vec::<Template>::new(), Vec::new(), Vec::new());
        let mut names = HashSet::new();
        for it in &written {
            let with_file = |mistake| Mistake { file: Some(it.path.clone()), ..mistake };
            let source = Source(&it.text);
            let template = match parse(&it.text) {
                Ok(template) => template,
                Err(mistake) => {
                    mistakes.push(with_file(mistake));
                    continue;
                }
            };
            if !names.insert(template.class().to_owned()) {
                let message = format!("another file has the class {:?} already", template.class());
                mistakes.push(with_file(source.error(0, message)));
            } else if CLASSES_MAX < names.len() {
                let message = format!("there are more than {CLASSES_MAX} templates");
                mistakes.push(with_file(source.error(0, message)));
            }
            if let Some(like) = &template.like {
                likes.push((it, like.clone()));
            }
            match all.iter_mut().find(|it| it.class == template.class) {
                Some(replaced) => *replaced = template,
                None => own.push(template),
            }
        }
        own.append(&mut all);
        for (it, like) in likes {
            if !own.iter().any(|it| it.class() == like) {
                let at = it.text.find("like").unwrap_or(0);
                let mistake = Source(&it.text).error(at, format!("no class is called {like:?}"));
                mistakes.push(Mistake { file: Some(it.path.clone()), ..mistake });
            }
        }
        if mistakes.is_empty() { Ok(Self { written, all: own }) } else { Err(mistakes) }
    }
}

/// One class of documents.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    /// The value of `Document-Class`.
    class: Spanned<String>,
    /// The class whose rules are tried after the rules of this one.
    pub(super) like: Option<String>,
    #[serde(default)]
    pub(super) evidence: Vec<Evidence>,
    #[serde(default, rename = "field")]
    pub(super) rules: Vec<Rule>,
}

impl Template {
    pub(super) fn class(&self) -> &str {
        self.class.get_ref()
    }
}

/// A piece of evidence for the class, or against it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Evidence {
    pub(super) weight: Spanned<f64>,
    /// The conditions, all of which must hold.
    pub(super) when: Vec<Condition>,
}

/// A number within bounds, or a text in which the pattern matches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) number: Option<Spanned<Number>>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    #[serde(default)]
    pub(super) text: Text,
    pub(super) matches: Option<Pattern>,
}

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

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Text {
    /// The text of the front pages.
    #[default]
    Front,
    /// The whole text, in lines.
    Body,
    /// The title in the declared metadata.
    #[serde(rename = "said-title")]
    DeclaredTitle,
    /// The authors in the declared metadata.
    #[serde(rename = "said-author")]
    DeclaredAuthor,
    /// The programs that made it.
    MadeBy,
    Name,
}

/// The way in which a rule finds its value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Take {
    /// The block of lines in the largest type.
    Largest,
    /// The first block of lines.
    First,
    Lines,
    /// The text below a matching line, or after it.
    Section,
    /// The matches in a text.
    Match,
    /// A text as it is.
    Whole,
}

/// The rule for one field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// `Title`, `Author`, `Abstract`, or any other attribute.
    pub(super) name: Spanned<String>,
    pub(super) take: Take,
    #[serde(default)]
    pub(super) text: Text,
    /// The last page that is read; 1 by default.
    pub(super) pages: Option<usize>,
    /// The range of positions on the page, as shares of its height.
    pub(super) top: Option<[f64; 2]>,
    /// The range of sizes, as multiples of the body's size.
    pub(super) size: Option<[f64; 2]>,
    pub(super) centered: Option<bool>,
    pub(super) bold: Option<bool>,
    pub(super) italic: Option<bool>,
    /// The pattern of a line, or of the text; its first group, if there is one, is the value.
    pub(super) matches: Option<Pattern>,
    /// Patterns of lines that are left out.
    #[serde(default)]
    pub(super) not: Vec<Pattern>,
    /// The field above the value, on the same page or the one before.
    pub(super) below: Option<String>,
    /// The pattern of the line with which the values begin, if there is one: a label before them.
    pub(super) after: Option<Pattern>,
    /// What the next line below the value's line must match.
    pub(super) before: Option<Pattern>,
    /// The largest distance below that field or line, as a share of the page's height.
    pub(super) reach: Option<f64>,
    /// The largest step to smaller lines right below a block, and to one above, which belong to it; in units
    /// of its size.
    pub(super) trail: Option<f64>,
    /// Patterns of the line that ends the search.
    #[serde(default)]
    pub(super) until: Vec<Pattern>,
    /// Whether a declared value must stand on the front pages.
    #[serde(default)]
    pub(super) confirmed: bool,
    /// Whether superscripts belong to the value.
    #[serde(default)]
    pub(super) superscripts: bool,
    #[serde(default)]
    pub(super) replace: Vec<Replace>,
    pub(super) split: Option<Pattern>,
    /// Whether a line of several values counts only if its first one is kept: others speak of the rest.
    #[serde(default)]
    pub(super) lead: bool,
    /// The pattern of values that are kept.
    pub(super) keep: Option<Pattern>,
    /// Patterns of values that are left out.
    #[serde(default)]
    pub(super) drop: Vec<Pattern>,
    /// The pattern of the value that ends the list.
    pub(super) last: Option<Pattern>,
    /// Whether later rules may add to the values.
    #[serde(default)]
    pub(super) more: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    pub(super) find: Pattern,
    pub(super) with: String,
}

/// A regular expression, checked where it is read: so the error has its position.
#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PatternVisitor)
    }
}

struct PatternVisitor;

impl Visitor<'_> for PatternVisitor {
    type Value = Pattern;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Pattern, E> {
        Regex::new(text).map(Pattern).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            E::custom(format!("not a regular expression: {last}"))
        })
    }
}

/// Reads a template; a mistake has its position in the file.
fn parse(text: &str) -> Result<Template, Mistake> {
    let source = Source(text);
    let template: Template = toml::from_str(text)
        .map_err(|error| source.error(error.span().unwrap_or_default().start, error.message()))?;
    let (class, at) = (template.class(), template.class.span().start);
    if class.trim().is_empty() || NAME_BYTES_MAX < class.len() || class.contains('\n') {
        return Err(source.error(at, format!("{class:?} is no name of a class")));
    }
    if PARTS_MAX < template.evidence.len().max(template.rules.len()) {
        let message = format!("there are more than {PARTS_MAX} fields, or pieces of evidence");
        return Err(source.error(0, message));
    }
    template.evidence.iter().try_for_each(|it| source.check_evidence(it))?;
    template.rules.iter().try_for_each(|it| source.check_rule(it))?;
    Ok(template)
}

/// The text of a template.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn error(&self, at: usize, message: impl Into<String>) -> Mistake {
        let before = self.0.get(..at).unwrap_or(self.0);
        let line = before.bytes().filter(|it| *it == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let (message, expected) = (message.into(), "what docs/pdf.md has".to_owned());
        Mistake { file: None, line, column, message, expected }
    }

    fn check_evidence(&self, evidence: &Evidence) -> Result<(), Mistake> {
        if !evidence.weight.get_ref().is_finite() {
            return Err(self.error(evidence.weight.span().start, "the weight is no number"));
        }
        evidence.when.iter().try_for_each(|it| match (&it.number, &it.matches) {
            (Some(number), Some(_)) => {
                Err(self.error(number.span().start, "asks for a number and for a text"))
            }
            (None, None) => Err(self.error(0, "a condition asks for nothing")),
            _ => Ok(()),
        })
    }

    fn check_rule(&self, rule: &Rule) -> Result<(), Mistake> {
        let (name, at) = (rule.name.get_ref(), rule.name.span().start);
        let known = ["Title", "Author", "Abstract"].contains(&name.as_str());
        if !is_attribute_name(name) || !known && is_reserved(name) {
            return Err(self.error(at, format!("{name:?} is reserved: use another name")));
        }
        if matches!(rule.take, Take::Match | Take::Section) && rule.matches.is_none() {
            return Err(self.error(at, "the rule needs `matches`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_built_in_can_be_read() {
        for (file, text) in BUILT_IN {
            let template = parse(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(format!("{}.toml", template.class()), *file);
            if let Some(like) = template.like {
                assert!(Templates::default().all().iter().any(|it| it.class() == like), "{like}");
            }
        }
        assert_eq!(Templates::default().all().len(), BUILT_IN.len());
    }

    fn read(texts: &[&str]) -> Result<Templates, Vec<String>> {
        let file = |(n, text): (usize, &&str)| (format!("{n}.toml").into(), (*text).to_owned());
        let files: Vec<(PathBuf, String)> = texts.iter().enumerate().map(file).collect();
        let render = |it: &Mistake| {
            it.with_file("g.toml".as_ref()).replace("; expected what docs/pdf.md has", "")
        };
        Templates::read(&files).map_err(|it| it.iter().map(render).collect())
    }

    #[test]
    fn a_sites_templates_come_first_or_replace_built_in_ones() {
        let classes = |templates: &Templates| -> Vec<String> {
            templates.all().iter().map(|it| it.class().to_owned()).collect()
        };
        let built_in = classes(&Templates::default());
        let own =
            read(&["class = 'recipe'\nlike = 'menu'\n", "class = 'menu'\n", "class = 'thesis'\n"]);
        let own = own.unwrap();
        assert_eq!(classes(&own), [vec!["recipe".into(), "menu".into()], built_in].concat());
        let thesis = own.all().iter().find(|it| it.class() == "thesis").unwrap();
        assert!(thesis.rules.is_empty() && thesis.evidence.is_empty());
        // Templates are sent to workers as JSON.
        let sent = serde_json::to_string(&own).unwrap();
        let taken: Templates = serde_json::from_str(&sent).unwrap();
        assert_eq!((classes(&taken), &taken), (classes(&own), &own));
        assert_ne!(taken, Templates::default());
        assert_ne!(format!("{taken:?}"), format!("{:?}", Templates::default()));
    }

    #[test]
    fn mistakes_are_named_with_their_file_and_line() {
        let check =
            |texts: &[&str], expected: &[&str]| assert_eq!(read(texts).unwrap_err(), expected);
        check(
            &["class = \"a\"\nlike = 3\n"],
            &["0.toml:2:8: invalid type: integer `3`, expected a string"],
        );
        check(
            &["class = \"a\"\n\n[[field]]\nname = \"Title\"\ntake = \"largest\"\nnot = ['[']\n"],
            &["0.toml:6:8: not a regular expression: unclosed character class"],
        );
        check(
            &["class = \"a\"\n[[field]]\nname = \"Date\"\ntake = \"match\"\n"],
            &["0.toml:3:8: the rule needs `matches`"],
        );
        check(
            &[
                "class = \"a\"\n[[evidence]]\nweight = 1.0\nwhen = [{ number = \"pages\", matches = 'x' }]\n",
            ],
            &["0.toml:4:20: asks for a number and for a text"],
        );
        check(
            &["class = 'a'\n[[evidence]]\nweight = nan\nwhen = []\n", "class = 'b'", "class = 'b'"],
            &[
                "0.toml:3:10: the weight is no number",
                "2.toml:1:1: another file has the class \"b\" already",
            ],
        );
        check(
            &["class = ' '\n", "class = 'a'\nlike = 'b'\n"],
            &["0.toml:1:9: \" \" is no name of a class", "1.toml:2:1: no class is called \"b\""],
        );
        for name in ["MD5", "Gatherer-Id", "a b", "Type"] {
            let text = format!("class = 'a'\n[[field]]\nname = '{name}'\ntake = 'first'\n");
            check(&[&text], &[&format!("0.toml:3:8: {name:?} is reserved: use another name")]);
        }
    }
}
