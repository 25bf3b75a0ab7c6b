//! Usenet news: articles, which are mail to newsgroups.
//!
//! Source: RFC 5536. A batch's first line (`#! rnews`, RFC 5537's predecessors) is left out, and so is the
//! article's path, which does not describe it.

use super::mail::{header_text, single};
use super::{faq, plain};
use crate::limit::Limit;
use crate::{Draft, Input, names};

/// Header fields, and their attributes.
const FIELDS: &str = "Followup-To:Followup-To Organization:Organization Distribution:Distribution \
    Expires:Expires Approved:Approved Archive-Name:Archive-Name User-Agent:Generator";

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let bytes = input.front(Limit::Message, &mut draft);
    let batched = bytes.starts_with(b"#! rnews ");
    let header = memchr::memchr(b'\n', bytes).filter(|_| batched).map_or(0, |at| at + 1);
    let article = bytes.get(header..).unwrap_or_default();
    let Some(message) = single(input, article, &mut draft) else { return draft };
    for (name, attribute) in [("Newsgroups", "Newsgroups"), ("Keywords", "Subject")] {
        let all = header_text(&message, name);
        let all: Vec<&str> = all.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        draft.other(attribute, all.join("\n"));
    }
    for (name, attribute) in names::pairs(FIELDS) {
        draft.other(attribute, header_text(&message, name));
    }
    periodic(input, &mut draft);
    let summary = header_text(&message, "Summary");
    if !summary.is_empty() {
        draft.description = summary;
    }
    draft
}

/// Adds the auxiliary header of a periodic posting, and its questions.
fn periodic(input: &Input<'_>, draft: &mut Draft<'_>) {
    let body = std::mem::take(&mut draft.body);
    if let Some(text) = faq::header(&body, draft) {
        draft.description = plain::headline(text).1;
        faq::questions(text, input.cancelled, draft);
    }
    draft.body = body;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[test]
    fn an_article() {
        let article = "Path: news.h.example!not-for-mail\nFrom: ann@a.example (Ann Smith)\n\
            Newsgroups: comp.infosystems,comp.answers\nFollowup-To: comp.infosystems\n\
            Subject: Harvest FAQ\nDate: 1 Mar 1995 10:00:00 GMT\nMessage-ID: <1@a.example>\n\
            Organization: =?utf-8?q?=C3=84?=\n place\nSummary: Questions and answers.\nKeywords: harvest, faq\n\n\
            Article text.\n";
        let expected = "Title: Harvest FAQ\n\
             Author: Ann Smith <ann@a.example>\n\
             Description: Questions and answers.\n\
             From: Ann Smith <ann@a.example>\n\
             Date: 1995-03-01T10:00:00Z\nDate-Source: mail header\n\
             Identifier: mid:1@a.example\n\
             Message-Id: 1@a.example\n\
             Newsgroups: comp.infosystems | comp.answers\n\
             Subject: harvest | faq\n\
             Followup-To: comp.infosystems\n\
             Organization: Ä place\n\
             Partial-Text: Article text.";
        assert_eq!(render("1234", Type::News, article.as_bytes()), expected);
        let batched = format!("#! rnews {}\n{article}", article.len());
        assert_eq!(render("1234", Type::News, batched.as_bytes()), expected);
    }

    #[test]
    fn a_periodic_posting() {
        let article = "From: robot@a.example\nNewsgroups: comp.editors,news.answers\n\
            Subject: The FAQ\nDate: 1 Mar 1995 10:00:00 GMT\n\nArchive-name: editor-faq/sed\n\
            Last-modified: 10 Feb 1995\nMaintainer: Eric P. <e@a.example>\n\n\
            The FAQ\n\nFor all.\n\n1.1. What is sed?\n\nAn editor.\n";
        let seen = render("1234", Type::News, article.as_bytes());
        assert_eq!(
            seen.split("\nPartial-Text: ").next().unwrap(),
            "Title: The FAQ\nAuthor: Eric P. <e@a.example>\nDescription: For all.\n\
             From: robot@a.example\nNewsgroups: comp.editors | news.answers\n\
             Date: 1995-02-10\nDate-Source: header\nArchive-Name: editor-faq/sed\nHeadings: What is sed?"
        );
    }

    #[test]
    fn a_text_without_a_header_is_a_problem() {
        assert!(render("1", Type::News, b"").contains("! broken: has no header fields"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "((Path|Newsgroups|Summary|#! rnews): ?[a-z,. é]{0,20}\n){0,5}\n?[a-z ]{0,20}") {
            render("1", Type::News, &bytes);
            render("1", Type::News, text.as_bytes());
        }
    }
}
