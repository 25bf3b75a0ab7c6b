//! The overview: the first page of every daemon's administration.
//!
//! Faults come first, with their remedies; then present activity, figures, and problems with
//! objects. Each daemon fills an [`Overview`]. The page is the same for all, needs no script, and
//! changes nothing.
//!
//! Sans-I/O.

use serde::Serialize;
use web::templates::Source;

use crate::health::Readiness;

/// The template of the page; a daemon's own templates may extend it.
pub const TEMPLATES: &[Source] =
    &[Source { name: "overview.html", text: include_str!("../templates/overview.html") }];

/// Maximum number of problems that the page lists.
pub const PROBLEMS_MAX: usize = 50;

/// A daemon's state in words, for its administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Its kind: `Gatherer`, `Broker` …
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its faults, the worst first.
    pub troubles: Vec<Trouble>,
    /// Its present activities, one sentence each.
    pub now: Vec<String>,
    /// Figures: a label, and a number with its unit.
    pub facts: Vec<(&'static str, String)>,
    /// Problems with objects, the newest first; at most [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// The number of all problems.
    pub problems_total: u64,
    /// Its public description: a label and a text each.
    pub about: Vec<(&'static str, String)>,
    /// Other pages of the administration: an address relative to this page, and a name.
    pub links: Vec<(&'static str, &'static str)>,
}

/// A fault, or a decision that waits for the administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Its subject: a check of `/readyz`, a root, a source …
    pub about: String,
    /// The fault, with its remedy if there is no command.
    pub what: String,
    /// The command that helps, if there is one.
    pub command: Option<String>,
}

/// A problem with one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The object.
    pub object: String,
    /// The problem.
    pub message: String,
}

impl Trouble {
    /// Returns a trouble without a command.
    pub fn new(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self { about: about.into(), what: what.into(), command: None }
    }

    /// Adds the command that helps.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    /// Returns a trouble for each failed check.
    pub fn of(ready: &Readiness) -> impl Iterator<Item = Self> + '_ {
        ready.checks.iter().filter_map(|it| Some(Self::new(it.name.clone(), it.fault()?)))
    }
}

#[cfg(test)]
mod tests {
    use web::{Pages, Site};

    use super::*;
    use crate::health::Check;

    #[test]
    fn troubles_come_first_and_are_escaped() {
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
        let positions = parts.map(|it| html.find(it).unwrap_or_else(|| panic!("{it}\n{html}")));
        assert!(positions.is_sorted(), "{positions:?}");
        assert!(!html.contains("serves-whole-feed") && !html.contains("style="), "{html}");
    }
}
