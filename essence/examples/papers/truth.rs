//! Title and first author of a vignette by its source.
//!
//! This reader is independent of the summarizers: it reads LaTeX (or R Markdown's front matter) as
//! text. If the source has no value, or leaves it to R or to macros that only TeX knows, there is no
//! truth; nor if it has several titles, as the documentation of a class has examples.
//!
//! A title is right with its source's subtitle or without. Some sources write a version into the title for
//! its place on the page, others into the date: where it is in the title, it may be in the answer or not.

use std::collections::{BTreeMap, BTreeSet};

/// Commands without arguments that print nothing, or only space.
const SILENT: &str = "bf it sl sc tt rm sf em bfseries mdseries itshape slshape scshape upshape ttfamily sffamily \
    rmfamily normalfont normalsize tiny scriptsize footnotesize small large Large LARGE huge Huge centering \
    raggedright noindent newline par protect relax boldmath hfill hfil smallskip medskip bigskip vfill and \
    quad qquad unskip null strut xspace linebreak break newpage allowbreak ignorespaces space copyright \
    textcopyright textregistered texttrademark textbar rightarrow displaystyle slash hspace vspace vskip";

/// Title and first author, each if the source has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) title: Option<String>,
    pub(crate) subtitle: Option<String>,
    pub(crate) author: Option<String>,
}

impl Truth {
    /// Returns whether an answer has the letters and digits of the title.
    pub(crate) fn has_title(&self, answer: &str) -> bool {
        let Some(title) = &self.title else { return false };
        let (answer, subtitle) = (normalized(answer), self.subtitle.as_deref().map(normalized));
        [title.as_str(), without_version(title)].into_iter().map(normalized).any(|title| {
            answer == title || subtitle.as_ref().is_some_and(|it| answer == format!("{title}{it}"))
        })
    }
}

/// Returns a title without the version and the date at its end.
fn without_version(title: &str) -> &str {
    const MONTHS: &str =
        "january february march april may june july august september october november december";
    let has_digit = |word: &str| word.contains(|it: char| it.is_ascii_digit());
    let is_mark = |word: &str, next: &str| {
        let word = word.trim_start_matches(['(', '[', '\u{2013}']).to_lowercase();
        let number = word.strip_prefix('v').unwrap_or_default().trim_start_matches('.');
        let named = ["version", "versione", "release", "v", "v.", "ver."].contains(&word.as_str());
        named && has_digit(next) || number.starts_with(|it: char| it.is_ascii_digit())
    };
    let is_rest = |word: &str| {
        let lower = word.to_lowercase();
        has_digit(word) || ["of", "from", "(build"].contains(&word) || MONTHS.contains(&lower)
    };
    let words: Vec<(usize, &str)> = title
        .match_indices(|it: char| !it.is_whitespace())
        .filter(|(at, _)| title.get(..*at).is_some_and(|it| it.is_empty() || it.ends_with(' ')))
        .filter_map(|(at, _)| Some((at, title.get(at..)?.split_whitespace().next()?)))
        .collect();
    for (number, (at, word)) in words.iter().enumerate().skip(1) {
        let mut rest = words.iter().skip(number + 1).map(|it| it.1);
        if is_mark(word, rest.clone().next().unwrap_or_default()) && rest.all(is_rest) {
            return title.get(..*at).unwrap_or(title).trim_end();
        }
    }
    title
}

pub(crate) fn read(source: &str, extension: &str) -> Truth {
    if extension.eq_ignore_ascii_case("rmd") { markdown(source) } else { latex(source) }
}

/// Returns letters and digits only, in lower case, without accents.
pub(crate) fn normalized(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars().flat_map(char::to_lowercase) {
        let plain = "àáâãäåāăąçćčĉďèéêëēĕėęěğĝģìíîïĩīıķĺľļłñńňņòóôõöōŏőøŕřŗśšşŝșťţțùúûüũūŭůűųýÿŷźžż"
            .chars()
            .zip(
                "aaaaaaaaaccccdeeeeeeeeegggiiiiiiikllllnnnnooooooooorrrssssstttuuuuuuuuuuyyyzzz"
                    .chars(),
            );
        let mut plain = plain.filter(|(from, _)| *from == char).map(|(_, to)| to);
        out.push(plain.next().unwrap_or(char));
    }
    out.retain(char::is_alphanumeric);
    out
}

fn markdown(source: &str) -> Truth {
    let header = source.trim_start().strip_prefix("---").and_then(|it| it.split("\n---").next());
    let mut truth = Truth::default();
    let mut lines = header.unwrap_or_default().lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let mut value = value.trim().to_owned();
        if matches!(value.as_str(), ">" | "|" | "" | ">-") && key == "title" {
            value.clear();
            while let Some(more) = lines.next_if(|it| it.starts_with(' ')) {
                value.push_str(more.trim());
                value.push(' ');
            }
        }
        if value.is_empty() && key == "author" {
            let more =
                lines.peek().map(|it| it.trim().trim_start_matches("- ")).unwrap_or_default();
            value = more.strip_prefix("name:").unwrap_or(more).trim().to_owned();
        }
        let value = value.trim().trim_matches(['"', '\'']).trim().to_owned();
        let plain = !value.is_empty() && !value.contains(['`', '\\', '*', '[', '|', '<', '^', '$']);
        match key {
            "title" if plain => truth.title = Some(value),
            "subtitle" if plain => truth.subtitle = Some(value),
            "author" if plain => truth.author = first(&value),
            _ => {}
        }
    }
    truth
}

fn latex(source: &str) -> Truth {
    let source = without_comments(source);
    let macros = macros(&source);
    let titles = source
        .match_indices("\\title")
        .filter_map(|(at, _)| Some(normalized(&argument(source.get(at..)?, &["\\title"])?)));
    if 1 < titles.collect::<BTreeSet<String>>().len() {
        return Truth::default();
    }
    let title = argument(&source, &["\\title", "\\Title"]).and_then(|it| plain(&it, &macros));
    let subtitle = argument(&source, &["\\subtitle"]).and_then(|it| plain(&it, &macros));
    let author = argument(&source, &["\\author", "\\Author"]);
    let author = author.and_then(|it| {
        let front = [
            "\\and",
            "\\And",
            "\\AND",
            "\\\\",
            "\\newline",
            "\\quad",
            "\\qquad",
            "\\thanks",
            "\\footnote",
            "\n\n",
            "\\IEEEauthorblockA",
            "\\affil",
            "\\affiliation",
            "\\orcidID",
            "\\inst",
            "\\email",
            "\\institute",
        ];
        let end =
            front.iter().filter_map(|mark| find_command(&it, mark)).filter(|at| 0 < *at).min();
        plain(it.get(..end.unwrap_or(it.len()))?, &macros)
    });
    let subtitle = subtitle.filter(|_| title.is_some());
    Truth { title, subtitle, author: author.and_then(|it| first(&it)) }
}

/// Returns the position of a command, but not of one whose name is longer.
fn find_command(text: &str, command: &str) -> Option<usize> {
    text.match_indices(command).map(|(at, _)| at).find(|at| {
        let next = text.get(at + command.len()..).and_then(|it| it.chars().next());
        !command.ends_with(char::is_alphabetic) || !next.is_some_and(|it| it.is_ascii_alphabetic())
    })
}

fn first(authors: &str) -> Option<String> {
    let mut name = authors.trim_start_matches(&[',', ' '][..]);
    let marks =
        [",", ";", " and ", " & ", "(", "<", " with ", " en ", " und ", " et ", " y ", " e "];
    for mark in marks {
        name = name.split(mark).next().unwrap_or_default();
    }
    let name = name.trim().trim_start_matches("by ").trim_end_matches(['*', '†', '.']).trim();
    // The mark of a footnote or an affiliation.
    let without = name.strip_suffix(|it: char| it.is_ascii_digit()).unwrap_or(name);
    let name =
        if without.ends_with(|it: char| it.is_ascii_digit()) { name } else { without.trim() };
    let words = name.split_whitespace().count();
    let is_name = !name.contains(['@', ':', '/', '=', '[', ']'])
        && !name.contains(|it: char| it.is_ascii_digit())
        && !name.to_lowercase().starts_with("copyright")
        && 0 < words
        && words < 7;
    (is_name && !normalized(name).is_empty()).then(|| name.to_owned())
}

fn without_comments(source: &str) -> String {
    let mut out = String::new();
    for line in source.lines() {
        let end = line.match_indices('%').map(|it| it.0).find(|at| {
            let before = line.get(..*at).unwrap_or_default();
            before.bytes().rev().take_while(|it| *it == b'\\').count() % 2 == 0
        });
        out.push_str(line.get(..end.unwrap_or(line.len())).unwrap_or_default());
        // A comment includes the end of its line.
        if end.is_none() {
            out.push('\n');
        }
    }
    out
}

/// Returns the macros without arguments that the source defines.
fn macros(source: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for start in ["\\newcommand", "\\renewcommand", "\\providecommand", "\\def"] {
        for (at, _) in source.match_indices(start) {
            let rest = source.get(at + start.len()..).unwrap_or_default();
            let rest = rest.trim_start_matches(['*', '{', ' ']);
            let Some(name) = rest.strip_prefix('\\') else { continue };
            let end = name.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(name.len());
            let (name, rest) = name.split_at(end);
            let rest = rest.trim_start_matches(['}', ' ']);
            if rest.starts_with('{') {
                found.insert(name.to_owned(), group(rest).unwrap_or_default().0);
            }
        }
    }
    found
}

/// Returns the argument of the first of these commands that the source uses.
fn argument(source: &str, commands: &[&str]) -> Option<String> {
    let (command, at) = commands.iter().find_map(|it| Some((it, find_command(source, it)?)))?;
    let mut rest = source.get(at + command.len()..)?.trim_start();
    if rest.starts_with('[') {
        rest = rest.get(rest.find(']')? + 1..)?.trim_start();
    }
    group(rest).map(|it| it.0)
}

/// Returns the text in the braces at the front, and the text after them.
fn group(text: &str) -> Option<(String, &str)> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((text.get(1..at)?.to_owned(), text.get(at + 1..)?));
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns LaTeX as readers see it; `None` if only TeX or R can evaluate it.
fn plain(latex: &str, macros: &BTreeMap<String, String>) -> Option<String> {
    let mut text = latex.to_owned();
    // Macros in macros, up to four levels.
    for _ in 0..4 {
        for (name, value) in macros {
            let command = format!("\\{name}");
            while let Some(at) = find_command(&text, &command) {
                if 10_000 < text.len() || value.contains(&command) {
                    return None;
                }
                text.replace_range(at..at + command.len(), value);
            }
        }
    }
    if text.contains("\\Sexpr") || text.contains("\\input") || text.contains("#1") || is_lost(&text)
    {
        return None;
    }
    let mut out = String::new();
    render(&text, &mut out);
    let mut line = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for (from, to) in [("``", "“"), ("''", "”"), ("---", "—"), ("--", "–"), ("`", "‘"), ("'", "’")]
    {
        line = line.replace(from, to);
    }
    (!normalized(&line).is_empty()).then_some(line)
}

/// Returns whether a text has commands without arguments whose output only TeX knows.
fn is_lost(latex: &str) -> bool {
    let mut commands = latex.split('\\').skip(1);
    commands.any(|it| {
        let (name, rest) =
            it.split_at(it.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(it.len()));
        let known =
            name.len() < 2 || symbol(name).is_some() || SILENT.split(' ').any(|it| it == name);
        let has_argument = rest.trim_start().starts_with(['{', '[']) && !rest.starts_with("{}");
        !known && !has_argument
    })
}

fn render(latex: &str, out: &mut String) {
    let mut rest = latex;
    while let Some(char) = rest.chars().next() {
        rest = rest.get(char.len_utf8()..).unwrap_or_default();
        match char {
            '\\' => rest = command(rest, out),
            '{' | '}' | '$' | '^' | '_' => {}
            '~' => out.push(' '),
            other => out.push(other),
        }
    }
}

/// Renders the command whose name is at the front; returns the text after it.
fn command<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let letters = rest.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(rest.len());
    let length = if letters == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { letters };
    let (name, rest) = rest.split_at(length);
    let after = if letters == 0 { rest } else { rest.trim_start() };
    if let Some(char) = symbol(name) {
        out.push_str(char);
        return after.strip_prefix("{}").unwrap_or(after);
    }
    if let Some(accent) = "\"'`^~=.uvHckr".find(name).filter(|_| name.chars().count() == 1) {
        let (letter, rest) = one(after);
        out.push_str(&accented(accent, &letter));
        return rest;
    }
    match name {
        "\\" | "newline" | "quad" | "qquad" | "," | ";" | ":" | " " | "\n" | "linebreak"
        | "par" => {
            out.push(' ');
            after
                .strip_prefix('*')
                .unwrap_or(after)
                .strip_prefix("[")
                .map_or(after, |it| it.split_once(']').map_or(after, |(_, rest)| rest))
        }
        "hfill" => {
            out.push(',');
            after
        }
        "&" | "%" | "#" | "_" | "{" | "}" | "$" => {
            out.push_str(name);
            rest
        }
        "thanks" | "footnote" | "vspace" | "hspace" | "includegraphics" | "label" | "color"
        | "inst" | "footnotemark" | "fnref" | "rule" | "fontsize" | "selectfont" | "vskip"
        | "textsuperscript" | "href" | "textcolor" | "fbox" | "parbox" | "raisebox" | "email"
        | "setlength" | "begin" | "end" | "thispagestyle" | "tnoteref" | "tnotemark"
        | "titleref" | "index" | "aff" => {
            let after = after.strip_prefix('*').unwrap_or(after);
            let after = match after.strip_prefix('[').and_then(|it| it.split_once(']')) {
                Some((_, rest)) => rest,
                None => after,
            };
            match group(after) {
                // The columns of a table.
                Some((what, rest)) if name == "begin" && what.starts_with("tabular") => {
                    group(rest.trim_start()).map_or(rest, |(_, rest)| rest)
                }
                Some((_, rest)) => rest,
                None => after,
            }
        }
        "texorpdfstring" => {
            let Some((first, rest)) = group(after) else { return after };
            render(&first, out);
            group(rest).map_or(rest, |(_, rest)| rest)
        }
        // Of all other commands, readers see the argument, if there is one.
        _ => after,
    }
}

/// Returns the next letter or group, rendered.
fn one(text: &str) -> (String, &str) {
    let mut out = String::new();
    if let Some((inner, rest)) = group(text) {
        render(&inner, &mut out);
        return (out, rest);
    }
    if let Some(rest) = text.strip_prefix('\\') {
        let rest = command(rest, &mut out);
        return (out, rest);
    }
    let length = text.chars().next().map_or(0, char::len_utf8);
    let (letter, rest) = text.split_at(length);
    (letter.to_owned(), rest)
}

fn accented(accent: usize, letter: &str) -> String {
    let table = [
        "aäeëiïıïoöuüyÿAÄEËIÏOÖUÜ",
        "aáeéiíıíoóuúyýcćnńsśzźAÁEÉIÍOÓUÚYÝCĆSŚ",
        "aàeèiìıìoòuùAÀEÈIÌOÒUÙ",
        "aâeêiîıîoôuûAÂEÊIÎOÔUÛ",
        "aãnñoõAÃNÑOÕ",
        "aāeēiīoōuū",
        "cċeėgġzżIİZŻ",
        "aăgğuŭAĂGĞ",
        "cčdďeěnňrřsštťzžCČDĎEĚNŇRŘSŠTŤZŽ",
        "oőuűOŐUŰ",
        "cçsştţCÇSŞTŢ",
        "aąeęiįuų",
        "aåuůAÅUŮ",
    ];
    let letters: Vec<char> = table.get(accent).map(|it| it.chars().collect()).unwrap_or_default();
    let pair = letters.chunks(2).find(|it| letter.starts_with(it[0]));
    match pair {
        Some(pair) => letter.replacen(pair[0], &pair[1].to_string(), 1),
        None => letter.to_owned(),
    }
}

fn symbol(name: &str) -> Option<&'static str> {
    Some(match name {
        "ss" => "ß",
        "o" => "ø",
        "O" => "Ø",
        "l" => "ł",
        "L" => "Ł",
        "ae" => "æ",
        "AE" => "Æ",
        "aa" => "å",
        "AA" => "Å",
        "i" => "ı",
        "LaTeX" => "LaTeX",
        "LaTeXe" => "LaTeX2ε",
        "TeX" => "TeX",
        "BibTeX" => "BibTeX",
        "XeTeX" => "XeTeX",
        "XeLaTeX" => "XeLaTeX",
        "LuaTeX" => "LuaTeX",
        "LuaLaTeX" => "LuaLaTeX",
        "pdfLaTeX" => "pdfLaTeX",
        "ConTeXt" => "ConTeXt",
        "R" => "R",
        "Bioconductor" => "Bioconductor",
        "textendash" => "–",
        "textemdash" => "—",
        "ldots" | "dots" => "…",
        "alpha" => "α",
        "beta" => "β",
        "chi" => "χ",
        "mu" => "µ",
        "log" => "log",
        "exp" => "exp",
        "textregistered" => "®",
        "slash" => "/",
        "times" => "×",
        _ => return None,
    })
}
