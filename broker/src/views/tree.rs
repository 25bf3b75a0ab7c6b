//! The views as a tree, a page of it at a time.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::iter::Peekable;

use serde::Serialize;

use super::View;
use super::visible::Visible;

/// Maximum number of views on one page.
const ROWS_MAX: usize = 100;
/// Deepest level that is shown; what is deeper stands at it.
const LEVELS_MAX: usize = 16;

/// A page of the tree.
#[derive(Debug, Serialize)]
pub(crate) struct TreePage<T> {
    rows: Vec<Branch<T>>,
    /// Number of all views.
    total: usize,
    /// Number of this page, from 1 on, and of all pages.
    page: usize,
    of: usize,
}

/// A view, as a page shows it, with those within it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Branch<T> {
    #[serde(flatten)]
    row: T,
    /// The title of the view around it, if that one is on an earlier page.
    within: Option<String>,
    rows: Vec<Self>,
}

/// Returns a page of the tree, from 1 on, or the last; `row` makes a row of a view.
pub(crate) fn page<T>(views: Visible<'_>, number: usize, row: impl Fn(&View) -> T) -> TreePage<T> {
    let listed = listed(views);
    let total = listed.len();
    let of = total.div_ceil(ROWS_MAX).max(1);
    let page = number.clamp(1, of);
    let shown: Vec<_> = listed.into_iter().skip((page - 1) * ROWS_MAX).take(ROWS_MAX).collect();
    let is_shown = |name: &str| shown.iter().any(|it| it.1.name == name);
    let branch = |(level, view): &(usize, &View)| {
        let around = views.around(view).filter(|it| !is_shown(it));
        let within = around.and_then(|it| views.get(it)).map(|it| it.title.clone());
        (*level, Branch { row: row(view), within, rows: Vec::new() })
    };
    let rows = nested(&mut shown.iter().map(branch).peekable(), 0);
    TreePage { rows, total, page, of }
}

/// Returns all views with their levels, each before those within it, by their titles.
fn listed(views: Visible<'_>) -> Vec<(usize, &View)> {
    let mut within: BTreeMap<Option<&str>, Vec<&View>> = BTreeMap::new();
    for view in views.all() {
        within.entry(views.around(view)).or_default().push(view);
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

fn nested<T>(
    rows: &mut Peekable<impl Iterator<Item = (usize, Branch<T>)>>,
    level: usize,
) -> Vec<Branch<T>> {
    let mut all = Vec::new();
    while let Some((at, row)) = rows.next_if(|it| level <= it.0) {
        all.push(Branch { rows: nested(rows, at + 1), ..row });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::config::Config;
    use crate::views::Views;

    fn outline(rows: &[Branch<String>]) -> String {
        let inner = |it: &Branch<String>| {
            let within = it.within.as_ref().map(|it| format!("<{it}")).unwrap_or_default();
            let rows = if it.rows.is_empty() { String::new() } else { outline(&it.rows) };
            format!("{}{within}{rows}", it.row)
        };
        format!("({})", rows.iter().map(inner).collect::<Vec<_>>().join(" "))
    }

    fn check(views: &Views, limit: Option<&str>, number: usize, expected: &str) {
        let page = page(views.visible(limit), number, |it| it.name.clone());
        assert_eq!(outline(&page.rows), expected, "{number}");
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
        let views = views(&all);
        check(&views, None, 1, "(a b(c(e) d))");
        check(&views, None, 2, "(a b(c(e) d))");
        check(&views, Some("b"), 1, "(b(c(e) d))");
        check(&Views::default(), None, 1, "()");
    }

    #[test]
    fn a_page_may_begin_within_and_what_is_deep_stays() {
        let name = |it: usize| format!("v{it:03}");
        let all: Vec<_> =
            (0..ROWS_MAX + 2).map(|it| (name(it), (it != 0).then(|| name(it - 1)))).collect();
        let views = views(&all);
        let first = outline(&page(views.visible(None), 1, |it| it.name.clone()).rows);
        assert_eq!(first.matches('(').count(), LEVELS_MAX + 1, "{first}");
        assert!(first.contains("v016 v017") && first.contains("v099)"), "{first}");
        check(&views, None, 2, "(v100<v099 v101)");
    }
}
