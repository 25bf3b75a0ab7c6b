//! Tests of what is found in real files, from the folder to the answer: twins as one hit, and words
//! of many languages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::up;
use crate::harness::{ask, search, total, write};

/// Width of a rendered page, in characters.
const WIDTH: usize = 72;

/// The paragraphs of three documents, which are each there in two formats.
const SPLICE: [&str; 2] = [
    "A short splice joins two ends of a rope for good. Unlay the strands of both ends for six \
     turns, and marry them, so that each strand of the one lies between two strands of the \
     other. Tie a piece of twine around the place where they meet, or the lay will open while \
     you work.",
    "Tuck every strand over its neighbor and under the next, against the lay, and draw it \
     tight before you go on. Three rounds of tucks hold hemp, five hold nylon, which is \
     slippery. Roll the finished work under your foot, cut the ends off, and leave them a \
     little long, since they draw in when the load comes.",
];
const LASHING: [&str; 2] = [
    "A square lashing binds two poles that cross. Begin with a clove hitch on the upright \
     below the other pole, twist the short end around the long one, and bring both under the \
     crossing. Go around the poles three times, always outside of the last turn on one and \
     inside on the other.",
    "Then frap the lashing: pass the rope between the poles around what you have wound, twice \
     or three times, and pull as hard as you can. Finish with another clove hitch on the \
     second pole. A lashing that was not frapped works loose in a day of wind, whatever knots \
     hold its ends.",
];
const BOWLINE: [&str; 2] = [
    "The bowline makes a loop that neither slips nor jams. Lay the end across the standing \
     part and turn the wrist, which leaves a small eye with the end standing up through it. \
     Lead the end behind the standing part and down through the eye again, then dress the \
     knot and set it.",
    "With the option --slack the loop is tied around the waist by one hand, as sailors do who \
     hold on with the other. The knot can be untied when the rope is not under load, however \
     hard it was pulled before. In stiff rope it may shake open, so the end is tied down with \
     a second turn.",
];
/// A document of its own about the same.
const LETTER: &str = "Dear Ada, we have bought forty fathoms of new rope for the boat, as you \
    advised, and spent all of Sunday on the quay with it. Tom ties everything with granny knots \
    and is proud of each. The harbor master looked on, shook his head and went to lunch. Next week \
    we paint the hull, if the weather lets us, and after that somebody has to see to the \
    anchor chain, which has rusted through in two places. Do come down and help.";

/// A text of each of several languages.
const TEXTS: [&str; 7] = [
    "Am Ufer des Flusses stehen viele alte Häuser mit hohen Dächern und kleinen Fenstern. Die \
     Kinder spielen auf den breiten Straßen, und am Abend kommen die Nachbarn aus der \
     Werkstatt zurück.",
    "Dans la plaine, les chevaux courent librement pendant que les paysans travaillent dans \
     les champs. Ils rentrent le soir avec les animaux et se reposent près du feu.",
    "На столе лежат старые книги, которые мой дед привёз из города. Он читал их каждый вечер \
     и рассказывал нам о дальних странах и морях.",
    "นักเรียนอ่านหนังสือภาษาไทยในห้องสมุดทุกวันเพราะครูแนะนำให้อ่าน \
     แล้วกลับบ้านพร้อมกับเพื่อน",
    "東京の図書館には古い本がたくさんあります。学生は毎日そこで勉強しています。",
    "北京的冬天很冷，但是公园里有很多人在散步。老人们在树下下棋。",
    "The old family of the town keeps records of every harvest, and of the presses in the \
     cellar, which nobody has used for years.",
];

/// Returns the lines of a paragraph, filled up to a width.
fn filled(paragraph: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let (mut text, mut line) = (String::new(), margin.clone());
    for word in paragraph.split_whitespace() {
        if WIDTH < line.len() + word.len() + 1 {
            text += line.trim_end();
            text.push('\n');
            line.clone_from(&margin);
        }
        line += word;
        line.push(' ');
    }
    text + line.trim_end() + "\n"
}

/// Returns paragraphs as plain text, one after the other.
fn plain(paragraphs: [&str; 2], indent: usize) -> String {
    paragraphs.map(|it| filled(it, indent)).join("\n")
}

fn page(title: &str, paragraphs: [&str; 2]) -> String {
    let text = paragraphs.map(|it| format!("<p>{it}</p>\n")).concat();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><title>{title}</title></head>\n<body>\n\
         <nav><a href=\"/\">Home</a> <a href=\"/knots\">All knots</a></nav>\n\
         <main><h1>{title}</h1>\n{text}</main>\n</body></html>\n"
    )
}

/// Returns the source of a manual page.
fn manual(paragraphs: [&str; 2]) -> String {
    let [first, second] = paragraphs.map(|it| filled(it, 0).replace("--", "\\-\\-"));
    format!(
        ".TH BOWLINE 1 \"March 2024\" \"Knots 2.1\" \"User Commands\"\n.SH NAME\nbowline \\- tie a \
         loop that holds\n.SH DESCRIPTION\n{first}.PP\n{second}.SH SEE ALSO\n.BR splice (1)\n"
    )
}

/// Returns the same manual page as `man` prints it.
fn printed(paragraphs: [&str; 2]) -> String {
    let text = plain(paragraphs, 7);
    format!(
        "BOWLINE(1)                     User Commands                    BOWLINE(1)\n\n\
         NAME\n       bowline - tie a loop that holds\n\nDESCRIPTION\n{text}\n\
         SEE ALSO\n       splice(1)\n\n\
         Knots 2.1                       March 2024                      BOWLINE(1)\n"
    )
}

/// Returns the names of the files that a hit stands for.
fn files(hit: &Value) -> BTreeSet<String> {
    let duplicates = hit["duplicates"].as_array().into_iter().flatten();
    let urls = duplicates.chain([hit]).map(|it| it["url"].as_str().unwrap());
    urls.map(|it| it.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn a_document_in_two_formats_is_one_hit() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heading = |title: &str| format!("{title}\n{}\n\n", "=".repeat(title.len()));
    let [splice, lashing] = ["The short splice", "The square lashing"];
    for (name, text) in [
        ("splice.html", page(splice, SPLICE)),
        ("splice.txt", heading(splice) + &plain(SPLICE, 0)),
        ("lashing.rst", heading(lashing) + &plain(LASHING, 0)),
        ("html/lashing.html", page(lashing, LASHING)),
        ("man1/bowline.1", manual(BOWLINE)),
        ("bowline.txt", printed(BOWLINE)),
        ("letter.txt", filled(LETTER, 0)),
    ] {
        write(tree.path(), name, text);
    }
    let mut running = up(tree.path(), data.path());
    let url = running.gathered_url();
    let answer = search(&url, "rope");
    assert_eq!(answer["total"], 7, "{answer:#}");
    let hits: BTreeSet<_> = answer["hits"].as_array().unwrap().iter().map(files).collect();
    let expected = [
        ["bowline.1", "bowline.txt"].as_slice(),
        &["lashing.html", "lashing.rst"],
        &["letter.txt"],
        &["splice.html", "splice.txt"],
    ];
    let expected = expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>());
    assert_eq!(hits, BTreeSet::from(expected), "{answer:#}");

    let get = |path: &str| {
        let (status, head, body) = ask("GET", &format!("{url}{path}"), &[]);
        assert_eq!(status, 200, "{head}");
        String::from_utf8(body).unwrap()
    };
    let shown = get("?q=rope");
    assert_eq!(shown.matches("Also at one other place").count(), 3, "{shown}");
    let each: Value = serde_json::from_str(&get("api/search?q=rope&duplicates=true")).unwrap();
    assert_eq!(each["hits"].as_array().unwrap().len(), 7, "{each:#}");
    assert!(running.stop("INT").success());
}

#[test]
fn words_of_many_languages_are_found_in_their_forms() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (number, text) in (1..).zip(TEXTS) {
        write(tree.path(), &format!("{number}.txt"), text);
    }
    let mut running = up(tree.path(), data.path());
    let page = running.gathered_url();
    for (query, file) in [
        ("haus", "1.txt"),
        ("strasse", "1.txt"),
        ("cheval", "2.txt"),
        ("книга", "3.txt"),
        // Words within a text that has no spaces between them.
        ("หนังสือ", "4.txt"),
        ("ภาษาไทย", "4.txt"),
        ("ห้องสมุด", "4.txt"),
        ("図書館", "5.txt"),
        ("勉強", "5.txt"),
        ("公园", "6.txt"),
        ("図書館~1", "5.txt"),
        ("公园~1", "6.txt"),
        ("press", "7.txt"),
    ] {
        let answer = search(&page, query);
        let hits = answer["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 1, "{query}: {answer:#}");
        assert!(hits[0]["url"].as_str().unwrap().ends_with(file), "{query}: {answer:#}");
    }
    // A character is a word: what is one edit away from it would be all of them.
    for none in ["大阪~1", "猫~1", "上海~2", "แมว~1"] {
        assert_eq!(total(&page, none), 0, "{none}");
    }
    assert!(running.stop("INT").success());
}
