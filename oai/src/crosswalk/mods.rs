//! The MODS crosswalk: Metadata Object Description Schema, all versions 3.x.
//!
//! Source: MODS 3.8 user guidelines (its elements by their names).

use std::borrow::Cow;

use super::draft::{Draft, Field, identified};
use super::tree::Element;

/// Maximum number of dates that are searched for the end of a span.
const DATES_MAX: usize = 50;

/// Reads the record in `root`, which is a record, or a collection that contains one record.
pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    let record = root.child("mods").unwrap_or(root);
    for element in record.children() {
        let value = || element.whole_text();
        match element.name() {
            "titleInfo" => match element.attribute("type") {
                "" => draft.put_title(title(element)),
                _ => draft.put(Field::AlternativeTitle, title(element)),
            },
            "name" => {
                let field = if is_author(element) { Field::Author } else { Field::Contributor };
                draft.put(field, name(element));
            }
            "typeOfResource" | "genre" => draft.put(Field::Type, value()),
            "originInfo" => origin(element, draft),
            "language" => language(element, draft),
            "physicalDescription" => {
                for part in element.children() {
                    if matches!(part.name(), "form" | "extent" | "internetMediaType") {
                        draft.put(Field::Format, part.text());
                    }
                }
            }
            "abstract" => draft.put(Field::Abstract, value()),
            "tableOfContents" => draft.put(Field::Description, value()),
            "note" => draft.put_other("Note", value()),
            "subject" => subject(element, draft),
            "classification" => draft.put_other("Classification", value()),
            "relatedItem" => related(element, draft),
            "identifier" if element.attribute("invalid") != "yes" => {
                draft.put(Field::Identifier, identified(element.attribute("type"), element.text()));
            }
            "location" => location(element, draft),
            "accessCondition" => draft.put(Field::Rights, value()),
            _ => {}
        }
    }
}

/// Returns `nonSort title: subTitle. partNumber. partName`.
fn title(info: Element<'_, '_>) -> String {
    let mut whole = String::new();
    for part in info.children() {
        let text = part.text().trim();
        let before = match part.name() {
            _ if text.is_empty() => continue,
            "nonSort" | "title" if whole.is_empty() => "",
            // An article that ends in an apostrophe is joined to the next word.
            "title" if whole.ends_with('\'') || whole.ends_with('’') => "",
            "nonSort" | "title" => " ",
            "subTitle" => ": ",
            "partNumber" | "partName" => ". ",
            _ => continue,
        };
        if !whole.is_empty() {
            whole.push_str(before);
        }
        whole.push_str(text);
    }
    whole
}

/// Returns the name as `family, given` if these parts are separate, or else the parts as written.
/// Dates are left out.
fn name<'t>(element: Element<'t, '_>) -> Cow<'t, str> {
    let parts = |kind: &'static str| {
        let of_kind = element.all("namePart").filter(move |it| it.attribute("type") == kind);
        let texts: Vec<&str> = of_kind.map(|it| it.text().trim()).collect();
        texts.join(" ")
    };
    let (family, given, plain) = (parts("family"), parts("given"), parts(""));
    let named = match (family.is_empty(), given.is_empty()) {
        (false, false) => format!("{family}, {given}"),
        (false, true) => family,
        (true, false) => given,
        (true, true) => plain,
    };
    if named.trim().is_empty() { element.text_of("displayForm") } else { Cow::Owned(named) }
}

/// Returns whether the name is that of an author. A name without a role counts as an author.
fn is_author(name: Element<'_, '_>) -> bool {
    let mut terms = name.all("role").flat_map(|it| it.all("roleTerm")).peekable();
    let is_one = |it: Element<'_, '_>| {
        let term = it.text().trim().to_ascii_lowercase();
        matches!(term.as_str(), "aut" | "cre" | "author" | "creator" | "dis" | "dissertant")
    };
    terms.peek().is_none() || terms.any(is_one)
}

fn origin<'t>(info: Element<'t, '_>, draft: &mut Draft<'t>) {
    for part in info.children() {
        match part.name() {
            "publisher" | "agent" => draft.put(Field::Publisher, part.whole_text()),
            "place" => {
                let terms = part.all("placeTerm").filter(|it| it.attribute("type") != "code");
                terms.for_each(|it| draft.put_other("Place", it.text()));
            }
            "edition" => draft.put_other("Edition", part.text()),
            "dateIssued" | "dateCreated" | "copyrightDate" => date(info, part, draft),
            "dateModified" => draft.put_other("Date-Modified", part.text()),
            "dateValid" => draft.put_other("Date-Valid", part.text()),
            _ => {}
        }
    }
}

/// Reads a date, or the two ends of a span.
fn date<'t>(info: Element<'t, '_>, date: Element<'t, '_>, draft: &mut Draft<'t>) {
    match date.attribute("point") {
        "start" => {
            let mut dates = info.all(date.name()).take(DATES_MAX);
            match dates.find(|it| it.attribute("point") == "end") {
                Some(end) => {
                    let span = format!("{}/{}", date.text().trim(), end.text().trim());
                    draft.put(Field::Date, span);
                }
                None => draft.put(Field::Date, date.text()),
            }
        }
        "end" => {}
        _ => draft.put(Field::Date, date.text()),
    }
}

/// Reads the code of a language, or else its name.
fn language<'t>(element: Element<'t, '_>, draft: &mut Draft<'t>) {
    let terms = || element.all("languageTerm");
    let code = terms().find(|it| it.attribute("type") == "code");
    match code.or_else(|| terms().next()) {
        Some(term) => draft.put(Field::Language, term.text()),
        None => draft.put(Field::Language, element.text()),
    }
}

/// Reads one subject heading, and joins its parts with dashes.
fn subject<'t>(element: Element<'t, '_>, draft: &mut Draft<'t>) {
    let mut heading = String::new();
    for part in element.children() {
        let text = match part.name() {
            "cartographics" => {
                draft.put(Field::Coverage, part.whole_text());
                continue;
            }
            "name" => name(part),
            "titleInfo" => Cow::Owned(title(part)),
            "geographicCode" => continue,
            _ => part.whole_text(),
        };
        if !text.trim().is_empty() {
            if !heading.is_empty() {
                heading.push_str(" -- ");
            }
            heading.push_str(text.trim());
        }
    }
    if heading.is_empty() {
        heading.push_str(element.text());
    }
    draft.put(Field::Keyword, heading);
}

fn related<'t>(item: Element<'t, '_>, draft: &mut Draft<'t>) {
    let mut text = item.child("titleInfo").map(title).unwrap_or_default();
    let kind = item.attribute("type");
    if kind == "host" {
        for part in item.all("part") {
            for detail in part.children() {
                text.push(' ');
                text.push_str(detail.whole_text().trim());
            }
        }
    }
    match kind {
        "host" => draft.put(Field::Source, text),
        "series" => draft.put_other("Series", text),
        _ => draft.put(Field::Related, text),
    }
}

fn location<'t>(element: Element<'t, '_>, draft: &mut Draft<'t>) {
    for part in element.children() {
        match part.name() {
            "url" => {
                draft.put(Field::Identifier, part.text());
                draft.put_link(part.text());
            }
            "physicalLocation" | "shelfLocator" => draft.put_other("Location", part.text()),
            _ => {}
        }
    }
}
