//! The views as a tree, a page of it at a time.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::iter::Peekable;

use serde::Serialize;

use crate::views::{View, Views};

/// Maximum number of views on one page.
pub(super) const ROWS_MAX: usize = 100;
/// Deepest level that is shown; what is deeper stands at it.
const LEVELS_MAX: usize = 16;

/// A view, and those within it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) query: String,
    /// `None`: it is not known yet.
    pub(super) objects: Option<u64>,
    /// The view around it, if that one is on an earlier page.
    pub(super) within: Option<String>,
    pub(super) rows: Vec<Self>,
}

/// Returns a page of the tree, from 1 on; `row` makes a row of a view.
pub(super) fn page(views: &Views, number: usize, row: impl Fn(&View) -> Row) -> Vec<Row> {
    let listed = listed(views);
    let skipped = number.saturating_sub(1).saturating_mul(ROWS_MAX);
    let shown = listed.into_iter().skip(skipped).take(ROWS_MAX);
    let mut rows = nested(&mut shown.map(|(level, view)| (level, row(view))).peekable(), 0);
    for row in &mut rows {
        row.within = views.get(&row.name).and_then(|it| it.within.clone());
    }
    rows
}

/// Returns all views with their levels, each before those within it, by their titles.
fn listed(views: &Views) -> Vec<(usize, &View)> {
    let mut within: BTreeMap<Option<&str>, Vec<&View>> = BTreeMap::new();
    for view in views.all() {
        within.entry(view.within.as_deref()).or_default().push(view);
    }
    for them in within.values_mut() {
        them.sort_by_cached_key(|it| std::cmp::Reverse(it.title.to_lowercase()));
    }
    let (mut all, mut open) = (Vec::new(), vec![(0, within.remove(&None).unwrap_or_default())]);
    while let Some((level, rest)) = open.last_mut() {
        let level = *level;
        let Some(view) = rest.pop() else {
            open.pop();
            continue;
        };
        all.push((level, view));
        let inner = within.remove(&Some(&*view.name)).unwrap_or_default();
        open.push(((level + 1).min(LEVELS_MAX), inner));
    }
    all
}

fn nested(rows: &mut Peekable<impl Iterator<Item = (usize, Row)>>, level: usize) -> Vec<Row> {
    let mut all = Vec::new();
    while let Some((at, row)) = rows.next_if(|it| level <= it.0) {
        all.push(Row { rows: nested(rows, at + 1), ..row });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::config::Config;

    fn row(view: &View) -> Row {
        let (name, title) = (view.name.clone(), view.title.clone());
        Row { name, title, query: String::new(), objects: None, within: None, rows: Vec::new() }
    }

    fn outline(rows: &[Row]) -> String {
        let inner = |it: &Row| {
            let within = it.within.as_ref().map(|it| format!("<{it}")).unwrap_or_default();
            let rows = if it.rows.is_empty() { String::new() } else { outline(&it.rows) };
            format!("{}{within}{rows}", it.name)
        };
        format!("({})", rows.iter().map(inner).collect::<Vec<_>>().join(" "))
    }

    fn views(all: &[(String, Option<String>)]) -> Views {
        let mut text = "name = \"n\"\ndata = \"d\"\n".to_owned();
        for (name, within) in all {
            let _ = writeln!(text, "[[view]]\nname = \"{name}\"\nquery = \"*\"");
            let _ = within.as_ref().map(|it| writeln!(text, "within = \"{it}\""));
        }
        Config::parse(&text).unwrap().views
    }

    #[test]
    fn children_stand_within_their_parents() {
        let all = [("b", None), ("a", None), ("d", Some("b")), ("c", Some("b")), ("e", Some("c"))];
        let all = all.map(|(name, within)| (name.to_owned(), within.map(str::to_owned)));
        assert_eq!(outline(&page(&views(&all), 1, row)), "(a b(c(e) d))");
        assert_eq!(outline(&page(&views(&all), 2, row)), "()");
        assert_eq!(outline(&page(&Views::default(), 1, row)), "()");
    }

    #[test]
    fn a_page_may_begin_within_and_what_is_deep_stays() {
        let name = |it: usize| format!("v{it:03}");
        let all: Vec<_> =
            (0..ROWS_MAX + 2).map(|it| (name(it), (it != 0).then(|| name(it - 1)))).collect();
        let views = views(&all);
        let first = outline(&page(&views, 1, row));
        assert_eq!(first.matches('(').count(), LEVELS_MAX + 1, "{first}");
        assert!(first.contains("v016 v017") && first.contains("v099)"), "{first}");
        assert_eq!(outline(&page(&views, 2, row)), "(v100<v099 v101<v100)");
    }
}
