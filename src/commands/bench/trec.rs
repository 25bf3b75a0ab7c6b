//! Queries and judgments in TREC's formats.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, anyhow, bail, ensure};
use percent_encoding::percent_decode_str;
use url::Url;

/// One query of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topic {
    /// Its name in the judgments.
    pub(super) id: String,
    /// Its text, as a person types it.
    pub(super) text: String,
}

/// A document that was judged for a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgment {
    /// Its URL, the end of its path, or the last part of its path without the extension.
    pub(super) document: String,
    /// How relevant it is; 0 is not at all.
    pub(super) relevance: u32,
}

/// Reads queries: lines of an id, white space and a text, or classic topics, of which the title is
/// the text. Empty lines and lines that begin with `#` are skipped. `file` is for the message of an
/// error, which names the line and what is expected.
pub(super) fn topics(file: &str, text: &str) -> anyhow::Result<Vec<Topic>> {
    let mut topics = Vec::new();
    let mut ids = BTreeSet::new();
    let is_classic = lines(text).next().is_some_and(|(_, line)| line.starts_with("<top>"));
    let read = if is_classic { classic_topics } else { plain_topics };
    for read in read(text) {
        let (number, topic) = read.map_err(|error| anyhow!("{file}:{error}"))?;
        let is_new = ids.insert(topic.id.clone());
        ensure!(is_new, "{file}:{number}: query {} is there already", topic.id);
        topics.push(topic);
    }
    ensure!(!topics.is_empty(), "{file} has no query: expected lines of an id, a tab and a text");
    Ok(topics)
}

/// Reads judgments, lines `QUERY 0 DOCUMENT RELEVANCE`, and returns those of each query. A negative
/// relevance, as TREC has for spam, is 0. Lines and errors are treated as in [`topics`].
pub(super) fn judgments(file: &str, text: &str) -> anyhow::Result<BTreeMap<String, Vec<Judgment>>> {
    let mut judged = BTreeMap::<String, Vec<Judgment>>::new();
    let mut known = BTreeSet::new();
    for (number, line) in lines(text) {
        let [query, _, document, relevance] = line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            bail!("{file}:{number}: expected QUERY 0 DOCUMENT RELEVANCE; write a space as %20");
        };
        let relevance: i32 = relevance.parse().with_context(|| {
            format!("{file}:{number}: the relevance is {relevance}; expected a whole number")
        })?;
        ensure!(
            known.insert((query, document)),
            "{file}:{number}: {document} is judged already for query {query}"
        );
        let relevance = u32::try_from(relevance).unwrap_or(0);
        let judgment = Judgment { document: document.to_owned(), relevance };
        judged.entry(query.to_owned()).or_default().push(judgment);
    }
    Ok(judged)
}

/// Returns the lines with their numbers, without those that are empty or remarks.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A topic with the number of its line, or the number of a bad line with a message.
type Read = Result<(usize, Topic), String>;

fn plain_topics(text: &str) -> Vec<Read> {
    let read = lines(text).map(|(number, line)| {
        let (id, text) = line
            .split_once(char::is_whitespace)
            .ok_or_else(|| format!("{number}: expected an id, a tab or a space, and a text"))?;
        Ok((number, Topic { id: id.to_owned(), text: text.trim().to_owned() }))
    });
    read.collect()
}

/// Reads `<top> <num> Number: … <title> … </top>`, in which a text goes on until the next tag.
fn classic_topics(text: &str) -> Vec<Read> {
    let starts = text.match_indices("<top>").map(|(at, _)| text.split_at(at));
    let read = starts.map(|(before, rest)| {
        let number = before.matches('\n').count() + 1;
        let topic = rest.split("</top>").next().unwrap_or_default();
        let field = |tag: &str, label: &str| {
            let value = topic.split_once(tag)?.1.split('<').next()?.trim();
            let words = value.strip_prefix(label).unwrap_or(value).split_whitespace();
            Some(words.collect::<Vec<_>>().join(" ")).filter(|it| !it.is_empty())
        };
        let both = field("<num>", "Number:").zip(field("<title>", "Topic:"));
        let (id, text) =
            both.ok_or_else(|| format!("{number}: expected <num> and <title> before </top>"))?;
        Ok((number, Topic { id, text }))
    });
    read.collect()
}

/// The ways in which judgments may name an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    url: String,
    /// The path of the URL, decoded.
    path: String,
}

impl Names {
    /// Returns the names of the object with this URL.
    pub(super) fn new(url: &str) -> Self {
        let parsed = Url::parse(url).ok();
        let path = decoded(parsed.as_ref().map_or(url, Url::path));
        Self { url: url.to_owned(), path }
    }

    /// Returns whether `document` is the URL, the whole path or some of its last parts, or the last
    /// part without its extension.
    pub(super) fn contain(&self, document: &str) -> bool {
        let wanted = decoded(document.trim_start_matches('/'));
        let ends_so = |path: &str| {
            path.strip_suffix(wanted.as_str()).is_some_and(|it| it.is_empty() || it.ends_with('/'))
        };
        let (folder, last) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
        self.url == document || ends_so(&self.path) || ends_so(&format!("{folder}/{stem}"))
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(id: &str, text: &str) -> Topic {
        Topic { id: id.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn queries_are_read_in_both_forms() {
        let plain = "# a remark\n1\tgit rebase\n\n b2  C++ <T>\u{a0}x \r\n";
        let expected = [topic("1", "git rebase"), topic("b2", "C++ <T>\u{a0}x")];
        assert_eq!(topics("q", plain).unwrap(), expected);
        let classic = "\n<top>\n<num> Number: 301\n<title> International\n  Crime\n\n<desc> x\n</top>\n\
                       <top>\n<num>302</num><title>Topic: Polio</title></top>";
        let expected = [topic("301", "International Crime"), topic("302", "Polio")];
        assert_eq!(topics("q", classic).unwrap(), expected);
    }

    #[test]
    fn judgments_are_read() {
        let judged = judgments("j", "1 0 a.html 2\n2\t0\tb 0\n1 Q0 c -2\n").unwrap();
        let judgment =
            |document: &str, relevance| Judgment { document: document.to_owned(), relevance };
        let of_one = vec![judgment("a.html", 2), judgment("c", 0)];
        let expected = [("1".to_owned(), of_one), ("2".to_owned(), vec![judgment("b", 0)])];
        assert_eq!(judged, expected.into());
    }

    #[test]
    fn bad_lines_are_named_with_what_is_expected() {
        for (text, message) in [
            ("1 a\n2\n", "q:2: expected an id, a tab"),
            ("1 a\n\n1 b\n", "q:3: query 1 is there already"),
            ("<top>\n<num>1<title>a</top>\n<top>\n<num>2\n</top>\n", "q:3: expected <num>"),
            ("# nothing\n", "q has no query"),
        ] {
            assert!(topics("q", text).unwrap_err().to_string().starts_with(message), "{text}");
        }
        for (text, message) in [
            ("1 0 a b 1\n", "j:1: expected QUERY 0 DOCUMENT"),
            ("1 0 a 1\n1 0 a\n", "j:2: expected QUERY 0 DOCUMENT"),
            ("1 0 a 0.5\n", "j:1: the relevance is 0.5"),
            ("1 0 a 1\n1 0 a 2\n", "j:2: a is judged already for query 1"),
        ] {
            assert!(judgments("j", text).unwrap_err().to_string().starts_with(message), "{text}");
        }
    }

    #[test]
    fn documents_are_named_by_url_or_the_end_of_the_path() {
        let url = "file:///x/a%20b/c.1.gz";
        for document in
            [url, "c.1.gz", "c.1", "a%20b/c.1.gz", "a b/c.1", "/x/a b/c.1.gz", "x/a b/c.1.gz"]
        {
            assert!(Names::new(url).contain(document), "{document}");
        }
        for document in ["c", "1.gz", "b/c.1.gz", "y/c.1.gz", "file:///a%20b/c.1.gz", "", "/"] {
            assert!(!Names::new(url).contain(document), "{document}");
        }
        assert!(Names::new("http://h/a.html?x#y").contain("a.html"));
        assert!(Names::new("oai:h:1").contain("h:1"));
        assert!(Names::new("no url/a").contain("a"));
    }
}
