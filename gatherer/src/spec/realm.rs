//! Credentials of a realm: `[[root.credentials]]`.
//!
//! Source: RFC 9110 §11.5 (realms).
//!
//! Sans-I/O.

use daemon::Token;
use net::client::Credentials;
use net::fetch::Login;
use settings::Table;
use url::Url;

use super::login;

/// What a host is shown when it asks for one of its realms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realm {
    /// The host that has it: an origin.
    pub url: Url,
    /// Its name, as the host says it.
    pub name: String,
    /// Proof of who we are.
    pub proof: Proof,
}

/// How we say who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A name and a password: the scheme Basic.
    Login(Login),
    /// A token: the scheme Bearer.
    Token(Token),
}

impl Proof {
    /// Returns the name of the scheme that takes it.
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Login(_) => "Basic",
            Self::Token(_) => "Bearer",
        }
    }

    /// Returns it as a request shows it.
    pub(crate) fn credentials(&self) -> Credentials {
        match self {
            Self::Login(login) => {
                Credentials { login: Some(login.clone()), ..Credentials::default() }
            }
            Self::Token(token) => exchange::source::credentials(Some(token), None),
        }
    }
}

/// Reads the realms of a root at `root`, and reports their mistakes.
pub(super) fn read(table: &Table<'_>, root: &Url) -> Vec<Realm> {
    const EXPECTED: &str = "the realm's name, as the host's field `WWW-Authenticate` has it";
    let mut realms: Vec<Realm> = Vec::new();
    for table in table.tables("credentials") {
        let named = table.string("realm");
        if named.is_none() {
            table.require("realm", EXPECTED);
        }
        let url = table.url("url");
        let url = url.unwrap_or_else(|| root.clone());
        if !matches!(url.scheme(), "http" | "https") {
            let fault = format!("{} has no realms", url.scheme());
            table.mistake("url", fault, "http:// or https://");
        }
        let login = login::read(&table, "user", "password", "the name that the realm knows");
        let proof = match (login, Token::read(&table)) {
            (Some(login), None) => Proof::Login(login),
            (None, Some(token)) => Proof::Token(token),
            (Some(_), Some(_)) => {
                table.mistake("user", "there is a token, too", "one of them");
                continue;
            }
            (None, None) => {
                table.require("user", "`user` and `password`, or `token`");
                continue;
            }
        };
        let Some(name) = named else { continue };
        let is_same = |it: &Realm| it.url.origin() == url.origin() && it.name == name;
        if realms.iter().any(is_same) {
            table.mistake("realm", format!("{name:?} is above, too"), "each realm once");
        }
        realms.push(Realm { url, name, proof });
    }
    realms
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    fn parsed(text: &str) -> Result<Vec<Realm>, String> {
        let document = Document::parse(text).unwrap();
        let realms = read(&document.root(), &Url::parse("https://h.example/docs/").unwrap());
        document.finish().map(|()| realms).map_err(|them| format!("{them:?}"))
    }

    #[test]
    fn a_realm_has_one_name_and_one_proof() {
        let text = "[[credentials]]\nrealm = \"Members\"\nuser = \"u\"\npassword = \"p\"\n\
                    [[credentials]]\nrealm = \"Members\"\nurl = \"http://o.example\"\ntoken = \"abc\"";
        let realms = parsed(text).unwrap();
        assert_eq!(realms[0].url.as_str(), "https://h.example/docs/");
        assert_eq!((realms[0].proof.scheme(), realms[1].proof.scheme()), ("Basic", "Bearer"));
        for (wrong, part) in [
            ("user = \"u\"\npassword = \"p\"", "realm"),
            ("realm = \"a\"", "`user` and `password`, or `token`"),
            ("realm = \"a\"\nuser = \"u\"", "password"),
            ("realm = \"a\"\nuser = \"u\"\npassword = \"p\"\ntoken = \"abc\"", "one of them"),
            ("realm = \"a\"\nurl = \"ftp://h.example/\"\ntoken = \"abc\"", "no realms"),
        ] {
            let said = parsed(&format!("[[credentials]]\n{wrong}")).unwrap_err();
            assert!(said.contains(part), "{wrong}: {said}");
        }
        let twice = "[[credentials]]\nrealm = \"a\"\ntoken = \"abc\"\n".repeat(2);
        assert!(parsed(&twice).unwrap_err().contains("each realm once"));
    }
}
