//! Mail: one message, or a mailbox of them: who wrote what to whom when, and the text.
//!
//! Source: RFC 5322, MIME (RFC 2045 ff.), mbox (RFC 4155); Essence's Mail summarizer (headers).
//!
//! # Differences from the paper
//!
//! * A mailbox is one object: its subjects and texts in their order.
//!
//! Sans-I/O.

use std::borrow::Cow;

use mail_parser::{Address, Message, MessageParser, MimeHeaders};
use memchr::memmem;

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::{Body, front, one_line};

/// How much of a message or mailbox is read, in bytes.
const MAIL_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most messages of a mailbox that are read.
const MESSAGES_MAX: usize = 10_000;
/// Messages within messages: the parser keeps a stack for them.
pub(crate) const NESTED_MAX: usize = 50;
/// Most text parts of a message that are read.
const PARTS_MAX: usize = 20;
/// Longest HTML part that is turned into text, in bytes.
const HTML_BYTES_MAX: usize = 256 * 1024;
/// Most attachments named.
const ATTACHMENTS_MAX: usize = 100;
/// Longest header field kept, in bytes.
const FIELD_BYTES_MAX: usize = 1024;
/// Most authors of a mailbox named.
const AUTHORS_MAX: usize = 100;

/// Summarizes a message or a mailbox.
pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.head(MAIL_BYTES_MAX);
    let mut draft = Draft::default();
    if MAIL_BYTES_MAX < input.object.bytes.len() {
        let message = format!("is longer than {MAIL_BYTES_MAX} bytes; only its front was read");
        draft.problem(ProblemKind::Limit, message);
    }
    if bytes.starts_with(b"From ") {
        mailbox(input, bytes, &mut draft);
    } else {
        single(input, bytes, &mut draft);
    }
    draft
}

fn single(input: &Input<'_>, bytes: &[u8], draft: &mut Draft<'_>) {
    let mut body = Body::new(input.text_bytes_max());
    let Some(message) = parse(bytes, draft, false) else {
        draft.problem(ProblemKind::Broken, "has no header fields");
        draft.body = Cow::Owned(crate::text::decode(bytes, None).into_owned());
        return;
    };
    draft.title = message.subject().unwrap_or_default().to_owned();
    draft.authors = addresses(message.from());
    draft.other("From", draft.authors.join("\n"));
    draft.other("To", addresses(message.to()).join("\n"));
    draft.other("Cc", addresses(message.cc()).join("\n"));
    draft.other("Date", message.date().map(mail_parser::DateTime::to_rfc3339).unwrap_or_default());
    draft.other("List-Id", message.header_raw("List-Id").map(field).unwrap_or_default());
    draft.other("Newsgroups", message.header_raw("Newsgroups").map(field).unwrap_or_default());
    draft.other("Organization", message.header_raw("Organization").map(field).unwrap_or_default());
    draft.other("Message-ID", message.message_id().map(field).unwrap_or_default());
    let names = message.attachments().filter_map(MimeHeaders::attachment_name);
    let names: Vec<String> = names.take(ATTACHMENTS_MAX).map(field).collect();
    draft.other("Attachments", names.join("\n"));
    text(&message, &mut body);
    draft.keywords = [draft.authors.join(" "), names.join(" ")].join(" ");
    let body = body.finish();
    draft.description = first_words(&body);
    draft.body = Cow::Owned(body);
}

fn mailbox(input: &Input<'_>, bytes: &[u8], draft: &mut Draft<'_>) {
    let mut body = Body::new(input.text_bytes_max());
    let mut subject = String::new();
    let mut list = String::new();
    let mut count = 0;
    let mut starts = memmem::find_iter(bytes, b"\nFrom ").map(|at| at + 1).chain([bytes.len()]);
    let mut start = 0;
    while start < bytes.len() && count < MESSAGES_MAX {
        if (input.cancelled)() {
            draft.problem(ProblemKind::Time, format!("ran out of time after {count} messages"));
            break;
        }
        let end = starts.next().unwrap_or(bytes.len());
        let message = bytes.get(start..end).unwrap_or_default();
        start = end;
        // The separator is a line of its own before the header.
        let header = memchr::memchr(b'\n', message).map_or(message.len(), |at| at + 1);
        let message = message.get(header..).unwrap_or_default();
        let Some(message) = parse(message, draft, body.is_full()) else { continue };
        count += 1;
        if subject.is_empty() {
            subject = message.subject().map(field).unwrap_or_default();
        }
        if list.is_empty() {
            list = message.header_raw("List-Id").map(field).unwrap_or_default();
        }
        if draft.authors.len() < AUTHORS_MAX {
            draft.authors.extend(addresses(message.from()));
        }
        body.line();
        body.push(message.subject().unwrap_or_default());
        body.line();
        text(&message, &mut body);
    }
    if start < bytes.len() && MESSAGES_MAX <= count {
        let message = format!("has more than {MESSAGES_MAX} messages; the rest was left out");
        draft.problem(ProblemKind::Limit, message);
    }
    draft.title = if list.is_empty() { String::new() } else { list.clone() };
    draft.description = if subject.is_empty() {
        format!("{count} messages")
    } else {
        format!("{count} messages, the first about: {subject}")
    };
    draft.other("Messages", count.to_string());
    draft.other("List-Id", list);
    draft.body = Cow::Owned(body.finish());
}

/// Parses one message, only its header when it nests too deep or when `header_only`.
fn parse<'m>(bytes: &'m [u8], draft: &mut Draft<'_>, header_only: bool) -> Option<Message<'m>> {
    let parser = MessageParser::default();
    let too_deep = NESTED_MAX < nested(bytes);
    if too_deep {
        let message =
            format!("may hold more than {NESTED_MAX} messages in it; only its header was read");
        draft.problem(ProblemKind::Limit, message);
    }
    if too_deep || header_only { parser.parse_headers(bytes) } else { parser.parse(bytes) }
}

/// Returns an upper bound of the messages within a message.
pub(crate) fn nested(bytes: &[u8]) -> usize {
    // Every kind of nested message is named by one of these in some case.
    memchr::memchr2_iter(b'/', b'\\', bytes)
        .filter(|at| {
            let subtype = bytes.get(at + 1..).unwrap_or_default().trim_ascii_start();
            let starts = |name: &[u8]| {
                subtype.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
            };
            starts(b"rfc822") || starts(b"global") || starts(b"digest") || starts(b"news")
        })
        .count()
}

fn text(message: &Message<'_>, body: &mut Body) {
    for position in 0..message.text_body_count().min(PARTS_MAX) {
        let Some(part) = message.text_part(u32::try_from(position).unwrap_or(u32::MAX)) else {
            break;
        };
        match &part.body {
            mail_parser::PartType::Html(html) => {
                let html = front(html, HTML_BYTES_MAX);
                body.push(&mail_parser::decoders::html::html_to_text(html));
            }
            mail_parser::PartType::Text(text) => body.push(text),
            _ => {}
        }
        body.line();
    }
    if message.text_body_count() == 0 {
        // Text of a kind that the parser takes for an attachment, such as `text/asciidoc`.
        if let Some(mail_parser::PartType::Text(text)) = message.parts.first().map(|it| &it.body) {
            body.push(text);
        }
    }
}

fn addresses(address: Option<&Address<'_>>) -> Vec<String> {
    let mut list = Vec::new();
    for it in address.into_iter().flat_map(Address::iter).take(AUTHORS_MAX) {
        match (&it.name, &it.address) {
            (Some(name), Some(address)) => list.push(field(&format!("{name} <{address}>"))),
            (Some(one), None) | (None, Some(one)) => list.push(field(one)),
            (None, None) => {}
        }
    }
    list
}

fn field(text: &str) -> String {
    one_line(text, FIELD_BYTES_MAX)
}

/// The first lines that are not quoted.
fn first_words(body: &str) -> String {
    let own = body.lines().take(50).map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with(['>', '|']) && !line.ends_with("wrote:")
    });
    let lines: Vec<&str> = own.take(5).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::render;
    use crate::typing::Type;

    fn check(mail: &str, expected: &str) {
        assert_eq!(render("m.eml", Type::Mail, mail.as_bytes()), expected);
    }

    #[test]
    fn a_message() {
        check(
            "From: \"Ann Smith\" <ann@a.example>\nTo: b@b.example, C <c@c.example>\n\
             Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= to you\nDate: Mon, 1 Jan 2024 10:00:00 +0100\n\
             List-Id: The list <l.example>\nMessage-ID: <1@a.example>\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\n\
             Hello,\n> quoted\nhere it is.\n--B\nContent-Type: application/pdf; name=\"paper.pdf\"\n\
             Content-Disposition: attachment; filename=\"paper.pdf\"\nContent-Transfer-Encoding: base64\n\n\
             JVBERi0=\n--B--\n",
            "Title: Grüße to you\n\
             Author: Ann Smith <ann@a.example>\n\
             Description: Hello, here it is.\n\
             From: Ann Smith <ann@a.example>\n\
             To: b@b.example | C <c@c.example>\n\
             Date: 2024-01-01T10:00:00+01:00\n\
             List-Id: The list <l.example>\n\
             Message-ID: 1@a.example\n\
             Attachments: paper.pdf\n\
             Partial-Text: Hello, | > quoted | here it is.",
        );
    }

    #[test]
    fn a_page_as_mail_is_its_text() {
        check(
            "From: a@a.example\nSubject: s\nContent-Type: text/html\n\n<p>One &amp; <b>two</b></p>\n",
            "Title: s\nAuthor: a@a.example\nDescription: One & two\nFrom: a@a.example\n\
             Partial-Text: One & two",
        );
    }

    #[test]
    fn any_kind_of_text_is_text() {
        check(
            "From: a@a.example\nSubject: s\nContent-Type: text/asciidoc\n\nHere.\n",
            "Title: s\nAuthor: a@a.example\nDescription: Here.\nFrom: a@a.example\n\
             Partial-Text: Here.",
        );
    }

    #[test]
    fn a_mailbox() {
        check(
            "From a@a.example Mon Jan  1 00:00:00 2024\nFrom: a@a.example\nSubject: First\n\none\n\n\
             From b@b.example Mon Jan  1 00:00:00 2024\nFrom: b@b.example\nSubject: Second\n\ntwo\n",
            "Title: m.eml\n\
             Author: a@a.example | b@b.example\n\
             Description: 2 messages, the first about: First\n\
             Messages: 2\n\
             Partial-Text: First | one |  | Second | two",
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "Content-Type: message/rfc822\n\n".repeat(100_000);
        let seen = render("m.eml", Type::Mail, format!("Subject: deep\n{deep}x").as_bytes());
        assert!(seen.starts_with("Title: deep\n"), "{seen}");
        assert!(seen.contains("! limit: "), "{seen}");
        let deep: String = (0..30_000)
            .map(|it| format!("Content-Type: multipart/mixed; boundary=b{it}\n\n--b{it}\n"))
            .collect();
        render("m.eml", Type::Mail, format!("Subject: deep\n{deep}x").as_bytes());
    }
}
