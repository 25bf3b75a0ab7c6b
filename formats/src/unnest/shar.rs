//! Shell archives, read and never run: here-documents that `sed` or `cat` write to a file, and
//! uuencoded here-documents.
//!
//! Source: the archives of comp.sources.*, as made by shar of 4.3BSD, cshar and GNU shar.

use super::budget::Fault;
use super::{Decoded, Walk, uu};
use crate::object::ProblemKind;

/// Longest line that is parsed as a command, in bytes.
const COMMAND_BYTES_MAX: usize = 4 * 1024;
/// Lines between two checks of the time limit.
const POLL_LINES: usize = 1000;

/// A command that writes a here-document to a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Command {
    /// The line that ends the document.
    end: Vec<u8>,
    /// The prefix that `sed` removes from each line.
    prefix: Vec<u8>,
    target: Option<Vec<u8>>,
    /// Whether it appends to the file.
    appends: bool,
    /// Whether the document is uuencoded.
    is_encoded: bool,
}

/// A file that the next command may append to.
struct File {
    path: Vec<u8>,
    content: Decoded,
}

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let mut lines = object.bytes.split(|byte| *byte == b'\n').enumerate();
    let (mut open, mut any_file): (Option<File>, bool) = (None, false);
    while let Some((number, line)) = lines.next() {
        if number % POLL_LINES == 0 && walk.budget.is_late() {
            walk.stop.set(Some(super::Stop::Time));
            return Ok(());
        }
        let Some(command) = command(line) else { continue };
        let mut content = Decoded::default();
        let mut ended = false;
        for (number, line) in lines.by_ref() {
            if number % POLL_LINES == 0 && walk.budget.is_late() {
                break;
            }
            let bare = line.strip_suffix(b"\r").unwrap_or(line);
            if bare == command.end {
                ended = true;
                break;
            }
            content.bytes.extend(line.strip_prefix(&*command.prefix).unwrap_or(line));
            content.bytes.push(b'\n');
        }
        if !ended {
            content.fault = Some((ProblemKind::Broken, "breaks off before its end".to_owned()));
        }
        any_file = true;
        let is_encoded = command.is_encoded || content.bytes.starts_with(b"begin ");
        if is_encoded && !command.appends {
            close(walk, open.take())?;
            uu::files(walk, &content.bytes)?;
            continue;
        }
        let Some(path) = command.target else { continue };
        match open.as_mut().filter(|it| command.appends && it.path == path) {
            Some(file) => {
                file.content.bytes.append(&mut content.bytes);
                file.content.fault = content.fault;
            }
            None => {
                close(walk, open.take())?;
                open = Some(File { path, content });
            }
        }
    }
    close(walk, open)?;
    if any_file {
        return Ok(());
    }
    Err((ProblemKind::Broken, "holds no file that can be extracted without running it".to_owned()))
}

fn close(walk: &mut Walk<'_, '_>, file: Option<File>) -> Result<(), Fault> {
    match file {
        Some(File { path, content }) => walk.emit(&path, None, content),
        None => Ok(()),
    }
}

/// Parses a line such as `sed 's/^X//' > 'file' << 'EOF'`.
fn command(line: &[u8]) -> Option<Command> {
    let line = line.get(..line.len().min(COMMAND_BYTES_MAX))?;
    memchr::memmem::find(line, b"<<")?;
    let words = split_words(line);
    let is_writer = |it: &Word| matches!(it, Word::Text(it) if matches!(it.as_slice(), b"sed" | b"cat" | b"uudecode"));
    if !words.iter().any(is_writer) {
        return None;
    }
    let mut command = Command::default();
    for pair in words.windows(2) {
        match pair {
            [Word::Sign(b"<<"), Word::Text(end)] => {
                command.end = end.strip_prefix(b"-").unwrap_or(end).to_vec();
            }
            [Word::Sign(sign @ (b">" | b">>")), Word::Text(target)]
                if command.target.is_none() && !target.starts_with(b"/dev/") =>
            {
                command.target = Some(target.clone());
                command.appends = *sign == b">>";
            }
            _ => {}
        }
    }
    for word in words {
        let Word::Text(word) = word else { continue };
        command.is_encoded |= word == b"uudecode";
        let prefix = word.strip_prefix(b"s/^").and_then(|it| it.strip_suffix(b"//"));
        if let Some(prefix) = prefix {
            command.prefix = prefix.to_vec();
        }
    }
    (!command.end.is_empty()).then_some(command)
}

/// A word of a command line.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Text(Vec<u8>),
    Sign(&'static [u8]),
}

/// Splits a command line at white space and signs, and removes quotes.
fn split_words(line: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut text: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), byte) => text.get_or_insert_default().push(byte),
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                text.get_or_insert_default();
            }
            (None, b'\\') => {
                if let Some((&byte, after)) = rest.split_first() {
                    text.get_or_insert_default().push(byte);
                    rest = after;
                }
            }
            (None, b'<' | b'>' | b'|' | b'&' | b';' | b'(' | b')') => {
                words.extend(text.take().map(Word::Text));
                let doubled = rest.first() == Some(&byte);
                let sign: &[u8] = match byte {
                    b'<' if doubled => b"<<",
                    b'>' if doubled => b">>",
                    b'>' => b">",
                    _ => b";",
                };
                if sign.len() == 2 {
                    rest = rest.get(1..).unwrap_or_default();
                }
                words.push(Word::Sign(sign));
            }
            (None, byte) if byte.is_ascii_whitespace() => words.extend(text.take().map(Word::Text)),
            (None, byte) => text.get_or_insert_default().push(byte),
        }
    }
    words.extend(text.map(Word::Text));
    words
}
