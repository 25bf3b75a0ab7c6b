//! The proxy of a web root: `proxy`, `proxy_user`, `proxy_password` and `proxy_https`.
//!
//! Sans-I/O.

use net::client::Proxy;
use settings::Table;

use super::login;
use super::protocol::Protocol;

/// Reads the proxy of a root whose URLs are of `schemes`, and reports its mistakes.
pub(super) fn read(table: &Table<'_>, schemes: &[String]) -> Option<Proxy> {
    const EXPECTED: &str = "a proxy of HTTP, such as \"http://proxy.example:3128\"";
    let login = login::read(table, "proxy_user", "proxy_password", "the name that the proxy knows");
    let https = table.choice("proxy_https", &["tunnel", "fetch"]);
    if login.is_some() || https.is_some() {
        table.require("proxy", EXPECTED);
    }
    let url = table.base_url("proxy")?;
    // Requests of the others would go past it.
    let other = schemes.iter().find(|it| Protocol::of_scheme(it) != Some(Protocol::Web));
    if let Some(other) = other {
        let message = format!("it passes on requests of HTTP alone, and this root is of {other}");
        table.mistake("proxy", message, "no proxy, or `schemes` with http and https alone");
        return None;
    }
    let proxy = Proxy::new(url, login.as_ref());
    let proxy = proxy.map_err(|fault| table.mistake("proxy", fault.to_string(), EXPECTED)).ok()?;
    if https != Some("fetch") {
        return Some(proxy);
    }
    if table.has("client_certificate") {
        let message = "TLS ends in the proxy, which cannot show the root's `client_certificate`";
        table.mistake("proxy_https", message, "\"tunnel\", or no `client_certificate`");
    }
    Some(proxy.fetching_https())
}

#[cfg(test)]
mod tests {
    use settings::Document;
    use url::Url;

    use super::*;

    /// Reads settings of a root of these schemes; returns the proxy, or all mistakes in one text.
    fn parsed(text: &str, schemes: &[&str]) -> Result<Option<Proxy>, String> {
        let document = Document::parse(text).unwrap();
        let schemes: Vec<String> = schemes.iter().map(|it| (*it).to_owned()).collect();
        let proxy = read(&document.root(), &schemes);
        let mistakes = document.finish();
        mistakes.map(|()| proxy).map_err(|them| format!("{them:?}"))
    }

    #[test]
    fn a_proxy_is_of_http_and_has_its_secrets_aside() {
        let web = &["http", "https"];
        let url = Url::parse("http://p.example:3128").unwrap();
        let plain = Proxy::new(url.clone(), None).unwrap();
        assert_eq!(parsed("proxy = \"http://p.example:3128\"", web), Ok(Some(plain)));
        let login = net::fetch::Login { name: "u".to_owned(), password: "p".to_owned() };
        let known = Proxy::new(url, Some(&login)).unwrap();
        let text = "proxy = \"http://p.example:3128/\"\nproxy_user = \"u\"\nproxy_password = \"p\"";
        assert_eq!(parsed(text, web), Ok(Some(known.clone())));
        let fetching = known.clone().fetching_https();
        assert_eq!(parsed(&format!("{text}\nproxy_https = \"fetch\""), web), Ok(Some(fetching)));
        let tunnelling = parsed(&format!("{text}\nproxy_https = \"tunnel\""), web);
        assert_eq!(tunnelling, Ok(Some(known)));
        assert_eq!(parsed("", &["ftp"]), Ok(None));
        for (wrong, schemes, part) in [
            ("proxy = \"http://p.example:3128\"", &["ftp", "ftps"][..], "this root is of ftp"),
            ("proxy = \"http://p.example:3128\"", &["http", "gopher"], "this root is of gopher"),
            ("proxy = \"http://p.example:3128\"", &["news"], "this root is of news"),
            ("proxy = \"socks5://p.example:1080\"", web, "not of a web server"),
            ("proxy = \"http://u:s3cret@p.example/\"", web, "holds a user name"),
            ("proxy = \"http://p.example/path\"", web, "no path"),
            ("proxy = \"http://p.example/\"\nproxy_user = \"u\"", web, "proxy_password"),
            ("proxy_user = \"u\"\nproxy_password = \"p\"", web, "proxy"),
            ("proxy_https = \"fetch\"", web, "proxy"),
            ("proxy = \"http://p.example\"\nproxy_https = \"read\"", web, "tunnel"),
            (
                "proxy = \"http://p.example\"\nproxy_https = \"fetch\"\nclient_certificate = \"c.pem\"",
                web,
                "TLS ends in the proxy",
            ),
        ] {
            let mistakes = parsed(wrong, schemes).unwrap_err();
            assert!(mistakes.contains(part) && !mistakes.contains("s3cret"), "{mistakes}");
        }
    }
}
