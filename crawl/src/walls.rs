//! Bot walls: answers that keep robots out instead of being the object that was asked for.
//!
//! A wall answers all URLs of a host with nearly one page, often with status 200. Taken for objects,
//! such pages would replace all records of the host. So an answer is shown to [`recognize`] first;
//! if it is a wall, the record of before stays, the host is paused, and its administrator is told
//! what would let this program in. A challenge is never solved.
//!
//! Sans-I/O.

use std::fmt;

use http::HeaderMap;

mod login;
mod marks;
mod missing;
#[cfg(test)]
mod tests;

pub use login::is_login;
pub use missing::{Sample, made_up_name};

/// Number of first bytes of a body in which marks are looked for.
pub const BODY_BYTES_MAX: usize = 32 * 1024;

/// Whose wall it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Akamai Bot Manager and Kona Site Defender.
    Akamai,
    /// Anubis, a proof of work before a site.
    Anubis,
    /// AWS WAF.
    AwsWaf,
    /// Azure Front Door and Application Gateway.
    Azure,
    /// Cloudflare.
    Cloudflare,
    /// DataDome.
    DataDome,
    /// DDoS-Guard.
    DdosGuard,
    /// F5 BIG-IP Advanced WAF.
    F5,
    /// Fastly Bot Management.
    Fastly,
    /// FortiWeb and FortiGate.
    Fortinet,
    /// go-away, a proof of work before a site.
    GoAway,
    /// Imperva (Incapsula).
    Imperva,
    /// Kasada.
    Kasada,
    /// ModSecurity, with whatever rules.
    ModSecurity,
    /// HUMAN (PerimeterX).
    Human,
    /// Radware Bot Manager.
    Radware,
    /// Sucuri.
    Sucuri,
    /// Vercel Firewall.
    Vercel,
    /// Wordfence, in WordPress.
    Wordfence,
    /// A captcha (reCAPTCHA, hCaptcha, Turnstile, Friendly Captcha) of a wall without other marks.
    Captcha,
}

/// What a wall does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It asks for a proof that a browser, or a person, is there.
    Challenge,
    /// It refuses.
    Denial,
}

/// A wall, with what it was recognized by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wall {
    /// Whose it is.
    pub vendor: Vendor,
    /// What it does.
    pub kind: Kind,
    /// The mark: a header field, or a part of the body.
    pub mark: &'static str,
}

/// Recognizes a wall by status, header fields and the first [`BODY_BYTES_MAX`] bytes of a body. Of
/// several, the first in alphabetical order is named, and a captcha last.
pub fn recognize(status: u16, headers: &HeaderMap, body: &[u8]) -> Option<Wall> {
    let start = body.get(..BODY_BYTES_MAX).unwrap_or(body);
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    marks::MARKS.iter().find_map(|it| it.find(status, headers, &text))
}

impl Vendor {
    /// Returns the name by which its administrator knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Akamai => "Akamai",
            Self::Anubis => "Anubis",
            Self::AwsWaf => "AWS WAF",
            Self::Azure => "Azure WAF",
            Self::Cloudflare => "Cloudflare",
            Self::DataDome => "DataDome",
            Self::DdosGuard => "DDoS-Guard",
            Self::F5 => "F5 BIG-IP",
            Self::Fastly => "Fastly",
            Self::Fortinet => "Fortinet",
            Self::GoAway => "go-away",
            Self::Imperva => "Imperva",
            Self::Kasada => "Kasada",
            Self::ModSecurity => "ModSecurity",
            Self::Human => "HUMAN (PerimeterX)",
            Self::Radware => "Radware",
            Self::Sucuri => "Sucuri",
            Self::Vercel => "Vercel",
            Self::Wordfence => "Wordfence",
            Self::Captcha => "a captcha",
        }
    }

    /// Returns what the host's administrator can do to let a robot in, as the end of a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Akamai => "add it to the custom bot category that is allowed, in Bot Manager",
            Self::Anubis => "add a bot policy with its User-Agent and addresses, and action ALLOW",
            Self::AwsWaf => "add a rule with action Allow for its addresses before the bot rules",
            Self::Azure => "add a custom rule with action Allow for its addresses",
            Self::Cloudflare => {
                "add a WAF custom rule that skips bot protection for its User-Agent and addresses"
            }
            Self::DataDome => "allow it as a custom bot in the dashboard",
            Self::DdosGuard => "add its addresses to the white list",
            Self::F5 => "add its User-Agent and addresses to the bot defense's white list",
            Self::Fastly => "add its addresses to a site rule that allows them",
            Self::Fortinet => "add its User-Agent and addresses to the known bots that are allowed",
            Self::GoAway => "add a rule with its User-Agent and addresses, and action pass",
            Self::Imperva => "add an exception for its addresses, or classify it as a good bot",
            Self::Kasada => "allow its addresses in the portal",
            Self::ModSecurity => "exclude its addresses from the rules that refuse it",
            Self::Human => "allow its User-Agent and addresses in the policy",
            Self::Radware => "add it to the good bots of the policy",
            Self::Sucuri => "add its addresses to the allowed addresses of the firewall",
            Self::Vercel => "add a firewall rule that bypasses bot protection for its addresses",
            Self::Wordfence => "add its addresses to the allowlist",
            Self::Captcha => "exempt its User-Agent and addresses",
        }
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, advice) = (self.vendor.name(), self.vendor.advice());
        let verb = match self.kind {
            Kind::Challenge => "challenges",
            Kind::Denial => "refuses",
        };
        write!(f, "{name} {verb} this robot ({}); its administrator can {advice}", self.mark)
    }
}
