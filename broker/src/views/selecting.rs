//! Selections of the feed: what a query or a view in a request's parameters selects.
//!
//! Sans-I/O.

use std::sync::Arc;

use collection::KeptSubset;
use collection::feed::Selection;
use exchange::push::feed::{Asking, Unselected};
use query::{Matcher, Query};
use soif::Record;
use soif::digest::Md5;
use url::form_urlencoded;

use super::visible::unknown;
use super::{FIELD, View, Views};

/// Version of what a query matches: with another one, consumers take all anew.
const MATCHING: u32 = 1;

/// Returns the query of a standing selection.
///
/// # Errors
///
/// A description of the mistake: it is no query, or one whose answer would be another at another time.
pub(crate) fn standing(text: &str) -> Result<Query, String> {
    let query = query::parse(text).map_err(|error| error.to_string())?;
    query.check_standing()?;
    Ok(query)
}

/// Returns the name of what a query selects.
pub(crate) fn name_of(query: &Query) -> String {
    Md5::of(format!("{MATCHING} {query}").as_bytes()).to_string()
}

/// Returns what a query selects.
pub(crate) fn selection(query: &Query) -> Selection {
    let (matcher, name) = (Matcher::new(query), name_of(query));
    let takes = Arc::new(move |record: &Record| matcher.matches(record).is_some());
    Selection { name, takes, among: None }
}

/// What is known of the objects that are selected.
pub(crate) struct Known<'a> {
    /// Returns the objects of a view, under a name; `None`: not yet.
    pub(crate) view: &'a dyn Fn(&View) -> Option<(String, KeptSubset)>,
    /// Returns the objects of a query by which the client goes on to pull; `None`: it is not known who left it.
    pub(crate) pulled: &'a dyn Fn(&Query) -> Option<KeptSubset>,
}

/// Reads the parameters of a request for the feed: `q` and `view`. Returns those that the feed knows, and the selection;
/// `None`: all is asked for.
///
/// # Errors
///
/// A description of the mistake in the query, or that there is no such view; or its objects are not known yet.
pub(crate) fn select(
    views: &Views,
    asking: Asking<'_>,
    known: &Known<'_>,
    parameters: &str,
) -> Result<Option<(String, Selection)>, Unselected> {
    let pairs = form_urlencoded::parse(parameters.as_bytes());
    let (asked, rest): (Vec<_>, Vec<_>) = pairs.partition(|it| it.0 == "q" || it.0 == FIELD);
    // A limit is there as long as the settings name it, but for the moment in which they change.
    let visible = views.visible(asking.limit);
    let limit = asking.limit.map(|it| views.get(it).ok_or(Unselected::Later)).transpose()?;
    let (mut queries, mut within) = (Vec::new(), limit);
    for (number, (name, text)) in asked.iter().enumerate() {
        if asked.iter().take(number).any(|it| it.0 == *name) {
            return Err(Unselected::Wrong(format!("{name} is given twice")));
        }
        if name == FIELD {
            // Who pulls a view that is gone must not lose what it has.
            let view = visible.get(text).ok_or_else(|| Unselected::Wrong(unknown(text)))?;
            match within {
                None => within = Some(view),
                Some(limit) if limit.name == view.name => {}
                Some(_) => queries.push(view.whole.clone()),
            }
        } else {
            let scoped = standing(text).and_then(|it| visible.scope(&it));
            let (query, scope) = scoped.map_err(Unselected::Wrong)?;
            queries.push(query);
            queries.extend(scope.into_iter().map(|it| it.whole.clone()));
        }
    }
    if queries.is_empty() && within.is_none() {
        return Ok(None);
    }
    let rest = form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
    let query = Query::joined(queries);
    let selected = selection(&query);
    let Some(view) = within else {
        let goes_on = asking.is_named && asking.has == Some(selected.name.as_str());
        let among = goes_on.then(|| (known.pulled)(&query)).flatten();
        return Ok(Some((rest, Selection { among, ..selected })));
    };
    let (name, among) = (known.view)(view).ok_or(Unselected::Later)?;
    let name = Md5::of(format!("{name} {}", selected.name).as_bytes()).to_string();
    Ok(Some((rest, Selection { name, among: Some(among), ..selected })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_taken_out_of_the_parameters() {
        let known = Known { view: &|_| None, pulled: &|_| None };
        let select =
            |parameters: &str| select(&Views::default(), Asking::default(), &known, parameters);
        assert!(select("since=3&epoch=a&wait=5").unwrap().is_none());
        let (rest, all) = select("since=3&q=type%3APDF+-draft&epoch=a").unwrap().unwrap();
        assert_eq!(rest, "since=3&epoch=a");
        let takes = |title: &str| {
            let mut record = Record::new("FILE", "http://h/a.pdf");
            record.push("Type", "PDF");
            record.push("Title", title);
            (all.takes)(&record)
        };
        assert!(takes("On pears") && !takes("A draft on pears"));
        let same = select("q=type:PDF++-(draft)").unwrap().unwrap().1;
        let other = select("q=type:PDF").unwrap().unwrap().1;
        assert_eq!((all.name == same.name, all.name == other.name), (true, false));
        for (wrong, part) in
            [("q=%28a", "at byte"), ("q=apple~1", "apple~1"), ("q=%2Ba+b", "b only ranks")]
        {
            let said = select(wrong).map(|it| it.is_some()).unwrap_err();
            assert!(format!("{said:?}").contains(part), "{wrong}: {said:?}");
        }
    }
}
