//! Tests of words in the languages of their records.

use super::*;
use crate::index::forms::COMPOUNDS_MAX;

/// Puts one object for each word: its name, its language (empty: not said) and its title.
fn site(objects: &[(&str, &str, &str)]) -> Site {
    let site = Site::new();
    for (name, language, title) in objects {
        let mut attributes = vec![("Title", *title)];
        if !language.is_empty() {
            attributes.push(("Language", language));
        }
        site.put(&format!("http://a.org/{name}"), &attributes);
    }
    site.apply();
    site
}

#[test]
fn words_are_found_in_the_forms_of_the_records_language() {
    let site = site(&[
        ("0-de", "de", "Die Häuser am Fluss"),
        ("1-de", "de-AT", "Alle Straßen der Stadt"),
        ("2-fr", "fr", "Les chevaux"),
        ("3-ru", "ru", "Все книги"),
        ("4-es", "es", "Las canciones"),
        ("5-pt", "pt", "As canções"),
        ("6-nl", "nl", "De huizen"),
        ("7-sv", "sv", "Bilarna"),
        ("8-fi", "fi", "Talossa"),
        ("9-it", "it", "I libri"),
    ]);
    for (queries, expected) in [
        ("haus Haus häuser hauses", "0-de"),
        ("strasse Straße strassen", "1-de"),
        ("cheval chevaux", "2-fr"),
        ("книга книгу КНИГИ", "3-ru"),
        ("canción canciones", "4-es"),
        ("canção", "5-pt"),
        ("huis", "6-nl"),
        ("bil bilar", "7-sv"),
        ("talo", "8-fi"),
        ("libro", "9-it"),
    ] {
        for query in queries.split(' ') {
            site.check(query, expected);
            site.check(&format!("title:{query}"), expected);
        }
    }
    site.check("\"haus am fluss\"", "");
    site.check("url:haus", "");
}

#[test]
fn words_are_found_with_and_without_particles() {
    let site = site(&[
        ("0-ko", "ko", "서울에서"),
        ("1-ko", "", "서울은 크다"),
        ("2-ko", "ko", "서울"),
        ("3-ar", "ar", "الكتاب"),
        ("4-ar", "", "كتاب جديد"),
        ("5-he", "he", "הספר"),
        ("6-he", "", "ספר חדש"),
        ("7-he", "he", "מלון"),
        ("8-he", "he", "בלון"),
        ("9-ko", "ko", "서울대"),
        ("9-none", "en", "서울에서 الكتاب הספר"),
    ]);
    site.check("서울", "0-ko 1-ko 2-ko");
    site.check("서울에서", "0-ko 2-ko 9-none");
    site.check("كتاب", "3-ar 4-ar");
    site.check("الكتاب", "3-ar 4-ar 9-none");
    site.check("ספר", "5-he 6-he");
    site.check("הספר", "5-he 6-he 9-none");
    site.check("מלון", "7-he");
    site.check("\"ספר\"", "6-he");
}

#[test]
fn a_form_of_one_language_is_none_in_another() {
    let site = site(&[
        ("english", "en", "The Häuser family, and les chevaux, in all Straßen"),
        ("french", "fr", "La famille Straßen"),
        ("german", "de", "Die chevaux der Häuser"),
        ("unknown", "", "x86"),
    ]);
    site.check("haus", "german");
    site.check("cheval", "");
    site.check("strasse", "");
    site.check("haus AND familie", "");
    site.check("hausers", "english german");
}

#[test]
fn a_record_that_says_no_language_shows_it() {
    let site = site(&[
        ("0", "", "Die alten Häuser am Fluss"),
        ("1", "", "Les chevaux de la ville"),
        ("2", "", "Книги"),
        ("3", "", "Straßen"),
        ("4", "", "The Häuser family of the town"),
    ]);
    site.check("haus", "0");
    site.check("cheval", "1");
    site.check("книга", "2");
    site.check("strasse", "3");
}

#[test]
fn a_compound_is_found_by_its_first_part_after_the_word() {
    let site = site(&[
        ("compound", "de", "Haustür"),
        ("flektiert", "de", "Haustüren"),
        ("kirche", "de", "Kirchturm"),
        ("kommandant", "de", "Kommandant"),
        ("english", "en", "Haustür"),
        ("french", "fr", "Haustür"),
        ("word", "de", "Haus"),
        ("form", "de", "Häuser"),
        ("other", "de", "Hausen"),
    ]);
    site.check("haus", "compound flektiert form other word");
    site.check("kirche", "kirche");
    site.check("kommen", "");
    site.check("hau", "");
    site.check("tür", "");
    site.check("haustür", "compound english flektiert french");
    let hits = site.ask("haus", |_| ()).hits;
    let score = |name: &str| hits.iter().find(|it| it.url.ends_with(name)).unwrap().score;
    assert!(score("/compound") < score("/form"), "{hits:?}");
    assert!(score("/compound") < score("/word"), "{hits:?}");
}

#[test]
fn the_most_frequent_compounds_are_looked_for() {
    let site = Site::new();
    for at in 0..=COMPOUNDS_MAX {
        let at = ["abcdefghij", "klmnopqrst"].map(|it| it.as_bytes()[at / 10 % 10] as char);
        let rest: String = at.iter().collect();
        let title = format!("Haus{rest}{}x", rest.to_uppercase());
        site.put(&format!("http://a/{title}"), &[("Title", &title), ("Language", "de")]);
    }
    for at in 0..2 {
        let attributes = [("Title", "Hausmeister"), ("Language", "de")];
        site.put(&format!("http://a/meister{at}"), &attributes);
    }
    site.apply();
    let answer = site.ask("haus", |_| ());
    assert!(names(&answer).contains(&"meister0".to_owned()), "{:?}", names(&answer));
}

#[test]
fn forms_leave_with_their_objects() {
    let site = site(&[("a", "de", "Häuser"), ("b", "de", "Häuser")]);
    site.check("haus", "a b");
    site.put("http://a.org/a", &[("Title", "Häuser"), ("Language", "en")]);
    site.delete("http://a.org/b");
    site.apply();
    site.check("haus", "");
}

#[test]
fn a_derived_word_is_found_after_the_word_itself() {
    let site = site(&[
        ("a", "en", "An operation"),
        ("b", "en", "Two operations"),
        ("c", "en", "An operator"),
    ]);
    site.check("operator", "a b c");
    site.check_order("operator", Sort::Relevance, "c a b");
    let hits = site.ask("operation", |_| ()).hits;
    let score = |name: &str| hits.iter().find(|it| it.url.ends_with(name)).unwrap().score;
    assert!((score("/a") - score("/b")).abs() < 1e-4, "{hits:?}");
    assert!(score("/c") < score("/b"), "{hits:?}");
}
