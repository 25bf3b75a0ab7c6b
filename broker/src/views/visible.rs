//! The views that somebody may see: all of them, or only one with those within it.
//!
//! Sans-I/O.

use query::Query;

use super::{View, Views, split};

/// The views that a client may see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible<'a> {
    views: &'a Views,
    /// The view to which the client is limited.
    limit: Option<&'a str>,
}

impl Views {
    /// Returns what a client that is limited to a view may see, or one that is not.
    pub(crate) fn visible<'a>(&'a self, limit: Option<&'a str>) -> Visible<'a> {
        Visible { views: self, limit }
    }
}

impl<'a> Visible<'a> {
    pub(crate) fn get(self, name: &str) -> Option<&'a View> {
        self.views.get(name).filter(|it| self.has(it))
    }

    pub(crate) fn all(self) -> impl Iterator<Item = &'a View> {
        self.views.all().filter(move |it| self.has(it))
    }

    /// Returns the name of the view around another one.
    pub(crate) fn around(self, view: &View) -> Option<&str> {
        view.within.as_deref().filter(|_| self.limit != Some(&*view.name))
    }

    fn has(self, view: &View) -> bool {
        let Some(limit) = self.limit else { return true };
        let mut at = Some(view);
        // No view is within itself.
        while let Some(view) = at.filter(|it| it.name != limit) {
            at = view.within.as_deref().and_then(|it| self.views.get(it));
        }
        at.is_some()
    }

    /// Returns the views in which to look further: those right within `chosen`, or the topmost.
    pub(crate) fn next(self, chosen: &[&View]) -> Vec<&'a View> {
        let names: Vec<&str> = match chosen {
            [] => self.limit.into_iter().collect(),
            _ => chosen.iter().map(|it| &*it.name).collect(),
        };
        let is_next = |it: &&View| match self.around(it) {
            None => names.is_empty(),
            Some(around) => names.contains(&around),
        };
        self.all().filter(is_next).collect()
    }

    /// Takes the views that a query names out of it: returns the rest, and the views.
    ///
    /// # Errors
    ///
    /// A description of the mistake: there is no such view, or it is not joined to the rest by AND.
    pub(crate) fn scope(self, query: &Query) -> Result<(Query, Vec<&'a View>), String> {
        if self.views.0.is_empty() {
            return Ok((query.clone(), Vec::new()));
        }
        let (rest, names) = split(query.clone())?;
        let found = |name: String| self.get(&name).ok_or_else(|| unknown(&name));
        Ok((rest, names.into_iter().map(found).collect::<Result<_, _>>()?))
    }
}

/// Says that there is no view of this name.
pub(crate) fn unknown(name: &str) -> String {
    format!("there is no view {name:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_limited_client_sees_one_view_and_those_within_it() {
        let mut text = "name = \"n\"\ndata = \"d\"\n".to_owned();
        for (name, more) in [
            ("art", ""),
            ("science", ""),
            ("physics", "within = \"science\""),
            ("optics", "within = \"physics\""),
        ] {
            text += &format!("[[view]]\nname = \"{name}\"\nquery = \"{name}\"\n{more}\n");
        }
        let views = Config::parse(&text).unwrap().views;
        let names =
            |them: Vec<&View>| them.iter().map(|it| it.name.clone()).collect::<Vec<_>>().join(" ");
        let (all, some) = (views.visible(None), views.visible(Some("physics")));
        assert_eq!(names(all.all().collect()), "art optics physics science");
        assert_eq!(names(some.all().collect()), "optics physics");
        assert_eq!(names(all.next(&[])), "art science");
        assert_eq!(names(all.next(&[all.get("science").unwrap()])), "physics");
        assert_eq!(names(some.next(&[])), "optics");
        assert_eq!(some.around(some.get("physics").unwrap()), None);
        assert!(some.get("science").is_none() && some.get("nothing").is_none());
        let scope = |it: Visible<'_>, text: &str| {
            it.scope(&query::parse(text).unwrap()).map(|(rest, them)| (rest, names(them)))
        };
        let (rest, within) = scope(some, "apple view:optics").unwrap();
        assert_eq!((rest.to_string(), &*within), ("apple".to_owned(), "optics"));
        for hidden in ["art", "nothing"] {
            let said = scope(some, &format!("view:{hidden}")).unwrap_err();
            assert_eq!(said, unknown(hidden));
        }
    }
}
