//! The report of a proxy to its administrator.

use daemon::ListenerStatus;
use http::Method;
use net::clock;
use url::Url;

use super::Proxy;
use crate::access_log::AccessLog;
use crate::counts::Counts;
use crate::fetch::Fetcher;
use crate::objects::Objects;
use crate::policy::freshness::Rules;
use crate::serve::Status;
use crate::serve::explain::{self, Explanation};
use crate::store::Store;
use crate::target::{self, Target};

impl Proxy {
    /// Returns what is counted.
    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Returns what asks origins.
    pub(crate) fn fetcher(&self) -> &Fetcher {
        &self.0.fetcher
    }

    /// Returns what is stored.
    pub(crate) fn objects(&self) -> &Objects {
        &self.0.objects
    }

    /// Returns what the settings say of the answers of a stored URL.
    pub(crate) fn rules_of(&self, url: &str) -> Rules {
        let config = self.config();
        let Ok(url) = Url::parse(url) else { return Rules::default() };
        let named = target::named(&url);
        config.rules(&url, config.origins.iter().any(|it| it.host == named))
    }

    /// Returns the status, without that of the listeners.
    pub(crate) fn status(&self) -> Status {
        let (objects, bytes) = self.0.objects.in_memory();
        let disk = self.0.objects.disk();
        let routes = self.0.fetcher.routes().into_iter();
        let (disk_objects, disk_bytes) = self.0.objects.on_disk();
        Status {
            name: self.0.answers.name().to_string(),
            objects,
            bytes,
            disk_objects,
            disk_bytes,
            disk_problem: disk.and_then(Store::problem),
            under_way: self.0.fetcher.under_way() as u64,
            icp_ignored: self.0.fetcher.neighbors().ignored(),
            routes: routes.map(|(code, count)| (code.to_owned(), count)).collect(),
            answers: self.0.counts.all().map(|(name, count, _)| (name.to_owned(), count)).into(),
            log_dropped: self.0.log.as_ref().map_or(0, AccessLog::dropped),
            listening: ListenerStatus::default(),
        }
    }

    /// Removes what is stored of a URL. Returns how many objects there were.
    pub(crate) fn purge(&self, url: &Url) -> u64 {
        self.0.fetcher.forget(target::key(url.clone()).as_str()) as u64
    }

    /// Explains what is stored of a URL, and what becomes of the next request for it.
    pub(crate) async fn explain(&self, url: &Url) -> Explanation {
        let config = self.config();
        let uri = url.as_str().parse().unwrap_or_default();
        let (none, own) = (http::HeaderMap::new(), &self.0.own);
        let target = target::of(&Method::GET, &uri, &none, own, &config);
        let (url, rules) = match &target {
            Ok(Target::Object(it)) => (&it.url, config.rules(&it.url, it.is_before_origin())),
            _ => (url, config.rules(url, false)),
        };
        let stored = self.0.objects.get(url.as_str(), rules).await;
        let objects = stored.as_deref().unwrap_or_default();
        let last = self.0.fetcher.not_stored(url.as_str()).filter(|_| objects.is_empty());
        Explanation {
            refusal: target.as_ref().err().map(ToString::to_string),
            given_by: self.0.fetcher.giver(url.as_str()).map(|it| it.to_string()),
            not_stored: last.map(|(status, why)| format!("the last answer, {status}: {why}")),
            ..explain::explain(url.to_string(), objects, clock::now_ms())
        }
    }
}
