//! Summarizers that a site declares by regular expressions ("quick-sum"); docs/essence.md has the
//! format of their files.
//!
//! Source: the user's manual, appendix on customizing summarizers (`quick-sum.cf`: lines of a type,
//! an attribute and an expression).
//!
//! Expressions see the text of the object: its content if the content is text, else the text that
//! the built-in summarizer extracts. `^` and `$` match at the ends of lines. Common attributes (see
//! `Attribute::lay`) are recognized in any case and written as in all records; others keep the
//! declared name. An attribute without a match is treated as if it were not declared.
//!
//! # Differences from the paper
//!
//! * The original took every matching line as a whole, and its expressions saw one line at a time.
//!   Here a match may begin and end within a line, or span several lines (`\n`, `(?s)`).
//! * In the original, a summarizer replaced the built-in one. Here it may be laid over the built-in
//!   one.
//!
//! Sans-I/O.

mod read;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use formats::limit::{Cut, Limit};
use formats::object::ProblemKind;
use formats::text::{self, Places, front};
use formats::{Draft, HEAD_BYTES, Input, Type};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use settings::Mistake;

use crate::typing::Recognizer;

/// Maximum memory of a compiled expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 1024 * 1024;
/// Steps to which the memory of a smaller expression is rounded up, in bytes.
const EXPRESSION_BYTES: &[usize] = &[16 * 1024, 64 * 1024, 256 * 1024];
/// Maximum number of matches of one attribute.
const MATCHES_MAX: usize = 1_000;
/// Maximum length of all matches of one attribute together, in bytes, except for the text.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Summarizers that a site has declared. Cheap to clone; compiled once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared(Arc<Vec<Summarizer>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Summarizer {
    r#type: Type,
    /// Whether this summarizer is laid over the built-in one.
    beside: bool,
    attributes: Vec<Attribute>,
}

/// Expressions for an attribute's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Attribute {
    name: String,
    expressions: Vec<Expression>,
    /// Whether all matches are taken, or only the first.
    all: bool,
}

/// Compiled expression; two are equal if their source texts are equal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Expression(Regex);

impl From<Expression> for String {
    fn from(it: Expression) -> Self {
        it.0.as_str().to_owned()
    }
}

impl TryFrom<String> for Expression {
    type Error = regex::Error;

    fn try_from(written: String) -> Result<Self, regex::Error> {
        Self::compile(&written, EXPRESSION_BYTES_MAX)
    }
}

impl Expression {
    fn compile(written: &str, bytes_max: usize) -> Result<Self, regex::Error> {
        let mut builder = RegexBuilder::new(written);
        builder.multi_line(true).crlf(true).size_limit(bytes_max);
        builder.build().map(Self)
    }

    /// Returns an upper bound of the expression's memory, in bytes.
    fn bytes(&self) -> usize {
        let fits = |bytes: &usize| Self::compile(self.0.as_str(), *bytes).is_ok();
        EXPRESSION_BYTES.iter().copied().find(fits).unwrap_or(EXPRESSION_BYTES_MAX)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Expression {}

impl Declared {
    /// Reads a site's files of summarizers, each with its name and its text. Types are those of
    /// `typing`; without `typing` (its own files have mistakes), unknown types are not mistakes.
    ///
    /// # Errors
    ///
    /// Returns every mistake of every file, with the file's name.
    pub fn read(
        files: &[(PathBuf, String)],
        typing: Option<&Recognizer>,
    ) -> Result<Self, Vec<Mistake>> {
        read::read(files, typing).map(|all| Self(Arc::new(all)))
    }

    /// Returns whether the site has declared this attribute for objects of the type.
    pub(crate) fn has(&self, r#type: Type, attribute: &str) -> bool {
        let of_type = self.0.iter().filter(|it| it.r#type == r#type);
        of_type.flat_map(|it| &it.attributes).any(|it| it.name == attribute)
    }

    /// Returns the draft of an object, made by the declared summarizer of its type or by
    /// `built_in`.
    pub(crate) fn draft<'a>(
        &self,
        input: &Input<'a>,
        built_in: impl FnOnce(&Input<'a>) -> Draft<'a>,
    ) -> Draft<'a> {
        match self.0.iter().find(|it| it.r#type == input.r#type) {
            Some(own) => own.draft(input, built_in),
            None => built_in(input),
        }
    }
}

impl Summarizer {
    fn draft<'a>(
        &self,
        input: &Input<'a>,
        built_in: impl FnOnce(&Input<'a>) -> Draft<'a>,
    ) -> Draft<'a> {
        let is_text = match input.r#type {
            Type::Site(_) => text::is_text(input.head(HEAD_BYTES)),
            known => known.is_text(),
        };
        let built = if self.beside || !is_text { built_in(input) } else { Draft::default() };
        let text = if is_text { input.text() } else { built.body.clone() };
        let mut draft = if self.beside {
            built
        } else {
            // The problems stay: the expressions did not see content that could not be read.
            Draft { problems: built.problems, ..Draft::default() }
        };
        if is_text && !self.beside {
            input.report_text(&mut draft);
        }
        for attribute in &self.attributes {
            let (found, cut) = attribute.find(&text, input);
            cut.into_iter().for_each(|it| draft.cut(it));
            if !found.is_empty() {
                attribute.lay(found, &mut draft);
            }
            if (input.cancelled)() {
                draft.problem(ProblemKind::Time, "ran out of time for the site's expressions");
                break;
            }
        }
        draft
    }
}

impl Attribute {
    /// Returns the matches, each of the first group if there is one: in the order of the
    /// expressions, those of one expression in the order of the text. Says whether there are more.
    fn find(&self, text: &str, input: &Input<'_>) -> (Vec<String>, Option<Cut>) {
        let (limit, bytes_max) = if self.is_text() {
            (Limit::Text, input.text_bytes_max())
        } else {
            (Limit::Value, VALUE_BYTES_MAX)
        };
        let (mut found, mut left) = (Vec::new(), bytes_max);
        for Expression(expression) in &self.expressions {
            // The time is checked here, too: an expression without a match scans the whole text.
            if (input.cancelled)() {
                return (found, None);
            }
            for captures in expression.captures_iter(text) {
                let matched = captures.get(1).or_else(|| captures.get(0));
                let value = matched.map_or("", |it| it.as_str().trim());
                if !value.is_empty() {
                    if found.len() == MATCHES_MAX {
                        return (found, Some(Limit::Matches.cut_at(MATCHES_MAX)));
                    }
                    let kept = front(value, left);
                    left = left.saturating_sub(kept.len() + 1);
                    found.extend((!kept.is_empty()).then(|| kept.replace("\r\n", "\n")));
                    if kept.len() < value.len() {
                        return (found, Some(limit.cut_at(bytes_max)));
                    }
                }
                if !self.all && !found.is_empty() || (input.cancelled)() {
                    return (found, None);
                }
            }
        }
        (found, None)
    }

    fn is_text(&self) -> bool {
        ["Partial-Text", "Full-Text"].iter().any(|it| self.name.eq_ignore_ascii_case(it))
    }

    /// Replaces the draft's value with the matches.
    fn lay(&self, found: Vec<String>, draft: &mut Draft<'_>) {
        match self.name.to_ascii_lowercase().as_str() {
            "title" => draft.title = found.join("\n"),
            "author" => draft.authors = found,
            "description" => draft.description = found.join("\n"),
            "abstract" => draft.r#abstract = found.join("\n"),
            "keywords" => {
                draft.keywords = found.join("\n");
                draft.words.clear();
            }
            "partial-text" | "full-text" => {
                draft.body = Cow::Owned(found.join("\n"));
                draft.places = Places::None;
            }
            "url-references" => draft.references = found,
            _ => {
                draft.others.retain(|(name, _)| !name.eq_ignore_ascii_case(&self.name));
                draft.other(&self.name, found.join("\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use formats::FullText;
    use formats::object::Object;

    use super::*;
    use crate::builders::zipped;
    use crate::summarize::{Settings, summarize};

    const TYPES: &str = "[[type]]\nname = 'Refer'\nby_name = '\\.referbib$'\n";

    fn typing() -> Recognizer {
        Recognizer::read(&[("types.toml".into(), TYPES.to_owned())]).unwrap()
    }

    fn read(text: &str) -> Result<Declared, Vec<Mistake>> {
        Declared::read(&[("quick.toml".into(), text.to_owned())], Some(&typing()))
    }

    /// Summarizes by `declared`, and renders the record without its size and digest.
    fn record(declared: &str, name: &str, bytes: &[u8]) -> String {
        let declared = read(declared).unwrap();
        // The form in which the summarizers are sent to a worker.
        let sent = serde_json::to_string(&declared).unwrap();
        assert_eq!(serde_json::from_str::<Declared>(&sent).unwrap(), declared);
        let typing = Arc::new(typing());
        let settings = Settings { typing, declared, ..Settings::default() };
        let object = Object::whole(format!("http://h.example/{name}"), bytes.to_vec());
        let r#type = settings.typing.recognize(&object.url, name, bytes);
        let summary = summarize(&object, r#type, &settings, &|| false);
        let attributes = summary.record.attributes().iter();
        let shown = attributes.filter(|it| !["File-Size", "MD5"].contains(&&*it.name));
        let value = |value: &[u8]| String::from_utf8_lossy(value).replace('\n', " | ");
        let lines: Vec<String> =
            shown.map(|it| format!("{}: {}", it.name, value(&it.value))).collect();
        assert_eq!(summary.problems, []);
        lines.join("\n")
    }

    /// The expressions of the manual's example, with groups added.
    const REFER: &str = "[[summarizer]]\ntype = 'refer'\n\
        [[summarizer.attribute]]\nname = 'Author'\nmatch = '^%A[ \\t]+(.*)$'\nall = true\n\
        [[summarizer.attribute]]\nname = 'title'\nmatch = '^%T[ \\t]+(.*)$'\n\
        [[summarizer.attribute]]\nname = 'City'\nmatch = '^%C[ \\t]+.*$'\n\
        [[summarizer.attribute]]\nname = 'Abstract'\nmatch = '(?s)^%X\\s+(.*?)(?:^%|\\z)'\n";

    #[test]
    fn the_example_of_the_manual_gives_its_attributes() {
        let book =
            b"%A A. S. Tanenbaum\r\n%A  D. J. Wetherall \r\n%T Computer Networks\r\n%T Other\r\n\
                     %I Prentice Hall\r\n%C Englewood Cliffs, NJ\r\n%X One\r\ntwo.\r\n%D 1988\r\n";
        assert_eq!(
            record(REFER, "a.referbib", book),
            "Title: Computer Networks\nAuthor: A. S. Tanenbaum | D. J. Wetherall\n\
             Abstract: One | two.\nType: Refer\nCity: %C Englewood Cliffs, NJ\n\
             Keywords: computer | networks | one | two"
        );
        // Without a match there is no attribute.
        assert_eq!(
            record(REFER, "b.referbib", b"%I Prentice Hall\n"),
            "Title: b.referbib\nType: Refer\nKeywords: referbib"
        );
    }

    #[test]
    fn a_summarizer_may_be_laid_over_the_built_in_one() {
        let quick = "[[summarizer]]\ntype = 'Text'\nbeside = true\n\
            [[summarizer.attribute]]\nname = 'Title'\nmatch = ['^Betreff: (.*)', '^Re: (.*)']\n\
            [[summarizer.attribute]]\nname = 'Status'\nmatch = '(?i)\\b(draft)|final\\b'\n\
            [[summarizer.attribute]]\nname = 'Partial-Text'\nmatch = '^> (.*)$'\nall = true\n";
        let text = b"A note\n\nRe: this\nFINAL: that\n> words\n> more\n";
        assert_eq!(
            record(quick, "a.txt", text),
            "Title: this\nDescription: Re: this FINAL: that > words > more\nType: Text\nStatus: FINAL\n\
             Keywords: final | more | re | that | this | words\nPartial-Text: words | more"
        );
        let alone = quick.replace("beside = true", "beside = false");
        assert_eq!(
            record(&alone, "a.txt", text),
            "Title: this\nType: Text\nStatus: FINAL\nKeywords: more | this | words\n\
             Partial-Text: words | more"
        );
    }

    #[test]
    fn expressions_see_the_extracted_text_of_other_formats() {
        let content = "<office:document-content><office:body><text:p>Invoice No. 4711 of May</text:p>\
                       </office:body></office:document-content>";
        let mimetype: &[u8] = b"application/vnd.oasis.opendocument.text";
        let odt = zipped(&[("mimetype", mimetype), ("content.xml", content.as_bytes())]);
        let quick = "[[summarizer]]\ntype = 'OpenDocument'\nbeside = true\n\
            [[summarizer.attribute]]\nname = 'Invoice'\nmatch = 'No\\. (\\d+)'\n";
        let beside = record(quick, "a.odt", &odt);
        assert!(
            beside.contains("Invoice: 4711\n") && beside.contains("Partial-Text: "),
            "{beside}"
        );
        let alone = record(&quick.replace("true", "false"), "a.odt", &odt);
        assert!(alone.contains("Invoice: 4711\n") && !alone.contains("Partial-Text"), "{alone}");
    }

    #[test]
    fn matches_are_bounded() {
        let quick = "[[summarizer]]\ntype = 'Refer'\n\
            [[summarizer.attribute]]\nname = 'Word'\nmatch = ['\\w+', 'x*']\nall = true\n\
            [[summarizer.attribute]]\nname = 'Full-Text'\nmatch = '(?s).+'\n";
        let declared = read(quick).unwrap();
        let full_text = FullText::All;
        let formats = formats::Settings { full_text, ..formats::Settings::default() };
        let mut settings = Settings { declared, formats, ..Settings::default() };
        settings.formats.full_text_bytes_max = 2 * 1024 * 1024;
        let object = Object::whole("http://h.example/a", "word\n".repeat(1 << 20).into_bytes());
        let summary = summarize(&object, Type::Site(0), &settings, &|| false);
        let bytes = |name: &str| summary.record.get(name).map(<[u8]>::len).unwrap_or_default();
        assert_eq!(bytes("Word"), 5 * MATCHES_MAX - 1);
        assert_eq!(bytes("Full-Text"), 2 * 1024 * 1024);
        let told = |count: usize| {
            let object = Object::whole("http://h.example/a", "word\n".repeat(count).into_bytes());
            let record = summarize(&object, Type::Site(0), &settings, &|| false).record;
            record.text("Truncated").unwrap_or_default().into_owned()
        };
        assert_eq!(told(MATCHES_MAX), "");
        assert_eq!(told(MATCHES_MAX + 1), "matches 1000");
        assert_eq!(told(1 << 20), "text 2097152\nmatches 1000");
        let late = summarize(&object, Type::Site(0), &settings, &|| true);
        assert_eq!(late.problems.last().unwrap().kind, ProblemKind::Time);
    }

    #[test]
    fn a_deadline_counts_between_expressions_that_never_match() {
        let expressions = vec!["'nowhere'"; 20].join(", ");
        let quick = format!(
            "[[summarizer]]\ntype = 'Refer'\n[[summarizer.attribute]]\nname = 'A'\nmatch = [{expressions}]\n"
        );
        let settings = Settings { declared: read(&quick).unwrap(), ..Settings::default() };
        let object = Object::whole("http://h.example/a", &b"%A A. S. Tanenbaum\n"[..]);
        let asked = std::cell::Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            10 < asked.get()
        };
        let late = summarize(&object, Type::Site(0), &settings, &cancelled);
        assert_eq!(late.problems[0].kind, ProblemKind::Time);
        assert!(asked.get() < 20);
    }

    #[test]
    fn every_mistake_is_named_with_file_and_line() {
        let check = |text: &str, expected: &[&str]| {
            let mistakes = read(text).err().unwrap_or_default();
            let settings = Path::new("settings.toml");
            let shown: Vec<String> = mistakes.iter().map(|it| it.with_file(settings)).collect();
            assert_eq!(shown.len(), expected.len(), "{shown:#?}");
            for (shown, expected) in shown.iter().zip(expected) {
                let (position, part) = expected.split_once(' ').unwrap();
                let position = format!("quick.toml:{position}:");
                assert!(shown.starts_with(&position) && shown.contains(part), "{shown}");
            }
        };
        let of = |type_and_more: &str| format!("[[summarizer]]\n{type_and_more}\n");
        let title = "[[summarizer.attribute]]\nname = 'Title'\nmatch = 'x'\n";
        check(&format!("{}{title}", of("type = 'Text'")), &[]);
        check("[[summarizer]]\n", &["1:1 \"type\" is missing", "1:1 says nothing"]);
        check(&format!("{}{title}", of("type = 'Txt'")), &["2:8 \"Text\""]);
        check(&format!("{}{title}", of("type = 'Tar'")), &["2:8 is opened"]);
        let twice = format!("{}{title}", of("type = 'Text'")).repeat(2);
        check(&twice, &["7:8 has a summarizer already"]);
        check(
            &format!("{}{title}{title}", of("type = 'Text'\nbesides = true")),
            &["3:1 \"beside\"", "8:8 is there already"],
        );
        let one = |attribute: &str| {
            format!("[[summarizer]]\ntype = 'Text'\n[[summarizer.attribute]]\n{attribute}\n")
        };
        check(&one("name = 'Title'"), &["3:1 \"match\" is missing"]);
        check(&one("name = 'Title'\nmatch = ['x', '(']"), &["5:15 \"(\": unclosed group"]);
        check(&one("name = 'Title'\nmatch = '\\w{900}{90}'"), &["5:9 exceeds size limit"]);
        check(&one("name = 'Title'\nmatch = []"), &["5:9 empty"]);
        check(&one("name = 'a b'\nmatch = 'x'"), &["4:8 no name of an attribute"]);
        for ours in ["md5", "Type", "Gatherer-Id", "Time-to-Live"] {
            check(
                &one(&format!("name = '{ours}'\nmatch = 'x'")),
                &["4:8 cannot be set by summarizers"],
            );
        }
        let many = vec!["'x'"; 1_001].join(", ");
        check(&one(&format!("name = 'Title'\nmatch = [{many}]")), &["5:5010 more than 1000"]);
        let large = |count| vec!["'\\w{20}'"; count].join(", ");
        check(
            &one(&format!("name = 'Title'\nmatch = [{}]", large(65))),
            &["5:650 take more than 67108864 bytes"],
        );
        check("[[summarizer]\n", &["1 "]);
        // Without `typing`, unknown types are not mistakes.
        let files = [("quick.toml".into(), format!("{}{title}", of("type = 'Refer'")))];
        assert_eq!(Declared::read(&files, None), Ok(Declared::default()));
    }
}
