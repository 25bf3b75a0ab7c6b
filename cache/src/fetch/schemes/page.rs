//! Pages of folders, menus and groups: HTML without scripts or anything from elsewhere.
//!
//! Sans-I/O.

use jiff::Timestamp;
use net::fetch::{decode, escaped};
use net::ftp::{Entry, EntryKind, Listing};
use net::gopher::{Kind, Menu};
use net::nntp::{Group, Overviews};
use url::Url;
use web::templates::grouped;

use crate::target::news_url;

/// Maximum number of lines of a page.
const LINES_MAX: usize = 10_000;

/// What a page may do: nothing but look as it does.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;\
                     margin:0 auto;padding:1rem;overflow-wrap:anywhere}h1{font-size:1.25rem}\
                     table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;\
                     padding:.25rem .75rem .25rem 0}td+td{white-space:nowrap}li{margin:.5rem 0}\
                     pre{margin:0;overflow-x:auto}p{margin:.25rem 0}";

/// Schemes of URLs that menus may lead to: none that does anything in the page.
const LINKED: [&str; 6] = ["http", "https", "ftp", "gopher", "news", "mailto"];

/// Returns a page.
fn page(title: &str, main: &str) -> String {
    let title = shown(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{main}</main>\n</body>\n</html>\n"
    )
}

/// Returns a text as HTML shows it, also within quotation marks.
fn shown(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            it => html.push(it),
        }
    }
    html
}

/// Returns the page of a folder; folders come first in it. `at` ends in a slash.
pub(super) fn folder(at: &Url, listing: &Listing) -> String {
    let mut main = String::new();
    if at.path() != "/" {
        main += "<p><a href=\"../\">The folder above</a></p>\n";
    }
    let entries = listing.folders.first().map(|it| it.entries.as_slice()).unwrap_or_default();
    let is_long = LINES_MAX < entries.len();
    let mut entries: Vec<&Entry> = entries.iter().take(LINES_MAX).collect();
    entries.sort_by_key(|it| (it.kind != EntryKind::Folder, &it.name));
    main += "<table>\n<tr><th scope=\"col\">Name</th><th scope=\"col\">Bytes</th>\
             <th scope=\"col\">Changed (UTC)</th></tr>\n";
    for Entry { name, kind, size, modified } in entries {
        let slash = if *kind == EntryKind::Folder { "/" } else { "" };
        let (link, name) = (escaped(name), shown(&decode(name)));
        let named = match kind {
            EntryKind::Other => name,
            _ => format!("<a href=\"./{link}{slash}\">{name}{slash}</a>"),
        };
        let size = size.map(grouped).unwrap_or_default();
        let time = modified.and_then(|it| Timestamp::from_second(it.seconds).ok());
        let time = time.map(|it| it.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        main += &format!("<tr><td>{named}</td><td>{size}</td><td>{time}</td></tr>\n");
    }
    main += "</table>\n";
    if listing.left_out != 0 {
        main += &format!("<p>{} lines of the list were not understood.</p>\n", listing.left_out);
    }
    if listing.truncated || is_long {
        main += "<p>The list is longer; this is its beginning.</p>\n";
    }
    page(at.as_str(), &main)
}

/// Returns the page of a menu.
pub(super) fn menu(at: &Url, menu: &Menu) -> String {
    let (mut main, mut is_within) = (String::new(), false);
    for item in menu.items.iter().take(LINES_MAX) {
        let title = shown(&item.title);
        let is_words = item.kind == Kind::Info;
        if is_words != is_within {
            main += if is_words { "<pre>" } else { "</pre>\n" };
            is_within = is_words;
        }
        let url = item.url().filter(|it| LINKED.contains(&it.scheme()));
        match (item.kind, url) {
            (Kind::Info, _) => main += &format!("{title}\n"),
            (Kind::Search, _) => {
                main += &format!("<p>{title} (a search, which needs a Gopher client)</p>\n");
            }
            (kind, Some(url)) => {
                let slash = if kind == Kind::Menu { "/" } else { "" };
                main += &format!("<p><a href=\"{}\">{title}{slash}</a></p>\n", shown(url.as_str()));
            }
            (Kind::Session(_), None) => {
                let (host, port) = (shown(&item.host), item.port);
                main += &format!("<p>{title} (a terminal session at {host}:{port})</p>\n");
            }
            (_, None) => main += &format!("<p>{title}</p>\n"),
        }
    }
    if is_within {
        main += "</pre>\n";
    }
    if LINES_MAX < menu.items.len() {
        main += "<p>The menu is longer; this is its beginning.</p>\n";
    }
    if menu.left_out != 0 {
        main += &format!("<p>{} lines of the menu were not understood.</p>\n", menu.left_out);
    }
    page(at.as_str(), &main)
}

/// Returns the page of a group with the newest of its articles, the newest first.
pub(super) fn group(group: &Group, overviews: &Overviews) -> String {
    let mut main = format!(
        "<p>{} of about {} articles, the newest first.</p>\n<ul>\n",
        grouped(overviews.articles.len() as u64),
        grouped(group.estimate)
    );
    for it in overviews.articles.iter().rev() {
        let id = it.id.trim_start_matches('<').trim_end_matches('>');
        let subject = if it.subject.is_empty() { "(no subject)" } else { &it.subject };
        let [subject, from, date] = [subject, &it.from, &it.date].map(shown);
        let url = news_url(id).map(|it| shown(it.as_str())).unwrap_or_default();
        main += &format!("<li><a href=\"{url}\">{subject}</a><br>{from}, {date}</li>\n");
    }
    main += "</ul>\n";
    page(&group.name, &main)
}

#[cfg(test)]
mod tests {
    use net::ftp::Form;

    use super::*;

    fn links(page: &str) -> Vec<&str> {
        page.split("href=\"").skip(1).map(|it| it.split('"').next().unwrap()).collect()
    }

    #[test]
    fn a_folder_has_its_names_escaped_and_relative_links() {
        let text = b"type=file;size=1234;modify=20260102030405; <b>&\"a?#%.txt\r\n\
            type=dir;modify=20260102030405; a:b\r\ntype=OS.unix=chr;; dev\r\n\
            type=OS.unix=slink:/x;; c\xe9\r\n?\r\n";
        let at = Url::parse("ftp://h/x%20y/").unwrap();
        let page = folder(&at, &Listing::parse(text, Form::Facts, 0));
        let expected = ["../", "./a%3Ab/", "./%3Cb%3E%26%22a%3F%23%25.txt", "./c%E9"];
        assert_eq!(links(&page), expected);
        assert_eq!(at.join("./a%3Ab/").unwrap().as_str(), "ftp://h/x%20y/a%3Ab/");
        assert!(
            page.contains(
                ">&lt;b&gt;&amp;&quot;a?#%.txt</a></td><td>1,234</td><td>2026-01-02 03:04<"
            )
        );
        assert!(page.contains("1 lines of the list") && page.contains(">cé</a>"), "{page}");
        assert!(!page.contains("<b>"), "{page}");
        let root = folder(&Url::parse("ftp://h/").unwrap(), &Listing::default());
        assert!(links(&root).is_empty());
    }

    #[test]
    fn a_menu_leads_to_nothing_that_acts_in_the_page() {
        let text = b"iwords <here>\t\tnull.host\t1\r\ni more\t\tnull.host\t1\r\n\
            1Sub\t/sub\th\t7070\r\n0\"Text\"\ta b\th\t70\r\nhWeb\tURL:http://w/?a&b\th\t70\r\n\
            hBad\tURL:javascript:alert(1)\th\t70\r\n7Find\t/s\th\t70\r\n8Login\tme\th\t23\r\n\
            3Broken\t\terror.host\t1\r\n.\r\n";
        let at = Url::parse("gopher://h/1").unwrap();
        let page = menu(&at, &Menu::parse(text));
        let expected = ["gopher://h:7070/1/sub", "gopher://h/0a%20b", "http://w/?a&amp;b"];
        assert_eq!(links(&page), expected);
        assert!(page.contains("<pre>words &lt;here&gt;\n more\n</pre>\n"), "{page}");
        assert!(page.contains("<p>Login (a terminal session at h:23)</p>"), "{page}");
        assert!(page.contains("&quot;Text&quot;") && page.contains("<p>Broken</p>"), "{page}");
    }

    #[test]
    fn a_group_leads_to_its_articles() {
        let block = b"7\tOne <b>\tA <a@b>\tFri\t<1$/x@h>\t\t\t\r\n8\t\tB\tSat\t<2@h>\t\t\t\r\n";
        let about = Group::parse(b"2 7 8", "a.b").unwrap();
        let page = group(&about, &Overviews::parse(block, 7, 8));
        assert_eq!(links(&page), ["news:2@h", "news:1$%2Fx@h"]);
        assert!(page.contains(">One &lt;b&gt;</a><br>A &lt;a@b&gt;, Fri</li>"), "{page}");
        assert!(page.contains("(no subject)") && page.contains("2 of about 2 articles"), "{page}");
    }
}
