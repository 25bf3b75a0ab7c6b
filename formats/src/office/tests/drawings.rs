//! Tests of what is drawn beside texts and slides: diagrams, charts and comments.

use super::{check, zipped};

const DIAGRAM: &str = "<dgm:dataModel><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p></dgm:t></dgm:pt>\
    <dgm:pt><dgm:t><a:p><a:r><a:t>Do</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:dataModel>";

const CHART: &str = "<c:chart><c:title><a:p><a:r><a:t>Harvest</a:t></a:r></a:p></c:title><c:ser>\
    <c:cat><c:strRef><c:f>Sheet1!A1:A2</c:f><c:strCache><c:pt idx=\"0\"><c:v>Rye</c:v></c:pt><c:pt idx=\"1\"><c:v>Oats</c:v></c:pt></c:strCache></c:strRef></c:cat>\
    <c:val><c:numRef><c:numCache><c:pt idx=\"0\"><c:v>4.3</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:chart>";

/// The relationships of a part beside a diagram, two mentions of a chart, and a comment.
const RELATED: &str = "<Relationships><Relationship Id=\"a\" Type=\"x/diagramData\" Target=\"../d.xml\"/>\
    <Relationship Id=\"b\" Type=\"x/diagramLayout\" Target=\"../layout.xml\"/>\
    <Relationship Id=\"c\" Type=\"x/chart\" Target=\"../c.xml\"/><Relationship Id=\"d\" Type=\"x/chart\" Target=\"../c.xml\"/>\
    <Relationship Id=\"e\" Type=\"x/comments\" Target=\"../r.xml\"/></Relationships>";

const LAYOUT: &str = "<dgm:layoutDef><a:t>Placeholder</a:t></dgm:layoutDef>";

#[test]
fn diagrams_charts_and_comments_of_a_slide() {
    let slide =
        "<p:sld><p:sp><p:txBody><a:p><a:r><a:t>A slide</a:t></a:r></a:p></p:txBody></p:sp></p:sld>";
    let bytes = zipped(&[
        ("ppt/presentation.xml", "<p:presentation/>"),
        ("ppt/slides/slide1.xml", slide),
        ("ppt/slides/_rels/slide1.xml.rels", RELATED),
        ("ppt/d.xml", DIAGRAM),
        ("ppt/layout.xml", LAYOUT),
        ("ppt/c.xml", CHART),
        ("ppt/r.xml", "<p:cmLst><p:cm><p:text>Too short</p:text></p:cm></p:cmLst>"),
    ]);
    check(
        "n.pptx",
        &bytes,
        "Title: n.pptx\nSlides: 1\nPartial-Text: A slide | Plan | Do | Harvest | Rye Oats | Too short",
    );
}

#[test]
fn diagrams_charts_and_comments_of_a_text() {
    let related = RELATED.replace("../", "");
    let bytes = zipped(&[
        ("word/document.xml", "<w:document><w:p><w:r><w:t>A text</w:t></w:r></w:p></w:document>"),
        ("word/_rels/document.xml.rels", &related),
        ("word/d.xml", DIAGRAM),
        ("word/layout.xml", LAYOUT),
        ("word/c.xml", CHART),
        (
            "word/r.xml",
            "<w:comments><w:comment><w:p><w:r><w:t>Too</w:t></w:r><w:r><w:t> long</w:t></w:r></w:p></w:comment></w:comments>",
        ),
    ]);
    check(
        "n.docx",
        &bytes,
        "Title: n.docx\nPartial-Text: A text | Plan | Do | Harvest | Rye Oats | Too long",
    );
}

#[test]
fn objects_of_open_document() {
    let chart = "<office:chart><chart:chart><chart:title><text:p>Harvest</text:p></chart:title><table:table table:name=\"local-table\">\
        <table:table-row><table:table-cell><text:p>Rye</text:p></table:table-cell><table:table-cell office:value-type=\"float\" office:value=\"4.3\"><text:p>4.3</text:p></table:table-cell></table:table-row>\
        </table:table></chart:chart></office:chart>";
    let content = "<office:text><text:p>A text</text:p></office:text>";
    let bytes = zipped(&[
        ("content.xml", content),
        ("Object 1/content.xml", chart),
        ("Object 1/styles.xml", "<text:p>no text</text:p>"),
    ]);
    check("n.odt", &bytes, "Title: n.odt\nPartial-Text: A text | Harvest | Rye | 4.3");
}
