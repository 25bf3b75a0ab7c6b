//! Publishing: announcements of this daemon's changes to another hub.
//!
//! Source: PubSubHubbub 0.4 §7.1.

use std::time::Duration;

use collection::Version;
use http::{HeaderValue, header};
use net::client::Request;
use net::shutdown::Shutdown;
use tokio::time::sleep;
use url::Url;

use super::super::request::publish_form;
use super::super::settings::HubChoice;
use super::Notifier;

/// Wait after a first failure; it doubles with each further one.
const RETRY: Duration = Duration::from_secs(1);

/// Longest wait between two attempts.
const RETRY_MAX: Duration = Duration::from_secs(300);

impl Notifier {
    /// Announces new versions to the other hub, if there is one. A version that is superseded
    /// during an announcement or a pause is skipped.
    pub(super) async fn run_publish(&self, shutdown: &Shutdown) {
        let HubChoice::Other(hub) = self.shared.settings.hub.clone() else { return };
        let mut versions = self.shared.collection.watch();
        let mut failures = 0_u32;
        while !shutdown.is_started() {
            let version = *versions.borrow_and_update();
            let published = tokio::select! {
                published = self.publish(hub.clone(), version) => published,
                () = shutdown.started() => return,
            };
            *super::lock(&self.shared.unpublished) = published.as_ref().err().cloned();
            if let Err(problem) = published {
                tracing::info!(%problem, hub = %hub, "the hub did not accept the announcement");
                let wait = RETRY.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
                failures = (failures + 1).min(31);
                tokio::select! {
                    () = sleep(wait.min(RETRY_MAX)) => {}
                    () = shutdown.started() => return,
                }
                continue;
            }
            failures = 0;
            tokio::select! {
                changed = versions.changed() => if changed.is_err() { return },
                () = shutdown.started() => return,
            }
        }
    }

    async fn publish(&self, hub: Url, version: Version) -> Result<(), String> {
        let form = publish_form(&self.shared.topics.published(), version);
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post(hub, form)
            .allow_private(self.shared.settings.allow_private)
            .token(self.shared.settings.token.as_ref().map(|it| it.text().to_owned()))
            .header(header::CONTENT_TYPE, media_type);
        let response = self.shared.client.send(request).await.map_err(|it| it.to_string())?;
        response.require_success().await.map(drop).map_err(|it| it.to_string())
    }
}
