//! Tests of the formats: one record of each as repositories send it, and the resulting SOIF.

use super::check;

#[test]
fn qualified_dublin_core() {
    let elements = "<dc:title>The Art of Computer Programming</dc:title>\
        <dcterms:alternative>Fundamental Algorithms</dcterms:alternative>\
        <dc:creator>Knuth, Donald E.</dc:creator>\
        <dcterms:abstract>Data structures.</dcterms:abstract>\
        <dcterms:available>2001-02-03T00:00:00Z</dcterms:available>\
        <dcterms:issued>1968</dcterms:issued>\
        <dcterms:extent>634 p.</dcterms:extent>\
        <dcterms:isPartOf>Addison-Wesley series</dcterms:isPartOf>\
        <dcterms:spatial>California</dcterms:spatial>\
        <dcterms:bibliographicCitation>Knuth (1968)</dcterms:bibliographicCitation>\
        <dcterms:audience>Programmers</dcterms:audience>\
        <dc:rights xml:lang='en'>All rights reserved</dc:rights>";
    let names =
        "xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:dcterms='http://purl.org/dc/terms/'";
    let expected = "Title: The Art of Computer Programming\n\
        Alternative-Title: Fundamental Algorithms\n\
        Author: Knuth, Donald E.\n\
        Abstract: Data structures.\n\
        Date: 1968\n\
        Year: 1968\n\
        Format: 634 p.\n\
        Related: Addison-Wesley series\n\
        Coverage: California\n\
        Rights: All rights reserved\n\
        Citation: Knuth (1968)\n\
        Date-Available: 2001-02-03T00:00:00Z\n\
        Audience: Programmers";
    for container in [
        "q:qualifieddc xmlns:q='http://dspace.org/qualifieddc/'",
        "q:qualifieddc xmlns:q='http://epubs.cclrc.ac.uk/xmlns/qdc/'",
        "q:dcterms xmlns:q='http://dspace.org/xmlns/dspace/dim'",
        "oaidc:dcq xmlns:oaidc='http://www.bl.uk/namespaces/oai_dcq/'",
        "metadata",
    ] {
        let end = container.split(' ').next().unwrap_or_default();
        check("any", &format!("<{container} {names}>{elements}</{end}>"), expected);
    }
}

#[test]
fn marcxml() {
    check(
        "marc21",
        r##"<marc:record xmlns:marc="http://www.loc.gov/MARC21/slim">
          <marc:leader>01142cam a2200301 a 4500</marc:leader>
          <marc:controlfield tag="001">92005291</marc:controlfield>
          <marc:controlfield tag="008">920219s1993    caua   j      000 0 ger d</marc:controlfield>
          <marc:datafield tag="020" ind1=" " ind2=" "><marc:subfield code="a">0152038655 (pbk.) :</marc:subfield><marc:subfield code="c">$15.95</marc:subfield></marc:datafield>
          <marc:datafield tag="022" ind1=" " ind2=" "><marc:subfield code="a">0169-7552</marc:subfield></marc:datafield>
          <marc:datafield tag="024" ind1="7" ind2=" "><marc:subfield code="a">10.5072/0169</marc:subfield><marc:subfield code="2">doi</marc:subfield></marc:datafield>
          <marc:datafield tag="041" ind1="1" ind2=" "><marc:subfield code="a">gereng</marc:subfield><marc:subfield code="h">lat</marc:subfield></marc:datafield>
          <marc:datafield tag="100" ind1="1" ind2=" "><marc:subfield code="a">Sandburg, Carl,</marc:subfield><marc:subfield code="d">1878-1967.</marc:subfield></marc:datafield>
          <marc:datafield tag="245" ind1="1" ind2="0"><marc:subfield code="a">Arithmetic :</marc:subfield><marc:subfield code="b">a poem /</marc:subfield><marc:subfield code="c">Carl Sandburg.</marc:subfield></marc:datafield>
          <marc:datafield tag="246" ind1="3" ind2=" "><marc:subfield code="a">Sums.</marc:subfield></marc:datafield>
          <marc:datafield tag="250" ind1=" " ind2=" "><marc:subfield code="a">1st ed.</marc:subfield></marc:datafield>
          <marc:datafield tag="260" ind1=" " ind2=" "><marc:subfield code="a">San Diego :</marc:subfield><marc:subfield code="b">Harcourt,</marc:subfield><marc:subfield code="c">c1993.</marc:subfield></marc:datafield>
          <marc:datafield tag="264" ind1=" " ind2="3"><marc:subfield code="b">The printer</marc:subfield></marc:datafield>
          <marc:datafield tag="300" ind1=" " ind2=" "><marc:subfield code="a">1 v. (unpaged) :</marc:subfield><marc:subfield code="b">ill. ;</marc:subfield><marc:subfield code="c">26 cm.</marc:subfield></marc:datafield>
          <marc:datafield tag="500" ind1=" " ind2=" "><marc:subfield code="a">One Mylar sheet included.</marc:subfield></marc:datafield>
          <marc:datafield tag="520" ind1=" " ind2=" "><marc:subfield code="a">A poem about numbers.</marc:subfield></marc:datafield>
          <marc:datafield tag="540" ind1=" " ind2=" "><marc:subfield code="a">CC BY</marc:subfield></marc:datafield>
          <marc:datafield tag="650" ind1=" " ind2="0"><marc:subfield code="a">Arithmetic</marc:subfield><marc:subfield code="v">Juvenile poetry.</marc:subfield></marc:datafield>
          <marc:datafield tag="700" ind1="1" ind2=" "><marc:subfield code="a">Rand, Ted,</marc:subfield><marc:subfield code="e">ill.</marc:subfield></marc:datafield>
          <marc:datafield tag="700" ind1="1" ind2=" "><marc:subfield code="a">Roe, Ann,</marc:subfield><marc:subfield code="4">http://id.loc.gov/vocabulary/relators/aut</marc:subfield></marc:datafield>
          <marc:datafield tag="710" ind1="2" ind2=" "><marc:subfield code="a">Numbers Society.</marc:subfield></marc:datafield>
          <marc:datafield tag="773" ind1="0" ind2=" "><marc:subfield code="t">Collected poems.</marc:subfield><marc:subfield code="g">p. 7</marc:subfield></marc:datafield>
          <marc:datafield tag="856" ind1="4" ind2="0"><marc:subfield code="u">https://archive.example.org/92005291.pdf</marc:subfield></marc:datafield>
          <marc:datafield tag="856" ind1="4" ind2="2"><marc:subfield code="u">https://archive.example.org/toc</marc:subfield></marc:datafield>
          <marc:datafield tag="880" ind1="1" ind2="0"><marc:subfield code="6">245-01</marc:subfield><marc:subfield code="a">算数</marc:subfield></marc:datafield>
        </marc:record>"##,
        "Title: Arithmetic : a poem\n\
         Alternative-Title: Sums | 算数\n\
         Author: Sandburg, Carl | Roe, Ann | Numbers Society\n\
         Contributor: Rand, Ted\n\
         Abstract: A poem about numbers.\n\
         Type: Book\n\
         Date: 1993\n\
         Original-Date: c1993\n\
         Year: 1993\n\
         Language: deu | eng\n\
         Original-Language: ger | eng\n\
         Publisher: Harcourt\n\
         Format: 1 v. (unpaged) : ill. ; 26 cm.\n\
         Identifier: urn:isbn:0152038655 | urn:issn:0169-7552 | doi:10.5072/0169 | https://archive.example.org/92005291.pdf\n\
         Landing-Page: https://archive.example.org/92005291.pdf\n\
         Source: Collected poems. p. 7\n\
         Related: https://archive.example.org/toc\n\
         Rights: CC BY\n\
         Keywords: Arithmetic -- Juvenile poetry\n\
         Control-Number: 92005291\n\
         Edition: 1st ed.\n\
         Place: San Diego\n\
         Note: One Mylar sheet included.\n\
         URL-References: https://archive.example.org/92005291.pdf",
    );
}

#[test]
fn marcxml_without_an_imprint_takes_the_year_of_the_fixed_field() {
    let record = |leader: &str, more: &str| {
        format!(
            "<collection xmlns='http://www.loc.gov/MARC21/slim'><record><leader>{leader}</leader>\
             <controlfield tag='008'>920219s1901    xx ||||||||||||||||||||||| d</controlfield>\
             <datafield tag='245'><subfield code='a'>T</subfield></datafield>{more}</record></collection>"
        )
    };
    check(
        "x",
        &record("00000nas a2200000 a 4500", ""),
        "Title: T\nType: Serial\nDate: 1901\nYear: 1901",
    );
    let thesis = "<datafield tag='502'><subfield code='a'>Diss.</subfield></datafield>";
    check(
        "x",
        &record("00000nam a2200000 a 4500", thesis),
        "Title: T\nType: Thesis\nDate: 1901\nYear: 1901\nThesis: Diss.",
    );
}

#[test]
fn mods() {
    check(
        "mods",
        r#"<mods xmlns="http://www.loc.gov/mods/v3" xmlns:xlink="http://www.w3.org/1999/xlink" version="3.7">
          <titleInfo><nonSort>The</nonSort><title>Harvest system</title><subTitle>discovery and access</subTitle></titleInfo>
          <titleInfo type="abbreviated"><title>Harvest</title></titleInfo>
          <name type="personal"><namePart type="given">C. Mic</namePart><namePart type="family">Bowman</namePart>
            <namePart type="date">1957-</namePart><role><roleTerm type="code">aut</roleTerm></role></name>
          <name type="corporate"><namePart>University of Colorado</namePart></name>
          <name><namePart>Editor, Ed</namePart><role><roleTerm type="text">editor</roleTerm></role></name>
          <typeOfResource>text</typeOfResource><genre>journal article</genre>
          <originInfo><place><placeTerm type="code">ne</placeTerm><placeTerm type="text">Amsterdam</placeTerm></place>
            <publisher>Elsevier</publisher><dateIssued encoding="w3cdtf" keyDate="yes">1995-12</dateIssued>
            <dateCreated point="start">1993</dateCreated><dateCreated point="end">1995</dateCreated></originInfo>
          <language><languageTerm type="text">English</languageTerm><languageTerm type="code" authority="iso639-2b">eng</languageTerm></language>
          <physicalDescription><extent>7 p.</extent><internetMediaType>application/pdf</internetMediaType></physicalDescription>
          <abstract>It scales.</abstract><note type="funding">ARPA</note>
          <subject authority="lcsh"><topic>Information retrieval</topic><geographic>Colorado</geographic></subject>
          <subject><name><namePart type="family">Salton</namePart><namePart type="given">G.</namePart></name></subject>
          <classification authority="ddc">004.6</classification>
          <relatedItem type="host"><titleInfo><title>Computer Networks</title></titleInfo>
            <part><detail type="volume"><number>28</number></detail><extent unit="pages"><start>119</start><end>125</end></extent></part></relatedItem>
          <relatedItem type="series"><titleInfo><title>Reports</title></titleInfo></relatedItem>
          <identifier type="doi">10.5072/0169</identifier><identifier type="isbn" invalid="yes">1</identifier>
          <location><physicalLocation>Boulder</physicalLocation><url usage="primary display">https://archive.example.org/1</url></location>
          <accessCondition type="use and reproduction">CC BY</accessCondition>
          <recordInfo><recordIdentifier>xyz</recordIdentifier></recordInfo>
        </mods>"#,
        "Title: The Harvest system: discovery and access\n\
         Alternative-Title: Harvest\n\
         Author: Bowman, C. Mic | University of Colorado\n\
         Contributor: Editor, Ed\n\
         Abstract: It scales.\n\
         Type: text\n\
         Date: 1995-12 | 1993/1995\n\
         Year: 1993\n\
         Language: eng\n\
         Publisher: Elsevier\n\
         Format: 7 p. | application/pdf\n\
         Identifier: doi:10.5072/0169 | https://archive.example.org/1\n\
         Landing-Page: https://archive.example.org/1\n\
         Source: Computer Networks 28 119 125\n\
         Rights: CC BY\n\
         Keywords: Information retrieval -- Colorado | Salton, G.\n\
         Place: Amsterdam\n\
         Note: ARPA\n\
         Classification: 004.6\n\
         Series: Reports\n\
         Location: Boulder\n\
         Resource-Type: text | journal article\n\
         URL-References: https://archive.example.org/1",
    );
}

const DATACITE: &str = r#"<resource xmlns="http://datacite.org/schema/kernel-4">
    <identifier identifierType="DOI">10.5072/EXAMPLE</identifier>
    <creators>
      <creator><creatorName nameType="Personal">Miller, Elizabeth</creatorName><givenName>Elizabeth</givenName></creator>
      <creator><givenName>Ann</givenName><familyName>Roe</familyName></creator>
    </creators>
    <titles><title xml:lang="en">Tide gauges</title><title titleType="Subtitle">1850 to 1900</title></titles>
    <publisher>DataCite</publisher><publicationYear>2014</publicationYear>
    <resourceType resourceTypeGeneral="Dataset">Time series</resourceType>
    <subjects><subject subjectScheme="dewey">551.46</subject><subject>sea level</subject></subjects>
    <contributors><contributor contributorType="ProjectLeader"><contributorName>Starr, Joan</contributorName></contributor></contributors>
    <dates><date dateType="Updated">2015-06-05</date><date dateType="Collected">1850/1900</date></dates>
    <language>en-US</language>
    <alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL">https://archive.example.org/tide</alternateIdentifier></alternateIdentifiers>
    <relatedIdentifiers><relatedIdentifier relatedIdentifierType="arXiv" relationType="IsReviewedBy">1511.00001</relatedIdentifier></relatedIdentifiers>
    <sizes><size>3 MB</size></sizes><formats><format>text/csv</format></formats><version>4.2</version>
    <rightsList><rights rightsURI="https://creativecommons.org/publicdomain/zero/1.0/">CC0 1.0</rights></rightsList>
    <descriptions><description descriptionType="Abstract">Hourly <br/> levels.</description>
      <description descriptionType="Methods">Gauges.</description></descriptions>
    <geoLocations><geoLocation><geoLocationPlace>Brest</geoLocationPlace></geoLocation></geoLocations>
    <fundingReferences><fundingReference><funderName>A council</funderName><awardNumber>CBET-106</awardNumber></fundingReference></fundingReferences>
  </resource>"#;

#[test]
fn datacite() {
    let expected = "Title: Tide gauges\n\
        Alternative-Title: 1850 to 1900\n\
        Author: Miller, Elizabeth | Roe, Ann\n\
        Contributor: Starr, Joan\n\
        Description: Gauges.\n\
        Abstract: Hourly levels.\n\
        Type: Dataset\n\
        Date: 2014\n\
        Year: 2014\n\
        Language: eng\n\
        Original-Language: en-US\n\
        Publisher: DataCite\n\
        Format: 3 MB | text/csv\n\
        Identifier: doi:10.5072/EXAMPLE | https://archive.example.org/tide\n\
        Landing-Page: https://archive.example.org/tide\n\
        Related: arXiv:1511.00001\n\
        Coverage: Brest\n\
        Rights: CC0 1.0 | https://creativecommons.org/publicdomain/zero/1.0/\n\
        Keywords: 551.46 | sea level\n\
        Date-Modified: 2015-06-05\n\
        Date-Collected: 1850/1900\n\
        Version: 4.2\n\
        Funding: A council CBET-106\n\
        Resource-Type: Dataset | Time series";
    check("datacite", DATACITE, expected);
    let older = DATACITE.replace("kernel-4", "kernel-3");
    check("datacite", &older, expected);
    let wrapped = format!(
        "<oai_datacite xmlns=\"http://schema.datacite.org/oai/oai-1.1/\"><schemaVersion>4</schemaVersion>\
         <datacentreSymbol>X</datacentreSymbol><payload>{DATACITE}</payload></oai_datacite>"
    );
    check("oai_datacite", &wrapped, expected);
}

#[test]
fn mets() {
    let mets = |sections: &str, map: &str| {
        format!(
            "<mets:mets xmlns:mets='http://www.loc.gov/METS/' xmlns:xlink='http://www.w3.org/1999/xlink' \
             xmlns:dc='http://purl.org/dc/elements/1.1/' OBJID='hdl:1842/3' LABEL='A label' TYPE='Monograph'>\
             {sections}<mets:fileSec><mets:fileGrp USE='MASTER'><mets:file ID='f1'>\
             <mets:FLocat LOCTYPE='URL' xlink:href='https://archive.example.org/1.tif'/></mets:file>\
             <mets:file ID='f2'><mets:FLocat xlink:href='file:///x.tif'/></mets:file></mets:fileGrp>\
             </mets:fileSec>{map}</mets:mets>"
        )
    };
    let tail = "Identifier: hdl:1842/3\n\
        Landing-Page: https://hdl.handle.net/1842/3\n\
        URL-References: https://archive.example.org/1.tif";
    let bare = "<mets:dmdSec ID='d1'><mets:mdWrap MDTYPE='DC'><mets:xmlData><dc:title>Page 1</dc:title>\
        </mets:xmlData></mets:mdWrap></mets:dmdSec>";
    let whole = "<mets:dmdSec ID='d2'><mets:mdWrap MDTYPE='MODS'><mets:xmlData>\
        <mods xmlns='http://www.loc.gov/mods/v3'><titleInfo><title>The book</title></titleInfo></mods>\
        </mets:xmlData></mets:mdWrap></mets:dmdSec>";
    let map = "<mets:structMap TYPE='PHYSICAL'><mets:div DMDID='d1'/></mets:structMap>\
        <mets:structMap TYPE='LOGICAL'><mets:div><mets:div DMDID='d2'/></mets:div></mets:structMap>";
    let both = format!("{bare}{whole}");
    check("mets", &mets(&both, map), &format!("Title: The book\nType: Monograph\n{tail}"));
    check("mets", &mets(&both, ""), &format!("Title: Page 1\nType: Monograph\n{tail}"));
    check("mets", &mets("", ""), &format!("Title: A label\nType: Monograph\n{tail}"));
}

#[test]
fn rfc_1807() {
    check(
        "oai_rfc1807",
        "<rfc1807 xmlns='http://info.internet.isi.edu:80/in-notes/rfc/files/rfc1807.txt'>\
         <bib-version>v2</bib-version><id>CUCS//CU-CS-732-94</id><entry>January 15, 1995</entry>\
         <organization>University of Colorado, Boulder</organization>\
         <title>The Harvest Information Discovery and Access System</title>\
         <type>Technical Report</type><author>Bowman, C. Mic</author><corp-author>IRTF-RD</corp-author>\
         <contact>harvest@example.org</contact><date>August 1994</date><pages>29</pages>\
         <other_access>url:http://archive.example.org/732.ps</other_access>\
         <keyword>resource discovery</keyword><cr-category>H.3.3</cr-category>\
         <language>English</language><notes>Revised March 1995</notes>\
         <abstract>It scales.</abstract></rfc1807>",
        "Title: The Harvest Information Discovery and Access System\n\
         Author: Bowman, C. Mic | IRTF-RD\n\
         Abstract: It scales.\n\
         Type: Technical Report\n\
         Date: 1994-08\n\
         Original-Date: August 1994\n\
         Year: 1994\n\
         Language: eng\n\
         Original-Language: English\n\
         Publisher: University of Colorado, Boulder\n\
         Identifier: CUCS//CU-CS-732-94 | http://archive.example.org/732.ps\n\
         Landing-Page: http://archive.example.org/732.ps\n\
         Keywords: resource discovery | H.3.3\n\
         Contact: harvest@example.org\n\
         Pages: 29\n\
         Note: Revised March 1995\n\
         URL-References: http://archive.example.org/732.ps",
    );
}

#[test]
fn a_format_without_its_namespace_is_known_by_its_prefix() {
    check("mods", "<mods><titleInfo><title>T</title></titleInfo></mods>", "Title: T");
    check(
        "marc21",
        "<record xmlns='u'><datafield tag='245'><subfield code='a'>T /</subfield></datafield></record>",
        "Title: T",
    );
}
