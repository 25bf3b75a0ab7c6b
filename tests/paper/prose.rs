//! Pages of made prose: as long as those of 1994, with words as frequent as words are, and the same in each run.

use std::fmt::Write as _;

/// Words that are frequent in English, the most frequent first.
const FREQUENT: &str = "the of and to in a is that for it as was with be by on not he his but at are this have from or \
    had an they which one you were all her she there would their we him been has when who will no more if out so up \
    said what its about than into them can only other time new some could these two may first then do any like my now \
    over such our man me even most made after also did many off before must well back through years where much your \
    way down should because long each just state those people too how little good world make very year still see own \
    work men day get here between both life being under three never know same last another while us might great go \
    old come since against right came take used himself few house use place during high without again home around \
    small however found thought went say part once general upon school every";

const SYLLABLES: &str = "con ter pro ment tion re ing de com per in ver al ex ty ness sta ble pre ance sub ri cal tor \
    dis man ly lo gra ist ture mar ser vi pen son cor el ant fer ous car min bar est port ner gen tra ship land";

const WORDS: usize = 8_000;
/// Number of words that often follow a word.
const FOLLOWERS: usize = 6;
/// Lengths of pages, in bytes: log-uniform between these two, 4.9 KB on average.
const BYTES: (f64, f64) = (1_000.0, 14_000.0);
/// Number of pages that a page leads to.
const LINKS: usize = 8;

/// The language of the pages.
pub(crate) struct Prose {
    words: Vec<String>,
    followers: Vec<[usize; FOLLOWERS]>,
}

/// Returns the rank of a word: log-uniform, which is Zipf's law.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to WORDS")]
fn rank(random: &mut fastrand::Rng) -> usize {
    ((WORDS as f64).powf(random.f64()) as usize).clamp(1, WORDS) - 1
}

impl Prose {
    /// Makes the language.
    pub(crate) fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(1994);
        let mut words: Vec<String> = FREQUENT.split_whitespace().map(str::to_owned).collect();
        let syllables: Vec<&str> = SYLLABLES.split_whitespace().collect();
        while words.len() < WORDS {
            let count = random.usize(2..5);
            words.push((0..count).map(|_| syllables[random.usize(..syllables.len())]).collect());
        }
        let followers = words.iter().map(|_| std::array::from_fn(|_| rank(&mut random))).collect();
        Self { words, followers }
    }

    /// Writes this number of words.
    pub(crate) fn say(&self, random: &mut fastrand::Rng, count: usize) -> String {
        let (mut text, mut word) = (String::new(), rank(random));
        for at in 0..count {
            text.push_str(if at == 0 { "" } else { " " });
            text.push_str(&self.words[word]);
            let follows = random.f64() < 0.5;
            word = if follows {
                self.followers[word][random.usize(..FOLLOWERS)]
            } else {
                rank(random)
            };
        }
        text
    }

    /// Returns a page of a site of `pages`: its path, and its HTML. Page 0 is the first one, at `/`; each
    /// leads to others, so that all are reached.
    pub(crate) fn page(&self, number: usize, pages: usize) -> (String, String) {
        let mut random = fastrand::Rng::with_seed(number as u64);
        let title = self.say(&mut random, 5);
        let mut text = format!(
            "<html>\n<head>\n<title>{title}</title>\n</head>\n<body bgcolor=\"#ffffff\">\n<h1>{title}</h1>\n<ul>\n"
        );
        for next in (LINKS * number + 1..=LINKS * number + LINKS).take_while(|it| *it < pages) {
            let name = self.say(&mut random, 3);
            writeln!(text, "<li><a href=\"/{}\">{name}</a>", path(next)).unwrap();
        }
        text.push_str("</ul>\n");
        let (least, most) = BYTES;
        let bytes = least * (most / least).powf(random.f64());
        while (text.len() as f64) < bytes {
            if random.u32(..4) == 0 {
                writeln!(text, "<h2>{}</h2>", self.say(&mut random, 4)).unwrap();
            }
            let sentences = (0..random.usize(2..6)).map(|_| {
                let count = random.usize(6..24);
                self.say(&mut random, count) + ".\n"
            });
            let sentences: String = sentences.collect();
            writeln!(text, "<p>{sentences}").unwrap();
        }
        text.push_str("<hr>\n<a href=\"/\">Back to the first page</a>\n</body>\n</html>\n");
        (path(number), text)
    }
}

fn path(number: usize) -> String {
    match number {
        0 => "index.html".to_owned(),
        _ => format!("{}/{number}.html", number % 41),
    }
}
