//! Hostile pages, other markup, and JSON: endless, deeply nested, and with wrong charsets.

use crate::made::gzip;
use crate::{Case, case};

const MIB: usize = 1 << 20;

pub(crate) const CASES: &[Case] = &[
    case("links.html", "", || {
        let link = |it: usize| format!("<a href=\"http://h{it}.example/{it}\">link {it}</a>\n");
        page(&(0..500_000).map(link).collect::<String>())
    }),
    case("links.html.gz", "", || {
        gzip(&page(&"<a href=\"http://h.example/\">x</a>".repeat(500_000)))
    }),
    case("value.html", "", || page(&format!("<a href=\"{}\">x</a>", "x".repeat(100 * MIB)))),
    case("meta.html", "", || {
        page(&format!("<meta name=\"description\" content=\"{}\">", "word ".repeat(20 * MIB)))
    }),
    case("title.html", "", || page(&format!("<title>{}</title>", "word ".repeat(6 * MIB)))),
    case("deep.html", "", || page(&"<div>".repeat(5 * MIB))),
    case("deep-close.html", "", || {
        page(&format!("{}{}", "<b><i>".repeat(MIB), "</b></p>".repeat(MIB)))
    }),
    case("tables.html", "", || page(&"<table><tr><td>".repeat(MIB))),
    case("lists.html", "", || page(&"<ul><li>x".repeat(2 * MIB))),
    case("headings.html", "", || page(&"<h1>x</h1>".repeat(2 * MIB))),
    case("metas.html", "", || {
        let meta = |it: usize| format!("<meta name=\"name{it}\" content=\"words {it}\">");
        page(&(0..400_000).map(meta).collect::<String>())
    }),
    case("attributes.html", "", || page(&format!("<p {}>", "a=b c ".repeat(4 * MIB)))),
    case("tags.html", "", || page(&"<".repeat(30 * MIB))),
    case("ends.html", "", || page(&"</".repeat(15 * MIB))),
    case("comment.html", "", || page(&"<!--".repeat(7 * MIB))),
    case("script.html", "", || page(&"<script><!--<script>".repeat(MIB))),
    case("linked-data.html", "", || {
        page(&"<script type=\"application/ld+json\">{\"@graph\":[{\"name\":".repeat(300_000))
    }),
    case("entities.html", "", || page(&"&#x10ffff;&amp;&bogus;&".repeat(MIB))),
    case("entity.html", "", || page(&format!("&#{};", "9".repeat(20 * MIB)))),
    case("spaces.html", "", || page(&" \n".repeat(15 * MIB))),
    case("refresh.html", "", || {
        page(&"<meta http-equiv=refresh content=\"0; url=\"><base href=\"a/../\"><a href=\"../../..\">x</a>".repeat(200_000))
    }),
    case("charset.html", "", || {
        [&b"<html><meta charset=utf-16><title>K\xf6ln</title>"[..], b"<p>\xff\xfe\0\0 \x1b$B\x81"]
            .concat()
    }),
    case("mark.html", "", || {
        [&b"\xff\xfe"[..], &b"<\0h\0t\0m\0l\0>\0\xd8\xd8".repeat(MIB)].concat()
    }),
    case("iso-2022.html", "", || {
        [&b"<html><meta charset=iso-2022-jp>"[..], &b"\x1b$B\x1b(J\x1b$(D".repeat(MIB)].concat()
    }),
    case("gb18030.html", "", || {
        [&b"<html><meta charset=gb18030><p>"[..], &b"\x81\x30\x81\x30\xff".repeat(4 * MIB)].concat()
    }),
    case("nul.html", "", || {
        [&b"<html><title>a\0b</title><p>"[..], &b"\0<p\0>".repeat(MIB)].concat()
    }),
    case("laughs.xml", "", || laughs("lolz").into_bytes()),
    case("quadratic.xml", "", || {
        let (entity, uses) = ("x".repeat(100_000), "&a;".repeat(100_000));
        format!("<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a \"{entity}\">]><a>{uses}</a>")
            .into_bytes()
    }),
    case("outside.xml", "", || {
        b"<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><a>&a;</a>"
            .to_vec()
    }),
    case("subset.xml", "", || {
        [&b"<?xml version=\"1.0\"?><!DOCTYPE a ["[..], &b"<!ENTITY % a '".repeat(MIB)].concat()
    }),
    case("deep.xml", "", || {
        [&b"<?xml version=\"1.0\"?>"[..], &b"<a:b xmlns:a='u'>".repeat(MIB)].concat()
    }),
    case("cdata.xml", "", || {
        [&b"<?xml version=\"1.0\"?><a>"[..], &b"<![CDATA[]]".repeat(2 * MIB)].concat()
    }),
    case("prolog.xml", "", || {
        [&b"<?xml version=\"1.0\"?>"[..], &b"<?a?><!-- -->".repeat(2 * MIB)].concat()
    }),
    case("attributes.xml", "", || {
        let attributes: String = (0..MIB).map(|it| format!(" a{it}=\"b\"")).collect();
        format!("<?xml version=\"1.0\"?><a{attributes}/>").into_bytes()
    }),
    case("marked.sgml", "", || [&b"<!DOCTYPE a>"[..], &b"<![IGNORE[<!--".repeat(MIB)].concat()),
    case("uses.svg", "", || {
        let group = |it: usize| {
            format!("<g id='g{}'>{}</g>", it + 1, format!("<use href='#g{it}'/>").repeat(10))
        };
        let groups: String = (0..1000).map(group).collect();
        format!("<svg xmlns='http://www.w3.org/2000/svg'><title>Laughs</title><g id='g0'/>{groups}</svg>").into_bytes()
    }),
    case("laughs.svg", "", || laughs("svg").into_bytes()),
    case("deep.svg", "limit", || [&b"<svg>"[..], &b"<g>".repeat(5 * MIB)].concat()),
    case("titles.svg", "", || {
        [&b"<svg>"[..], &b"<title>a</title><text>b</text>".repeat(MIB / 2)].concat()
    }),
    case("metadata.svg", "", || {
        [
            &b"<svg><metadata><rdf:RDF><cc:Work>"[..],
            &b"<dc:subject><rdf:li>x</rdf:li>".repeat(MIB / 2),
        ]
        .concat()
    }),
    case("deep.json", "", || b"[".repeat(20 * MIB)),
    case("deep-object.json", "", || b"{\"a\":".repeat(5 * MIB)),
    case("string.json", "", || [&b"{\"title\": \""[..], &b"x".repeat(100 * MIB), b"\"}"].concat()),
    case("escapes.json", "", || {
        [&b"{\"title\": \""[..], &b"\\ud800\\u0000\\x".repeat(2 * MIB)].concat()
    }),
    case("number.json", "", || [&b"{\"a\": "[..], &b"9".repeat(30 * MIB), b"}"].concat()),
    case("keys.json", "", || {
        let keys: String = (0..1_000_000).map(|it| format!("\"key{it}\":{it},")).collect();
        format!("{{{keys}\"z\":0}}").into_bytes()
    }),
    case("deep.jsonld", "", || {
        [&b"{\"@context\":\"http://schema.org\",\"@graph\":"[..], &b"[{\"@graph\":".repeat(MIB)]
            .concat()
    }),
    case("many.jsonld", "limit", || {
        let item = |it: usize| {
            format!(
                "{{\"@type\":\"Book\",\"@id\":\"http://h.example/{it}\",\"name\":\"Book {it}\"}},"
            )
        };
        let items: String = (0..200_000).map(item).collect();
        format!("{{\"@context\":\"http://schema.org\",\"@graph\":[{items}{{}}]}}").into_bytes()
    }),
    case("authors.csl.json", "", || {
        let authors = "{\"family\":\"A\",\"given\":\"B\"},".repeat(500_000);
        format!("[{{\"id\":\"a\",\"type\":\"book\",\"title\":\"x\",\"author\":[{authors}{{}}]}}]")
            .into_bytes()
    }),
    case("long.datacite.json", "", || {
        let titles = "{\"title\":\"words\"},".repeat(MIB);
        format!(
            "{{\"doi\":\"10.1/x\",\"creators\":[{{\"name\":\"A\"}}],\"titles\":[{titles}{{}}]}}"
        )
        .into_bytes()
    }),
    case("string.ipynb", "", || {
        [
            &b"{\"nbformat\":4,\"cells\":[{\"cell_type\":\"markdown\",\"source\":\""[..],
            &b"x".repeat(100 * MIB),
        ]
        .concat()
    }),
    case("cells.ipynb", "", || {
        let cell = "{\"cell_type\":\"code\",\"source\":[\"x\"],\"outputs\":[{\"text\":[\"y\"]}]},"
            .repeat(400_000);
        format!("{{\"nbformat\":4,\"cells\":[{cell}{{}}]}}").into_bytes()
    }),
    case("deep.ipynb", "", || {
        [&b"{\"nbformat\":4,\"cells\":"[..], &b"[{\"cell_type\":".repeat(MIB)].concat()
    }),
];

fn page(body: &str) -> Vec<u8> {
    format!("<!DOCTYPE html><html><head><title>A page</title></head><body>{body}").into_bytes()
}

/// Returns XML with ten entities, each of ten of the one before: 30 GB at each use of the last.
fn laughs(root: &str) -> String {
    let entity =
        |it: usize| format!("<!ENTITY lol{} \"{}\">", it + 1, format!("&lol{it};").repeat(10));
    let entities: String = (0..10).map(entity).collect();
    format!(
        "<?xml version=\"1.0\"?><!DOCTYPE {root} [<!ENTITY lol0 \"lol\">{entities}]><{root}><title>&lol10;</title>&lol10;</{root}>"
    )
}
