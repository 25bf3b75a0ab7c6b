//! Tests of `harvest oai` against repositories with faults, which are served on loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::harness::{run, run_ok, texts};

/// A repository whose answers a function gives.
struct Faulty {
    base: String,
    queries: Arc<Mutex<Vec<String>>>,
}

impl Faulty {
    /// Serves `answer`, which gets the query with its percent signs, until the end of the tests.
    fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/oai", listener.local_addr().unwrap());
        let queries = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&queries);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that went away is no matter.
                let _ = serve(stream, &answer, &seen);
            }
        });
        Self { base, queries }
    }

    fn take_queries(&self) -> Vec<String> {
        std::mem::take(&mut self.queries.lock().unwrap())
    }

    /// Runs a subcommand of `harvest oai` on it, which must fail; returns all that it printed.
    #[track_caller]
    fn fails(&self, command: &str, args: &[&str]) -> String {
        let output = run([&["oai", command, &self.base], args].concat());
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        format!("{out}{err}")
    }

    #[track_caller]
    fn succeeds(&self, command: &str, args: &[&str]) -> String {
        run_ok([&["oai", command, &self.base], args].concat())
    }
}

/// Answers one request, and closes the connection.
fn serve(
    mut stream: TcpStream,
    answer: &impl Fn(&str) -> String,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut length = 0;
    for line in lines.by_ref().map_while(Result::ok).take_while(|it| !it.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    let mut query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
    if 0 < length {
        // A form is one line without an end, which the peer leaves open.
        query = "form".to_owned();
    }
    seen.lock().unwrap().push(query.clone());
    let body = answer(&query);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a response with this content.
fn response(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
         http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a/</request>{inner}\
         </OAI-PMH>"
    )
}

fn fault(code: &str) -> String {
    response(&format!("<error code=\"{code}\">no</error>"))
}

/// Returns the answer of a sound repository to requests other than lists of records.
fn opening(query: &str) -> String {
    if query.contains("verb=Identify") {
        return response(
            "<Identify><repositoryName>A</repositoryName><baseURL>http://a/</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>ab@a.example</adminEmail>\
             <earliestDatestamp>2020-01-01</earliestDatestamp>\
             <deletedRecord>persistent</deletedRecord><granularity>YYYY-MM-DD</granularity>\
             </Identify>",
        );
    }
    if query.contains("verb=ListMetadataFormats") {
        return response(
            "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
             <schema>s</schema><metadataNamespace>n</metadataNamespace></metadataFormat>\
             </ListMetadataFormats>",
        );
    }
    if query.contains("verb=ListSets") {
        return response(
            "<ListSets><set><setSpec>a:b</setSpec><setName>B</setName></set></ListSets>",
        );
    }
    fault("badVerb")
}

fn header(number: u32) -> String {
    format!(
        "<header><identifier>oai:a.example:{number}</identifier>\
         <datestamp>2024-01-0{number}</datestamp><setSpec>a:b</setSpec></header>"
    )
}

fn record(number: u32, title: &str) -> String {
    format!(
        "<record>{}<metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title></oai_dc:dc>\
         </metadata></record>",
        header(number)
    )
}

fn list(inner: &str) -> String {
    response(&format!("<ListRecords>{inner}</ListRecords>"))
}

#[test]
fn a_wrong_base_url_is_named_at_once() {
    let page = "<!DOCTYPE html>\n<html><head><title>The Archive &mdash; Welcome</title></head>";
    let site = Faulty::start(move |_| page.to_owned());
    for command in ["harvest", "identify", "list", "sets", "formats"] {
        let text = site.fails(command, &[]);
        assert!(text.contains("an HTML page titled \"The Archive — Welcome\" came"), "{text}");
        assert!(text.contains("base URL") && !text.contains("<html"), "{text}");
        assert_eq!(site.take_queries().len(), 1, "{command}");
    }
    let text = site.fails("validate", &[]);
    assert!(text.contains("titled") && text.contains("base URL"), "{text}");
}

#[test]
fn a_doctype_is_refused_at_once() {
    let with = |text: String| text.replacen('\n', "\n<!DOCTYPE OAI-PMH>\n", 1);
    let site = Faulty::start(move |query| with(opening(query)));
    assert!(site.fails("harvest", &[]).contains("DOCTYPE"));
    assert_eq!(site.take_queries().len(), 1);
    let site = Faulty::start(move |query| {
        if query.contains("ListRecords") { with(list(&record(1, "A"))) } else { opening(query) }
    });
    assert!(site.fails("harvest", &[]).contains("DOCTYPE"));
    let lists = site.take_queries().into_iter().filter(|it| it.contains("ListRecords"));
    assert_eq!(lists.count(), 1);
}

#[test]
fn an_end_reaches_the_repository() {
    let site = Faulty::start(|query| {
        if query.contains("ListRecords") { list(&record(1, "A")) } else { opening(query) }
    });
    let text = site.succeeds("harvest", &["--until", "2024-03-01"]);
    assert!(text.contains("oai:a.example:1"), "{text}");
    let queries = site.take_queries();
    let lists: Vec<&String> = queries.iter().filter(|it| it.contains("ListRecords")).collect();
    assert!(lists.iter().all(|it| it.contains("until=202")), "{lists:?}");
    assert!(lists.last().is_some_and(|it| it.contains("until=2024-03-01")), "{lists:?}");
    for command in ["harvest", "list"] {
        let text = site.fails(command, &["--until", "2024-03-01", "--from", "2024-03-02"]);
        assert!(text.contains("later than --until"), "{text}");
    }
    assert!(site.take_queries().is_empty());
}

#[test]
fn a_set_or_format_that_is_not_there_is_a_failure() {
    // A repository that ignores a wrong set.
    let site = Faulty::start(|query| match query {
        _ if query.contains("marc21") => fault("cannotDisseminateFormat"),
        _ if query.contains("ListRecords") => list(&record(1, "A")),
        _ if query.contains("ListIdentifiers") => {
            response(&format!("<ListIdentifiers>{}</ListIdentifiers>", header(1)))
        }
        _ => opening(query),
    });
    for (command, args, part) in [
        ("harvest", ["--prefix", "marc21"], "metadata formats marc21, but oai_dc"),
        ("harvest", ["--set", "none"], "does not list the set none"),
        ("list", ["--prefix", "marc21"], "cannotDisseminateFormat"),
        ("list", ["--set", "none"], "does not list the set none"),
    ] {
        let text = site.fails(command, &args);
        assert!(text.contains(part) && !text.contains("a.example"), "{text}");
    }
    for command in ["harvest", "list"] {
        for set in ["a", "a:b"] {
            assert!(site.succeeds(command, &["--set", set]).contains("a.example:1"));
        }
    }
    let site = Faulty::start(|query| match query {
        _ if query.contains("ListIdentifiers") => fault("noRecordsMatch"),
        _ => opening(query),
    });
    assert!(site.fails("list", &["--set", "none"]).contains("does not list the set none"));
    assert_eq!(site.succeeds("list", &["--set", "a"]), "");
}

#[test]
fn a_live_record_without_metadata_is_written() {
    let bare = format!("<record>{}</record>", header(2));
    let site = Faulty::start(move |query| {
        if query.contains("ListRecords") {
            list(&(record(1, "A & B") + &bare))
        } else {
            opening(query)
        }
    });
    let text = site.succeeds("harvest", &[]);
    assert!(text.contains("oai:a.example:1") && text.contains("oai:a.example:2"), "{text}");
}

/// Returns the answer of a repository of two parts, whose second is this.
fn two_parts(query: &str, second: &str) -> String {
    if query.contains("until=") || query.contains("from=") {
        return list(&record(1, "A"));
    }
    match query {
        "verb=ListRecords&metadataPrefix=oai_dc" => {
            list(&(record(1, "A") + "<resumptionToken>t</resumptionToken>"))
        }
        "verb=ListRecords&resumptionToken=t" => list(second),
        _ if query.contains("verb=ListIdentifiers&metadataPrefix") => {
            response(&format!("<ListIdentifiers>{}</ListIdentifiers>", header(1)))
        }
        // A wrong element: GetRecord is answered with a list.
        _ if query.contains("verb=GetRecord") => list(&record(1, "A")),
        _ => opening(query),
    }
}

#[test]
fn validation_reads_the_whole_list() {
    let end = "<resumptionToken/>";
    let bare = format!("<record>{}</record>", header(2));
    for (second, failed) in [
        (record(2, "B") + end, ""),
        (record(2, "B & C") + end, "every response: well-formed XML"),
        (record(2, "B"), "ListRecords: the list ends"),
        (record(1, "A") + end, "ListRecords: no record comes twice"),
        (bare + end, "ListRecords: every record that is not deleted has metadata"),
    ] {
        let site = Faulty::start(move |query| two_parts(query, &second));
        let text = site.fails("validate", &[]);
        for name in [
            "every response: well-formed XML",
            "ListRecords: every record can be read",
            "ListRecords: every record that is not deleted has metadata",
            "ListRecords: no record comes twice",
            "ListRecords: the list ends",
        ] {
            let verdict = if name == failed { "FAIL" } else { "pass" };
            assert!(text.contains(&format!("{verdict}  {name}")), "{name}: {text}");
        }
        assert!(text.contains("FAIL  GetRecord: the record that was listed"), "{text}");
    }
}
