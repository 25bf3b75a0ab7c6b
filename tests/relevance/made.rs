//! The made tree: documents about invented commands, and questions with answers known by construction.
//!
//! Each topic is a command that does something to some thing. It has a manual page as HTML with a twin as plain text,
//! a tutorial, an answer to a complaint, a change log, a message, notes of several topics, and fixtures of tests that
//! do nothing but repeat its words. All documents have words of other topics here and there.

use std::fmt::Write as _;
use std::path::Path;

use fastrand::Rng;

use crate::harness::write;

/// Seed of the tree that is measured.
pub(crate) const SEED: u64 = 1;

/// Number of documents of a topic.
const DOCUMENTS: usize = 10;

/// Number of sentences of a change log, the longest document.
const LONG_SENTENCES: usize = 60;

/// Things; what is done to them, in two forms; and a complaint about them.
const TOPICS: [(&str, &str, &str, &str); 30] = [
    ("archive", "rotate", "rotating", "truncated"),
    ("ledger", "balance", "balancing", "negative"),
    ("orchard", "prune", "pruning", "barren"),
    ("photograph", "crop", "cropping", "blurred"),
    ("recipe", "scale", "scaling", "salty"),
    ("invoice", "print", "printing", "unpaid"),
    ("timetable", "shift", "shifting", "overlapping"),
    ("map", "stitch", "stitching", "reversed"),
    ("melody", "transpose", "transposing", "shrill"),
    ("contract", "sign", "signing", "void"),
    ("bookshelf", "sort", "sorting", "crooked"),
    ("parcel", "track", "tracking", "lost"),
    ("greenhouse", "heat", "heating", "frozen"),
    ("telescope", "align", "aligning", "foggy"),
    ("newsletter", "translate", "translating", "garbled"),
    ("mailbox", "drain", "draining", "overflowing"),
    ("bridge", "inspect", "inspecting", "rusty"),
    ("playlist", "shuffle", "shuffling", "silent"),
    ("beehive", "count", "counting", "angry"),
    ("glacier", "measure", "measuring", "shrinking"),
    ("password", "renew", "renewing", "forgotten"),
    ("kettle", "boil", "boiling", "leaking"),
    ("lantern", "dim", "dimming", "flickering"),
    ("museum", "catalog", "cataloging", "dusty"),
    ("elevator", "schedule", "scheduling", "stuck"),
    ("quilt", "sew", "sewing", "frayed"),
    ("harbor", "dredge", "dredging", "shallow"),
    ("puzzle", "solve", "solving", "incomplete"),
    ("battery", "charge", "charging", "swollen"),
    ("violin", "tune", "tuning", "cracked"),
];

/// Parts of the names of commands.
const SYLLABLES: [&str; 12] =
    ["bra", "dol", "fen", "gip", "hus", "jok", "mel", "niv", "ptu", "rax", "sid", "wyk"];

/// Words without a topic.
const FILLERS: [&str; 36] = [
    "option", "value", "file", "default", "output", "error", "line", "before", "after", "every",
    "system", "user", "folder", "version", "number", "result", "first", "second", "name", "list",
    "again", "with", "without", "under", "while", "local", "remote", "report", "state", "quiet",
    "always", "never", "unless", "given", "same", "other",
];

/// A question: its kind, its text, and the documents that answer it with their relevance.
type Question = (&'static str, String, Vec<(String, u32)>);

/// The dice and the topics of a tree.
struct Maker {
    dice: Rng,
    /// The commands, one a topic.
    commands: Vec<String>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut dice = Rng::with_seed(seed);
        let parts = SYLLABLES.iter().flat_map(|a| SYLLABLES.iter().map(move |b| (a, b)));
        let mut commands: Vec<String> =
            parts.filter(|(a, b)| a != b).map(|(a, b)| format!("{a}{b}")).collect();
        dice.shuffle(&mut commands);
        commands.truncate(TOPICS.len());
        Self { dice, commands }
    }

    /// Returns some `sentences`, half as many to twice as many. Every fourth word is one of `own`, and every
    /// tenth of any topic.
    fn prose(&mut self, own: &[&str], sentences: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.dice.usize(sentences / 2..sentences * 2) {
            for at in 0..self.dice.usize(8..15) {
                let word = match self.dice.u32(0..20) {
                    0..5 => *self.dice.choice(own).unwrap(),
                    5 => self.dice.choice(TOPICS).unwrap().0,
                    6 => self.dice.choice(TOPICS).unwrap().1,
                    _ => *self.dice.choice(&FILLERS).unwrap(),
                };
                text.push_str(if at == 0 { "" } else { " " });
                text.push_str(word);
            }
            text.push_str(".\n");
        }
        text
    }

    /// Returns the documents of a topic: path and content.
    fn documents(&mut self, topic: usize) -> [(String, String); DOCUMENTS] {
        let (thing, action, doing, complaint) = TOPICS[topic];
        let command = self.commands[topic].clone();
        let all = [command.as_str(), thing, action, doing, complaint];

        let description = self.prose(&[&command, thing, doing], 8);
        let options = self.prose(&[&command, action], 8);
        let name = format!("{command} - {action} the {thing}");
        let manual_text = format!(
            "{command}(1)\n\nNAME\n\n{name}\n\nDESCRIPTION\n\n{description}\nOPTIONS\n\n{options}"
        );
        let manual = format!(
            "<h1>{command}(1)</h1><h2>NAME</h2><p>{name}</p><h2>DESCRIPTION</h2><p>{description}</p>\
             <h2>OPTIONS</h2><p>{options}</p>"
        );
        let tutorial = format!(
            "<h1>How to {action} your {thing}</h1><p>{}</p>",
            self.prose(&[thing, action, doing, &command], 12)
        );
        let answer = format!(
            "<h1>Why is my {thing} {complaint}?</h1><p>{}</p>",
            self.prose(&[thing, complaint, &command], 10)
        );
        let mut changes = format!("{command} changelog\n\n");
        for (number, line) in self.prose(&all, LONG_SENTENCES).lines().enumerate() {
            let _ = writeln!(changes, "* 1.{number}: {line}");
        }
        let message = format!(
            "From: ada@example.org\r\nSubject: Re: meeting about {command}\r\n\
             Date: Mon, 2 Jan 2023 10:00:00 +0000\r\n\r\n{}",
            self.prose(&[&command, thing], 5)
        );
        let others = [(topic + 1) % TOPICS.len(), (topic + 11) % TOPICS.len()].map(|it| {
            [self.commands[it].clone(), TOPICS[it].0.to_owned(), TOPICS[it].1.to_owned()]
        });
        let noted: Vec<&str> =
            others.iter().flatten().map(String::as_str).chain([command.as_str(), thing]).collect();
        let notes = format!("# Notes of day {topic}\n\n{}", self.prose(&noted, 12));
        let mut fixture = || {
            let words: Vec<&str> = (0..60).map(|_| *self.dice.choice(&all).unwrap()).collect();
            words.join(" ")
        };
        let case = format!("<p>{}</p>", fixture());
        let json = format!("{{\"case\": 3, \"input\": \"{}\"}}", fixture());
        [
            (format!("manual/{command}.html"), page(&format!("{command}(1)"), &manual)),
            (format!("manual/{command}.txt"), manual_text),
            (
                format!("guide/{thing}.html"),
                page(&format!("How to {action} your {thing}"), &tutorial),
            ),
            (format!("answers/{command}.html"), page(&format!("{command}: answers"), &answer)),
            (format!("changes/{command}.txt"), changes),
            (format!("mail/{command}.eml"), message),
            (format!("notes/{topic}.md"), notes),
            (format!("tests/{command}/1.txt"), fixture()),
            (format!("tests/{command}/2.html"), page("case 2", &case)),
            (format!("tests/{command}/3.json"), json),
        ]
    }

    /// Returns the questions about a topic.
    fn questions(&self, topic: usize) -> Vec<Question> {
        let (thing, action, doing, complaint) = TOPICS[topic];
        let command = &self.commands[topic];
        let of_manual = |relevance| {
            vec![
                (format!("manual/{command}.html"), relevance),
                (format!("manual/{command}.txt"), relevance),
            ]
        };
        let guide = || [vec![(format!("guide/{thing}.html"), 2)], of_manual(1)].concat();
        let answer = vec![(format!("answers/{command}.html"), 2)];
        let changes = vec![(format!("changes/{command}.txt"), 2)];
        let mut questions = vec![
            ("command", command.clone(), of_manual(2)),
            ("task", format!("{doing} the {thing}"), guide()),
            ("how", format!("how do I {action} my {thing}"), guide()),
            ("complaint", format!("{thing} {complaint}"), answer),
            ("changes", format!("{command} changelog"), changes),
        ];
        if topic.is_multiple_of(3) {
            let mut letters: Vec<char> = command.chars().collect();
            letters.swap(3, 4);
            questions.push(("mistyped", letters.into_iter().collect(), of_manual(2)));
        }
        questions
    }
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>{body}</body></html>\n"
    )
}

/// Writes the tree of a seed; returns its queries and its judgments, as the command reads them.
pub(crate) fn make(root: &Path, seed: u64) -> (String, String) {
    let mut maker = Maker::new(seed);
    let (mut queries, mut judgments) = (String::new(), String::new());
    for topic in 0..TOPICS.len() {
        for (path, content) in maker.documents(topic) {
            write(root, &path, content);
        }
        for (kind, text, right) in maker.questions(topic) {
            let id = format!("{}-{kind}", maker.commands[topic]);
            writeln!(queries, "{id}\t{text}").unwrap();
            for (document, relevance) in right {
                writeln!(judgments, "{id} 0 {document} {relevance}").unwrap();
            }
        }
    }
    (queries, judgments)
}

/// Returns the paths of the documents of each topic.
pub(crate) fn paths(seed: u64) -> Vec<Vec<String>> {
    let mut maker = Maker::new(seed);
    (0..TOPICS.len()).map(|topic| maker.documents(topic).map(|it| it.0).into()).collect()
}
