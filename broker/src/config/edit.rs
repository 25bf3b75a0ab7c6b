//! The editor of `[freshness]` and `[[view]]` in a settings file. All else stays: comments, order and spacing.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use settings::Mistake;
use toml_edit::{ArrayOfTables, Decor, DocumentMut, Item, Table, TableLike, Value, value};

use super::Config;

/// Keys for the aim of a policy. Different policies use different keys; a file has one of them.
const AIMS: [&str; 4] = ["theta", "interval", "price", "pulls_per_hour"];

/// The byte order mark that some editors put before a text.
const MARK: &str = "\u{feff}";

/// The fault for which a text stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is no TOML.
    #[error(transparent)]
    Syntax(#[from] toml_edit::TomlError),
    /// A key has a value of another kind.
    #[error("{0}")]
    Kind(&'static str),
    /// The text has no view of this name.
    #[error("there is no view {0:?}")]
    NoView(String),
    /// The edited settings have mistakes.
    #[error("the settings would not be accepted:\n{}", lines_of(.0))]
    Mistakes(Vec<Mistake>),
}

fn lines_of(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A policy for the settings, by the names that they use.
#[derive(Clone, Debug)]
pub struct Choice {
    /// `policy`.
    pub policy: String,
    /// The policy's key (`theta`, `interval`, `price`, `pulls_per_hour`) and its value; `None` for a policy without an
    /// aim.
    pub aim: Option<(&'static str, Value)>,
}

/// Returns the settings in `text` with another policy.
///
/// # Errors
///
/// The text is no TOML, `[freshness]` is no table, or the new settings have mistakes: write nothing then.
pub fn with_policy(text: &str, choice: &Choice) -> Result<String, EditError> {
    edited(text, |document| set_policy(document, choice))
}

fn set_policy(document: &mut DocumentMut, choice: &Choice) -> Result<(), EditError> {
    let table = document.entry("freshness").or_insert_with(|| Item::Table(Table::new()));
    let table = table.as_table_like_mut().ok_or(EditError::Kind("\"freshness\" is no table"))?;
    set(table, "policy", choice.policy.clone().into());
    let old = AIMS.into_iter().find(|key| table.contains_key(key));
    if let Some((key, how_much)) = &choice.aim {
        let comments = old.filter(|old| old != key).and_then(|old| Comments::of(table, old));
        set(table, key, how_much.clone());
        if let Some(comments) = comments {
            comments.put(table, key);
        }
    }
    for key in AIMS {
        if choice.aim.as_ref().is_none_or(|(aim, _)| *aim != key) {
            table.remove(key);
        }
    }
    Ok(())
}

/// A view for the settings, as they have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewView {
    /// `name`.
    pub name: String,
    /// `query`.
    pub query: String,
    /// `title`.
    pub title: Option<String>,
    /// `within`.
    pub within: Option<String>,
}

impl NewView {
    /// Returns its lines for the settings.
    pub fn lines(&self) -> String {
        let mut table = Table::new();
        put(&mut table, self);
        format!("[[view]]\n{table}")
    }

    fn of(table: &Table) -> Self {
        let text = |key| table.get(key).and_then(Item::as_str).map(str::to_owned);
        let of = |key| text(key).unwrap_or_default();
        Self { name: of("name"), query: of("query"), title: text("title"), within: text("within") }
    }
}

/// Returns the views of the settings in `text`, in their order; none if the text is no TOML.
pub fn views_in(text: &str) -> Vec<NewView> {
    let document: Option<DocumentMut> = text.strip_prefix(MARK).unwrap_or(text).parse().ok();
    let tables = document.as_ref().and_then(|it| it.get("view")?.as_array_of_tables());
    tables.into_iter().flatten().map(NewView::of).collect()
}

/// Returns the settings in `text` with one more view.
///
/// # Errors
///
/// The text is no TOML, or the new settings have mistakes: write nothing then.
pub fn with_view(text: &str, view: &NewView) -> Result<String, EditError> {
    edited(text, |document| {
        let mut table = Table::new();
        put(&mut table, view);
        views(document)?.push(table);
        Ok(())
    })
}

/// Returns the settings in `text` with these views; those that have their names give way.
///
/// # Errors
///
/// Those of [`with_view`].
pub fn with_views(text: &str, new: &[NewView]) -> Result<String, EditError> {
    edited(text, |document| {
        let views = views(document)?;
        let mut new: BTreeMap<&str, &NewView> = new.iter().map(|it| (&*it.name, it)).collect();
        for table in views.iter_mut() {
            let name = table.get("name").and_then(Item::as_str);
            if let Some(view) = name.and_then(|it| new.remove(it)) {
                put(table, view);
            }
        }
        for view in new.into_values() {
            let mut table = Table::new();
            put(&mut table, view);
            views.push(table);
        }
        Ok(())
    })
}

fn views(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, EditError> {
    let views = document.entry("view").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    views.as_array_of_tables_mut().ok_or(EditError::Kind("\"view\" is no list of [[view]]"))
}

fn put(table: &mut Table, view: &NewView) {
    let fields = [
        ("name", Some(&view.name)),
        ("title", view.title.as_ref()),
        ("query", Some(&view.query)),
        ("within", view.within.as_ref()),
    ];
    for (key, text) in fields {
        match text {
            Some(text) => set(table, key, text.into()),
            None => drop(table.remove(key)),
        }
    }
}

/// Returns the settings in `text` without a view.
///
/// # Errors
///
/// Those of [`with_view`]; there is no such view.
pub fn without_view(text: &str, name: &str) -> Result<String, EditError> {
    edited(text, |document| {
        let views = document.get_mut("view").and_then(Item::as_array_of_tables_mut);
        let none = || EditError::NoView(name.to_owned());
        let views = views.ok_or_else(none)?;
        let before = views.len();
        views.retain(|it| it.get("name").and_then(Item::as_str) != Some(name));
        if views.len() == before { Err(none()) } else { Ok(()) }
    })
}

/// Returns the settings in `text` after an edit.
fn edited(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let (mark, body) = text.strip_prefix(MARK).map_or(("", text), |body| (MARK, body));
    let mut document: DocumentMut = body.parse()?;
    edit(&mut document)?;
    let edited = document.to_string();
    // A file with the line ends of another system keeps them.
    let edited = if body.contains("\r\n") { edited.replace('\n', "\r\n") } else { edited };
    Config::parse(&edited).map_err(EditError::Mistakes)?;
    Ok(format!("{mark}{edited}"))
}

/// The comments and spaces around a key and its value.
struct Comments {
    key: Decor,
    value: Decor,
}

impl Comments {
    fn of(table: &dyn TableLike, key: &str) -> Option<Self> {
        let value = table.get(key)?.as_value()?.decor().clone();
        Some(Self { key: table.key(key)?.leaf_decor().clone(), value })
    }

    fn put(self, table: &mut dyn TableLike, key: &str) {
        if let Some(mut key) = table.key_mut(key) {
            *key.leaf_decor_mut() = self.key;
        }
        if let Some(value) = table.get_mut(key).and_then(Item::as_value_mut) {
            *value.decor_mut() = self.value;
        }
    }
}

/// Sets a key; the comments around its old value stay.
fn set(table: &mut dyn TableLike, key: &str, mut new: Value) {
    match table.get_mut(key) {
        Some(old) => {
            if let Some(old) = old.as_value() {
                *new.decor_mut() = old.decor().clone();
            }
            *old = value(new);
        }
        None => drop(table.insert(key, value(new))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# ours\nname = \"n\" # short\ndata = \"d\"\n";

    fn choice(policy: &str, key: &'static str, aim: impl Into<Value>) -> Choice {
        Choice { policy: policy.to_owned(), aim: Some((key, aim.into())) }
    }

    fn check(before: &str, choice: &Choice, after: &str) {
        let edited = with_policy(&format!("{HEAD}{before}"), choice).unwrap();
        assert_eq!(edited, format!("{HEAD}{after}"));
    }

    #[test]
    fn views_come_and_go() {
        let view = |name: &str, within: Option<&str>| NewView {
            name: name.to_owned(),
            query: "type:PDF".to_owned(),
            title: None,
            within: within.map(str::to_owned),
        };
        let source = "[[source]]\nurl = \"http://h/\"\n";
        let one = with_view(&format!("{HEAD}{source}"), &view("papers", None)).unwrap();
        let added = "\n[[view]]\nname = \"papers\"\nquery = \"type:PDF\"\n";
        assert_eq!(one, format!("{HEAD}{source}{added}"));
        let two = with_view(&one, &view("physics", Some("papers"))).unwrap();
        assert!(two.ends_with("query = \"type:PDF\"\nwithin = \"papers\"\n"), "{two}");
        assert_eq!(without_view(&two, "physics").unwrap(), one);
        let read = views_in(&format!("{MARK}{two}"));
        assert_eq!(read, [view("papers", None), view("physics", Some("papers"))]);
        assert_eq!(read[0].lines(), added.trim_start());
        assert_eq!((views_in(HEAD), views_in("[view")), (Vec::new(), Vec::new()));
        // Many at once come beside the others, or in the place of those that have their names.
        let changed = NewView { query: "type:HTML".to_owned(), ..view("papers", None) };
        let three = with_views(&two, &[view("a", Some("papers")), changed]).unwrap();
        let expected = two.replacen("type:PDF", "type:HTML", 1);
        let added = "\n[[view]]\nname = \"a\"\nquery = \"type:PDF\"\nwithin = \"papers\"\n";
        assert_eq!(three, format!("{expected}{added}"));
        for refused in [
            with_view(&one, &view("papers", None)),
            with_view(&one, &view("A b", None)),
            without_view(&two, "papers"),
            without_view(&two, "none"),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
    }

    #[test]
    fn only_the_policy_changes() {
        let oap = choice("oap", "theta", 0.95);
        check(
            "[freshness]\n# asked for by the board\ntheta = 0.9 # of 1\ngain = 0.5\n\n[[source]]\nurl = \"http://h/\"\n",
            &oap,
            "[freshness]\n# asked for by the board\ntheta = 0.95 # of 1\ngain = 0.5\npolicy = \"oap\"\n\n[[source]]\nurl = \"http://h/\"\n",
        );
        check(
            "freshness = { theta = 0.9 }\n",
            &oap,
            "freshness = { theta = 0.95 , policy = \"oap\" }\n",
        );
        check("", &oap, "\n[freshness]\npolicy = \"oap\"\ntheta = 0.95\n");
    }

    #[test]
    fn keys_of_the_old_policy_are_removed() {
        let fixed = choice("fixed", "interval", "2 h");
        check(
            "[freshness]\npolicy = \"oap\"\n# by the board\ntheta = 0.9 # or more\n",
            &fixed,
            "[freshness]\npolicy = \"fixed\"\n# by the board\ninterval = \"2 h\" # or more\n",
        );
        let estimated = Choice { policy: "best_estimation".to_owned(), aim: None };
        check(
            "[freshness]\ntheta = 0.9\ngain = 0.5\n",
            &estimated,
            "[freshness]\ngain = 0.5\npolicy = \"best_estimation\"\n",
        );
    }

    #[test]
    fn line_ends_and_byte_order_marks_stay() {
        let oap = choice("oap", "theta", 0.95);
        let text = |theta: &str| {
            let plain = format!("{HEAD}[freshness]\npolicy = \"oap\"\ntheta = {theta}\n");
            format!("{MARK}{}", plain.replace('\n', "\r\n"))
        };
        assert_eq!(with_policy(&text("0.9"), &oap).unwrap(), text("0.95"));
    }

    #[test]
    fn settings_with_mistakes_are_refused() {
        let refused = |text: &str, choice: &Choice| {
            with_policy(&format!("{HEAD}{text}"), choice).unwrap_err().to_string()
        };
        let over = choice("oap", "theta", 1.5);
        assert!(refused("", &over).contains("\"theta\" is 1.5"));
        assert!(refused("freshness = 7\n", &over).contains("no table"));
        assert!(
            refused("[freshness\n", &over).contains("line 4"),
            "{}",
            refused("[freshness\n", &over)
        );
    }
}
