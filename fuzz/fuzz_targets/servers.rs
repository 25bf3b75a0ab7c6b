//! Fuzzing of the registry: any bytes as the description of a daemon. There is no panic, and the record that is made of
//! it goes over the wire unchanged and is read as that of the same server.

#![no_main]

use daemon::describe::Description;
use exchange::servers::{ServerKind, covers, lacking, lasting, record, server};
use libfuzzer_sys::fuzz_target;
use soif::{Event, Limits, Mode, Reader};
use url::Url;

fuzz_target!(|input: &[u8]| {
    let Ok(description) = serde_json::from_slice::<Description>(input) else { return };
    let Some(url) = description.facts.base_url.clone() else { return };
    let is_web = matches!(url.scheme(), "http" | "https");
    for kind in ServerKind::ALL {
        let made = record(&description, (kind, &url), (300, 86_400));
        let mut bytes = Vec::new();
        soif::write_record(&mut bytes, &made);
        let mut reader = Reader::new(Mode::Strict, Limits::default());
        reader.feed(&bytes);
        if let Ok(Some(Event::Record(read))) = reader.next_event() {
            assert_eq!(lasting(&read.to_record()), lasting(&made));
        }
        assert!(lacking(&made).is_some());
        let read = server(&made);
        assert_eq!(read.is_some(), is_web);
        assert!(read.is_none_or(|it| it.kind == kind && it.url == url));
    }
    let site = Url::parse("https://orchard.example/trees/").expect("a URL");
    for gathers in &description.facts.gathers {
        covers(gathers, &site);
    }
});
