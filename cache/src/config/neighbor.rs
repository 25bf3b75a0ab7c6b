//! The settings of a `[[neighbor]]`.

use net::host::HostPort;
use settings::Table;

use crate::neighbors::Neighbor;
use crate::resolution::Kind;

/// Reads a neighbor, and reports its mistakes.
pub(super) fn read(table: &Table<'_>) -> Option<Neighbor> {
    let host = table.required_string("host");
    let is_host = HostPort::parse(&host).is_some_and(|it| it.port.is_none());
    if !is_host {
        table.mistake(
            "host",
            format!("{host:?} is no host"),
            "a name or an address, without a port",
        );
    }
    let port = |key, least, default| {
        let port = table.integer(key, least..=u64::from(u16::MAX));
        port.and_then(|it| u16::try_from(it).ok()).unwrap_or(default)
    };
    let (http_port, icp_port) = (port("http_port", 1, 3_128), port("icp_port", 0, 3_130));
    table.require("kind", "\"sibling\" or \"parent\"");
    let kind = match table.choice("kind", &["sibling", "parent"])? {
        "parent" => Kind::Parent,
        _ => Kind::Sibling,
    };
    if icp_port == 0 && kind == Kind::Sibling {
        let message = "a sibling gives what it has, and without ICP nobody knows what it has";
        table.mistake("icp_port", message, "the port of its ICP, or `kind = \"parent\"`");
    }
    let domains = table.strings("domains").iter().map(|it| it.to_ascii_lowercase()).collect();
    is_host.then_some(Neighbor { host, http_port, icp_port, kind, domains })
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    #[test]
    fn only_a_parent_can_be_without_icp() {
        let read = |text: &str| {
            let document = Document::parse(text).unwrap();
            let neighbor = read(&document.root());
            document.finish().map(|()| neighbor.unwrap())
        };
        let neighbor = read("host = \"192.0.2.7\"\nicp_port = 0\nkind = \"parent\"").unwrap();
        assert_eq!((neighbor.http_port, neighbor.icp_port, neighbor.port()), (3_128, 0, 3_128));
        let neighbor = read("host = \"192.0.2.7\"\nkind = \"sibling\"").unwrap();
        assert_eq!((neighbor.kind, neighbor.port()), (Kind::Sibling, 3_130));
        let wrong = read("host = \"192.0.2.7\"\nicp_port = 0\nkind = \"sibling\"").unwrap_err();
        assert!(format!("{wrong:?}").contains("without ICP"), "{wrong:?}");
    }
}
