//! Mail: one message, or a mailbox: senders, recipients, dates, subjects and text.
//!
//! Source: RFC 5322, MIME (RFC 2045 ff.), flowed text (RFC 3676), mbox (RFC 4155), `mid:` (RFC 2392);
//! Essence's Mail summarizer (headers).
//!
//! # Differences from the paper
//!
//! * A mailbox is one object: its subjects and texts in order.
//! * Items of Outlook are mail, too: `outlook` reads them.

use std::collections::HashSet;

use mail_parser::{
    Address, HeaderForm, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType,
};
use memchr::memmem;

use crate::limit::Limit;
use crate::object::{Object, ProblemKind};
use crate::office::outlook;
use crate::text::{Body, squeezed};
use crate::{DateSource, Draft, Input};

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    if outlook::is_item(&input.object.bytes) {
        return outlook::summarize(input);
    }
    let mut draft = Draft::default();
    let bytes = input.front(Limit::Message, &mut draft);
    if bytes.starts_with(b"From ") {
        mailbox(input, bytes, &mut draft);
    } else {
        let _ = single(input, bytes, &mut draft);
    }
    draft
}

/// Summarizes one message into the draft, and returns the message for more header fields.
pub(crate) fn single<'m>(
    input: &Input<'_>,
    bytes: &'m [u8],
    draft: &mut Draft<'_>,
) -> Option<Message<'m>> {
    let mut body = Body::new(input.text_bytes_max());
    let Some(message) = parse(bytes, draft, false) else {
        draft.problem(ProblemKind::Broken, "has no header fields");
        body.push(&crate::text::decode(bytes, None));
        draft.set_body(body);
        return None;
    };
    let names = message.attachments().filter_map(MimeHeaders::attachment_name);
    let header =
        MessageHeader { attachments: names.map(field).collect(), ..MessageHeader::of(&message) };
    header.write_to(draft);
    text(&message, &mut body);
    inner_messages(&message, &mut body);
    if body.as_str().trim().is_empty() {
        outlook_text(input, &message, &mut body);
    }
    draft.description = first_words(body.as_str());
    draft.set_body(body);
    Some(message)
}

/// The header of a message, as its record has it. Every field may be empty.
#[derive(Default)]
pub(crate) struct MessageHeader {
    pub(crate) subject: String,
    pub(crate) from: Vec<String>,
    pub(crate) to: Vec<String>,
    pub(crate) cc: Vec<String>,
    pub(crate) date: String,
    list: String,
    pub(crate) id: String,
    pub(crate) in_reply_to: String,
    pub(crate) references: String,
    language: String,
    pub(crate) attachments: Vec<String>,
}

impl MessageHeader {
    /// Reads the header of a message.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let message = MessageParser::default().parse_headers(bytes);
        message.map(|it| Self::of(&it)).unwrap_or_default()
    }

    fn of(message: &Message<'_>) -> Self {
        let date = message.date().filter(|it| it.is_valid());
        let language = header_text(message, "Content-Language");
        Self {
            subject: message.subject().unwrap_or_default().to_owned(),
            from: addresses(message.from()),
            to: addresses(message.to()),
            cc: addresses(message.cc()),
            date: date.map(mail_parser::DateTime::to_rfc3339).unwrap_or_default(),
            list: header_text(message, "List-Id"),
            id: message.message_id().map(field).unwrap_or_default(),
            in_reply_to: identifiers(message.in_reply_to()),
            references: identifiers(message.references()),
            language: language.split(',').next().unwrap_or_default().to_owned(),
            attachments: Vec::new(),
        }
    }

    pub(crate) fn write_to(self, draft: &mut Draft<'_>) {
        draft.title = self.subject;
        draft.authors = self.from;
        draft.other("From", draft.authors.join("\n"));
        draft.other("To", self.to.join("\n"));
        draft.other("Cc", self.cc.join("\n"));
        draft.date(&self.date, DateSource::Mail);
        draft.other("List-Id", self.list);
        let id = if self.id.is_empty() { String::new() } else { format!("mid:{}", self.id) };
        draft.other("Identifier", id);
        draft.other("Message-Id", self.id);
        draft.other("In-Reply-To", self.in_reply_to);
        draft.other("References", self.references);
        draft.other("Language", self.language);
        draft.other("Attachments", self.attachments.join("\n"));
        draft.words = [draft.authors.join(" "), self.attachments.join(" ")].join(" ");
    }
}

/// Adds the text that Outlook has put into an attachment alone.
fn outlook_text(input: &Input<'_>, message: &Message<'_>, body: &mut Body) {
    let inner = message.attachments().map(MessagePart::contents);
    for bytes in inner.filter(|it| outlook::is_tnef(it)).take(1) {
        let object = Object::whole(input.object.url.as_str(), bytes.to_vec());
        let page = outlook::summarize(&Input { object: &object, ..*input });
        body.push(&page.body);
    }
}

/// Returns the text of a header field, decoded (RFC 2047), on one line.
pub(crate) fn header_text(message: &Message<'_>, name: &str) -> String {
    let all = message.header_as(name, HeaderForm::Text);
    all.first().and_then(HeaderValue::as_text).map(field).unwrap_or_default()
}

/// Returns the message identifiers in a header field, one on each line.
fn identifiers(value: &HeaderValue<'_>) -> String {
    let all = value.as_text_list().unwrap_or_default();
    let all: Vec<String> = all.iter().map(|it| field(it)).collect();
    all.join("\n")
}

/// Adds the messages inside a message, one level deep.
fn inner_messages(message: &Message<'_>, body: &mut Body) {
    let inner = message.parts.iter().filter_map(|part| match &part.body {
        PartType::Message(inner) => Some(inner),
        _ => None,
    });
    for (number, inner) in inner.enumerate() {
        body.line();
        body.place(&format!("message {}", number + 1));
        body.push_line(inner.subject().unwrap_or_default());
        text(inner, body);
    }
}

fn mailbox(input: &Input<'_>, bytes: &[u8], draft: &mut Draft<'_>) {
    let mut body = Body::new(input.text_bytes_max());
    let mut subject = String::new();
    let mut list = String::new();
    let mut known = HashSet::new();
    let mut count = 0;
    let mut starts = starts(bytes).chain([bytes.len()]);
    let mut start = 0;
    while start < bytes.len() && count < Limit::Messages.bound() {
        if (input.cancelled)() {
            draft.problem(ProblemKind::Time, format!("ran out of time after {count} messages"));
            break;
        }
        let end = starts.next().unwrap_or(bytes.len());
        let message = bytes.get(start..end).unwrap_or_default();
        start = end;
        // The separator line stands before the header.
        let header = memchr::memchr(b'\n', message).map_or(message.len(), |at| at + 1);
        let message = message.get(header..).unwrap_or_default();
        let Some(message) = parse(message, draft, body.is_full()) else { continue };
        count += 1;
        if subject.is_empty() {
            subject = message.subject().map(field).unwrap_or_default();
        }
        if list.is_empty() {
            list = header_text(&message, "List-Id");
        }
        let new = addresses(message.from()).into_iter().filter(|it| known.insert(it.clone()));
        // One more shows that there are more.
        let room = (Limit::Authors.bound() + 1).saturating_sub(draft.authors.len());
        draft.authors.extend(new.take(room));
        body.line();
        body.place(&format!("message {count}"));
        body.push_line(message.subject().unwrap_or_default());
        text(&message, &mut body);
    }
    if start < bytes.len() && Limit::Messages.bound() <= count {
        draft.cut(Limit::Messages.cut());
    }
    draft.title.clone_from(&list);
    draft.description = if subject.is_empty() {
        format!("{count} messages")
    } else {
        format!("{count} messages, the first about: {subject}")
    };
    draft.other("Messages", count.to_string());
    draft.other("List-Id", list);
    draft.set_body(body);
}

/// Returns the starts of the messages of a mailbox, except the first.
pub(crate) fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let starts = memmem::find_iter(bytes, b"\nFrom ").map(|at| at + 1);
    starts.filter(|at| is_start(bytes, *at))
}

/// Returns whether the `From ` at `at` starts a message: after an empty line, and before a field.
fn is_start(bytes: &[u8], at: usize) -> bool {
    let (before, from) = bytes.split_at_checked(at).unwrap_or_default();
    let field = memchr::memchr(b'\n', from).and_then(|end| from.get(end + 1..)).unwrap_or_default();
    let name = field.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    let is_field = name.is_some_and(|it| 0 < it && field.get(it) == Some(&b':'));
    (before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n")) && is_field
}

/// Parses one message; only its header if it nests too deep or `header_only` is set.
fn parse<'m>(bytes: &'m [u8], draft: &mut Draft<'_>, header_only: bool) -> Option<Message<'m>> {
    let parser = MessageParser::default();
    let nested_max = Limit::NestedMessages.bound();
    let too_deep = nested_max < nested(bytes);
    if too_deep {
        let message =
            format!("may hold more than {nested_max} messages in it; only its header was read");
        draft.problem(Limit::NestedMessages.kind(), message);
    }
    if too_deep || header_only { parser.parse_headers(bytes) } else { parser.parse(bytes) }
}

/// Returns an upper bound on the messages within a message.
pub(crate) fn nested(bytes: &[u8]) -> usize {
    // The type of every nested message has one of these names, in any case.
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
    for position in 0..message.text_body_count() {
        let Some(part) = message.text_part(u32::try_from(position).unwrap_or(u32::MAX)) else {
            break;
        };
        match &part.body {
            PartType::Html(html) => {
                body.push(&mail_parser::decoders::html::html_to_text(html));
            }
            PartType::Text(text) if has_parameter(part, "format", "flowed") => {
                flowed(text, has_parameter(part, "delsp", "yes"), body);
            }
            PartType::Text(text) => body.push(text),
            _ => {}
        }
        body.line();
    }
    if message.text_body_count() == 0 {
        // The parser takes some kinds of text, such as `text/asciidoc`, for attachments.
        if let Some(PartType::Text(text)) = message.parts.first().map(|it| &it.body) {
            body.push(text);
        }
    }
}

/// Returns whether a parameter of the part's content type has that value.
fn has_parameter(part: &MessagePart<'_>, parameter: &str, value: &str) -> bool {
    let actual = part.content_type().and_then(|it| it.attribute(parameter));
    actual.is_some_and(|it| it.eq_ignore_ascii_case(value))
}

/// Adds flowed text: lines that end in a space continue in the next (RFC 3676, section 4). With `delsp`,
/// that space is deleted.
fn flowed(text: &str, delsp: bool, body: &mut Body) {
    // The depth of quoting of the line before, if that line continues.
    let mut continued_depth: Option<usize> = None;
    for line in text.lines() {
        let unquoted = line.trim_start_matches('>');
        let depth = line.len() - unquoted.len();
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        // A signature is never a part of a paragraph.
        let flows = content.ends_with(' ') && content != "-- ";
        if continued_depth != Some(depth) || content == "-- " {
            if continued_depth.is_some() {
                body.push("\n");
            }
            if 0 < depth {
                body.push(line.get(..depth).unwrap_or_default());
                body.push(" ");
            }
        }
        body.push(if flows && delsp { content.trim_end_matches(' ') } else { content });
        continued_depth = flows.then_some(depth);
        if !flows {
            body.push("\n");
        }
        if body.is_full() {
            return;
        }
    }
}

fn addresses(address: Option<&Address<'_>>) -> Vec<String> {
    let mut list = Vec::new();
    for it in address.into_iter().flat_map(Address::iter) {
        match (&it.name, &it.address) {
            (Some(name), Some(address)) => list.push(field(&format!("{name} <{address}>"))),
            (Some(one), None) | (None, Some(one)) => list.push(field(one)),
            (None, None) => {}
        }
    }
    list
}

pub(crate) fn field(text: &str) -> String {
    squeezed(text)
}

/// Returns the first five lines that are neither quoted nor the signature.
pub(crate) fn first_words(body: &str) -> String {
    let lines = body.lines().take(50).map(str::trim).take_while(|line| *line != "--");
    let own = lines.filter(|line| {
        !line.is_empty() && !line.starts_with(['>', '|']) && !line.ends_with("wrote:")
    });
    let lines: Vec<&str> = own.take(5).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use crate::Type;
    use crate::testing::render;

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
             Date: 2024-01-01T10:00:00+01:00\nDate-Source: mail header\n\
             List-Id: The list <l.example>\n\
             Identifier: mid:1@a.example\n\
             Message-Id: 1@a.example\n\
             Attachments: paper.pdf\n\
             Partial-Text: Hello, | > quoted | here it is.",
        );
    }

    #[test]
    fn text_is_decoded_and_flows() {
        check(
            "From: =?iso-8859-1?q?J=FCrgen?= <j@a.example>\nSubject: s\nIn-Reply-To: <1@a.example>\n\
             References: <0@a.example> <1@a.example>\nContent-Language: de, en\nMIME-Version: 1.0\n\
             Content-Type: text/plain; charset=iso-8859-1; format=flowed\n\
             Content-Transfer-Encoding: quoted-printable\n\n\
             > sie =\n\n> fragen\nGr=FC=DFe =\n\naus K=F6ln\n  eingeschoben\n--=20\nJ\n",
            "Title: s\nAuthor: Jürgen <j@a.example>\n\
             Description: Grüße aus Köln eingeschoben\n\
             From: Jürgen <j@a.example>\nIn-Reply-To: 1@a.example\n\
             References: 0@a.example | 1@a.example\nLanguage: de\nLanguage-Source: declared\n\
             Partial-Text: > sie fragen | Grüße aus Köln |  eingeschoben | --  | J",
        );
        check(
            "From: a@a.example\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n\
             R3LDvMOfZQ==\n",
            "Title: m.eml\nAuthor: a@a.example\nDescription: Grüße\nFrom: a@a.example\nPartial-Text: Grüße",
        );
    }

    #[test]
    fn flowed_lines_join_within_their_quotes() {
        let flow = |text: &str, delsp: bool| {
            let mut body = super::Body::new(1000);
            super::flowed(text, delsp, &mut body);
            body.finish()
        };
        assert_eq!(flow("a \nb\n\nc\n", false), "a b\n\nc\n");
        assert_eq!(flow("> a \n> b \nc\n", false), "> a b \nc\n");
        assert_eq!(flow(">> a \n> b\n", false), ">> a \n> b\n");
        assert_eq!(flow("a \n-- \nme\n", false), "a \n-- \nme\n");
        assert_eq!(flow("wo \nrd\n", true), "word\n");
        assert_eq!(flow(" >stuffed\n From\n", false), ">stuffed\nFrom\n");
    }

    #[test]
    fn messages_in_a_message_are_its_text() {
        check(
            "From: a@a.example\nSubject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n\
             --B\nContent-Type: text/plain\n\nSee below.\n--B\nContent-Type: message/rfc822\n\n\
             From: b@b.example\nSubject: Inner\n\nDeep words\n--B--\n",
            "Title: Fwd\nAuthor: a@a.example\nDescription: See below. Inner Deep words\nFrom: a@a.example\n\
             Partial-Text: See below. | Inner | Deep words",
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
            "From a@a.example Mon Jan  1 00:00:00 2024\nFrom: a@a.example\nSubject: First\n\none\n\
             From here on: things\nFrom there\n\n\
             From b@b.example Mon Jan  1 00:00:00 2024\nFrom: b@b.example\nSubject: Second\n\ntwo\n",
            "Title: m.eml\n\
             Author: a@a.example | b@b.example\n\
             Description: 2 messages, the first about: First\n\
             Messages: 2\n\
             Partial-Text: First | one | From here on: things | From there |  | Second | two",
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

    proptest::proptest! {
        #[test]
        fn any_bytes_give_a_record(
            text in "((From|To|Date|Subject|References|Content-Type|Content-Transfer-Encoding): ?[a-z@<>/=; ?é]{0,20}\n){0,6}\n?[ -~\n]{0,80}",
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        ) {
            render("m.eml", Type::Mail, text.as_bytes());
            render("m.eml", Type::Mail, &bytes);
        }
    }
}
