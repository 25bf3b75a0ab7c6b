//! Tests of text beside the contents of pages: annotations, fields, hidden layers, outlines.

use super::super::super::testing::render;
use super::{document, stream};
use crate::Type;
use crate::limit::{Limit, lowered};

const FORM: &str = "/Type/XObject/Subtype/Form/BBox[0 0 99 20]/Resources<</Font<</F1 3 0 R>>>>";

/// Returns a document of one page with annotations; objects are numbered from 6, those of `more` first.
fn annotated(content: &str, more: &[Vec<u8>], annotations: &[&str]) -> Vec<u8> {
    let first = 6 + more.len();
    let list: Vec<_> = (0..annotations.len()).map(|it| format!("{} 0 R", first + it)).collect();
    let page = format!(
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R\
         /Resources<</Font<</F1 3 0 R>>>>/Annots[{}]>>",
        list.join(" ")
    );
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[4 0 R]>>".to_vec(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
        page.into_bytes(),
        stream("", content.as_bytes()),
    ];
    objects.extend_from_slice(more);
    objects.extend(annotations.iter().map(|it| format!("<</Type/Annot{it}>>").into_bytes()));
    document(&objects, "")
}

fn drawing(text: &str) -> Vec<u8> {
    stream(FORM, format!("BT /F1 12 Tf 2 2 Td {text} ET").as_bytes())
}

#[track_caller]
fn check_text(pdf: &[u8], expected: &str) {
    let record = render("p.pdf", Type::Pdf, pdf);
    let text = record.split_once("Partial-Text: ").map_or("", |(_, text)| text);
    assert_eq!(text, expected, "{record}");
}

#[test]
fn values_of_fields_are_text() {
    let more = [
        drawing("(Ada) Tj 30 0 Td (Digger) Tj"),
        b"<</FT/Tx/V(above)/Parent 7 0 R>>".to_vec(),
        b"<</Parent 8 0 R>>".to_vec(),
    ];
    let widget = "/Subtype/Widget/Rect[0 0 99 20]";
    let fields = [
        "/FT/Tx/V(one\\rtwo)",
        // Letters in boxes.
        "/FT/Tx/V(Ada)/AP<</N 6 0 R>>",
        "/FT/Tx/AP<</N 6 0 R>>",
        "/Parent 7 0 R",
        "/FT/Ch/V(de)/Opt[[(at)(Austria)][(de)(Germany)]]",
        "/FT/Ch/V[(a)(b)]/Opt[(a)(b)(c)]",
        "/FT/Btn/Ff 65536/AP<</N 6 0 R>>",
        // What is not seen: a password, a mark, hidden fields; fields in a circle.
        "/FT/Tx/Ff 8192/V(secret)",
        "/FT/Btn/V/Yes/AP<</N 6 0 R>>",
        "/FT/Tx/F 2/V(secret)",
        "/FT/Tx/F 32/V(secret)",
        "/Parent 8 0 R",
    ];
    let mut fields: Vec<String> = fields.iter().map(|it| format!("{it}{widget}")).collect();
    fields.push("/FT/Tx/Subtype/Widget/Rect[5 5 5 5]/V(secret)".to_owned());
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    check_text(
        &annotated("BT /F1 12 Tf 50 700 Td (Name:) Tj ET", &more, &fields),
        "Name: | one | two | Ada | Ada Digger | above | Germany | a | b | Ada Digger",
    );
}

#[test]
fn appearances_and_comments_are_text_but_no_title() {
    let form = FORM.replace("/Font", "/XObject<</X 7 0 R>>/Font");
    let more = [drawing("(Approved) Tj"), stream(&form, b"BT /F1 9 Tf (round) Tj ET /X Do")];
    let annotations = [
        "/Subtype/Stamp/AP<</N 6 0 R>>",
        "/Subtype/FreeText/Contents(not drawn)/AP<</N 6 0 R>>",
        "/Subtype/FreeText/Contents(typed)",
        "/Subtype/Text/Contents(a remark)",
        "/Subtype/Highlight/RC(<p>rich &amp;</p><p>ready</p>)",
        "/Subtype/Link/Contents(a link)",
        "/Subtype/Popup/Contents(a window)",
        "/Subtype/Text/F 2/Contents(hidden)",
    ];
    let pdf = annotated("", &more, &annotations);
    check_text(&pdf, "Approved | Approved | typed | a remark | rich & | ready");
    assert!(render("p.pdf", Type::Pdf, &pdf).starts_with("Title: p.pdf\n"));
    let round = annotated("", &more, &["/Subtype/Stamp/AP<</N 7 0 R>>"]);
    assert!(render("p.pdf", Type::Pdf, &round).contains("Partial-Text: round"));
    // What an appearance costs counts.
    let over = lowered::with(Limit::PdfContents, 40, || render("p.pdf", Type::Pdf, &pdf));
    assert!(over.contains("! limit: opens to more than 40 bytes by page 1; cut"), "{over}");
    let over = lowered::with(Limit::Operations, 3, || render("p.pdf", Type::Pdf, &pdf));
    assert!(over.contains("! limit: has more than 3 drawing operations"), "{over}");
}

#[test]
fn lines_of_hidden_layers_follow_on_the_page() {
    let content = "BT /F1 12 Tf 50 700 Td (seen) Tj ET \
        /OC /L BDC BT /F1 12 Tf 50 650 Td (Notes) Tj ET EMC \
        BT /F1 12 Tf 50 600 Td (seen below) Tj ET";
    let page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R\
        /Resources<</Font<</F1 3 0 R>>/Properties<</L 6 0 R>>>>>>";
    for first in ["/OFF[6 0 R]", "/BaseState/OFF"] {
        let catalog =
            format!("<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[6 0 R]/D<<{first}>>>>>>");
        let objects = [
            catalog.into_bytes(),
            b"<</Type/Pages/Count 1/Kids[4 0 R]>>".to_vec(),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
            page.to_vec(),
            stream("", content.as_bytes()),
            b"<</Type/OCG/Name(Notes)>>".to_vec(),
        ];
        let pdf = document(&objects, "");
        check_text(&pdf, "seen | seen below | Notes");
        // What is seen is not lost for what is hidden.
        let cut = "seen | seen below\nTruncated: operations 8\n\
            ! limit: has more than 8 drawing operations; the rest was left out";
        lowered::with(Limit::Operations, 80, || check_text(&pdf, cut));
    }
}

#[test]
fn titles_of_the_outline_stand_for_pages_without_text() {
    let outline = |content: &[u8]| {
        let objects = [
            b"<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>".to_vec(),
            b"<</Type/Pages/Count 1/Kids[4 0 R]>>".to_vec(),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R\
              /Resources<</Font<</F1 3 0 R>>>>>>"
                .to_vec(),
            stream("", content),
            b"<</First 7 0 R/Last 8 0 R>>".to_vec(),
            b"<</Title(I. Wells)/First 9 0 R/Next 8 0 R>>".to_vec(),
            // Back to the first.
            b"<</Title(II. Mills)/Next 7 0 R>>".to_vec(),
            b"<</Title(Deep\\000ones)/Parent 7 0 R>>".to_vec(),
        ];
        document(&objects, "")
    };
    check_text(&outline(b"0 0 9 9 re f"), "I. Wells | Deep ones | II. Mills");
    check_text(&outline(b"BT /F1 9 Tf (words) Tj ET"), "words");
}
