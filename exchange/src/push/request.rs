//! Messages between subscribers, hubs and publishers, as forms and queries.
//!
//! Source: WebSub §5.1 (subscription), §5.2 (denial), §5.3 (verification of intent); PubSubHubbub
//! 0.4 §7.1 for publishing, which WebSub does not specify.
//!
//! # Differences from the standard
//!
//! * A Harvest publisher names the present version in `harvest.version`, so that its hub can pass
//!   it on.
//!
//! Sans-I/O.

use collection::Version;
use url::{Url, form_urlencoded};

use super::signature::{SECRET_BYTES_MAX, Secret};

/// Longest form, in bytes.
pub const FORM_BYTES_MAX: usize = 16 * 1024;

/// Longest URL of a topic or callback, in bytes.
pub const URL_BYTES_MAX: usize = 2_048;

/// Maximum number of topics of one publishing request.
pub const TOPICS_MAX: usize = 16;

/// Longest challenge that is echoed, in bytes.
pub const CHALLENGE_BYTES_MAX: usize = 1_024;

/// The wanted effect of a request: a subscription begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Begin or renew.
    Subscribe,
    /// End.
    Unsubscribe,
}

impl Mode {
    /// Returns its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// A subscriber's request to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// Begin or end.
    pub mode: Mode,
    /// The topic: a URL, exactly as discovered.
    pub topic: String,
    /// The subscriber's address.
    pub callback: Url,
    /// The requested lease, in seconds; `None` leaves it to the hub.
    pub lease_secs: Option<u64>,
    /// The key for signatures.
    pub secret: Option<Secret>,
    /// The consumer that sends the request, if known. The form does not contain it.
    pub consumer: Option<String>,
}

/// A request to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubRequest {
    /// From a subscriber.
    Subscription(SubscriptionRequest),
    /// From a publisher: these topics have changed.
    Publish {
        /// Their URLs.
        topics: Vec<String>,
        /// The new version, if named.
        version: Option<Version>,
    },
}

/// The reason why a form is refused, shown to its sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A needed field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field occurs twice.
    #[error("{0} occurs more than once")]
    Twice(&'static str),
    /// The mode is unknown.
    #[error("hub.mode is not one of subscribe, unsubscribe, publish")]
    Mode,
    /// A URL is invalid or too long.
    #[error(
        "{0} is not an http or https URL of at most {URL_BYTES_MAX} bytes without name and password"
    )]
    Url(&'static str),
    /// The lease is invalid.
    #[error("hub.lease_seconds is not a number of seconds of at least 1")]
    Lease,
    /// The secret is invalid.
    #[error("hub.secret does not have 1 to {SECRET_BYTES_MAX} bytes")]
    Secret,
    /// The form is too long.
    #[error(
        "the form is longer than {FORM_BYTES_MAX} bytes, or names more than {TOPICS_MAX} topics"
    )]
    TooLong,
}

/// Reads a request to a hub.
///
/// # Errors
///
/// [`FormError`]: answer 400 with its text.
pub fn read(form: &[u8]) -> Result<HubRequest, FormError> {
    if FORM_BYTES_MAX < form.len() {
        return Err(FormError::TooLong);
    }
    let pairs: Vec<(String, String)> = form_urlencoded::parse(form).into_owned().collect();
    let one = |name: &'static str| {
        let mut found = pairs.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str());
        let first = found.next();
        if found.next().is_some() { Err(FormError::Twice(name)) } else { Ok(first) }
    };
    let mode = match one("hub.mode")?.ok_or(FormError::Missing("hub.mode"))? {
        "subscribe" => Mode::Subscribe,
        "unsubscribe" => Mode::Unsubscribe,
        "publish" => {
            let named = pairs.iter().filter(|(name, _)| name == "hub.url" || name == "hub.topic");
            let topics: Vec<String> = named.map(|(_, topic)| topic.clone()).collect();
            if topics.is_empty() {
                return Err(FormError::Missing("hub.url"));
            }
            if TOPICS_MAX < topics.len() {
                return Err(FormError::TooLong);
            }
            for topic in &topics {
                web_url("hub.url", topic)?;
            }
            let version = one("harvest.version")?.and_then(|it| it.parse().ok());
            return Ok(HubRequest::Publish { topics, version });
        }
        _ => return Err(FormError::Mode),
    };
    let topic = one("hub.topic")?.ok_or(FormError::Missing("hub.topic"))?;
    web_url("hub.topic", topic)?;
    let callback = one("hub.callback")?.ok_or(FormError::Missing("hub.callback"))?;
    let callback = web_url("hub.callback", callback)?;
    let given = |name| Ok(one(name)?.filter(|it| !it.is_empty()));
    let lease = |it: &str| it.parse().ok().filter(|it| 0 < *it).ok_or(FormError::Lease);
    let lease_secs = given("hub.lease_seconds")?.map(lease).transpose()?;
    let secret = |it: &str| Secret::new(it).ok_or(FormError::Secret);
    let secret = given("hub.secret")?.map(secret).transpose()?;
    let (topic, consumer) = (topic.to_owned(), None);
    let asked = SubscriptionRequest { mode, topic, callback, lease_secs, secret, consumer };
    Ok(HubRequest::Subscription(asked))
}

/// Reads a URL of the form's field `name`, for use in requests and messages to others.
fn web_url(name: &'static str, text: &str) -> Result<Url, FormError> {
    let url = Url::parse(text).ok().filter(|url| {
        text.len() <= URL_BYTES_MAX
            && url.as_str().len() <= URL_BYTES_MAX
            && matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    });
    url.ok_or(FormError::Url(name))
}

impl SubscriptionRequest {
    /// Returns the request as a form.
    pub fn form(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("hub.mode", self.mode.name());
        form.append_pair("hub.topic", &self.topic);
        form.append_pair("hub.callback", self.callback.as_str());
        if let Some(secs) = self.lease_secs {
            form.append_pair("hub.lease_seconds", &secs.to_string());
        }
        if let Some(secret) = &self.secret {
            form.append_pair("hub.secret", secret.text());
        }
        form.finish()
    }
}

/// Returns the form with which a publisher announces a version of its topics.
pub fn publish_form(topics: &[String], version: Version) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", "publish");
    for topic in topics {
        form.append_pair("hub.url", topic);
    }
    form.append_pair("harvest.version", &version.to_string());
    form.finish()
}

/// A hub's GET request to a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The verification of a request.
    Intent {
        /// Begin or end.
        mode: Mode,
        /// The topic.
        topic: String,
        /// The body that confirms.
        challenge: String,
        /// The lease in seconds; 0 if the hub names none.
        lease_secs: u64,
    },
    /// A denial, or the end of a subscription by the hub.
    Denied {
        /// The topic.
        topic: String,
        /// The reason; may be empty.
        reason: String,
    },
}

impl Question {
    /// Reads the query of a request to a callback, and ignores the callback's own fields. `None` if
    /// it is not a hub's question.
    pub fn read(query: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(it, _)| it == name).map(|(_, value)| value.into_owned())
        };
        let topic = value("hub.topic")?;
        let mode = match value("hub.mode")?.as_str() {
            "subscribe" => Mode::Subscribe,
            "unsubscribe" => Mode::Unsubscribe,
            "denied" => {
                let reason = value("hub.reason").unwrap_or_default();
                return Some(Self::Denied { topic, reason });
            }
            _ => return None,
        };
        let challenge = value("hub.challenge")?;
        let sound = (1..=CHALLENGE_BYTES_MAX).contains(&challenge.len());
        let lease_secs = value("hub.lease_seconds").filter(|_| mode == Mode::Subscribe);
        let lease_secs = lease_secs.and_then(|it| it.parse().ok()).unwrap_or_default();
        sound.then_some(Self::Intent { mode, topic, challenge, lease_secs })
    }

    /// Returns the URL of the request to `callback`, and keeps the callback's own query.
    pub fn url(&self, callback: &Url) -> Url {
        let mut url = callback.clone();
        {
            let mut query = url.query_pairs_mut();
            match self {
                Self::Intent { mode, topic, challenge, lease_secs } => {
                    query.append_pair("hub.mode", mode.name());
                    query.append_pair("hub.topic", topic);
                    query.append_pair("hub.challenge", challenge);
                    if *mode == Mode::Subscribe {
                        query.append_pair("hub.lease_seconds", &lease_secs.to_string());
                    }
                }
                Self::Denied { topic, reason } => {
                    query.append_pair("hub.mode", "denied");
                    query.append_pair("hub.topic", topic);
                    query.append_pair("hub.reason", reason);
                }
            }
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refuses(form: &str, expected: FormError) {
        assert_eq!(read(form.as_bytes()), Err(expected), "{form}");
    }

    const SMALL: &str =
        "hub.mode=subscribe&hub.topic=http%3A%2F%2Ft%2F&hub.callback=http%3A%2F%2Fc%2F";

    #[test]
    fn a_subscription_needs_no_more_than_topic_and_callback() {
        let callback = Url::parse("http://c/").unwrap();
        let (mode, topic) = (Mode::Subscribe, "http://t/".to_owned());
        let (lease_secs, secret, consumer) = (None, None, None);
        let asked = SubscriptionRequest { mode, topic, callback, lease_secs, secret, consumer };
        let read_as = |form: &str| read(form.as_bytes());
        assert_eq!(read_as(SMALL), Ok(HubRequest::Subscription(asked.clone())));
        // Brokers once asked for the changes themselves with `harvest.content`.
        let more =
            format!("{SMALL}&hub.secret=&hub.lease_seconds=&other=1&other=2&harvest.content=fat");
        assert_eq!(read_as(&more), Ok(HubRequest::Subscription(asked)));
    }

    #[test]
    fn invalid_forms_are_refused_with_the_reason() {
        refuses("", FormError::Missing("hub.mode"));
        refuses("hub.mode=x", FormError::Mode);
        refuses("hub.mode=publish", FormError::Missing("hub.url"));
        refuses("hub.mode=publish&hub.url=x", FormError::Url("hub.url"));
        refuses("hub.mode=subscribe", FormError::Missing("hub.topic"));
        refuses("hub.mode=subscribe&hub.topic=http://t/", FormError::Missing("hub.callback"));
        for callback in ["ftp://c/", "c", "http://a:b@c/", "http://c/%23x#y"] {
            let callback: String = form_urlencoded::byte_serialize(callback.as_bytes()).collect();
            let form = format!("hub.mode=subscribe&hub.topic=http://t/&hub.callback={callback}");
            refuses(&form, FormError::Url("hub.callback"));
        }
        let long = format!("hub.mode=subscribe&hub.topic=http://t/{}", "x".repeat(URL_BYTES_MAX));
        refuses(&long, FormError::Url("hub.topic"));
        refuses(&format!("{SMALL}&hub.mode=subscribe"), FormError::Twice("hub.mode"));
        refuses(&format!("{SMALL}&hub.lease_seconds=-1"), FormError::Lease);
        refuses(&format!("{SMALL}&hub.lease_seconds=0"), FormError::Lease);
        refuses(&format!("{SMALL}&hub.secret={}", "s".repeat(200)), FormError::Secret);
        refuses(&format!("{SMALL}&x={}", "x".repeat(FORM_BYTES_MAX)), FormError::TooLong);
        let topics = "&hub.url=http://t/".repeat(TOPICS_MAX + 1);
        refuses(&format!("hub.mode=publish{topics}"), FormError::TooLong);
    }

    #[test]
    fn a_publisher_names_topics_and_perhaps_a_version() {
        let (topics, version) = (vec!["http://a/feed".to_owned()], "00000000000000ff-7");
        let form = publish_form(&topics, version.parse().unwrap());
        let version = version.parse().ok();
        assert_eq!(read(form.as_bytes()), Ok(HubRequest::Publish { topics, version }));
        let others = "hub.mode=publish&hub.topic=http://a/&hub.url=http://b/";
        let topics = vec!["http://a/".to_owned(), "http://b/".to_owned()];
        let expected = HubRequest::Publish { topics, version: None };
        assert_eq!(read(others.as_bytes()), Ok(expected));
    }

    #[test]
    fn a_callback_keeps_its_own_query() {
        let callback = Url::parse("http://c/x?a=b").unwrap();
        let denied = Question::Denied { topic: "http://t/".to_owned(), reason: "no".to_owned() };
        let url = denied.url(&callback);
        assert!(url.as_str().starts_with("http://c/x?a=b&hub.mode=denied&"), "{url}");
        assert_eq!(Question::read(url.query().unwrap()), Some(denied));
        for query in ["", "hub.mode=subscribe&hub.topic=t", "hub.topic=t&hub.challenge=c"] {
            assert_eq!(Question::read(query), None, "{query}");
        }
        let long = "c".repeat(CHALLENGE_BYTES_MAX + 1);
        let query = format!("hub.mode=subscribe&hub.topic=t&hub.challenge={long}");
        assert_eq!(Question::read(&query), None);
    }

    proptest! {
        #[test]
        fn a_written_request_is_read(
            mode in prop::sample::select(&[Mode::Subscribe, Mode::Unsubscribe]),
            topic in "https?://[a-z]{1,9}/[ -~]{0,30}",
            callback in "https?://[a-z]{1,9}/[a-z0-9?&=%]{0,30}",
            lease_secs in prop::option::of(1..u64::MAX),
            secret in prop::option::of("\\PC{1,40}"),
        ) {
            prop_assume!(!topic.contains('#'));
            let callback = Url::parse(&callback).unwrap();
            let secret = secret.and_then(Secret::new);
            let consumer = None;
            let asked = SubscriptionRequest { mode, topic, callback, lease_secs, secret, consumer };
            prop_assert_eq!(read(asked.form().as_bytes()), Ok(HubRequest::Subscription(asked)));
        }

        #[test]
        fn a_written_question_is_read(topic in "\\PC{1,30}", challenge in "[!-~]{1,40}",
                                    lease_secs in any::<u64>(), query in "[a-z=&]{0,20}") {
            let mode = Mode::Subscribe;
            let question = Question::Intent { mode, topic, challenge, lease_secs };
            let mut callback = Url::parse("http://c/").unwrap();
            callback.set_query(Some(&query));
            let asked = Question::read(question.url(&callback).query().unwrap());
            prop_assert_eq!(asked, Some(question));
        }

        #[test]
        fn any_form_is_a_request_or_not(form in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&form);
            let _ = Question::read(&String::from_utf8_lossy(&form));
        }
    }
}
