//! CSL-JSON: the exchange format of citation processors and reference managers.
//!
//! Source: Citation Style Language 1.0.2, the schema of its data (variables by their names).

use serde_json::Value;

use crate::catalog::json::{each, hand_out, member, text};
use crate::catalog::{EntryFields, Reading};
use crate::names;

/// Variables, and the attributes that they become.
const VARIABLES: &str = "title:Title title-short:Alternative-Title type:Resource-Type \
    genre:Resource-Type container-title:Source event-title:Source event:Source \
    collection-title:Series publisher:Publisher publisher-place:Place abstract:Abstract note:Note \
    language:Language volume:Volume issue:Issue page:Page-Range edition:Edition version:Version \
    number:Number license:License URL:URL-References";

/// Hands out the items of a file: of a list, of a list called `items`, or a single item.
pub(crate) fn read(whole: &str, reading: &mut Reading<'_>) {
    let whole = whole.trim_start_matches('\u{feff}').trim();
    let list = if whole.starts_with('{') { member(whole, "items") } else { Some(whole) };
    hand_out(whole, (list, whole), reading, |it| (key(it), fields(it)));
}

fn key(item: &Value) -> String {
    let keys = ["id", "citation-key", "DOI"].iter().filter_map(|it| item.get(it)).map(text);
    keys.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
}

fn fields(item: &Value) -> EntryFields {
    let mut fields = EntryFields::default();
    let of = |name: &str| item.get(name).unwrap_or(&Value::Null);
    for person in each(of("author")) {
        fields.put("Author", &name(person));
    }
    for role in ["editor", "translator", "collection-editor", "director"] {
        each(of(role)).iter().for_each(|it| fields.put("Contributor", &name(it)));
    }
    let dates = ["issued", "original-date", "submitted"].map(|it| date(of(it)));
    fields.put("Date", dates.iter().find(|it| !it.is_empty()).map_or("", |it| it));
    for (from, to) in names::pairs(VARIABLES) {
        fields.put(to, &text(of(from)));
    }
    for scheme in ["DOI", "ISBN", "ISSN", "PMID", "PMCID"] {
        each(of(scheme)).iter().for_each(|it| fields.put_identifier(scheme, &text(it)));
    }
    fields.put_all("Subject", &text(of("keyword")), &[',', ';']);
    fields
}

/// Returns a person as `Given particle Family Suffix`, or the name of an institution.
fn name(person: &Value) -> String {
    let parts =
        ["given", "dropping-particle", "non-dropping-particle", "family", "suffix", "literal"];
    let parts = parts.iter().filter_map(|it| person.get(it)).map(text);
    let parts: Vec<String> = parts.filter(|it| !it.trim().is_empty()).collect();
    if parts.is_empty() { text(person) } else { parts.join(" ") }
}

/// Returns a date from year, month and day, or a date as written.
fn date(value: &Value) -> String {
    let parts = value.get("date-parts").and_then(|it| it.get(0));
    let numbers = parts.map(each).unwrap_or_default().iter().map(|it| text(it).parse::<u16>());
    let numbers: Vec<u16> = numbers.take(3).map_while(Result::ok).collect();
    match numbers.as_slice() {
        [year, month, day] => format!("{year:04}-{month:02}-{day:02}"),
        [year, month] => format!("{year:04}-{month:02}"),
        [year] => format!("{year:04}"),
        _ => {
            let written = ["raw", "literal"].iter().filter_map(|it| value.get(it)).map(text).next();
            written.unwrap_or_else(|| text(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::CslJson, text.as_bytes()), expected);
    }

    #[test]
    fn items_of_a_list() {
        check(
            r#"[{"id": "bowman95", "type": "article-journal", "title": "Harvest",
                "author": [{"family": "Bowman", "given": "C. Mic"}, {"literal": "The Group"},
                           {"family": "Beethoven", "given": "Ludwig", "non-dropping-particle": "van"}],
                "issued": {"date-parts": [[1995, "12"]]}, "container-title": "Computer Networks",
                "DOI": "10.1016/x", "ISSN": "0169-7552", "keyword": "index, cache", "volume": 28,
                "page": "119-125", "language": "en-US", "URL": "https://h.example/x", "abstract": "A."},
               {"id": 7, "title": "Second", "issued": {"raw": "March 1994"}, "editor": [{"family": "Ed"}]},
               {"id": 8, broken}, {}]"#,
            &[
                "bowman95: Title=Harvest; Author=C. Mic Bowman|The Group|Ludwig van Beethoven; \
                 Abstract=A.; Date=1995-12; Date-Source=entry; Resource-Type=article-journal; Source=Computer Networks; \
                 Language=en; Volume=28; Page-Range=119-125; \
                 Identifier=doi:10.1016/x|urn:issn:0169-7552; Subject=index|cache; \
                 URL-References=https://h.example/x",
                "7: Title=Second; Contributor=Ed; Date=1994-03; Date-Source=entry",
                "broken",
                "broken",
            ],
        );
        check(r#"{"items": [{"id": "a", "title": "A"}]}"#, &["a: Title=A"]);
        check(r#"{"id": "a", "title": "A"}"#, &["(alone): Title=A"]);
        check("x", &[]);
    }

    #[test]
    fn the_list_s_own_record() {
        assert_eq!(
            render(
                "a.json",
                Type::CslJson,
                br#"[{"title":"A","issued":{"date-parts":[[1994]]}},{"title":"B"},3]"#
            ),
            "Title: a.json\nDescription: Bibliography with 3 entries of 1994\nEntries: 3\nYears: 1994\n\
             Titles: A | B\nPartial-Text: A (1994) | B\n\
             ! broken: 1 of 3 entries cannot be parsed, the first is element 3"
        );
        render("a", Type::CslJson, "[[".repeat(200_000).as_bytes());
        render("a", Type::CslJson, format!("[{}", "{\"a\":".repeat(200)).as_bytes());
        render("a", Type::CslJson, format!("[{}]", "0,".repeat(300_000)).as_bytes());
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(text in "[\\[{]?(\"title\":|\"items\":|\"author\":|\\[|\\]|\\{|\\}|,|\"x\"|3|é){0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a", Type::CslJson, text.as_bytes());
            render("a", Type::CslJson, &bytes);
        }
    }
}
