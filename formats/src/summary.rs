//! The summary: the record of an object, made from a draft.

use std::collections::HashSet;

use soif::Record;

use crate::limit::Limit;
use crate::object::{Problem, Summary};
use crate::text::{Keywords, TextPrint, front, language, one_line, squeezed};
use crate::{Draft, Input, Settings, detail};

/// Longest `Title`, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Longest keyword of several words, in bytes; longer ones are lists or sentences.
const KEYWORD_BYTES_MAX: usize = 100;
/// Longest `Author`, in bytes.
const AUTHOR_BYTES_MAX: usize = Limit::Value.standard();

/// Makes a record from a draft. `type_name` is the value of `Type`. The attributes for which
/// `is_declared` returns true are kept at every level of detail.
pub fn summary(
    input: &Input<'_>,
    mut draft: Draft<'_>,
    type_name: &str,
    is_declared: &dyn Fn(&str) -> bool,
) -> Summary {
    let object = input.object;
    let mut record = Record::new("FILE", object.url.as_str());
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            record.push(name, value);
        }
    };
    let mut title = one_line(&draft.title, TITLE_BYTES_MAX);
    if title.is_empty() {
        title = one_line(&object.name, TITLE_BYTES_MAX);
    }
    let detail = input.settings.detail;
    language::settle(input, &mut draft);
    let authors = authors(&mut draft);
    let (keywords, print) = keywords(input, &mut draft, &title);
    let references = references(input.settings, &mut draft);
    let text = Text::of(input, &mut draft);
    let places = draft.places.attribute(&draft.body, text.start, text.end);
    values(input.settings, &mut draft, is_declared);
    put("Title", title);
    put("Author", authors);
    put("Description", one_line(&draft.description, detail.description_bytes_max));
    put("Abstract", front(draft.r#abstract.trim(), detail.abstract_bytes_max).to_owned());
    put("Type", type_name.to_owned());
    put("File-Size", object.size.to_string());
    if let Some(md5) = object.digest() {
        put("MD5", md5.to_string());
    }
    if let Some(modified) = object.modified {
        put("Last-Modification-Time", modified.to_string());
    }
    for (name, value) in draft.others {
        put(&name, value);
    }
    put("Text-Print", print);
    put("Keywords", keywords);
    put("URL-References", references);
    put("Text-Places", places);
    put(text.name, draft.body.get(text.start..text.end).unwrap_or_default().to_owned());
    let problems = draft.problems.into_iter();
    let problems = problems.map(|(kind, message)| Problem::new(&object.url, kind, message));
    let mut summary = Summary { record, problems: Vec::new(), given: None, leads: draft.leads };
    summary.add_problems(problems.collect());
    summary
}

/// The text attribute: its name, and the part of the draft's text that it holds.
struct Text {
    name: &'static str,
    start: usize,
    end: usize,
}

impl Text {
    fn of(input: &Input<'_>, draft: &mut Draft<'_>) -> Self {
        let is_full = input.settings.is_full(input.r#type);
        let (name, bytes_max) = if is_full {
            ("Full-Text", input.settings.full_text_bytes_max)
        } else {
            ("Partial-Text", input.settings.detail.partial_text_bytes_max)
        };
        let text = without_margins(&draft.body);
        let start = draft.body.trim_end().len() - text.len();
        let end = start + front(text, bytes_max).len();
        // A part is one by its name, as long as all words are read.
        let used = if is_full { bytes_max } else { input.text_bytes_max() };
        if used < text.len() {
            draft.cut(Limit::Text.cut_at(used));
        }
        Self { name, start, end }
    }
}

/// Returns a text without blank lines at its beginning and blanks at its end.
fn without_margins(body: &str) -> &str {
    body.trim_end().trim_start_matches(['\n', '\r', '\u{c}', '\u{feff}'])
}

/// Bounds the attributes that only some types have.
fn values(settings: &Settings, draft: &mut Draft<'_>, is_declared: &dyn Fn(&str) -> bool) {
    let mut is_cut = false;
    for (name, value) in &mut draft.others {
        let is_kept = detail::KEPT.contains(&name.as_str()) || is_declared(name);
        let rich = Limit::Value.bound();
        let most = if is_kept { rich } else { settings.detail.other_bytes_max.min(rich) };
        let kept = detail::whole_lines(value.trim(), most);
        is_cut |= most == rich && kept.len() < value.trim().len();
        *value = kept.to_owned();
    }
    if is_cut {
        draft.cut(Limit::Value.cut());
    }
}

fn authors(draft: &mut Draft<'_>) -> String {
    let (mut seen, mut count, mut is_cut) = (String::new(), 0, false);
    let mut known = HashSet::new();
    for author in &draft.authors {
        let author = squeezed(author);
        if author.is_empty() || !known.insert(author.clone()) {
            continue;
        }
        let room = AUTHOR_BYTES_MAX.saturating_sub(seen.len() + 1);
        is_cut |= room < author.len() || Limit::Authors.bound() <= count;
        // Of one that is longer than all may be, the front is kept.
        if is_cut && (0 < count || Limit::Authors.bound() == 0) {
            break;
        }
        if 0 < count {
            seen.push('\n');
        }
        seen.push_str(front(&author, room));
        count += 1;
    }
    if is_cut {
        draft.cut(Limit::Authors.cut_at(count));
    }
    seen
}

/// Returns the keywords and the print of the text. Beside a full text, which has all other words, the
/// keywords are those that the document names. Stated ones of several words come first, as they are, so
/// that a phrase finds them; then all other words.
fn keywords(input: &Input<'_>, draft: &mut Draft<'_>, title: &str) -> (String, String) {
    let settings = input.settings;
    let bytes_max = settings.keywords_text_bytes_max;
    let title = if draft.title.trim().is_empty() { title } else { &draft.title };
    let body = front(without_margins(&draft.body), bytes_max);
    let is_full = settings.is_full(input.r#type) && body.len() <= settings.full_text_bytes_max;
    let mut is_cut = bytes_max < draft.keywords.len();
    let named = front(&draft.keywords, bytes_max);
    let (mut keywords, named) = match settings.detail.keywords_max {
        None => stated(named, settings.keywords_bytes_max),
        Some(_) => (String::new(), named.to_owned()),
    };
    let all = [named.as_str(), &draft.words, title, &draft.description, &draft.r#abstract];
    let mut words = Keywords::new(settings.keywords_bytes_max - keywords.len());
    for text in all.iter().take(if is_full { 2 } else { all.len() }) {
        is_cut |= bytes_max < text.len();
        words.add(front(text, bytes_max));
    }
    let mut print = TextPrint::default();
    let mut beside = Keywords::new(0);
    let of_body = if is_full { &mut beside } else { &mut words };
    if settings.detail.text_print && input.r#type.has_text() {
        of_body.add_each(body, |run| print.take(run));
    } else if !is_full {
        words.add(body);
    }
    if is_cut && settings.detail.keywords_max.is_none() {
        draft.cut(Limit::Text.cut_at(bytes_max));
    }
    if words.is_cut() && settings.detail.keywords_max.is_none() {
        draft.cut(Limit::Keywords.cut_at(settings.keywords_bytes_max));
    }
    keywords += &match settings.detail.keywords_max {
        None => words.finish(),
        Some(words_max) => words.most_telling(words_max),
    };
    keywords.truncate(keywords.trim_end().len());
    (keywords, print.finish())
}

/// Parts the keywords that a document states: returns those of several words, a line each, as far as
/// `bytes_max` goes, and the rest.
fn stated(keywords: &str, bytes_max: usize) -> (String, String) {
    let (mut several, mut rest) = (String::new(), String::new());
    let mut seen = HashSet::new();
    for keyword in keywords.split(['\n', ',', ';']).map(squeezed) {
        let is_simple =
            keyword.chars().all(char::is_alphanumeric) || !keyword.contains(char::is_alphanumeric);
        let has_room =
            keyword.len() <= KEYWORD_BYTES_MAX && several.len() + keyword.len() < bytes_max;
        let lines = if !is_simple && has_room { &mut several } else { &mut rest };
        if !seen.contains(&keyword) {
            lines.push_str(&keyword);
            lines.push('\n');
            seen.insert(keyword);
        }
    }
    (several, rest)
}

fn references(settings: &Settings, draft: &mut Draft<'_>) -> String {
    let mut all = String::new();
    let count_max = settings.references_max.min(settings.detail.references_max);
    let mut is_cut = settings.references_max < draft.references.len()
        && settings.references_max <= settings.detail.references_max;
    for reference in draft.references.iter().take(count_max) {
        if settings.references_bytes_max < all.len() + reference.len() + 1 {
            is_cut = true;
            continue;
        }
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(reference);
    }
    if is_cut {
        draft.cut(Limit::References.cut_at(all.lines().count()));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::object::Object;
    use crate::testing::summarize;
    use crate::{Detail, FullText, Type};

    fn text_object(text: &str) -> Object {
        Object {
            modified: Some(793_962_520),
            ..Object::whole("http://h.example/notes.txt", text.as_bytes().to_vec())
        }
    }

    fn check(settings: &Settings, text: &str, expected: &[(&str, &str)]) {
        let summary = summarize(&text_object(text), Type::Text, settings, &|| false);
        let seen: Vec<(String, String)> = summary
            .record
            .attributes()
            .iter()
            .map(|it| (it.name.clone(), String::from_utf8_lossy(&it.value).into_owned()))
            .collect();
        let seen: Vec<(&str, &str)> = seen.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(seen, expected);
        assert_eq!(summary.problems, []);
    }

    #[test]
    fn a_record_has_the_attributes_of_the_manual_in_one_order() {
        check(
            &Settings::default(),
            "A short note\n\nAbout the word harvest.\n",
            &[
                ("Title", "A short note"),
                ("Description", "About the word harvest."),
                ("Type", "Text"),
                ("File-Size", "38"),
                ("MD5", "f8fa9e712a179ba7bc020fdc0b0af7d2"),
                ("Last-Modification-Time", "793962520"),
                ("Keywords", "about\nharvest\nnote\nshort\nthe\nword"),
                ("Partial-Text", "A short note\n\nAbout the word harvest."),
            ],
        );
    }

    #[test]
    fn full_text_is_by_type() {
        let types = BTreeSet::from([Type::Text]);
        let settings = Settings { full_text: FullText::Types(types), ..Settings::default() };
        let text = "word ".repeat(10_000);
        let full = summarize(&text_object(&text), Type::Text, &settings, &|| false).record;
        assert_eq!(full.get("Full-Text").map(<[u8]>::len), Some(text.len() - 1));
        assert_eq!(full.get("Partial-Text"), None);
        let part = summarize(&text_object(&text), Type::Readme, &settings, &|| false).record;
        assert_eq!(part.get("Partial-Text").map(<[u8]>::len), Some(16 * 1024 - 5));
    }

    #[test]
    fn detail_bounds_a_record() {
        let page = format!(
            "<title>Reaping</title><meta name=description content='How to reap.'>\
             <meta name=DC.date content=1995><h1>Sickles</h1><a href=x.html>{}</a>",
            "reaper reaper scythe wheat ".repeat(9)
        );
        let values = |detail: Detail| {
            let settings = Settings { detail, ..Settings::default() };
            let object = Object::whole("http://h.example/p.html", page.as_bytes().to_vec());
            let record = summarize(&object, Type::Html, &settings, &|| false).record;
            let value = |name| record.text(name).unwrap_or_default().replace('\n', " ");
            let names = ["Description", "Date", "Keywords", "URL-References", "Partial-Text"];
            assert_eq!(record.text("Title").as_deref(), Some("Reaping"));
            names.map(value).map(|it| it.chars().take(16).collect::<String>())
        };
        let links = "http://h.example";
        assert_eq!(
            values(Detail::RICH),
            ["How to reap.", "1995", "how reap reaper ", links, "Sickles reaper r"]
        );
        assert_eq!(values(Detail::BRIEF), ["", "1995", "how reap reaper ", "", ""]);
        let one = Detail { keywords_max: Some(1), description_bytes_max: 5, ..Detail::TERSE };
        assert_eq!(values(one), ["How", "1995", "reaper reaper re", "", ""]);
        assert_eq!(values(Detail::NAMES), ["", "1995", "", "", ""]);
    }

    #[test]
    fn words_deep_in_a_text_are_keywords() {
        let text = format!("{}needle", "hay ".repeat(100_000));
        let record =
            summarize(&text_object(&text), Type::Text, &Settings::default(), &|| false).record;
        assert_eq!(record.text("Keywords").as_deref(), Some("hay\nneedle"));
    }

    #[test]
    fn stated_keywords_of_several_words_stay_whole() {
        let page = "<title>On pies</title><meta name=keywords content='internet protocol, apple  pie; C++,\
                    IP, internet protocol'><p>Of apple and dough.";
        let object = Object::whole("http://h.example/p.html", page.as_bytes());
        let keywords = |settings: &Settings| {
            let record = summarize(&object, Type::Html, settings, &|| false).record;
            record.text("Keywords").unwrap().replace('\n', "|")
        };
        let full = Settings { full_text: FullText::All, ..Settings::default() };
        assert_eq!(keywords(&full), "internet protocol|apple pie|C++|ip");
        let all = "internet protocol|apple pie|C++|and|apple|dough|ip|of|on|pies";
        assert_eq!(keywords(&Settings::default()), all);
        let few = Settings { keywords_bytes_max: 25, ..full };
        assert_eq!(keywords(&few), "internet protocol|C++|ip");
    }

    #[test]
    fn a_truncated_object_has_no_md5() {
        let object = Object { truncated: true, size: 1 << 40, ..text_object("front") };
        let record = summarize(&object, Type::Text, &Settings::default(), &|| false).record;
        assert_eq!(record.get("MD5"), None);
        assert_eq!(record.number("File-Size"), Some(1 << 40));
    }

    #[test]
    fn a_type_without_a_summarizer_gives_a_record_by_name() {
        let object = Object::whole("http://h.example/my%20photo.png", &b"\x89PNG"[..]);
        let record = summarize(&object, Type::Image, &Settings::default(), &|| false).record;
        assert_eq!(record.text("Title").as_deref(), Some("my photo.png"));
        assert_eq!(record.text("Keywords").as_deref(), Some("my\nphoto\npng"));
        assert_eq!(record.get("Partial-Text"), None);
    }
}
