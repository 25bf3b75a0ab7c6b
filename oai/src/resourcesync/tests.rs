//! Tests of the documents: reading, writing, and limits.

use proptest::prelude::*;

use super::*;
use crate::datestamp::Granularity;

fn at(secs: i64) -> Datestamp {
    Datestamp::at(secs, Granularity::Second)
}

/// A change list of the standard (written from the description of its elements), with foreign
/// elements as in other sitemaps.
const CHANGES: &str = "<?xml version='1.0'?>\
    <s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9' \
      xmlns:r='http://www.openarchives.org/rs/terms/' xmlns:i='urn:i'>\
    <r:ln rel='up' href='http://h/c.xml?a=1&amp;b=2'/><r:ln rel='license' href='http://h/l'/>\
    <r:md capability='changelist' from='2026-01-01T00:00:00Z' until='2026-01-02T00:00:00Z'/>\
    <s:url><s:loc>http://h/a?x=1&amp;y=<![CDATA[<2>]]></s:loc>\
      <s:lastmod>2026-01-01T10:00:00.25Z</s:lastmod><s:changefreq>daily</s:changefreq>\
      <i:image><i:what>loc</i:what></i:image>\
      <r:md change='updated' datetime='2026-01-01T10:00:00Z' \
        hash='sha-256:00 md5:d41d8cd98f00b204e9800998ecf8427e' length='8' type='text/plain'/>\
      <r:ln rel='describedby' href='http://h/d'/></s:url>\
    <s:url><s:loc>http://h/b</s:loc><r:md change='deleted' datetime='2026-01-01T11:00:00Z'/></s:url>\
    </s:urlset>";

#[test]
fn a_change_list_is_read() {
    let found = read(CHANGES).unwrap();
    // date -u -d 2026-01-01T00:00:00Z +%s
    let day = 1_767_225_600;
    let mut expected = Document::change_list("http://h/c.xml?a=1&b=2", at(day));
    expected.until = Some(at(day + 86_400));
    expected.push(Entry {
        lastmod: Some(at(day + 36_000)),
        change: Some(ChangeKind::Updated),
        datetime: Some(at(day + 36_000)),
        md5: Some("d41d8cd98f00b204e9800998ecf8427e".to_owned()),
        length: Some(8),
        media_type: Some("text/plain".to_owned()),
        described_by: Some("http://h/d".to_owned()),
        ..Entry::at("http://h/a?x=1&y=<2>")
    });
    expected.push(Entry {
        change: Some(ChangeKind::Deleted),
        datetime: Some(at(day + 39_600)),
        ..Entry::at("http://h/b")
    });
    assert_eq!(found, expected);
}

#[test]
fn a_source_leads_to_its_lists() {
    let description = Document::description("http://h/resourcesync/capabilities.xml");
    assert_eq!(
        description.to_xml(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n\
         <rs:md capability=\"description\"/>\n\
         <url><loc>http://h/resourcesync/capabilities.xml</loc>\
         <rs:md capability=\"capabilitylist\"/></url>\n</urlset>\n"
    );
    let lists = [(Capability::ResourceList, "http://h/r"), (Capability::ChangeList, "http://h/c")];
    let list = Document::capability_list("http://h/.well-known/resourcesync", &lists);
    let found = read(&list.to_xml()).unwrap();
    assert_eq!(found.up.as_deref(), Some("http://h/.well-known/resourcesync"));
    let entries = found.entries().iter().map(|it| (it.capability.unwrap(), it.loc.as_str()));
    assert!(entries.eq(lists));
}

#[test]
fn unreadable_documents_give_the_reason() {
    let root = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>";
    let md = "<md xmlns='http://www.openarchives.org/rs/terms/' capability='resourcelist'/>";
    for (text, expected) in [
        (String::new(), "it is empty"),
        ("<html/>".to_owned(), "no sitemap"),
        ("no XML".to_owned(), "it is empty"),
        (format!("{root}</urlset>"), "does not say what it is"),
        (format!("{root}{md}"), "breaks off"),
        (format!("{root}{md}<url>"), "breaks off"),
        (format!("{root}{md}<url/></urlset>"), "no address"),
        (format!("{root}{md}<url><loc>&b;</loc></url></urlset>"), "&b;"),
        (format!("{root}{md}</wrong>"), "byte"),
        (format!("{root}{md}<url><loc>a\0b</loc></url></urlset>"), "does not allow"),
        (format!("{root}{md}<url><loc>a&#1;b</loc></url></urlset>"), "does not allow"),
        (format!("<!DOCTYPE x [<!ENTITY b 'c'>]>{root}{md}</urlset>"), "DTD"),
    ] {
        let found = read(&text).map_err(|it| it.to_string());
        assert!(found.as_ref().is_err_and(|it| it.contains(expected)), "{text}: {found:?}");
    }
}

#[test]
fn addresses_with_characters_that_xml_does_not_allow_are_left_out() {
    let text = "<urlset><md capability='resourcelist'/><ln rel='up' href='a&#1;b'/></urlset>";
    assert_eq!(read(text).unwrap().up, None);
}

#[test]
fn no_document_has_more_entries_than_a_sitemap() {
    let mut document = Document::resource_list("http://h/c", at(0));
    for n in 0..ENTRIES_MAX {
        assert!(document.push(Entry::at(format!("http://h/{n}"))));
    }
    assert!(!document.push(Entry::at("http://h/more")));
    let text = document.to_xml();
    assert_eq!(read(&text).unwrap().entries().len(), ENTRIES_MAX);
    let more = text.replacen("<url>", "<url><loc>http://h/more</loc></url><url>", 1);
    assert_eq!(read(&more), Err(Unreadable::TooMany));
    assert!(text.len() < DOCUMENT_BYTES_MAX);
    let large = " ".repeat(DOCUMENT_BYTES_MAX + 1);
    assert!(matches!(read(&large), Err(Unreadable::TooLarge { .. })));
}

fn stamp() -> impl Strategy<Value = Option<Datestamp>> {
    prop::option::of((0..4_000_000_000_i64).prop_map(at))
}

fn url() -> impl Strategy<Value = String> {
    "https?://[a-z]{1,9}/[!-~äß漢]{0,20}"
}

prop_compose! {
    fn entry()(
        loc in url(),
        (lastmod, datetime) in (stamp(), stamp()),
        capability in prop::option::of(prop::sample::select(&Capability::ALL)),
        change in prop::option::of(prop::sample::select(&ChangeKind::ALL)),
        md5 in prop::option::of("[0-9a-f]{32}"),
        length in prop::option::of(any::<u64>()),
        media_type in prop::option::of("[a-z]{1,9}/[a-z+\"&]{1,9}"),
        described_by in prop::option::of(url()),
    ) -> Entry {
        Entry { loc, lastmod, capability, change, datetime, md5, length, media_type, described_by }
    }
}

prop_compose! {
    fn document()(
        capability in prop::sample::select(&Capability::ALL),
        is_index in any::<bool>(),
        (up, index) in (prop::option::of(url()), prop::option::of(url())),
        (at, completed, from, until) in (stamp(), stamp(), stamp(), stamp()),
        entries in prop::collection::vec(entry(), 0..5),
    ) -> Document {
        Document { capability, is_index, up, index, at, completed, from, until, entries }
    }
}

proptest! {
    #[test]
    fn written_values_are_read_back(document in document()) {
        prop_assert_eq!(read(&document.to_xml()), Ok(document));
    }

    #[test]
    fn any_address_gives_a_valid_document(loc in "\\PC{1,20}|[\\x00-\\x20]{1,5}x") {
        let mut document = Document::new(Capability::ResourceList);
        document.push(Entry::at(format!("http://h/{loc}")));
        prop_assert!(read(&document.to_xml()).is_ok());
    }

    #[test]
    fn any_text_is_a_document_or_not(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn a_truncated_document_is_unreadable(document in document(), cut in 0.0..1.0_f64) {
        let text = document.to_xml();
        let whole = text.trim_end().len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the text")]
        let mut at = (whole as f64 * cut) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        prop_assert!(read(&text[..at]).is_err());
    }
}
