//! Samples for the limits of all types.

use super::Sample;
use crate::Type;
use crate::limit::Limit;

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let (r#type, name, text, holds, slack) = match limit {
        Limit::Authors => {
            let names: String =
                (0..count).map(|n| format!("<meta name=author content='Ann {n}'>")).collect();
            (Type::Html, "a.html", format!("<title>T</title>{names}"), count, 0)
        }
        Limit::HtmlPage => {
            let page = format!("<title>T</title><p>{}</p>", "word ".repeat(20 * count));
            let holds = page.len();
            (Type::Html, "a.html", page, holds, 0)
        }
        Limit::Attributes => {
            let fields: String =
                (0..count).map(|n| format!("<meta name=field-{n} content=value>")).collect();
            (Type::Html, "a.html", format!("<title>T</title>{fields}"), count, 0)
        }
        Limit::Value => {
            let value = "word ".repeat(count);
            let page = format!("<title>T</title><meta name=field content='{value}'>");
            (Type::Html, "a.html", page, value.trim_end().len(), 0)
        }
        Limit::Problems => {
            let records = "<record><leader>x</leader></record><record>";
            (Type::MarcXml, "a.xml", format!("<collection>{records}"), 2, 0)
        }
        _ => return None,
    };
    Some(Sample { r#type, name, bytes: text.into_bytes(), holds, slack })
}
