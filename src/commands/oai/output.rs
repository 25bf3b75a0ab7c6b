//! The output of harvested records: a stream, a file that can be continued, or a folder of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use oai::crosswalk::{Problem, ProblemKind, SourceIdentity, object_name, to_soif};
use oai::response::Record;
use oai::response::write::{NAMESPACE, Writer};
use oai::{Datestamp, Granularity, Listed};
use soif::Section;

/// Longest encoded identifier in a file's name, in bytes; the rest of a longer one becomes a hash.
const NAME_BYTES_MAX: usize = 180;

/// Format of the written records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordForm {
    /// Summaries.
    Soif,
    /// Records of OAI-PMH, as they came.
    Original,
}

impl RecordForm {
    fn head(self) -> String {
        match self {
            Self::Soif => String::new(),
            Self::Original => {
                let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
                format!("{head}<records xmlns=\"{NAMESPACE}\">\n")
            }
        }
    }

    fn tail(self) -> &'static str {
        match self {
            Self::Soif => "",
            Self::Original => "</records>\n",
        }
    }

    /// Returns the extension of the files in a folder.
    fn extension(self) -> &'static str {
        match self {
            Self::Soif => "soif",
            Self::Original => "xml",
        }
    }
}

enum Destination {
    Stream(io::Stdout),
    /// A file, and its length in bytes without the tail.
    File(File, u64),
    Folder(PathBuf),
}

/// A writer of records.
pub(super) struct Output {
    to: Destination,
    form: RecordForm,
    source: SourceIdentity,
}

impl Output {
    /// Opens the output: standard output, a file, or a folder. A file is continued after its first
    /// `written` bytes, or begun anew if `written` is `None`. Fails if the file cannot be written,
    /// or if the file to be continued is missing or has become shorter.
    pub(super) fn open(
        path: Option<&Path>,
        form: RecordForm,
        source: SourceIdentity,
        written: Option<u64>,
    ) -> anyhow::Result<Self> {
        let head = form.head();
        let to = match path {
            None => {
                let mut out = io::stdout();
                out.write_all(head.as_bytes())?;
                Destination::Stream(out)
            }
            Some(path) if path.is_dir() => Destination::Folder(path.to_owned()),
            Some(path) => {
                let (file, length) = Self::file(path, &head, written)?;
                Destination::File(file, length)
            }
        };
        Ok(Self { to, form, source })
    }

    fn file(path: &Path, head: &str, written: Option<u64>) -> anyhow::Result<(File, u64)> {
        let cannot = || format!("cannot write {}", path.display());
        let Some(written) = written else {
            let mut file = File::create(path).with_context(cannot)?;
            file.write_all(head.as_bytes()).with_context(cannot)?;
            return Ok((file, u64::try_from(head.len()).unwrap_or(u64::MAX)));
        };
        let mut file = OpenOptions::new().write(true).open(path).with_context(cannot)?;
        if file.metadata().with_context(cannot)?.len() < written {
            bail!(
                "{} is shorter than the harvest left it: remove the checkpoint to begin anew",
                path.display()
            );
        }
        // The records after the last checkpoint come again.
        file.set_len(written).with_context(cannot)?;
        file.seek(SeekFrom::End(0)).with_context(cannot)?;
        Ok((file, written))
    }

    /// Returns the length of the file for a checkpoint, in bytes; 0 for other outputs.
    pub(super) fn written(&self) -> u64 {
        match &self.to {
            Destination::File(_, length) => *length,
            Destination::Stream(_) | Destination::Folder(_) => 0,
        }
    }

    /// Writes records, and returns their problems with their identifiers. Records without a name
    /// are left out. A file or folder is durable afterwards.
    pub(super) fn store(
        &mut self,
        records: &[Record],
        prefix: &str,
    ) -> anyhow::Result<Vec<(String, Problem)>> {
        let mut problems = Vec::new();
        let has_name = |it: &&Record| object_name(&it.header, prefix, &self.source).is_some();
        let (records, nameless): (Vec<&Record>, _) = records.iter().partition(has_name);
        problems.extend(nameless.into_iter().map(|it| {
            let message = "its identifier is empty or too long; it is left out".to_owned();
            (it.header.identifier.clone(), Problem { kind: ProblemKind::Nameless, message })
        }));
        if let Destination::Folder(folder) = &self.to {
            for record in records {
                let path = folder.join(file_name(&record.header.identifier, self.form));
                self.put(&path, record, prefix, &mut problems)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            File::open(folder)?.sync_all()?;
            return Ok(problems);
        }
        let mut text = Vec::new();
        match self.form {
            RecordForm::Original => {
                for record in records {
                    text.extend_from_slice(original(record).as_bytes());
                    text.push(b'\n');
                }
            }
            RecordForm::Soif => self.stream(&mut text, &records, prefix, &mut problems),
        }
        match &mut self.to {
            Destination::Stream(out) => {
                out.write_all(&text)?;
                out.flush()?;
            }
            Destination::File(file, length) => {
                file.write_all(&text).context("cannot write the records")?;
                file.sync_data().context("cannot write the records")?;
                *length += u64::try_from(text.len()).unwrap_or(u64::MAX);
            }
            Destination::Folder(_) => {}
        }
        Ok(problems)
    }

    /// Writes the tail; the output can still be continued later.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let tail = self.form.tail().as_bytes();
        match &mut self.to {
            Destination::Stream(out) => out.write_all(tail).and_then(|()| out.flush())?,
            Destination::File(file, _) => file.write_all(tail).and_then(|()| file.sync_all())?,
            Destination::Folder(_) => {}
        }
        Ok(())
    }

    /// Writes changes as a stream, in the order of the records.
    fn stream(
        &self,
        out: &mut Vec<u8>,
        records: &[&Record],
        prefix: &str,
        problems: &mut Vec<(String, Problem)>,
    ) {
        let mut open = None;
        for record in records {
            let section = if record.header.deleted { Section::Delete } else { Section::Update };
            if open != Some(section) {
                if open.is_some() {
                    soif::close_section(out);
                }
                soif::open_section(out, section);
                open = Some(section);
            }
            soif::write_record(out, &self.summary(record, prefix, problems));
        }
        if open.is_some() {
            soif::close_section(out);
        }
    }

    fn summary(
        &self,
        record: &Record,
        prefix: &str,
        problems: &mut Vec<(String, Problem)>,
    ) -> soif::Record {
        let (summary, of_record) = to_soif(record, prefix, &self.source, false);
        problems.extend(of_record.into_iter().map(|it| (record.header.identifier.clone(), it)));
        summary
    }

    /// Writes the file of a record; removes it if the record is deleted.
    fn put(
        &self,
        path: &Path,
        record: &Record,
        prefix: &str,
        problems: &mut Vec<(String, Problem)>,
    ) -> io::Result<()> {
        if record.header.deleted {
            return match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
        }
        let mut file = BufWriter::new(File::create(path)?);
        match self.form {
            RecordForm::Original => {
                let head = format!("<record xmlns=\"{NAMESPACE}\">");
                let text = original(record);
                file.write_all(text.replacen("<record>", &head, 1).as_bytes())?;
                file.write_all(b"\n")?;
            }
            RecordForm::Soif => {
                let mut text = Vec::new();
                soif::write_record(&mut text, &self.summary(record, prefix, problems));
                file.write_all(&text)?;
            }
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

/// Returns the `record` element as a repository writes it, without the elements around it.
fn original(record: &Record) -> String {
    let mut record = record.clone();
    // The schema requires a datestamp.
    let epoch = || Datestamp::at(0, Granularity::Day);
    record.header.datestamp.get_or_insert_with(epoch);
    let mut list =
        Writer::new(Datestamp::at(0, Granularity::Second), "", None).list(Listed::Records);
    list.push(&record);
    let text = list.finish(None);
    let start = text.find("<record>").unwrap_or_default();
    let end = text.rfind("</record>").map_or(text.len(), |it| it + "</record>".len());
    text.get(start..end).unwrap_or_default().to_owned()
}

/// Returns the name of a record's file: its identifier, with all bytes percent-encoded that a file
/// system may refuse.
fn file_name(identifier: &str, form: RecordForm) -> String {
    let mut name = String::new();
    for byte in identifier.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if NAME_BYTES_MAX < name.len() {
        let sum = xxhash_rust::xxh3::xxh3_128(identifier.as_bytes());
        name.truncate(NAME_BYTES_MAX);
        name.push_str(&format!("~{sum:032x}"));
    }
    format!("{name}.{}", form.extension())
}

#[cfg(test)]
mod tests {
    use oai::response::{Header, Xml};

    use super::*;

    fn record(identifier: &str, deleted: bool) -> Record {
        let dc = "<dc xmlns=\"http://www.openarchives.org/OAI/2.0/oai_dc/\">\
                  <title xmlns=\"http://purl.org/dc/elements/1.1/\">Pears</title></dc>";
        Record {
            header: Header {
                identifier: identifier.to_owned(),
                datestamp: Datestamp::parse("2026-01-31"),
                sets: Vec::new(),
                deleted,
            },
            metadata: (!deleted).then(|| Xml(dc.to_owned())),
            about: Vec::new(),
        }
    }

    fn written(form: RecordForm, pieces: &[&[Record]]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let source = SourceIdentity::new("http://a.example/oai");
        let mut length = None;
        for piece in pieces {
            let mut out = Output::open(Some(&path), form, source.clone(), length).unwrap();
            assert_eq!(out.store(piece, "oai_dc").unwrap().len(), 0);
            length = Some(out.written());
            // Records after the checkpoint are written again.
            out.store(piece, "oai_dc").unwrap();
            if piece.len() == 1 {
                continue;
            }
            out.finish().unwrap();
        }
        let source = SourceIdentity::new("http://a.example/oai");
        Output::open(Some(&path), form, source, length).unwrap().finish().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        (folder, text)
    }

    #[test]
    fn a_file_is_continued_where_its_checkpoint_is() {
        let pieces: [&[Record]; 3] = [
            &[record("oai:a:1", false), record("oai:a:2", true)],
            &[record("oai:a:3", false)],
            &[record("oai:a:4", true), record("oai:a:5", false)],
        ];
        let (_folder, text) = written(RecordForm::Soif, &pieces);
        let mut reader = soif::Reader::new(soif::Mode::Strict, soif::Limits::default());
        reader.feed(text.as_bytes());
        let mut records = Vec::new();
        let mut section = None;
        while let Some(event) = reader.next_event().unwrap() {
            match event {
                soif::Event::Open(it) => section = Some(it),
                soif::Event::Close(_) => section = None,
                soif::Event::Record(it) => records.push((it.url().to_owned(), section)),
            }
        }
        reader.finish().unwrap();
        let expected = [1, 2, 3, 4, 5].map(|nth| {
            let deleted = matches!(nth, 2 | 4);
            let section = if deleted { Section::Delete } else { Section::Update };
            (format!("oai:a:{nth}"), Some(section))
        });
        assert_eq!(records, expected);

        let (_folder, text) = written(RecordForm::Original, &pieces);
        let page = text.replace("<records", "<OAI-PMH").replace("</records", "</OAI-PMH");
        let page = page.replacen("\n<record>", "\n<ListRecords><record>", 1);
        let page = page.replace("\n</OAI-PMH>", "</ListRecords></OAI-PMH>");
        let reading = oai::response::read(page.as_bytes(), oai::Verb::ListRecords).unwrap();
        let oai::response::Body::Records(list) = reading.response.body else { panic!("{page}") };
        let expected: Vec<Record> = pieces.concat();
        assert_eq!(list.items, expected);
    }

    #[test]
    fn a_folder_has_a_file_for_each_live_record() {
        for form in [RecordForm::Soif, RecordForm::Original] {
            let folder = tempfile::tempdir().unwrap();
            let source = SourceIdentity::new("http://a.example/oai");
            let mut out = Output::open(Some(folder.path()), form, source, None).unwrap();
            out.store(&[record("oai:a/../1", false), record("x", false)], "oai_dc").unwrap();
            out.store(&[record("x", true), record("y", true)], "oai_dc").unwrap();
            out.finish().unwrap();
            let entries = fs::read_dir(folder.path()).unwrap();
            let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, [&*format!("oai%3Aa%2F..%2F1.{}", form.extension())]);
            let text = fs::read_to_string(folder.path().join(&names[0])).unwrap();
            assert!(text.contains("Pears"), "{text}");
        }
    }

    #[test]
    fn records_without_a_name_are_not_written() {
        let records =
            [record("oai:a:1", false), record("", false), record(" ", true), record("", true)];
        for form in [RecordForm::Soif, RecordForm::Original] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            let source = SourceIdentity::new("http://a.example/oai");
            for path in [path.as_path(), folder.path()] {
                let mut out = Output::open(Some(path), form, source.clone(), None).unwrap();
                let problems = out.store(&records, "oai_dc").unwrap();
                assert!(problems.len() == 3, "{problems:?}");
                assert!(problems.iter().all(|(_, it)| it.kind == ProblemKind::Nameless));
                out.finish().unwrap();
            }
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("@DELETE") && !text.contains("deleted"), "{text}");
            assert_eq!(text.matches("Pears").count(), 1, "{text}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn no_identifier_leads_out_of_the_folder() {
        for identifier in ["..", "../x", "/etc/passwd", ".", "a\0b", &"é".repeat(300)] {
            let name = file_name(identifier, RecordForm::Soif);
            assert!(
                name.len() < 250 && !name.contains(['/', '\0']) && !name.starts_with('.'),
                "{name}"
            );
        }
    }
}
