//! The settings of searches everywhere: `[everywhere]`, `[[peer]]` and `[[foreign]]`.
//!
//! Sans-I/O.

use std::time::Duration;

use daemon::Token;
use settings::Table;
use url::Url;

use super::foreign::{self, ForeignEngine};

/// Maximum number of brokers that one search asks.
pub const ASK_MAX: usize = 50;
/// Maximum number of `[[peer]]`.
const PEERS_MAX: usize = 1_000;

/// How a search everywhere is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Everywhere {
    /// Number of brokers that it asks.
    pub ask: usize,
    /// Time that each of them has.
    pub deadline: Duration,
    /// Brokers that are known without a registry, and those that want a token.
    pub peers: Vec<Peer>,
    /// Search engines of other makes, which are asked as well.
    pub foreign: Vec<ForeignEngine>,
}

/// A broker of the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its addresses: those of replicas, of which the nearest is asked.
    pub urls: Vec<Url>,
    /// Its id, by which it is known again if a registry lists it at another address.
    pub id: Option<String>,
    /// Its name for people.
    pub name: Option<String>,
    /// The token that it wants.
    pub token: Option<Token>,
}

impl Default for Everywhere {
    fn default() -> Self {
        Self { ask: 5, deadline: Duration::from_secs(2), peers: Vec::new(), foreign: Vec::new() }
    }
}

impl Everywhere {
    /// Reads `[everywhere]`, all `[[peer]]` and all `[[foreign]]`, and reports mistakes.
    pub(crate) fn read(root: &Table<'_>) -> Self {
        let (default, table) = (Self::default(), root.table("everywhere"));
        let ask = table.integer("ask", 1..=ASK_MAX as u64).and_then(|it| usize::try_from(it).ok());
        let range = Duration::from_millis(100)..=Duration::from_secs(8);
        let deadline = table.duration_within("deadline", range);
        let tables = root.tables("peer");
        if PEERS_MAX < tables.len() {
            let message = format!("more than {PEERS_MAX} peers");
            root.mistake("peer", message, "a registry, which lists them");
        }
        let peers = tables.iter().filter_map(read_peer).collect();
        Self {
            ask: ask.unwrap_or(default.ask),
            deadline: deadline.unwrap_or(default.deadline),
            peers,
            foreign: foreign::read_settings(root),
        }
    }
}

fn read_peer(table: &Table<'_>) -> Option<Peer> {
    let (name, id, token) = (table.string("name"), table.string("id"), Token::read(table));
    let is_digit = |it| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    if let Some(id) = &id
        && (id.len() != 16 || !id.bytes().all(is_digit))
    {
        let message = format!("{id:?} is no id of a broker");
        table.mistake("id", message, "16 hex digits, as `harvest broker status` shows them");
    }
    let mut urls = Vec::new();
    for text in table.one_or_more("url") {
        match daemon::announce::address(&text) {
            Some(url) => urls.push(url),
            None => {
                let message = format!("{text:?} is no address of a broker");
                table.mistake("url", message, "such as \"https://broker.example/\"");
            }
        }
    }
    if urls.is_empty() && !table.has("url") {
        table.mistake("url", "nothing says where the broker is", "url = \"https://…\"");
    }
    (!urls.is_empty()).then_some(Peer { urls, id, name, token })
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    #[test]
    fn peers_are_read() {
        let read = |text: &str| {
            let document = Document::parse(text).unwrap();
            let read = Everywhere::read(&document.root());
            document.finish().map(|()| read).map_err(|them| them[0].to_string())
        };
        assert_eq!(read("").unwrap(), Everywhere::default());
        let text = "[everywhere]\nask = 3\ndeadline = \"500 ms\"\n\
                    [[peer]]\nurl = [\"http://a:8501\", \"http://b:8501/\"]\nname = \"A\"\ntoken = \"abcdefgh01234567\"\n\
                    [[peer]]\nurl = \"http://c/\"\nid = \"00000000000000aa\"";
        let all = read(text).unwrap();
        assert_eq!((all.ask, all.deadline.as_millis()), (3, 500));
        assert_eq!(all.peers[0].urls[0].as_str(), "http://a:8501/");
        assert_eq!((all.peers[0].urls.len(), &all.peers[0].id), (2, &None));
        assert_eq!(all.peers[1].id.as_deref(), Some("00000000000000aa"));
        for (wrong, part) in [
            ("[everywhere]\nask = 0", "ask"),
            ("[[peer]]\nname = \"a\"", "where the broker is"),
            ("[[peer]]\nurl = \"ftp://a/\"", "no address of a broker"),
            ("[[peer]]\nurl = \"http://a/\"\nid = \"A\"", "no id of a broker"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(part), "{wrong}: {said}");
        }
    }
}
