//! The overview: the first page of every daemon's administration.
//!
//! What is broken comes first, with what to do about it; then what is done now, what there is, and problems in
//! words. Each daemon fills an [`Overview`]; the page is the same for all, needs no script, and changes nothing.
//!
//! Sans-I/O.

use serde::Serialize;
use web::templates::Source;

use crate::health::Readiness;

/// The template of the page; those of a daemon may extend it.
pub const TEMPLATES: &[Source] =
    &[Source { name: "overview.html", text: include_str!("../templates/overview.html") }];

/// Most problems that the page lists.
pub const PROBLEMS_MAX: usize = 50;

/// What a daemon says of itself to its administrator, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// What it is: `Gatherer`, `Broker` …
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// What is broken, the worst first.
    pub troubles: Vec<Trouble>,
    /// What it does just now, a sentence each.
    pub now: Vec<String>,
    /// What there is: a label, and a number with its unit.
    pub facts: Vec<(&'static str, String)>,
    /// Problems that were met, the newest first; at most [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// How many there were in all.
    pub problems_total: u64,
    /// What is said of it to everybody: a label, and what is said.
    pub about: Vec<(&'static str, String)>,
    /// What else the administration has: an address relative to the page, and its name.
    pub links: Vec<(&'static str, &'static str)>,
}

/// Something that is broken, or waits for its administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What it is about: a check of `/readyz`, a root, a source …
    pub about: String,
    /// What is wrong, and where nothing else is said what to do.
    pub what: String,
    /// A command that helps, if one does.
    pub command: Option<String>,
}

/// A problem with one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The object.
    pub object: String,
    /// What is wrong.
    pub message: String,
}

impl Trouble {
    /// Something wrong that no command mends.
    pub fn new(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self { about: about.into(), what: what.into(), command: None }
    }

    /// The same, with a command that helps.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    /// The checks that have failed.
    pub fn of(ready: &Readiness) -> impl Iterator<Item = Self> + '_ {
        ready.checks.iter().filter(|it| !it.ok).map(|it| {
            let message = it.message.as_deref().unwrap_or("it failed");
            let detail = it.detail.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
            Self::new(it.name.clone(), format!("{message}{detail}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use web::{Pages, Site};

    use super::*;
    use crate::health::Check;

    #[test]
    fn what_is_broken_comes_first_and_is_escaped() {
        let full = Some("no space on /srv".to_owned());
        let ready = Readiness::new([
            Check::new("serves-whole-feed", "it is damaged", None),
            Check::new("takes-changes", "free some space", full),
        ]);
        let held = Trouble::new("file:///srv/<b>", "it is empty").with_command("harvest x");
        let overview = Overview {
            kind: "Gatherer",
            troubles: Trouble::of(&ready).chain([held]).collect(),
            now: vec!["Files are watched.".to_owned()],
            facts: vec![("Objects", "1,200".to_owned())],
            problems: vec![Problem {
                object: "file:///a".to_owned(),
                message: "broken".to_owned(),
            }],
            problems_total: 3,
            about: vec![("Location", "Hall <2>".to_owned())],
            links: vec![("status", "Status")],
            ..Overview::default()
        };
        let pages = Pages::new(Site::new("Docs"), TEMPLATES, None).unwrap();
        let html = pages.render("overview.html", &overview).unwrap().0;
        let parts = [
            "takes-changes",
            "free some space (no space on /srv)",
            "file:///srv/&lt;b&gt;",
            "harvest x",
            "Files are watched.",
            "1,200",
            "file:///a",
            "3 in all",
            "Hall &lt;2&gt;",
        ];
        let places = parts.map(|it| html.find(it).unwrap_or_else(|| panic!("{it}\n{html}")));
        assert!(places.is_sorted(), "{places:?}");
        assert!(!html.contains("serves-whole-feed") && !html.contains("style="), "{html}");
    }
}
