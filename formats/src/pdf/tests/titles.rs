//! Tests of the lines below titles: names, versions, running text and pen names.

use super::*;

#[test]
fn names_and_versions_right_below_belong_to_no_title() {
    // No other line has the names.
    check_front(
        &[
            (20, 220, 700, "On the Digging of Wells"),
            (12, 215, 676, "Ada Digger"),
            (12, 215, 662, "Bob Miner"),
        ],
        "On the Digging of Wells",
        "Ada Digger | Bob Miner",
    );
    // A subtitle looks like names, but the names stand at a distance.
    check_front(
        &[
            (20, 220, 700, "On the Digging of Wells"),
            (14, 215, 676, "Digging Deeper"),
            (12, 265, 630, "Ada Digger"),
        ],
        "On the Digging of Wells Digging Deeper",
        "Ada Digger",
    );
    for version in ["Version 1.0: May 09, 2020", "v0.7", "2019/01/03 v1.2.3", "11 May 2022"] {
        check_front(
            &[
                (18, 240, 700, "The wells class"),
                (12, 250, 680, version),
                (12, 265, 640, "Ada Digger"),
            ],
            "The wells class",
            "Ada Digger",
        );
    }
}

#[test]
fn running_text_below_is_no_subtitle() {
    check_front(
        &[
            (18, 60, 700, "Wells of wells"),
            (10, 60, 680, "whoever digs a well in a land without water"),
            (10, 60, 668, "finds sand and stones, and then some more of"),
            (10, 60, 656, "them, until the rope is too short for the well,"),
            (10, 60, 644, "and has to dig elsewhere."),
        ],
        "Wells of wells",
        "A. Writer",
    );
}

#[test]
fn pen_names_stand_above_the_date() {
    // The declared author would be better, but these documents declare none.
    let content = |date: &str| {
        format!(
            "BT /F1 18 Tf 220 700 Td (Wells of wells) Tj ET BT /F1 12 Tf 240 660 Td \
             (Le mineur de surface) Tj 0 -20 Td ({date}) Tj ET BT /F1 10 Tf 60 500 Td \
             (words that fill a line from the left to the right of it, and so on for a while) Tj ET"
        )
    };
    let author = |date: &str| {
        let pdf = paged(&[stream("", content(date).as_bytes())]);
        // Of the same length, so that all offsets stay.
        let at = pdf.windows(7).position(|it| it == b"/Author").unwrap();
        let pdf = [&pdf[..at], b"/Nobody", &pdf[at + 7..]].concat();
        let record = render("p.pdf", Type::Pdf, &pdf);
        record.lines().find_map(|it| it.strip_prefix("Author: ").map(str::to_owned))
    };
    for date in ["2008/08/15", "9 avril 2010", "13. Juni 2013", "miner@wells.example"] {
        assert_eq!(author(date).as_deref(), Some("Le mineur de surface"), "{date}");
    }
    assert_eq!(author("more about wells"), None);
}
