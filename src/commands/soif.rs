//! `harvest soif`: checks, shows and converts streams of SOIF, a piece at a time.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueEnum};
use exchange::servers;
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use soif::{Event, Limits, Mode, Reader, Record, Section, json};
use web::foreign::harmless;

use crate::output;

/// Bytes read and written at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// The member of a JSON object that names its section.
const SECTION: &str = "section";

/// Check, show and convert SOIF.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  gunzip -c segment.gz | harvest soif check
  harvest soif check --schema servers.soif      what records of servers lack
  harvest soif print objects.soif | less
  harvest soif convert --to json objects.soif | jq .url")]
pub(crate) enum SoifCommand {
    /// Name every problem of a stream with its byte, then count objects and problems; exit with 1
    /// if there are problems.
    Check {
        #[command(flatten)]
        input: Input,
        /// Also name the attributes that records of servers have to have, or should have, and lack.
        #[arg(long)]
        schema: bool,
    },
    /// Show a stream to a person.
    Print(Input),
    /// Turn SOIF into JSON, one object a line, or such JSON back into SOIF.
    Convert {
        /// Format to write; the input format is recognized.
        #[arg(long, value_name = "FORMAT")]
        to: StreamFormat,
        #[command(flatten)]
        input: Input,
    },
}

/// The input of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// A file; - or no argument is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

/// A format for a stream of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// One JSON object a line; its member "section" names the section.
    Json,
    /// SOIF.
    Soif,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    objects: u64,
    problems: u64,
}

/// Runs the command. The exit code is 1 when the stream has problems.
pub(crate) fn run(command: SoifCommand) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(PIECE_BYTES, io::stdout().lock());
    let tally = match &command {
        SoifCommand::Check { input, schema } => {
            let mut lacking = 0;
            let mut tally = input.read_soif(input.open()?, |event| {
                if let Event::Record(record) = event
                    && *schema
                {
                    lacking += lacks(&input.name(), &record.to_record());
                }
                Ok(())
            })?;
            tally.problems += lacking;
            writeln!(out, "{} objects, {} problems", tally.objects, tally.problems)?;
            tally
        }
        SoifCommand::Print(input) => {
            input.read_soif(input.open()?, |event| print(&mut out, &event))?
        }
        SoifCommand::Convert { to, input } => convert(input, *to, &mut out)?,
    };
    out.flush()?;
    Ok(if tally.problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Names what a record of a server lacks; returns the number of attributes that it has to have.
fn lacks(file: &str, record: &Record) -> u64 {
    let Some([mandatory, recommended]) = servers::lacking(record) else { return 0 };
    let url = harmless(&record.url);
    for (names, what) in [(&mandatory, "lacks"), (&recommended, "should have")] {
        if !names.is_empty() {
            output::note(&format!("{file}: {} {url} {what} {}", record.template, names.join(", ")));
        }
    }
    mandatory.len() as u64
}

impl Input {
    fn open(&self) -> anyhow::Result<Box<dyn BufRead>> {
        if self.file == Path::new("-") {
            return Ok(Box::new(BufReader::with_capacity(PIECE_BYTES, io::stdin().lock())));
        }
        let file = File::open(&self.file).with_context(|| self.cannot())?;
        Ok(Box::new(BufReader::with_capacity(PIECE_BYTES, file)))
    }

    fn cannot(&self) -> String {
        format!("cannot read {}", self.name())
    }

    fn name(&self) -> String {
        if self.file == Path::new("-") {
            "standard input".to_owned()
        } else {
            self.file.display().to_string()
        }
    }

    /// Passes every event of a stream to `handle`, and prints its problems to standard error.
    fn read_soif(
        &self,
        mut source: Box<dyn BufRead>,
        mut handle: impl FnMut(Event<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        let mut reader = Reader::new(Mode::Lenient, Limits::default());
        let mut objects = 0;
        let mut first = true;
        loop {
            let piece = source.fill_buf().with_context(|| self.cannot())?;
            let length = piece.len();
            if std::mem::take(&mut first) && piece.starts_with(&[0x1f, 0x8b]) {
                bail!("{} is compressed: pipe it through `gunzip -c` first", self.name());
            }
            if length == 0 {
                reader.finish()?;
            }
            reader.feed(piece);
            source.consume(length);
            while let Some(event) = reader.next_event()? {
                objects += u64::from(matches!(event, Event::Record(_)));
                handle(event)?;
            }
            for problem in reader.problems() {
                output::note(&format!("{}: {problem}", self.name()));
            }
            if length == 0 {
                return Ok(Tally { objects, problems: reader.problems_total() });
            }
        }
    }
}

/// Writes one event for a person.
fn print(out: &mut impl Write, event: &Event<'_>) -> anyhow::Result<()> {
    match event {
        Event::Open(section) => writeln!(out, "── {}", section.name())?,
        Event::Close(section) => writeln!(out, "── end of {}\n", section.name())?,
        Event::Record(record) => {
            writeln!(out, "{} {}", record.template(), harmless(record.url()))?;
            let width = record.attributes().map(|(name, _)| name.len()).max().unwrap_or_default();
            for (name, value) in record.attributes() {
                let shown = match std::str::from_utf8(value) {
                    Ok(text) => {
                        let margin = format!("\n{:width$}    ", "");
                        harmless(text.trim_end_matches('\n')).replace('\n', &margin)
                    }
                    Err(_) => format!("({} that are not text)", bytes(value.len())),
                };
                writeln!(out, "  {name:width$}  {shown}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn bytes(count: usize) -> String {
    output::counted(u64::try_from(count).unwrap_or(u64::MAX), "byte")
}

/// Converts `input`, SOIF or JSON, to the format `to`.
fn convert(input: &Input, to: StreamFormat, out: &mut impl Write) -> anyhow::Result<Tally> {
    let mut source = input.open()?;
    let json = first_byte(source.as_mut()).with_context(|| input.cannot())?;
    let mut writer = StreamWriter { out, to, section: None, text: Vec::new() };
    let tally = if matches!(json, Some(b'{' | b'[')) {
        let mut objects = Objects { writer: &mut writer, taken: 0, failure: None };
        let mut source = serde_json::Deserializer::from_reader(source);
        while source.end().is_err() {
            let read = (&mut objects).deserialize(&mut source).map_err(anyhow::Error::from);
            let position = || format!("{}: object {}", input.name(), objects.taken + 1);
            objects.failure.take().map_or(read, Err).with_context(position)?;
        }
        Tally { objects: objects.taken, problems: 0 }
    } else {
        input.read_soif(source, |event| match event {
            Event::Open(section) => writer.open(Some(section)),
            Event::Close(_) => writer.open(None),
            Event::Record(record) => writer.write(&record.to_record()),
        })?
    };
    writer.open(None)?;
    Ok(tally)
}

/// Returns the first byte that is not white space, without taking it.
fn first_byte(source: &mut dyn BufRead) -> io::Result<Option<u8>> {
    loop {
        let piece = source.fill_buf()?;
        let spaces = piece.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if let Some(byte) = piece.get(spaces) {
            return Ok(Some(*byte));
        }
        if piece.is_empty() {
            return Ok(None);
        }
        source.consume(spaces);
    }
}

/// A JSON visitor that takes one object, or the objects of an array one by one.
struct Objects<'a, 'o, W> {
    writer: &'a mut StreamWriter<'o, W>,
    taken: u64,
    /// The writer's error: the JSON reader can pass on its text only.
    failure: Option<anyhow::Error>,
}

impl<W: Write> Objects<'_, '_, W> {
    fn take<E: de::Error>(&mut self, value: Value) -> Result<(), E> {
        match self.writer.take(&value) {
            Ok(()) => self.taken += 1,
            Err(error) => {
                let text = error.to_string();
                self.failure = Some(error);
                return Err(E::custom(text));
            }
        }
        Ok(())
    }
}

impl<'de, W: Write> DeserializeSeed<'de> for &mut Objects<'_, '_, W> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de, W: Write> Visitor<'de> for &mut Objects<'_, '_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(value) = values.next_element()? {
            self.take(value)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        self.take(Value::deserialize(MapAccessDeserializer::new(members))?)
    }
}

/// A writer of objects in one of the formats.
struct StreamWriter<'o, W> {
    out: &'o mut W,
    to: StreamFormat,
    /// The open section.
    section: Option<Section>,
    text: Vec<u8>,
}

impl<W: Write> StreamWriter<'_, W> {
    /// Closes the open section and opens `section`.
    fn open(&mut self, section: Option<Section>) -> anyhow::Result<()> {
        if self.to == StreamFormat::Soif {
            if self.section.is_some() {
                soif::close_section(&mut self.text);
            }
            if let Some(section) = section {
                soif::open_section(&mut self.text, section);
            }
        }
        self.section = section;
        self.flush()
    }

    fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        match self.to {
            StreamFormat::Soif => soif::write_record(&mut self.text, record),
            StreamFormat::Json => {
                let mut value = json::to_json(record);
                if let (Some(section), Some(members)) = (self.section, value.as_object_mut()) {
                    members.insert(SECTION.to_owned(), section.name().into());
                }
                serde_json::to_writer(&mut self.text, &value)?;
                self.text.push(b'\n');
            }
        }
        self.flush()
    }

    /// Writes one object of JSON.
    fn take(&mut self, value: &Value) -> anyhow::Result<()> {
        let section = match value.get(SECTION) {
            None => None,
            Some(name) => match name.as_str() {
                Some("DELETE") => Some(Section::Delete),
                Some("REFRESH") => Some(Section::Refresh),
                Some("UPDATE") => Some(Section::Update),
                Some(_) | None => {
                    bail!("\"section\" is {name}; expected DELETE, REFRESH or UPDATE")
                }
            },
        };
        if section != self.section {
            self.open(section)?;
        }
        self.write(&json::from_json(value)?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "@UPDATE {\n@FILE { http://a/\nTitle{2}:\tA\n\nb{1}:\t\u{1}\n}\n}\n\
                          @DELETE {\n@FILE { http://b/\n}\n}\n@FILE { -\n}\n";

    /// Converts `text` and compares the result with `expected`.
    fn check(text: &str, to: StreamFormat, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("in");
        std::fs::write(&file, text).unwrap();
        let mut out = Vec::new();
        let tally = convert(&Input { file }, to, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(tally, Tally { objects: 3, problems: 0 });
    }

    #[test]
    fn a_stream_survives_conversion_to_json_and_back() {
        let json = concat!(
            r#"{"attributes":[["Title","A\n"],["b","\u0001"]],"section":"UPDATE","template":"FILE","url":"http://a/"}"#,
            "\n",
            r#"{"attributes":[],"section":"DELETE","template":"FILE","url":"http://b/"}"#,
            "\n",
            r#"{"attributes":[],"template":"FILE","url":"-"}"#,
            "\n"
        );
        check(STREAM, StreamFormat::Soif, STREAM);
        check(STREAM, StreamFormat::Json, json);
        check(json, StreamFormat::Soif, STREAM);
        check(&format!("[{}]", json.trim().replace('\n', ",")), StreamFormat::Json, json);
    }

    #[test]
    fn errors_in_json_name_the_object() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("in");
        let object = r#"{"template":"FILE","url":"http://b/","attributes":[]}"#;
        for (text, part) in [
            (format!("[{object}, 7]"), "object 2: \"template\" is missing"),
            (format!("{object}\n{{\"url\": ["), "object 2: EOF while parsing"),
            (format!("[{object}, {object}"), "object 3: EOF while parsing a list"),
            (format!("{object} x"), "object 2: expected value"),
            (r#"{"section":"X"}"#.to_owned(), "object 1: \"section\" is \"X\"; expected DELETE"),
        ] {
            std::fs::write(&file, &text).unwrap();
            let input = Input { file: file.clone() };
            let error = convert(&input, StreamFormat::Soif, &mut Vec::new()).unwrap_err();
            let message = format!("{error:#}");
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn print_shows_names_values_and_sections() {
        let mut out = Vec::new();
        Reader::over(STREAM.as_bytes(), Mode::Strict, Limits::default(), |event| {
            print(&mut out, &event).unwrap();
        })
        .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "── UPDATE\nFILE http://a/\n  Title  A\n  b      \u{fffd}\n\n── end of UPDATE\n\n\
             ── DELETE\nFILE http://b/\n\n── end of DELETE\n\nFILE -\n\n"
        );
    }
}
