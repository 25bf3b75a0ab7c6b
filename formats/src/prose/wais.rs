//! WAIS source descriptions: `.src` files with the host and port of a database, for clients.
//!
//! Source: "WAIS source descriptions" of freeWAIS 0.5 (`(:source :version 3 …)`), with values in Lisp
//! syntax; Essence's WaisSource.

use crate::object::ProblemKind;
use crate::text::squeezed;
use crate::{Draft, Input};

/// The default port (Z39.50).
const PORT: &str = "210";

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let fields = fields(&text);
    let field = |name: &str| {
        let field = fields.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        field.map_or("", |(_, value)| value.trim())
    };
    let line = |name: &str| squeezed(field(name));
    let mut draft = Draft::default();
    let database = line("database-name");
    let host = [line("ip-name"), line("ip-address")].into_iter().find(|it| !it.is_empty());
    let host = host.unwrap_or_default();
    if database.is_empty() && host.is_empty() {
        draft.problem(ProblemKind::Broken, "names neither a database nor a host");
    }
    // Servers name databases by file paths.
    draft.title = database.rsplit('/').next().unwrap_or_default().to_owned();
    draft.authors.push(line("maintainer"));
    draft.description = field("description").to_owned();
    draft.r#abstract = field("description").to_owned();
    draft.keywords = line("subjects");
    draft.other("Host", host.as_str());
    draft.other("Port", line("tcp-port"));
    draft.other("Database", database.as_str());
    draft.other("Subject", line("subjects"));
    if !host.is_empty() && !database.is_empty() && !database.contains(char::is_whitespace) {
        let port = line("tcp-port");
        let port = if port.is_empty() || port == PORT { String::new() } else { format!(":{port}") };
        draft.references.push(format!("wais://{host}{port}/{database}"));
    }
    drop(fields);
    input.set_text(text, &mut draft);
    draft
}

/// Returns names and values of `:name value`. A value is a string, a word, or the texts in parentheses.
fn fields(text: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while let Some(token) = token(&mut rest) {
        match token {
            // A word with a colon may be a value (`:cost-unit :free`), but only of unused fields.
            LispToken::Name(name) => fields.push((name.to_owned(), String::new())),
            LispToken::Value(value) => {
                if let Some((_, text)) = fields.last_mut() {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&value);
                }
            }
        }
    }
    fields
}

enum LispToken<'t> {
    Name(&'t str),
    Value(String),
}

fn token<'t>(rest: &mut &'t str) -> Option<LispToken<'t>> {
    let from = rest.trim_start_matches(|it: char| it.is_whitespace() || "()".contains(it));
    if let Some(inside) = from.strip_prefix('"') {
        let (mut value, mut escaped, mut end) = (String::new(), false, inside.len());
        for (at, it) in inside.char_indices() {
            match it {
                _ if escaped => {
                    value.push(it);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = at + 1;
                    break;
                }
                it => value.push(it),
            }
        }
        *rest = inside.get(end..).unwrap_or_default();
        return Some(LispToken::Value(value));
    }
    // A quotation mark begins a string at any position.
    let end = from.find(|it: char| it.is_whitespace() || "()\"".contains(it));
    let (word, after) = from.split_at(end.unwrap_or(from.len()));
    *rest = after;
    match word.strip_prefix(':') {
        Some(name) => Some(LispToken::Name(name)),
        None => (!word.is_empty()).then(|| LispToken::Value(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(source: &str, expected: &str) {
        let seen = render("a.src", Type::WaisSource, source.as_bytes());
        assert_eq!(seen.split("\nPartial-Text: ").next().unwrap(), expected);
    }

    #[test]
    fn a_source() {
        check(
            "(:source\n   :version  3\n   :ip-address \"192.31.181.1\"\n   :ip-name \"quake.think.com\"\n\
             \u{20}  :tcp-port 210\n   :database-name \"/proj/wais/cacm\"\n   :cost 0.00\n   :cost-unit :free\n\
             \u{20}  :maintainer \"brewster@think.com\"\n   :subjects \"computing journals\"\n\
             \u{20}  :description \"Communications of the \\\"ACM\\\"\n(some volumes).\"\n)\n",
            "Title: cacm\nAuthor: brewster@think.com\n\
             Description: Communications of the \"ACM\" (some volumes).\n\
             Abstract: Communications of the \"ACM\" | (some volumes).\n\
             Host: quake.think.com\nPort: 210\nDatabase: /proj/wais/cacm\n\
             Subject: computing journals\nURL-References: wais://quake.think.com//proj/wais/cacm",
        );
    }

    #[test]
    fn sources_may_lack_fields() {
        check(
            "(:source :version 3 :ip-address \"10.0.0.1\" :tcp-port 8000 :database-name \"db\")",
            "Title: db\nHost: 10.0.0.1\nPort: 8000\nDatabase: db\n\
             URL-References: wais://10.0.0.1:8000/db",
        );
        let broken = render("a.src", Type::WaisSource, b"(:source :description \"unended");
        assert!(broken.contains("! broken: names neither"), "{broken}");
        assert!(broken.contains("Description: unended"), "{broken}");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[(:a\"\\\\) é\n]{0,100}") {
            render("a.src", Type::WaisSource, &bytes);
            render("a.src", Type::WaisSource, text.as_bytes());
        }
    }
}
