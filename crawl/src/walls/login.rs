//! Login pages, which sites show with status 200 instead of the object.
//!
//! Sans-I/O.

use url::Url;

use super::BODY_BYTES_MAX;

/// Parts of paths and hosts, in lower case, at which users are asked who they are.
const PLACES: [&str; 17] = [
    "/login",
    "/signin",
    "/sign-in",
    "/sign_in",
    "/log-in",
    "/logon",
    "/wp-login.php",
    "/cas/",
    "/saml",
    "/sso/",
    "/oauth2/",
    "/idp/",
    "/adfs/",
    "shibboleth.sso",
    "/openid-connect/",
    "/user/auth",
    "/accounts/auth",
];

/// Words of a title, in lower case, of a page that does nothing else.
const TITLES: [&str; 12] = [
    "log in",
    "login",
    "log on",
    "sign in",
    "sign-in",
    "anmelden",
    "anmeldung",
    "connexion",
    "iniciar sesi",
    "accedi",
    "inloggen",
    "web login service",
];

/// Returns whether an answer asks who the user is, instead of being the object: status 401 or 407,
/// or a page with a field for a password whose title or address (after redirects) says so. A page
/// that only has such a field in its frame is an object.
pub fn is_login(status: u16, url: &Url, body: &[u8]) -> bool {
    if matches!(status, 401 | 407) {
        return true;
    }
    let start = body.get(..BODY_BYTES_MAX).unwrap_or(body);
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let has_field = ["type=\"password\"", "type='password'", "type=password"];
    if !has_field.iter().any(|it| text.contains(it)) {
        return false;
    }
    let address = url.as_str().split('?').next().unwrap_or_default().to_ascii_lowercase();
    let title = title(&text);
    PLACES.iter().any(|it| address.contains(it)) || TITLES.iter().any(|it| title.contains(it))
}

/// Returns the title of a page in lower case.
fn title(text: &str) -> &str {
    let start = text.split_once("<title").and_then(|it| it.1.split_once('>'));
    start.and_then(|(_, it)| it.split("</title").next()).unwrap_or_default()
}
