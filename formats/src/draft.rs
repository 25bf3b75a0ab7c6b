//! The draft: the attributes of an object before they are bounded.

mod date;

use std::borrow::Cow;
use std::cmp::Ordering;

pub use date::DateSource;
pub(crate) use date::read as read_date;

use crate::limit::{Cut, Limit};
use crate::object::{Leads, ProblemKind};
use crate::text::{Body, Places};

/// The output of a summarizer. All fields may be empty; lengths are bounded later.
#[derive(Debug, Default)]
pub struct Draft<'a> {
    /// The title; white space is squeezed later, here and in the description.
    pub title: String,
    /// Authors, one in each element.
    pub authors: Vec<String>,
    /// A sentence or two.
    pub description: String,
    /// The abstract by the author.
    pub r#abstract: String,
    /// The keywords that the author states: lines, or parts of them between commas and semicolons.
    pub keywords: String,
    /// Other words that weigh more than those of the body.
    pub words: String,
    /// The text, at most [`Input::text_bytes_max`](crate::Input::text_bytes_max) bytes.
    pub body: Cow<'a, str>,
    /// The places of the text.
    pub places: Places,
    /// URLs that the object refers to, in order, resolved where they can be.
    pub references: Vec<String>,
    /// What the page says to a crawl.
    pub leads: Option<Box<Leads>>,
    /// Attributes that only this type has, by name, in order.
    pub others: Vec<(String, String)>,
    /// Problems, as kind and message.
    pub problems: Vec<(ProblemKind, String)>,
}

impl Draft<'_> {
    /// Adds an attribute that only some types have, unless it is empty or the limit is reached.
    pub fn other(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if value.trim().is_empty() {
            return;
        }
        if self.others.len() < Limit::Attributes.bound() {
            self.others.push((name.to_owned(), value));
        } else {
            self.cut(Limit::Attributes.cut());
        }
    }

    /// Sets the text with its places; says whether it was cut.
    pub fn set_body(&mut self, mut body: Body) {
        if body.is_cut() {
            self.cut(Limit::Text.cut_at(body.bytes_max()));
        }
        self.places = body.take_places();
        self.body = Cow::Owned(body.finish());
    }

    /// Says that there is more than a limit allows.
    pub fn cut(&mut self, cut: Cut) {
        let (kind, message) = cut.problem();
        self.problem(kind, message);
    }

    /// Adds the date of the document and what says it, unless one is there or `written` is no date.
    pub fn date(&mut self, written: &str, source: DateSource) {
        if let Some(date) = read_date(written).filter(|_| !self.has("Date")) {
            self.other("Date", date);
            self.other("Date-Source", source.name());
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.others.iter().any(|(it, _)| it == name)
    }

    /// Returns a draft that has only a problem.
    pub(crate) fn with_problem(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { problems: vec![(kind, message.into())], ..Self::default() }
    }

    pub(crate) fn add_problems(&mut self, all: impl IntoIterator<Item = (ProblemKind, String)>) {
        all.into_iter().for_each(|(kind, message)| self.problem(kind, message));
    }

    /// Adds a problem, unless there are too many or it is one more of the same limit.
    pub fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        if self.problems.iter().any(|(it, _)| it.is_same_limit(kind)) {
            return;
        }
        match Limit::Problems.bound().cmp(&self.problems.len()) {
            Ordering::Greater => self.problems.push((kind, message.into())),
            Ordering::Equal => self.problems.push(Limit::Problems.cut().problem()),
            Ordering::Less => (),
        }
    }
}
