//! Documents of the hostile repository, with the faults of their XML.

use super::mode::Mode;
use super::wire::Request;
use super::world::{DAMAGED, Item, Slot, World, timestamp};

/// Placeholder in a document for raw bytes that text cannot have.
pub(crate) const MARK: char = '\u{e000}';

const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A document before its encoding.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    mode: Mode,
    base_url: String,
    date: i64,
    request: Vec<(String, String)>,
    /// The content of the root, after the request.
    pub(crate) inner: String,
}

impl Document {
    pub(crate) fn new(world: &World, base_url: &str, asked: &Request, inner: String) -> Self {
        Self {
            mode: world.mode,
            base_url: base_url.to_owned(),
            date: world.clock,
            request: asked.arguments.clone(),
            inner,
        }
    }

    pub(crate) fn text(&self) -> String {
        let p = prefix(self.mode);
        let encoding = match self.mode {
            Mode::Latin1 | Mode::Utf8AsLatin1 => "ISO-8859-1",
            Mode::Utf16 => "UTF-16",
            _ => "UTF-8",
        };
        let doctype = match self.mode {
            Mode::Doctype => "<!DOCTYPE OAI-PMH>".to_owned(),
            Mode::EntityBomb => bomb(),
            Mode::ExternalEntity => format!(
                "<!DOCTYPE OAI-PMH [<!ENTITY file SYSTEM \"file:///etc/passwd\">\
                 <!ENTITY url SYSTEM \"{}/leak\">]>",
                self.base_url
            ),
            _ => String::new(),
        };
        let namespace = match self.mode {
            Mode::Prefixed => format!(" xmlns:oai=\"{NAMESPACE}\""),
            Mode::NamespaceMissing => String::new(),
            Mode::NamespaceOther => {
                " xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListRecords\"".to_owned()
            }
            _ => format!(" xmlns=\"{NAMESPACE}\""),
        };
        let date = timestamp(self.date);
        let date = match self.mode {
            Mode::DateMissing => String::new(),
            Mode::DateGarbage => format!("<{p}responseDate>yesterday</{p}responseDate>"),
            Mode::DateFraction => {
                format!("<{p}responseDate>{}</{p}responseDate>", date.replace('Z', ".250Z"))
            }
            _ => format!("<{p}responseDate>{date}</{p}responseDate>"),
        };
        let request: String = self
            .request
            .iter()
            .map(|(name, value)| format!(" {name}=\"{}\"", escaped(value)))
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"{encoding}\"?>\n{doctype}\
             <{p}OAI-PMH{namespace} xmlns:xsi=\"{INSTANCE}\" \
             xsi:schemaLocation=\"{NAMESPACE} {NAMESPACE}OAI-PMH.xsd\">\n{date}\
             <{p}request{request}>{}</{p}request>\n{}\n</{p}OAI-PMH>\n",
            escaped(&self.base_url),
            self.inner
        )
    }
}

pub(crate) fn prefix(mode: Mode) -> &'static str {
    if mode == Mode::Prefixed { "oai:" } else { "" }
}

pub(crate) fn element(mode: Mode, name: &str, content: &str) -> String {
    let p = prefix(mode);
    format!("<{p}{name}>{content}</{p}{name}>")
}

pub(crate) fn error(mode: Mode, code: &str) -> String {
    let p = prefix(mode);
    format!("<{p}error code=\"{code}\">as {code} says</{p}error>")
}

pub(crate) fn identify(world: &World, base_url: &str) -> String {
    let mode = world.mode;
    let earliest = match mode {
        Mode::EarliestLate => timestamp(world.clock),
        Mode::EarliestGarbage => "long ago".to_owned(),
        Mode::DayOnly | Mode::DayWithSeconds => "2000-01-01".to_owned(),
        _ => "2000-01-01T00:00:00Z".to_owned(),
    };
    let granularity = match mode {
        Mode::DayOnly | Mode::DayWithSeconds => "YYYY-MM-DD",
        _ => "YYYY-MM-DDThh:mm:ssZ",
    };
    let deleted = if mode == Mode::DeletionsUnsaid { "no" } else { "persistent" };
    let mut fields = vec![
        ("repositoryName", "Hostile".to_owned()),
        ("baseURL", escaped(base_url)),
        ("protocolVersion", "2.0".to_owned()),
        ("adminEmail", "admin@hostile.example".to_owned()),
        ("earliestDatestamp", earliest),
        ("deletedRecord", deleted.to_owned()),
    ];
    if mode != Mode::GranularityMissing {
        fields.push(("granularity", granularity.to_owned()));
    }
    let content: String = fields.iter().map(|(name, value)| element(mode, name, value)).collect();
    element(mode, "Identify", &content)
}

pub(crate) fn formats(mode: Mode) -> String {
    let (name, schema, namespace) = match mode {
        Mode::FormatMissing => ("marcxml", "http://hostile.example/marc.xsd", "urn:marc"),
        _ => (
            "oai_dc",
            "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
        ),
    };
    let format = [
        element(mode, "metadataPrefix", name),
        element(mode, "schema", schema),
        element(mode, "metadataNamespace", namespace),
    ];
    let format = element(mode, "metadataFormat", &format.concat());
    element(mode, "ListMetadataFormats", &format)
}

pub(crate) fn sets(mode: Mode) -> String {
    let set = |spec: &str| {
        let content = element(mode, "setSpec", spec) + &element(mode, "setName", spec);
        element(mode, "set", &content)
    };
    element(mode, "ListSets", &[set("even"), set("even:all"), set("odd")].concat())
}

/// Returns the token element of a page; `value` is the value after the fault.
pub(crate) fn token(world: &World, slot: &Slot, value: &str) -> String {
    let (mode, p) = (world.mode, prefix(world.mode));
    let size = match mode {
        Mode::SizeTooSmall => "10".to_owned(),
        Mode::SizeTooLarge => "600".to_owned(),
        Mode::SizeZero => "0".to_owned(),
        Mode::SizeNegative => "-60".to_owned(),
        Mode::SizeGarbage => "many".to_owned(),
        Mode::SizeOverflow => "9".repeat(30),
        _ => world.size(slot).to_string(),
    };
    let cursor = if mode == Mode::CursorWrong { 0 } else { slot.cursor };
    let expires = match mode {
        Mode::TokenExpired => format!(" expirationDate=\"{}\"", timestamp(world.clock - 3_600)),
        _ => String::new(),
    };
    format!(
        "<{p}resumptionToken cursor=\"{cursor}\" completeListSize=\"{size}\"{expires}>{}\
         </{p}resumptionToken>",
        if mode == Mode::TokenPadded {
            format!("\n    {}\n  ", escaped(value))
        } else {
            escaped(value)
        }
    )
}

pub(crate) fn header(mode: Mode, item: &Item) -> String {
    let p = prefix(mode);
    let stamp = timestamp(item.stamp);
    let stamp = match mode {
        Mode::DayOnly => stamp[..10].to_owned(),
        Mode::StampEmpty => String::new(),
        Mode::StampLocal => timestamp(item.stamp + 7_200).replace('Z', "+02:00"),
        Mode::StampFraction => stamp.replace('Z', ".5Z"),
        _ => stamp,
    };
    let status = if item.deleted { " status=\"deleted\"" } else { "" };
    let mut content = String::new();
    if mode != Mode::IdentifierMissing || item.index != DAMAGED {
        content.push_str(&element(mode, "identifier", &escaped(&item.identifier)));
    }
    if mode != Mode::StampMissing {
        content.push_str(&element(mode, "datestamp", &stamp));
    }
    content.push_str(&element(mode, "setSpec", item.set));
    format!("<{p}header{status}>{content}</{p}header>")
}

pub(crate) fn record(mode: Mode, item: &Item) -> String {
    let mut content = header(mode, item);
    let bare = mode == Mode::MetadataMissing && item.index == DAMAGED;
    if !bare && (!item.deleted || mode == Mode::DeletedWithMetadata) {
        content.push_str(&element(mode, "metadata", &metadata(mode, item)));
    }
    if mode == Mode::AboutMuch {
        let about = "<rights xmlns=\"urn:rights\"><title>Not the title</title></rights>";
        content.push_str(&element(mode, "about", about).repeat(3));
    }
    element(mode, "record", &content) + "\n"
}

fn metadata(mode: Mode, item: &Item) -> String {
    let mut title = escaped(&item.title);
    if item.index == DAMAGED {
        title.push_str(&damage(mode));
    }
    let number = item.index;
    if mode == Mode::MetadataUnspaced && item.index == DAMAGED {
        return format!("<dc><title>{title}</title></dc>");
    }
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xsi:schemaLocation=\"\
         http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{title}</dc:title><dc:creator>Doe, Jo</dc:creator><dc:date>2024-05-06</dc:date>\
         <dc:identifier>http://hostile.example/items/{number}</dc:identifier></oai_dc:dc>"
    )
}

/// Returns the damage after the title of the damaged item.
fn damage(mode: Mode) -> String {
    match mode {
        Mode::InvalidUtf8 | Mode::ControlCharacters => MARK.to_string(),
        Mode::IllegalReference => "&#8;&#xB;&#x1F;".to_owned(),
        Mode::SurrogateReference => "&#xD83D;&#xDE00;".to_owned(),
        Mode::BareAmpersand => " R & D &c &".to_owned(),
        Mode::HtmlEntities => "&nbsp;&eacute;&mdash;".to_owned(),
        Mode::BareLess => " a < b and 3<5".to_owned(),
        Mode::TagsCrossed => "<b><i>x</b></i>".to_owned(),
        Mode::PrefixUndeclared => "<foo:bar>x</foo:bar>".to_owned(),
        Mode::AttributeTwice => "<b x=\"1\" x=\"2\">y</b>".to_owned(),
        Mode::EntityBomb => "&e30;".to_owned(),
        Mode::ExternalEntity => "&file;&url;".to_owned(),
        Mode::NestedDeep => "<b>".repeat(100_000) + &"</b>".repeat(100_000),
        Mode::AttributesMany => {
            let many: String = (0..50_000).map(|it| format!(" a{it}=\"\"")).collect();
            format!("<b{many}/>")
        }
        _ => String::new(),
    }
}

/// Returns a DOCTYPE whose entities expand to a gigabyte.
fn bomb() -> String {
    let doubled: String =
        (1..=30).map(|it| format!("<!ENTITY e{it} \"&e{};&e{};\">", it - 1, it - 1)).collect();
    format!("<!DOCTYPE OAI-PMH [<!ENTITY e0 \"x\">{doubled}]>")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Encodes a document's text as the fault does.
pub(crate) fn encoded(mode: Mode, text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    match mode {
        Mode::SpaceBefore => bytes.extend_from_slice(b"\r\n\n  "),
        Mode::MarkBefore => bytes.extend_from_slice(b"\xef\xbb\xbf"),
        Mode::NoticeBefore => {
            bytes.extend_from_slice(
                b"<br />\n<b>Notice</b>: Undefined index: x in <b>oai.php</b>\n",
            );
        }
        Mode::Utf16 => bytes.extend_from_slice(b"\xff\xfe"),
        _ => {}
    }
    let mut buffer = [0; 4];
    for char in text.chars() {
        match mode {
            Mode::InvalidUtf8 if char == MARK => bytes.extend_from_slice(b"\xff\xc3(\xe2\x82"),
            Mode::ControlCharacters if char == MARK => bytes.extend_from_slice(b"\x01\x08\x0b\x1b"),
            // Every character of these documents is in Latin-1.
            Mode::Latin1 | Mode::Latin1Undeclared => bytes.push(u8::try_from(char).unwrap()),
            Mode::Utf16 => {
                let mut units = [0; 2];
                for unit in char.encode_utf16(&mut units) {
                    bytes.extend_from_slice(&unit.to_le_bytes());
                }
            }
            _ => bytes.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    if mode == Mode::NoticeAfter {
        bytes
            .extend_from_slice(b"<br />\n<b>Warning</b>: mysql_close(): x & y in <b>oai.php</b>\n");
    }
    bytes
}
