//! A table of a settings file, which returns its values.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::{Document, item_path, join, parse_bytes, parse_duration};

type Value<'d> = Spanned<DeValue<'d>>;

/// One table of a [`Document`]. Reading a key makes it known; a wrong value records its mistake and
/// reads as missing.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    document: &'d Document<'d>,
    /// `None`: the file has no such table, so each key is missing.
    table: Option<&'d DeTable<'d>>,
    path: String,
    header: Range<usize>,
}

impl<'d> Table<'d> {
    pub(super) fn new(
        document: &'d Document<'d>,
        table: Option<&'d DeTable<'d>>,
        path: String,
        header: Range<usize>,
    ) -> Self {
        // Distinguishes an empty list of known keys from a table that was never read.
        document.state.borrow_mut().known.entry(path.clone()).or_default();
        Self { document, table, path, header }
    }

    /// Whether the file has this table.
    pub fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the line of the table's header, from 1; for a missing table, of the table around it.
    pub fn line(&self) -> usize {
        self.document.lines.line(self.header.start)
    }

    /// Whether the file sets `key`, to a right or a wrong value.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Records a mistake at the value of `key`, or at the table's header if the key is missing.
    pub fn mistake(&self, key: &str, message: impl Into<String>, expected: impl Into<String>) {
        let at = self.value(key).map_or(self.header.start, |value| value.span().start);
        self.document.record(at, message, expected);
    }

    /// Records a mistake as [`Self::mistake`] does, at the `i`th item (from 0) of the list `key`.
    pub fn mistake_in(
        &self,
        key: &str,
        i: usize,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        let list = self.value(key).and_then(|value| value.get_ref().as_array());
        match list.and_then(|items| items.get(i)) {
            Some(item) => self.document.record(item.span().start, message, expected),
            None => self.mistake(key, message, expected),
        }
    }

    /// Returns the text `key`, which may be empty.
    pub fn string(&self, key: &str) -> Option<String> {
        self.text(key, "a text in quotes").map(|(text, _)| text.to_owned())
    }

    /// Returns the text `key`, or `default` if it is missing.
    pub fn string_or(&self, key: &str, default: &str) -> String {
        self.string(key).unwrap_or_else(|| default.to_owned())
    }

    /// Returns the text `key`. A missing or blank text is a mistake, and the result is blank then.
    pub fn required_string(&self, key: &str) -> String {
        if !self.require(key, "a text in quotes") {
            return String::new();
        }
        let text = self.string(key).unwrap_or_default();
        if text.trim().is_empty() && self.value(key).is_some_and(|it| it.get_ref().is_str()) {
            self.mistake(key, format!("{key:?} is empty"), "a text in quotes");
        }
        text
    }

    /// Records a mistake if `key` is missing; returns whether it is there.
    pub fn require(&self, key: &str, expected: &str) -> bool {
        let there = self.has(key);
        if !there {
            let location =
                if self.path.is_empty() { String::new() } else { format!(" in [{}]", self.path) };
            let message = format!("{key:?} is missing{location}");
            self.document.record(self.header.start, message, format!("{key} = {expected}"));
        }
        there
    }

    /// Returns the whole number `key`, within `range`.
    pub fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let Some(written) = value.get_ref().as_integer() else {
            return self.wrong_type(key, value, &expected);
        };
        let number = u64::from_str_radix(written.as_str(), written.radix()).ok();
        let number = number.filter(|it| range.contains(it));
        number.or_else(|| self.wrong(value, format!("{key:?} is {written}"), &expected))
    }

    /// Returns the number `key`, whole or not, within `range`.
    pub fn float(&self, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value(key)?;
        let expected = format!("a number from {} to {}", range.start(), range.end());
        let written = match value.get_ref() {
            DeValue::Float(it) => it.as_str().to_owned(),
            DeValue::Integer(it) => it.to_string(),
            _ => return self.wrong_type(key, value, &expected),
        };
        let number = written.parse().ok().filter(|it| range.contains(it));
        number.or_else(|| self.wrong(value, format!("{key:?} is {written}"), &expected))
    }

    /// Returns the switch `key`, or `default` if it is missing.
    pub fn boolean(&self, key: &str, default: bool) -> bool {
        let Some(value) = self.value(key) else { return default };
        let read = value.get_ref().as_bool();
        read.or_else(|| self.wrong_type(key, value, "true or false")).unwrap_or(default)
    }

    /// Returns the length of time `key`, such as `"30 days"`.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        const EXPECTED: &str = "a length of time with its unit, such as \"5 min\" or \"30 days\"";
        let (text, value) = self.text(key, EXPECTED)?;
        parse_duration(text).or_else(|| self.wrong(value, format!("{key:?} is {text:?}"), EXPECTED))
    }

    /// Returns the length of time `key`, within `range`.
    pub fn duration_within(&self, key: &str, range: RangeInclusive<Duration>) -> Option<Duration> {
        let duration = self.duration(key)?;
        if range.contains(&duration) {
            return Some(duration);
        }
        let value = self.value(key)?;
        let expected = format!("a length of time from {:?} to {:?}", range.start(), range.end());
        self.wrong(value, format!("{key:?} is {duration:?}"), &expected)
    }

    /// Returns the size `key` in bytes, such as `"64 MiB"`.
    pub fn bytes(&self, key: &str) -> Option<u64> {
        const EXPECTED: &str = "a size with its unit, such as \"512 KiB\" or \"64 MiB\"";
        let (text, value) = self.text(key, EXPECTED)?;
        parse_bytes(text).or_else(|| self.wrong(value, format!("{key:?} is {text:?}"), EXPECTED))
    }

    /// Returns the address and port `key`, such as `"127.0.0.1:8501"`, or `default` if it is
    /// missing or wrong. `localhost` is 127.0.0.1.
    pub fn addr(&self, key: &str, default: SocketAddr) -> SocketAddr {
        const EXPECTED: &str = "an address and a port, such as \"127.0.0.1:8501\" or \"[::]:8501\"";
        let Some((text, value)) = self.text(key, EXPECTED) else { return default };
        let read = text.parse().ok().or_else(|| {
            let port = text.strip_prefix("localhost:")?.parse().ok()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        });
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u64>().ok());
        let message = match port {
            Some(port) if u64::from(u16::MAX) < port => {
                format!("{key:?} has port {port}, but ports end at 65535")
            }
            _ => format!("{key:?} is {text:?}"),
        };
        read.or_else(|| self.wrong(value, message, EXPECTED)).unwrap_or(default)
    }

    /// Returns the absolute URL `key`, of any scheme, without white space.
    pub fn url(&self, key: &str) -> Option<Url> {
        const EXPECTED: &str = "a URL, such as \"http://host:8500/\" or \"file:///srv/docs\"";
        let (text, value) = self.text(key, EXPECTED)?;
        // The URL standard would strip or encode these; in a settings file they are typing errors.
        if let Some(stray) = text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            let message = format!("the URL {text:?} contains {stray:?}");
            return self.wrong(value, message, "a URL without white space (write %20)");
        }
        Url::parse(text)
            .map_err(|error| self.wrong::<()>(value, format!("{text:?}: {error}"), EXPECTED))
            .ok()
    }

    /// Returns the URL `key` of an HTTP server or of a folder on one. A path without an ending
    /// slash gets one, so that joining keeps it.
    pub fn base_url(&self, key: &str) -> Option<Url> {
        const EXPECTED: &str = "an http:// or https:// URL, such as \"http://host:8500/\"";
        let mut url = self.url(key)?;
        let value = self.value(key)?;
        if !matches!(url.scheme(), "http" | "https") {
            return self.wrong(value, format!("the URL {url} is not of a web server"), EXPECTED);
        }
        if url.query().is_some() || url.fragment().is_some() {
            let message = format!("the URL {url} has a part after ? or #");
            return self.wrong(value, message, "the server's address only");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return self.wrong(value, "the URL holds a user name".to_owned(), "a URL without it");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Some(url)
    }

    /// Returns the path `key` as written; the caller resolves a relative one.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        const EXPECTED: &str = "a path, such as \"/var/lib/harvest\"";
        let (text, value) = self.text(key, EXPECTED)?;
        if text.trim().is_empty() || text.contains('\0') {
            return self.wrong(value, format!("{key:?} is {text:?}"), EXPECTED);
        }
        Some(PathBuf::from(text))
    }

    /// Returns the list of texts `key`; empty if it is missing. Wrong items are left out.
    pub fn strings(&self, key: &str) -> Vec<String> {
        const EXPECTED: &str = "a list of texts, such as [\"one\", \"two\"]";
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type::<()>(key, value, EXPECTED);
            return Vec::new();
        };
        let read = items.iter().filter_map(|item| {
            let text = item.get_ref().as_str().map(str::to_owned);
            text.or_else(|| self.wrong_type(key, item, "a text in quotes"))
        });
        read.collect()
    }

    /// Returns the text `key` as a list of one, or the list of texts `key`, which must not be
    /// empty. Returns an empty list if the key is missing or wrong.
    pub fn one_or_more(&self, key: &str) -> Vec<String> {
        const EXPECTED: &str = "a text in quotes, or a list of texts";
        let Some(value) = self.value(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::String(text) => vec![text.as_ref().to_owned()],
            DeValue::Array(items) if items.is_empty() => {
                self.wrong(value, format!("{key:?} is empty"), EXPECTED).unwrap_or_default()
            }
            DeValue::Array(_) => self.strings(key),
            _ => self.wrong_type(key, value, EXPECTED).unwrap_or_default(),
        }
    }

    /// Returns the text `key`, which must be one of `choices`.
    pub fn choice(&self, key: &str, choices: &[&'static str]) -> Option<&'static str> {
        let quoted: Vec<_> = choices.iter().map(|it| format!("{it:?}")).collect();
        let expected = format!("one of {}", quoted.join(", "));
        let (text, value) = self.text(key, &expected)?;
        let chosen = choices.iter().find(|it| **it == text).copied();
        chosen.or_else(|| self.wrong(value, format!("{key:?} is {text:?}"), &expected))
    }

    /// Returns the tables written `[[key]]`, in their order; empty if there are none.
    pub fn tables(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let path = join(&self.path, key);
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type::<()>(key, value, &format!("[[{path}]], once for each"));
            return Vec::new();
        };
        let read = items.iter().enumerate().filter_map(|(i, item)| {
            let Some(table) = item.get_ref().as_table() else {
                return self.wrong_type(key, item, &format!("[[{path}]], once for each"));
            };
            let path = item_path(&self.path, key, i);
            Some(Self::new(self.document, Some(table), path, item.span()))
        });
        read.collect()
    }

    /// Returns the table written `[key]`; if it is missing, a table without values.
    pub fn table(&self, key: &str) -> Self {
        let path = join(&self.path, key);
        let Some(value) = self.value(key) else {
            return Self::new(self.document, None, path, self.header.clone());
        };
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type::<()>(key, value, &format!("[{path}], and its keys below"));
        }
        Self::new(self.document, table, path, value.span())
    }

    fn value(&self, key: &str) -> Option<&'d Value<'d>> {
        self.document.know(&self.path, key);
        self.table?.get(key)
    }

    fn text(&self, key: &str, expected: &str) -> Option<(&'d str, &'d Value<'d>)> {
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((text, value)),
            None => self.wrong_type(key, value, expected),
        }
    }

    fn wrong_type<T>(&self, key: &str, value: &Value<'_>, expected: &str) -> Option<T> {
        let kind = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(value, format!("{key:?} is {kind}"), expected)
    }

    fn wrong<T>(&self, value: &Value<'_>, message: String, expected: &str) -> Option<T> {
        self.document.record(value.span().start, message, expected);
        None
    }
}

/// Records a mistake for every table whose text `key` equals that of an earlier table.
pub fn refuse_repeats(tables: &[Table<'_>], key: &str) {
    refuse(tables, key, |text| format!("{text:?}"));
}

/// Does the same as [`refuse_repeats`], but keeps the texts, which are secrets, out of messages.
pub fn refuse_repeated_secrets(tables: &[Table<'_>], key: &str) {
    refuse(tables, key, |_secret| "the same".to_owned());
}

fn refuse(tables: &[Table<'_>], key: &str, shown: impl Fn(&str) -> String) {
    let mut first = BTreeMap::new();
    for table in tables {
        let Some(value) = table.value(key) else { continue };
        let Some(text) = value.get_ref().as_str() else { continue };
        if let Some(path) = first.get(text) {
            let message = format!("{key:?} is {}, as in [{path}] already", shown(text));
            table.document.record(value.span().start, message, format!("each {key} once"));
        } else {
            first.insert(text, table.path.as_str());
        }
    }
}
