//! Every response of ours against the schemas of OAI-PMH and of what it carries.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/schemas.rs"]
mod schemas;

use schemas::{assert_valid, validate};

/// A response to Identify with this description.
fn identified(description: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a.example/oai</request>\
         <Identify><repositoryName>A</repositoryName><baseURL>http://a.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>admin@a.example</adminEmail>\
         <earliestDatestamp>2026-01-01T00:00:00Z</earliestDatestamp>\
         <deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\
         <description>{description}</description></Identify></OAI-PMH>"
    )
}

/// A list of one record with this metadata, something about it, and this token.
fn listed(metadata: &str, about: &str, token: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a.example/oai</request>\
         <ListRecords><record><header><identifier>oai:a.example:1</identifier>\
         <datestamp>2026-01-01T00:00:00Z</datestamp></header><metadata>{metadata}</metadata>\
         <about>{about}</about></record>{token}</ListRecords></OAI-PMH>"
    )
}

/// The first is valid; none of the others is.
#[track_caller]
fn check(document: impl Fn(&str) -> String, good: &str, bad: &[&str]) {
    assert_valid(document(good).as_bytes());
    for bad in bad {
        assert!(validate(document(bad).as_bytes()).is_err(), "valid: {bad}");
    }
}

const DC: &str = "<dc xmlns=\"http://www.openarchives.org/OAI/2.0/oai_dc/\">\
                  <title xmlns=\"http://purl.org/dc/elements/1.1/\">T</title></dc>";

fn origin(inner: &str, attributes: &str) -> String {
    format!(
        "<provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\">\
         <originDescription {attributes}><baseURL>http://b.example/oai</baseURL>\
         <identifier>oai:b.example:1</identifier><datestamp>2026-01-01</datestamp>\
         <metadataNamespace>urn:x</metadataNamespace>{inner}</originDescription></provenance>"
    )
}

#[test]
fn the_schemas_of_descriptions_take_what_they_should_and_nothing_else() {
    let oai = |scheme: &str, repository: &str, sample: &str| {
        format!(
            "<oai-identifier xmlns=\"http://www.openarchives.org/OAI/2.0/oai-identifier\">\
             <scheme>{scheme}</scheme><repositoryIdentifier>{repository}</repositoryIdentifier>\
             <delimiter>:</delimiter><sampleIdentifier>{sample}</sampleIdentifier></oai-identifier>"
        )
    };
    check(
        identified,
        &oai("oai", "a-b.example.org", "oai:a-b.example.org:0f/http%3A%2F%2Fx%2F"),
        &[
            &oai("doi", "a.example", "oai:a.example:1"),
            &oai("oai", "localhost", "oai:localhost:1"),
            &oai("oai", "a.example", "oai:a.example:"),
            &oai("oai", "a.example", "oai:a.example:ü"),
            &oai("oai", "a.example", "oai:a.example:100%"),
        ],
    );
    let friends = |inner: &str| {
        format!("<friends xmlns=\"http://www.openarchives.org/OAI/2.0/friends/\">{inner}</friends>")
    };
    check(
        identified,
        &friends("<baseURL>http://b.example/</baseURL><baseURL>http://c.example/</baseURL>"),
        &[&friends(""), &friends("<url>http://b.example/</url>")],
    );
    let branding = |inner: &str| {
        format!(
            "<branding xmlns=\"http://www.openarchives.org/OAI/2.0/branding/\">{inner}</branding>"
        )
    };
    check(
        identified,
        &branding(
            "<collectionIcon><url>http://a.example/i.png</url><link>http://a.example/</link>\
             <title>A</title><width>88</width><height>31</height></collectionIcon>\
             <metadataRendering metadataNamespace=\"urn:x\" mimeType=\"text/xsl\">http://a.example/x\
             </metadataRendering>",
        ),
        &[
            &branding("<collectionIcon><link>http://a.example/</link></collectionIcon>"),
            &branding("<collectionIcon><url>u</url><width>wide</width></collectionIcon>"),
            &branding("<metadataRendering>http://a.example/x</metadataRendering>"),
        ],
    );
    let syndication = |inner: &str| {
        format!(
            "<syndication xmlns=\"http://purl.org/rss/1.0/modules/syndication/\">{inner}</syndication>"
        )
    };
    check(
        identified,
        &syndication(
            "<updateFrequency>2</updateFrequency><updatePeriod>daily</updatePeriod>\
             <updateBase>2026-01-31T12:00+00:00</updateBase>",
        ),
        &[
            &syndication("<updatePeriod>fortnightly</updatePeriod>"),
            &syndication("<updateFrequency>0</updateFrequency>"),
            &syndication("<updateBase>noon</updateBase>"),
        ],
    );
    let totals = |inner: &str| {
        format!("<totals xmlns=\"https://harvest.example/oap/1.0/\">{inner}</totals>")
    };
    check(
        identified,
        &totals("<totalElements>7</totalElements><completeListSize>9</completeListSize>"),
        &[&totals(""), &totals("<totalElements>-7</totalElements>")],
    );
}

#[test]
fn the_schemas_of_records_take_what_they_should_and_nothing_else() {
    let stated = "harvestDate=\"2026-01-02T03:04:05Z\" altered=\"true\"";
    let inner = origin("", stated).replace("</provenance>", "");
    let inner = &inner[inner.find('>').unwrap() + 1..];
    check(
        |about| listed(DC, about, ""),
        &origin(inner, stated),
        &[
            &origin("", "altered=\"true\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05Z\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05.6Z\" altered=\"true\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05Z\" altered=\"perhaps\""),
        ],
    );
    let soif = |inner: &str| {
        format!(
            "<soif xmlns=\"https://harvest.example/soif/1.0/\" template=\"FILE\" \
             url=\"http://a.example/\">{inner}</soif>"
        )
    };
    let about = origin("", stated);
    check(
        |metadata| listed(metadata, &about, ""),
        &soif(
            "<attribute name=\"Title\">T</attribute><attribute name=\"X\" encoding=\"base64\">AA==</attribute>",
        ),
        &[
            &soif("<attribute name=\"Title\" encoding=\"rot13\">T</attribute>"),
            &soif("<title>T</title>"),
            "<x xmlns=\"urn:unknown\"/>",
            &DC.replace("title", "titel"),
        ],
    );
    check(
        |token| listed(DC, &about, token),
        "<resumptionToken cursor=\"0\" completeListSize=\"9\">t</resumptionToken>",
        &[
            "<resumptionToken totalElements=\"9\">t</resumptionToken>",
            "<resumptionToken completeListSize=\"0\">t</resumptionToken>",
        ],
    );
}
