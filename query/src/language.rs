//! The languages of a record, by which words have forms.
//!
//! A record has the languages that its `Language` says. If it says none, its common words and its letters
//! show them, as far as they do: texts of less than a hundred letters have no `Language`.
//!
//! English is not among them, since its forms are looked for in every record.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use soif::Record;

use crate::particles::{arabic, hebrew, korean};
use crate::words::{Words, fold};

/// Maximum number of languages of one record.
pub const LANGUAGES_MAX: usize = 3;
/// Length of the beginnings of texts by which a language is guessed, in bytes together: a guess costs as
/// much as a small part of indexing even a short text.
const SAMPLE_BYTES_MAX: usize = 300;
/// One word in so many must be common in a language, or have letters of it.
const COMMON_WORDS_EACH: usize = 8;
/// Fewest letters before an ending to which accents are restored.
const ROOT_LETTERS_MIN: usize = 3;
/// Attributes by which the language is guessed.
const SAMPLES: [&str; 5] = ["Title", "Description", "Full-Text", "Partial-Text", "Keywords"];

/// A language other than English, by its place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(u8);

/// A set of languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Languages(u32);

/// What is known of a language.
struct Row {
    /// The first parts of its tags (BCP 47).
    tags: &'static [&'static str],
    stemmer: RowStemmer,
    /// Whether it writes words that belong together as one.
    compounds: bool,
    /// Common words that few other languages have, folded.
    common: &'static str,
    /// Small letters, written in few other languages.
    letters: &'static str,
    /// Endings with accents, which are restored before a word is stemmed; `a=b` puts `b` in place of `a`.
    endings: &'static str,
}

/// What makes the stems of a language.
enum RowStemmer {
    Snowball(Algorithm),
    /// Cuts off particles.
    Cut(fn(&str) -> &str),
}

const fn row(
    tags: &'static [&'static str],
    stemmer: Algorithm,
    compounds: bool,
    common: &'static str,
    letters: &'static str,
) -> Row {
    let stemmer = RowStemmer::Snowball(stemmer);
    Row { tags, stemmer, compounds, common, letters, endings: "" }
}

const fn cut_row(
    tags: &'static [&'static str],
    cut: fn(&str) -> &str,
    letters: &'static str,
) -> Row {
    let stemmer = RowStemmer::Cut(cut);
    Row { tags, stemmer, compounds: false, common: "", letters, endings: "" }
}

impl Row {
    const fn with(mut self, endings: &'static str) -> Self {
        self.endings = endings;
        self
    }
}

/// The place of a language is part of the index's layout.
#[rustfmt::skip]
static ROWS: [Row; 26] = [
    row(&["de"], Algorithm::German, true,
        "der die das und ist nicht ein eine einen mit von den dem des auf fur im zu zum zur sich wie am sind auch",
        "äöüß"),
    row(&["fr"], Algorithm::French, false,
        "le la les l d de des une un est et dans pour que qui sur avec du au aux ce cette ne pas par sont",
        "éèêëàâçœîïôûù").with(FRENCH),
    row(&["es"], Algorithm::Spanish, false,
        "el la los las no una un es y en que de del por con para se lo como su al mas", "ñáéíóú"),
    row(&["it"], Algorithm::Italian, false,
        "il lo la le i gli l di che e un una per con non del della dei delle sono si da nel alla", "àèìòù"),
    row(&["pt"], Algorithm::Portuguese, false,
        "o os as um uma de da do das dos em que nao para com por e ao se na no", "ãõçáâéêíóú").with(PORTUGUESE),
    row(&["nl"], Algorithm::Dutch, true,
        "de het een en van is dat niet op te met voor aan zijn bij ook worden naar", "ë"),
    row(&["ru"], Algorithm::Russian, false, "", "абвгдежзийклмнопрстуфхцчшщъыьэюяё"),
    row(&["sv"], Algorithm::Swedish, true,
        "och att det som en pa ar av for med den till inte ett har om i", "åäö"),
    row(&["da"], Algorithm::Danish, true,
        "og at det som en pa er af for med den til ikke et har om i", "åæø"),
    row(&["no", "nb", "nn"], Algorithm::Norwegian, true,
        "og at det som en pa er av for med den til ikke et har om i", "åæø"),
    row(&["fi"], Algorithm::Finnish, true,
        "ja on ei etta se oli mutta han ovat kun tai myos joka voi", "äö"),
    row(&["pl"], Algorithm::Polish, false,
        "i w na z sie nie jest do to ze od jak przez dla", "ąćęłńśźżó").with(POLISH),
    row(&["cs"], Algorithm::Czech, false, "a v na se je ze s do jako pro by jsou", "řěůčšžýáíé"),
    row(&["hu"], Algorithm::Hungarian, true, "a az es hogy nem egy is ez meg vagy", "őűáéóöüú"),
    row(&["ro"], Algorithm::Romanian, false, "si de la in cu pe un o nu este care din", "ășțâî"),
    row(&["ca"], Algorithm::Catalan, false,
        "el la els les l d i de que amb per una un del dels als", "àèéíòóúç"),
    row(&["tr"], Algorithm::Turkish, false, "ve bir bu icin ile da de olarak gibi", "ğşıçöü"),
    row(&["el"], Algorithm::Greek, false, "", "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ"),
    row(&["et"], Algorithm::Estonian, true, "ja on ei et see ta oli aga kui", "õäöü"),
    row(&["lt"], Algorithm::Lithuanian, false, "ir yra kad i su is tai bet kaip", "ąčęėįšųūž"),
    row(&["eu"], Algorithm::Basque, false, "eta da ez du bat dira egin", ""),
    row(&["hy"], Algorithm::Armenian, false, "", "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ"),
    row(&["sr", "hr", "bs", "sh"], Algorithm::Serbian, false,
        "je i u na se da su za od sa kao ili", "čćđšžђјљњћџ"),
    cut_row(&["ko"], korean, "가고과기는다대도들라로를리서스시어에와으은을의이인자전정지하한해"),
    cut_row(&["ar"], arabic, "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىأإآؤئ"),
    cut_row(&["he", "iw"], hebrew, "אבגדהוזחטיכלמנסעפצקרשתםןץףך"),
];

// Endings with the accents that their language's stemmer needs. Words come without accents, so that
// without these a third to a half of the pairs of forms would be lost. Portuguese plurals become singulars,
// which the stemmer leaves as they are in short words.
const FRENCH: &str = "èrent ières ière âmes âtes ées ée ités ité";
const PORTUGUESE: &str = "ão oes=ão aes=ão coes=ção ção ável aveis=ável ível iveis=ível íamos áramos ássemos êramos íramos êssemos íssemos \
    ávamos íeis ásseis êsseis ísseis áreis ência ências ância âncias ará arás erá erás irá irás \
    aríeis ário";
const POLISH: &str = "ów śmy ście ać eć ić ła ło ły łam łaś ść ał ił liśmy łyście łyśmy libyśmy libyście łybyśmy \
    łybyście łaby łabym łabyś łoby łyby ałby ałbym ałbyś iłby iłbym iłbyś";

/// Common words of English: a text with as many of these as of another language's is English.
const ENGLISH: &str =
    "the of and to that with this for are be you from not or it is in a an if when has was any all";

/// What words and letters say of the language.
struct Signs {
    words: HashMap<&'static str, Languages>,
    letters: HashMap<char, Languages>,
    /// For each language, its endings without and with accents.
    endings: Vec<HashMap<String, &'static str>>,
}

/// The bit of English among the signs.
const ENGLISH_BIT: u32 = 1 << ROWS.len();

static SIGNS: LazyLock<Signs> = LazyLock::new(|| {
    let ending = |it: &'static str| match it.split_once('=') {
        Some((plain, accented)) => (plain.to_owned(), accented),
        None => (fold(it), it),
    };
    let endings = ROWS.iter().map(|row| row.endings.split_whitespace().map(ending));
    let endings = endings.map(Iterator::collect).collect();
    let mut signs = Signs { words: HashMap::new(), letters: HashMap::new(), endings };
    let mut add = |word, bit| signs.words.entry(word).or_insert(Languages(0)).0 |= bit;
    ENGLISH.split(' ').for_each(|word| add(word, ENGLISH_BIT));
    for (at, row) in ROWS.iter().enumerate() {
        row.common.split_whitespace().for_each(|word| add(word, 1 << at));
        for letter in row.letters.chars() {
            signs.letters.entry(letter).or_insert(Languages(0)).0 |= 1 << at;
        }
    }
    signs
});

impl Language {
    /// Returns the language with a number from [`number`](Self::number).
    pub fn by_number(number: u64) -> Option<Self> {
        u8::try_from(number).ok().filter(|it| usize::from(*it) < ROWS.len()).map(Self)
    }

    /// Returns how many languages there are.
    pub const fn count() -> usize {
        ROWS.len()
    }

    /// Returns the number by which an index knows it.
    pub fn number(self) -> u64 {
        self.0.into()
    }

    /// Returns the stem of a folded word.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        let Some(row) = ROWS.get(usize::from(self.0)) else { return Cow::Borrowed(word) };
        let stemmer = match row.stemmer {
            RowStemmer::Snowball(algorithm) => Stemmer::new(algorithm),
            RowStemmer::Cut(cut) => return Cow::Borrowed(cut(word)),
        };
        match self.accented(row, word) {
            Some(accented) => Cow::Owned(fold(&stemmer.stem(&accented))),
            None => stemmer.stem(word),
        }
    }

    /// Returns a word with the accents of the longest ending that it has; `None` if it has none.
    fn accented(self, row: &Row, word: &str) -> Option<String> {
        if row.endings.is_empty() {
            return None;
        }
        let endings = SIGNS.endings.get(usize::from(self.0))?;
        let cuts = word.char_indices().map(|(at, _)| at).skip(ROOT_LETTERS_MIN);
        let mut cut = cuts.filter_map(|at| Some((at, endings.get(word.get(at..)?)?)));
        cut.next().and_then(|(at, ending)| Some(word.get(..at)?.to_owned() + ending))
    }

    /// Returns whether it writes words that belong together as one: `Haustür`.
    pub fn has_compounds(self) -> bool {
        ROWS.get(usize::from(self.0)).is_some_and(|row| row.compounds)
    }

    /// Returns the language of a tag; `None` for English and for languages without forms.
    fn by_tag(tag: &str) -> Option<Self> {
        let first = tag.trim().split(['-', '_']).next()?.to_ascii_lowercase();
        let at = ROWS.iter().position(|row| row.tags.contains(&first.as_str()))?;
        u8::try_from(at).ok().map(Self)
    }
}

impl Languages {
    /// Returns the languages of `record`.
    pub fn of(record: &Record) -> Self {
        let declared = record.text("Language").unwrap_or_default();
        match declared.trim() {
            "" => Self::guessed(record),
            tags => tags.lines().take(LANGUAGES_MAX).filter_map(Language::by_tag).collect(),
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether `language` is one of them.
    pub fn has(self, language: Language) -> bool {
        self.0 >> language.0 & 1 == 1
    }

    /// Returns them in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Language> {
        (0..32).map(Language).filter(move |it| self.has(*it))
    }

    /// Adds a language.
    pub fn add(&mut self, language: Language) {
        self.0 |= 1 << language.0;
    }

    /// Returns the languages of which a text has the most signs, if it has enough, and more than of
    /// English.
    fn guessed(record: &Record) -> Self {
        let mut counts = [0_usize; ROWS.len() + 1];
        let (mut all, mut word, mut left) = (0, String::new(), SAMPLE_BYTES_MAX);
        for name in SAMPLES {
            let bytes = record.get(name).unwrap_or_default();
            let sample = String::from_utf8_lossy(bytes.get(..left).unwrap_or(bytes));
            left = left.saturating_sub(sample.len());
            let mut words = Words::new(&sample);
            while let Some(span) = words.next_into(&mut word) {
                all += 1;
                let written = sample.get(span.start..span.end).unwrap_or_default();
                let mut signs = SIGNS.words.get(word.as_str()).map_or(0, |it| it.0);
                if !written.is_ascii() {
                    let letters = written.chars().flat_map(char::to_lowercase);
                    let known = letters.filter_map(|it| SIGNS.letters.get(&it));
                    signs = known.fold(signs, |signs, it| signs | it.0);
                }
                while signs != 0 {
                    if let Some(count) = counts.get_mut(signs.trailing_zeros() as usize) {
                        *count += 1;
                    }
                    signs &= signs - 1;
                }
            }
        }
        let [others @ .., english] = &counts;
        let most = others.iter().copied().max().unwrap_or_default();
        if most <= *english || most * COMMON_WORDS_EACH < all {
            return Self::default();
        }
        let having = (0..).map(Language).zip(others).filter(|(_, count)| **count == most);
        having.take(LANGUAGES_MAX).map(|(language, _)| language).collect()
    }
}

impl FromIterator<Language> for Languages {
    fn from_iter<I: IntoIterator<Item = Language>>(languages: I) -> Self {
        let mut all = Self::default();
        languages.into_iter().for_each(|it| all.add(it));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attributes: &[(&str, &str)], expected: &[&str]) {
        let mut record = Record::new("FILE", "http://h/");
        attributes.iter().for_each(|(name, value)| record.push(*name, *value));
        let expected: Languages = expected.iter().filter_map(|it| Language::by_tag(it)).collect();
        assert_eq!(Languages::of(&record), expected, "{attributes:?}");
    }

    #[test]
    fn a_record_has_the_languages_that_it_says() {
        check(&[("Language", "de")], &["de"]);
        check(&[("Language", "de-AT\nfr")], &["de", "fr"]);
        check(&[("Language", "nn_NO")], &["no"]);
        check(&[("Language", "en"), ("Title", "Die Häuser der Stadt")], &[]);
        check(&[("Language", "ja\nen")], &[]);
        check(&[("Language", "de\nfr\nes\nit")], &["de", "fr", "es"]);
    }

    #[test]
    fn a_short_text_shows_its_language() {
        check(&[("Title", "Die alten Häuser am Fluss")], &["de"]);
        check(&[("Title", "Les chevaux"), ("Full-Text", "Des chevaux dans la cour.")], &["fr"]);
        check(&[("Title", "Книги")], &["ru"]);
        check(&[("Title", "Σπίτια")], &["el"]);
        check(&[("Title", "Straßen")], &["de"]);
        check(&[("Full-Text", "En el jardín de la casa")], &["es"]);
        check(&[("Title", "서울에서 만난 사람들")], &["ko"]);
        check(&[("Title", "الكتاب")], &["ar"]);
        check(&[("Title", "הספר")], &["he"]);
        check(&[("Full-Text", "Huset och bilen på gatan")], &["sv"]);
    }

    #[test]
    fn what_shows_no_language_has_none() {
        check(&[], &[]);
        check(&[("Title", "x86")], &[]);
        check(
            &[("Full-Text", "The house is in a street of the town, and it was built in 1995.")],
            &[],
        );
        check(&[("Full-Text", "use strict; open(F, $file) or die $!; while (<F>) { print }")], &[]);
        check(&[("Full-Text", "A café in the town of the Häuser family and of others")], &[]);
    }

    #[track_caller]
    fn check_forms(tag: &str, words: &str) {
        let language = Language::by_tag(tag).unwrap();
        let stems = words.split(' ').map(|it| language.stem(&fold(it)).into_owned());
        let stems: std::collections::BTreeSet<String> = stems.collect();
        assert_eq!(stems.len(), 1, "{tag} {words}: {stems:?}");
    }

    #[test]
    fn forms_of_a_word_have_one_stem_without_accents() {
        check_forms("de", "haus häuser hauses häusern");
        check_forms("de", "straße straßen");
        check_forms("fr", "cheval chevaux");
        check_forms("fr", "journal journaux");
        check_forms("fr", "mangé mangée mangées mangèrent");
        check_forms("fr", "premier première");
        check_forms("es", "canción canciones");
        check_forms("it", "libro libri");
        check_forms("pt", "canção canções");
        check_forms("pt", "possível possíveis");
        check_forms("nl", "huis huizen");
        check_forms("ru", "книга книги книгу книгами");
        check_forms("sv", "bil bilar bilarna");
        check_forms("da", "bog bogen");
        check_forms("nb", "hus huset husene");
        check_forms("fi", "talo talon talossa taloissa");
        check_forms("pl", "dom domy domów");
        check_forms("cs", "kniha knihy");
        check_forms("hu", "ház házak házban");
        check_forms("ro", "carte cărți");
        check_forms("ca", "amic amics");
        check_forms("tr", "kitap kitaplar");
        check_forms("el", "σπίτι σπίτια");
        check_forms("et", "raamat raamatud");
        check_forms("lt", "namas namai namo");
        check_forms("eu", "etxe etxeak");
        check_forms("hy", "գիրք գիր");
        check_forms("ko", "서울 서울에서");
        check_forms("ar", "كتاب الكتاب");
        check_forms("he", "ספר הספר");
        check_forms("sr", "knjiga knjige књига");
    }

    #[test]
    fn every_language_has_its_number() {
        for (number, row) in (0..).zip(&ROWS) {
            let language = Language::by_tag(row.tags[0]).unwrap();
            assert_eq!(language.number(), number);
            assert_eq!(Language::by_number(number), Some(language));
        }
        assert_eq!(Language::by_number(ROWS.len() as u64), None);
    }
}
