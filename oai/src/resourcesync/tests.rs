//! Tests of the documents: their form and their limits.

use proptest::prelude::*;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::*;
use crate::datestamp::Granularity;
use crate::response::is_char;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                    xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n";

fn at(secs: i64) -> Datestamp {
    // date -u -d 2026-01-01T00:00:00Z +%s
    Datestamp::at(1_767_225_600 + secs, Granularity::Second)
}

#[test]
fn a_source_leads_to_its_lists() {
    let description = Document::description("http://h/resourcesync/capabilities.xml");
    assert_eq!(
        description.to_xml(),
        format!(
            "{HEAD}<rs:md capability=\"description\"/>\n\
             <url><loc>http://h/resourcesync/capabilities.xml</loc>\
             <rs:md capability=\"capabilitylist\"/></url>\n</urlset>\n"
        )
    );
    let lists = [(Capability::ResourceList, "http://h/r"), (Capability::ChangeList, "http://h/c")];
    let list = Document::capability_list("http://h/.well-known/resourcesync", &lists);
    assert_eq!(
        list.to_xml(),
        format!(
            "{HEAD}<rs:ln rel=\"up\" href=\"http://h/.well-known/resourcesync\"/>\
             <rs:md capability=\"capabilitylist\"/>\n\
             <url><loc>http://h/r</loc><rs:md capability=\"resourcelist\"/></url>\n\
             <url><loc>http://h/c</loc><rs:md capability=\"changelist\"/></url>\n</urlset>\n"
        )
    );
}

#[test]
fn a_change_list_has_what_changed_and_when() {
    let mut list = Document::change_list("http://h/c.xml?a=1&b=2", at(0));
    list.index = Some("http://h/changelist.xml".to_owned());
    list.push(Entry {
        lastmod: Some(at(36_000)),
        change: Some(ChangeKind::Updated),
        datetime: Some(at(36_000)),
        md5: Some("d41d8cd98f00b204e9800998ecf8427e".to_owned()),
        length: Some(8),
        ..Entry::at("http://h/a?x=1&y=<2>")
    });
    let (change, datetime) = (Some(ChangeKind::Deleted), Some(at(39_600)));
    list.push(Entry { change, datetime, ..Entry::at("http://h/b") });
    assert_eq!(
        list.to_xml(),
        format!(
            "{HEAD}<rs:ln rel=\"up\" href=\"http://h/c.xml?a=1&amp;b=2\"/>\
             <rs:ln rel=\"index\" href=\"http://h/changelist.xml\"/>\
             <rs:md capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"/>\n\
             <url><loc>http://h/a?x=1&amp;y=&lt;2&gt;</loc><lastmod>2026-01-01T10:00:00Z</lastmod>\
             <rs:md change=\"updated\" datetime=\"2026-01-01T10:00:00Z\" \
             hash=\"md5:d41d8cd98f00b204e9800998ecf8427e\" length=\"8\"/></url>\n\
             <url><loc>http://h/b</loc>\
             <rs:md change=\"deleted\" datetime=\"2026-01-01T11:00:00Z\"/></url>\n</urlset>\n"
        )
    );
}

#[test]
fn no_document_has_more_entries_than_a_sitemap() {
    let mut document = Document::resource_list("http://h/c", at(0));
    for n in 0..ENTRIES_MAX {
        assert!(document.push(Entry::at(format!("http://h/{n}"))));
    }
    assert!(!document.push(Entry::at("http://h/more")));
    assert_eq!(document.to_xml().matches("<url>").count(), ENTRIES_MAX);
}

proptest! {
    #[test]
    fn any_address_gives_a_valid_document(loc in "\\PC{1,20}|[\\x00-\\x20]{1,5}x") {
        let mut document = Document::resource_list(&loc, at(0));
        document.push(Entry::at(format!("http://h/{loc}")));
        let text = document.to_xml();
        prop_assert!(text.chars().all(is_char));
        let mut reader = Reader::from_str(&text);
        while reader.read_event().unwrap() != Event::Eof {}
    }
}
