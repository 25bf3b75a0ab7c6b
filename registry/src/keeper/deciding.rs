//! Decisions of an administrator about servers.

use std::net::IpAddr;

use broker::error::Error;
use daemon::announce::Announcement;
use daemon::describe::Description;
use exchange::servers::ServerKind;
use net::clock;
use url::Url;

use super::{Keeper, Refusal, leased, locked, writing};
use crate::leases::{Decision, Lease};
use crate::proof::Pin;

impl Keeper {
    /// Approves a server, with another key if one is given or was refused; returns whether it is known.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub async fn approve(&self, id: &str, key: Option<String>) -> Result<bool, Error> {
        let asked = {
            let _turn = self.0.turn.lock().await;
            let refused = locked(&self.0.refusals).all().1;
            let refused = refused.into_iter().find(|it| it.id == id && it.key.is_some());
            let known = self.leases().get(id).cloned();
            let key = key.or_else(|| refused.as_ref()?.key.clone());
            let url = match (&known, &refused) {
                (_, Some(refused))
                    if known.as_ref().is_none_or(|it| Some(&it.pin.key) != key.as_ref()) =>
                {
                    Url::parse(&refused.url).ok()
                }
                (Some(known), _) => Some(known.url.clone()),
                _ => None,
            };
            let Some(url) = url else { return Ok(false) };
            let mut lease = known.unwrap_or_else(|| {
                leased(&Description::default(), ServerKind::Gatherer, &url, clock::now_ms())
            });
            if let Some(key) = key.filter(|it| *it != lease.pin.key) {
                lease.pin = Pin { key, sequence: 0 };
            }
            lease.decision = Decision::Approved;
            self.write(Vec::new(), vec![(id.to_owned(), Some(lease.clone()))]).await?;
            self.leases().put(id, lease);
            Announcement { id: id.to_owned(), base_url: url }
        };
        // It is listed once it has said what it is; if it cannot now, when it announces again.
        if let Ok((body, signature)) = self.0.asking.ask(&asked).await {
            let here = IpAddr::from([127, 0, 0, 1]);
            if let Err(Refusal(_, reason)) = self.take(here, &asked, (&body, &signature)).await {
                tracing::warn!(id, reason, "an approved server is not listed yet");
            }
        }
        Ok(true)
    }

    /// Revokes a server: it is listed no more, and its announcements are refused. Returns whether it is known.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub async fn revoke(&self, id: &str) -> Result<bool, Error> {
        let _turn = self.0.turn.lock().await;
        let Some(lease) = self.leases().get(id).cloned() else { return Ok(false) };
        let changes = vec![writing::released(id, &lease)];
        let lease = Lease { decision: Decision::Revoked, written: String::new(), ..lease };
        self.write(changes, vec![(id.to_owned(), Some(lease.clone()))]).await?;
        self.leases().put(id, lease);
        self.forget_summary(id).await?;
        Ok(true)
    }
}
