//! The reader of markup tables: it makes rules of TOML, and names every mistake.

use std::collections::HashSet;

use settings::{Document, Mistake, Table};

use super::{
    Action, Attribute, BUILT_IN, Compiled, Key, NAME_BYTES_MAX, Rule, STANDARD, Source, Vocabulary,
    is_attribute_name, is_reserved,
};

/// Maximum number of maps in all tables together.
const MAPS_MAX: u16 = 10_000;

/// Keys that name the subject of a map.
const SUBJECTS: [&str; 3] = ["element", "meta", "json"];

/// The rules read so far.
struct MapReader {
    compiled: Compiled,
    /// Subjects of earlier tables. Maps of the table being read with these subjects are left out.
    before: HashSet<String>,
    /// Subjects of the table being read.
    here: HashSet<String>,
    rank: u16,
}

impl Compiled {
    /// Reads the site's tables, and after them the built-in one.
    pub(super) fn read(sources: Vec<Source>) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut collect = |source: &Source, found: Vec<Mistake>| {
            let name = |it| Mistake { file: Some(source.path.clone()), ..it };
            mistakes.extend(found.into_iter().map(name));
        };
        let built_in = Source { path: "built-in".into(), text: BUILT_IN.to_owned() };
        let mut documents = Vec::new();
        for source in sources.iter().chain([&built_in]) {
            match Document::parse(&source.text) {
                Ok(document) => documents.push((source, document)),
                Err(found) => collect(source, found),
            }
        }
        let vocabularies = ["HTML", "Other"].map(Vocabulary::with_name).into();
        let mut compiled = Self { vocabularies, ..Self::default() };
        // A map may be in the vocabulary of a table that comes later.
        for (_, document) in &documents {
            for table in document.root().tables("vocabulary") {
                compiled.vocabulary(&table);
            }
        }
        let (before, here) = (HashSet::new(), HashSet::new());
        let mut reader = MapReader { compiled, before, here, rank: 0 };
        for (source, document) in &documents {
            for table in document.root().tables("map") {
                reader.map(&table);
            }
            let here = std::mem::take(&mut reader.here);
            reader.before.extend(here);
            if let Err(found) = document.finish() {
                collect(source, found);
            }
        }
        drop(documents);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut compiled = reader.compiled;
        for vocabulary in &mut compiled.vocabularies {
            for rules in vocabulary.elements.values_mut() {
                rules.sort_by_key(|it| std::cmp::Reverse(it.weight()));
            }
        }
        compiled.sources = sources;
        Ok(compiled)
    }

    fn vocabulary(&mut self, table: &Table<'_>) {
        let name = table.required_string("name");
        let lower = |key| table.one_or_more(key).into_iter().map(|it| it.to_ascii_lowercase());
        let known = self.vocabularies.iter().position(|it| it.name.eq_ignore_ascii_case(&name));
        if known.is_none() {
            self.vocabularies.push(Vocabulary::with_name(&name));
        }
        let at = known.unwrap_or(self.vocabularies.len() - 1);
        let Some(vocabulary) = self.vocabularies.get_mut(at) else { return };
        vocabulary.roots.extend(lower("root"));
        vocabulary.root_attributes.extend(lower("root_attribute"));
        vocabulary.namespaces.extend(table.one_or_more("namespace"));
        vocabulary.doctypes.extend(lower("doctype"));
        vocabulary.escaped |= table.boolean("escaped", false);
    }

    fn attribute(&mut self, name: &str) -> Attribute {
        if let Some((_, known)) = STANDARD.iter().find(|(it, _)| it.eq_ignore_ascii_case(name)) {
            return *known;
        }
        let found = self.attributes.iter().position(|it| it.eq_ignore_ascii_case(name));
        if found.is_none() {
            self.attributes.push(name.into());
        }
        // There are no more names than maps.
        let at = found.unwrap_or(self.attributes.len() - 1);
        Attribute::Other(u16::try_from(at).unwrap_or(u16::MAX))
    }
}

impl Vocabulary {
    fn with_name(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl MapReader {
    fn map(&mut self, table: &Table<'_>) {
        if self.rank == MAPS_MAX {
            table.mistake("", format!("there are more than {MAPS_MAX} maps"), "fewer");
            return;
        }
        self.rank += 1;
        let vocabulary = self.vocabulary(table);
        let rule = self.rule(table);
        if !SUBJECTS.iter().any(|it| table.has(it)) {
            table.mistake("", "the map names no subject", SUBJECTS.join(", "));
        }
        for (i, path) in names(table, "element").into_iter().enumerate() {
            let when = rule.when.as_ref().map(|(name, word)| format!("[{name}={word:?}]"));
            let subject = format!("{vocabulary}:{path}{}", when.unwrap_or_default());
            let mut names = path.rsplit('/').map(Box::<str>::from);
            let name = names.next().unwrap_or_default();
            let parents: Box<[_]> = names.collect();
            if vocabulary == super::HTML && !parents.is_empty() {
                let message = format!("{path:?}: HTML is read without regard to nesting");
                table.mistake_in("element", i, message, "the element's name alone");
            }
            if self.is_new(subject)
                && let Some(vocabulary) = self.compiled.vocabularies.get_mut(vocabulary)
            {
                let rules = vocabulary.elements.entry(name.as_bytes().into()).or_default();
                rules.push(Rule { parents, ..rule.clone() });
            }
        }
        for (i, name) in names(table, "meta").into_iter().enumerate() {
            match name.strip_suffix('*') {
                Some(begin) if rule.action == Action::Ignore => {
                    self.compiled.silent.push(begin.into());
                }
                Some(_) => {
                    let message = format!("{name:?} stands for many names");
                    table.mistake_in("meta", i, message, "* only together with ignore = true");
                }
                None if self.is_new(format!("meta:{name}")) => {
                    let rules = self.compiled.fields.entry(name.as_bytes().into()).or_default();
                    rules.push(rule.clone());
                }
                None => {}
            }
        }
        for path in table.one_or_more("json") {
            if self.is_new(format!("json:{path}")) {
                let path = path.split('.').map(Box::from).collect();
                self.compiled.keys.push(Key { path, rule: rule.clone() });
            }
        }
    }

    /// Returns the index of the vocabulary that a map is in.
    fn vocabulary(&self, table: &Table<'_>) -> usize {
        let Some(name) = table.string("in") else { return super::HTML };
        let vocabularies = &self.compiled.vocabularies;
        let found = vocabularies.iter().position(|it| it.name.eq_ignore_ascii_case(&name));
        if found.is_none() {
            let near = settings::nearest(&name, vocabularies.iter().map(|it| &*it.name));
            let expected = near
                .map_or_else(|| "[[vocabulary]] with this name".to_owned(), |it| format!("{it:?}"));
            table.mistake("in", format!("no vocabulary is called {name:?}"), expected);
        }
        found.unwrap_or(super::HTML)
    }

    /// Returns whether no earlier table has this subject, and stores it.
    fn is_new(&mut self, subject: String) -> bool {
        let is_new = !self.before.contains(&subject);
        self.here.insert(subject);
        is_new
    }

    fn rule(&mut self, table: &Table<'_>) -> Rule {
        const EXPECTED: &str = "one of attribute = \"…\", main = true, aside = true, ignore = true";
        let attribute = table.string("attribute");
        let [main, aside, ignore] = ["main", "aside", "ignore"].map(|it| table.boolean(it, false));
        let actions = [attribute.is_some(), main, aside, ignore];
        if actions.into_iter().filter(|it| *it).count() != 1 {
            table.mistake("", "the map does not say what its subject becomes", EXPECTED);
        }
        let action = match attribute {
            Some(name) => self.attribute_action(table, &name),
            None if main => Action::Main,
            None if aside => Action::Aside,
            None => Action::Ignore,
        };
        let when = table.string("when").map(|when| match when.split_once('=') {
            Some((name, word)) => {
                (name.trim().to_ascii_lowercase().into(), Some(word.trim().into()))
            }
            None => (when.trim().to_ascii_lowercase().into(), None),
        });
        Rule {
            action,
            parents: Box::default(),
            when,
            value_of: table.string("value_of").map(|it| it.to_ascii_lowercase().into()),
            prefix: table.string("prefix").unwrap_or_default().into(),
            split: table.string("split").filter(|it| !it.is_empty()).map(Into::into),
            parts: table.one_or_more("parts").into_iter().map(Into::into).collect(),
            join: table.string_or("join", " ").into(),
            line: table.boolean("line", false),
            rank: self.rank,
        }
    }

    fn attribute_action(&mut self, table: &Table<'_>, name: &str) -> Action {
        let known = STANDARD.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        if !is_attribute_name(name) {
            let message = format!("{name:?} is no name of an attribute");
            table.mistake("attribute", message, "letters, digits, \"-\", \"_\", \".\" and \":\"");
        } else if !known && is_reserved(name) {
            table.mistake(
                "attribute",
                format!("{name:?} is reserved; markup cannot set it"),
                "another name",
            );
        }
        Action::Attribute(self.compiled.attribute(name))
    }
}

/// Returns the names in a list, in lower case.
fn names(table: &Table<'_>, key: &str) -> Vec<String> {
    let names = table.one_or_more(key);
    for (i, name) in names.iter().enumerate() {
        let is_name = |it: &str| {
            !it.is_empty() && it.len() <= NAME_BYTES_MAX && !it.contains(char::is_whitespace)
        };
        if !name.split('/').all(is_name) {
            table.mistake_in(
                key,
                i,
                format!("{name:?} is no name"),
                "such as \"h1\" or \"author\"",
            );
        }
    }
    names.into_iter().map(|it| it.to_ascii_lowercase()).collect()
}
