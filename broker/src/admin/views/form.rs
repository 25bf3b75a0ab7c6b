//! The form of a view: what was typed, and its mistakes beside their fields.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use soif::digest::Md5;
use url::form_urlencoded;

use crate::config::Config;
use crate::config::edit::{self, EditError, NewView};
use crate::views::selecting::standing;
use crate::views::{EXPECTED, split};

/// Longest query that the form takes, in bytes: as a parameter it must fit into the head of a request.
const QUERY_BYTES_MAX: usize = 4_000;
/// Longest title, in bytes.
const TITLE_BYTES_MAX: usize = 200;

/// Mistakes by the field of the page beside which they stand; `file` and `saving` are not of a field.
pub(super) type Wrong = BTreeMap<&'static str, String>;

/// The parameters of a request; of those with the same name, the last.
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(super) fn read(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// Returns a value without the spaces around it; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(|it| it.trim()).unwrap_or_default()
    }
}

/// A view as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Typed {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) within: String,
    pub(super) query: String,
    /// Whether it is to change a view that is there.
    pub(super) changes: bool,
}

impl Typed {
    /// Returns what was typed; `None` if nothing was.
    pub(super) fn of(asked: &Parameters) -> Option<Self> {
        let field = |name| asked.get(name).to_owned();
        let (name, title) = (field("name"), field("title"));
        let (within, query) = (field("within"), field("query"));
        let changes = !asked.get("changes").is_empty();
        asked.0.contains_key("query").then_some(Self { name, title, within, query, changes })
    }

    /// Returns the form of a view that is there.
    pub(super) fn from_view(view: &NewView) -> Self {
        let NewView { name, query, title, within } = view.clone();
        let (title, within) = (title.unwrap_or_default(), within.unwrap_or_default());
        Self { name, title, within, query, changes: true }
    }

    /// Returns the view for the settings.
    pub(super) fn view(&self) -> NewView {
        let some = |it: &String| (!it.is_empty()).then(|| it.clone());
        let (name, query) = (self.name.clone(), self.query.clone());
        NewView { name, query, title: some(&self.title), within: some(&self.within) }
    }

    /// Returns the settings in `text` with the view, or the mistakes in it.
    pub(super) fn edited(&self, text: &str) -> Result<String, Wrong> {
        let mut wrong = Wrong::new();
        let known = edit::views_in(text);
        let is_known = |name: &str| known.iter().any(|it| it.name == name);
        if let Some(mistake) = wrong_name(&self.name) {
            wrong.insert("name", mistake);
        } else if is_known(&self.name) != self.changes {
            let name = &self.name;
            let mistake = if self.changes {
                format!("there is no view {name:?} any more")
            } else {
                format!("there is a view {name:?} already: choose another name, or change that one")
            };
            wrong.insert("name", mistake);
        }
        if TITLE_BYTES_MAX < self.title.len() {
            wrong.insert("title", format!("it is longer than {TITLE_BYTES_MAX} bytes"));
        }
        if !self.within.is_empty() && !is_known(&self.within) {
            wrong.insert("within", format!("there is no view {:?}", self.within));
        }
        let names = match standing(&self.query).and_then(split) {
            _ if self.query.is_empty() => Err(format!("it is empty; expected {EXPECTED}")),
            _ if QUERY_BYTES_MAX < self.query.len() => {
                let advice = "write such a one into the settings file";
                Err(format!("it is longer than {QUERY_BYTES_MAX} bytes: {advice}"))
            }
            Ok((_, names)) => Ok(names),
            Err(mistake) => Err(format!("{mistake}; expected {EXPECTED}")),
        };
        let names = names.unwrap_or_else(|mistake| {
            wrong.insert("query", mistake);
            Vec::new()
        });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let with = if self.changes {
            edit::with_views(text, &[self.view()])
        } else {
            edit::with_view(text, &self.view())
        };
        with.map_err(|error| {
            let field = match &error {
                // Then the mistake is not of this view.
                _ if Config::parse(text).is_err() => "file",
                EditError::Mistakes(_) if names.is_empty() && !self.within.is_empty() => "within",
                EditError::Mistakes(_) => "query",
                _ => "file",
            };
            let mistake = if field == "file" { error.to_string() } else { mistake_of(&error) };
            Wrong::from([(field, mistake)])
        })
    }

    /// Returns the name of a trial: of this view, with these settings.
    pub(super) fn trial(&self, text: &str) -> String {
        Md5::of(format!("{self:?} {text}").as_bytes()).to_string()
    }
}

/// Returns why a view can have no such name; `None`: it can.
pub(super) fn wrong_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty; expected small letters, digits, - and _".to_owned());
    }
    let alone = NewView { name: name.to_owned(), query: "x".to_owned(), ..NewView::default() };
    let text = format!("name = \"n\"\ndata = \"d\"\n{}", alone.lines());
    let mistakes = Config::parse(&text).err()?;
    mistakes.first().map(|it| format!("{}; expected {}", it.message, it.expected))
}

/// Returns the fault of an edit, without the line of a text that nobody sees.
fn mistake_of(error: &EditError) -> String {
    match error {
        EditError::Mistakes(mistakes) => {
            let first = mistakes.first();
            first.map(|it| format!("{}; expected {}", it.message, it.expected)).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Returns the names of the views of the settings in `text` that are within a view, or name it.
pub(super) fn leaning_on(text: &str, name: &str) -> BTreeSet<String> {
    let leans = |it: &NewView| {
        it.within.as_deref() == Some(name)
            || standing(&it.query).and_then(split).is_ok_and(|it| it.1.iter().any(|it| it == name))
    };
    edit::views_in(text).into_iter().filter(leans).map(|it| it.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"n\" # ours\ndata = \"d\"\n[[view]]\nname = \"a\"\nquery = \"type:PDF\"\n\
                        [[view]]\nname = \"b\"\nquery = \"view:a x\"\n[[view]]\nname = \"c\"\nquery = \"y\"\nwithin = \"b\"\n";

    fn typed(encoded: &str) -> Typed {
        Typed::of(&Parameters::read(encoded.as_bytes())).unwrap()
    }

    #[test]
    fn mistakes_stand_beside_their_fields() {
        let long = format!("name=d&query={}", "x".repeat(QUERY_BYTES_MAX + 1));
        let title = format!("name=d&query=x&title={}", "x".repeat(TITLE_BYTES_MAX + 1));
        for (encoded, field, part) in [
            ("name=&query=x", "name", "small letters"),
            ("name=A+b&query=x", "name", "is no name for a view"),
            ("name=a&query=x", "name", "already"),
            ("name=d&query=x&changes=true", "name", "any more"),
            ("name=d&query=", "query", "empty"),
            ("name=d&query=(x", "query", "at byte"),
            ("name=d&query=x~1", "query", "x~1"),
            ("name=d&query=view:none", "query", "no view \"none\""),
            ("name=d&query=view:d", "query", "in no circle"),
            ("name=d&query=x&within=none", "within", "no view \"none\""),
            ("name=a&query=x&within=c&changes=true", "within", "in no circle"),
            ("name=a&query=view:c&changes=true", "query", "in no circle"),
            (&long, "query", "longer"),
            (&title, "title", "longer"),
        ] {
            let wrong = typed(encoded).edited(TEXT).unwrap_err();
            assert_eq!(wrong.keys().collect::<Vec<_>>(), [&field], "{encoded}: {wrong:?}");
            assert!(wrong[field].contains(part), "{encoded}: {wrong:?}");
        }
        let both = typed("name=A&query=(").edited(TEXT).unwrap_err();
        assert_eq!(both.len(), 2, "{both:?}");
        let of_the_file = typed("name=d&query=x").edited("folow = 1").unwrap_err();
        assert!(of_the_file.contains_key("file"), "{of_the_file:?}");
    }

    #[test]
    fn a_view_comes_or_changes() {
        let added = typed("name=d&query=+view:a+&within=c&title=").edited(TEXT).unwrap();
        assert_eq!(
            added,
            format!("{TEXT}\n[[view]]\nname = \"d\"\nquery = \"view:a\"\nwithin = \"c\"\n")
        );
        let changed = typed("name=a&query=type:HTML&changes=true").edited(TEXT).unwrap();
        assert_eq!(changed, TEXT.replace("type:PDF", "type:HTML"));
        let [first, other] = ["x", "y"].map(|it| typed(&format!("name=d&query={it}")));
        assert_ne!(first.trial(TEXT), other.trial(TEXT));
        assert_ne!(first.trial(TEXT), first.trial("name = \"other\""));
        assert_eq!(Typed::from_view(&first.view()), Typed { changes: true, ..first });
        assert_eq!(Typed::of(&Parameters::read(b"page=2")), None);
    }

    #[test]
    fn views_lean_on_those_that_they_are_within_or_name() {
        let names = |name: &str| leaning_on(TEXT, name).into_iter().collect::<Vec<_>>();
        assert_eq!((names("a"), names("b")), (vec!["b".to_owned()], vec!["c".to_owned()]));
        assert!(names("c").is_empty());
    }
}
