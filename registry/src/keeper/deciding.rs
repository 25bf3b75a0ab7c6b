//! Decisions of an administrator about servers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use broker::error::Error;
use collection::{Collection, Subject};
use daemon::announce::Announcement;
use daemon::describe::{Description, Facts};
use exchange::servers::{self, ServerKind};
use exchange::takedown::{Refused, Takedown as _};
use http::StatusCode;
use net::{clock, identity};
use url::Url;

use super::{Keeper, blocking, leased, locked, writing};
use crate::answer::Approved;
use crate::leases::{Decision, Lease, Leases, Standing};
use crate::proof::Pin;
use crate::summaries::Summaries;

/// Releases the records of servers that wait for approval now, and did not when they were written. Blocks.
pub(super) fn release_waiting(
    collection: &Collection,
    summaries: &Summaries,
    leases: &mut Leases,
) -> Result<(), Error> {
    let is_public = |it: &Lease| {
        !it.written.is_empty() && leases.standing(it, clock::now_ms()) == Standing::Waiting
    };
    let waiting: Vec<_> = leases.all().filter(|it| is_public(it.1)).collect();
    let changes = waiting.iter().map(|(id, lease)| writing::released(id, lease)).collect();
    let hidden = |lease: &Lease| Lease { written: String::new(), ..lease.clone() };
    let notes = waiting.into_iter().map(|(id, lease)| (id.clone(), Some(hidden(lease))));
    let notes: Vec<_> = notes.collect();
    writing::write(collection, changes, &notes)?;
    for (id, lease) in notes {
        summaries.forget(&id)?;
        leases.replace(&id, lease);
    }
    Ok(())
}

/// Returns all objects of a server, at whatever address.
fn all_of(id: &str) -> Subject {
    Subject { url: "http*".to_owned(), gatherer: id.to_owned() }
}

impl Keeper {
    /// Hides the servers that are revoked and are not hidden yet: a stop, or a failure, may have come before that.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(super) async fn hide_revoked(&self) -> Result<(), Error> {
        let _turn = self.0.turn.lock().await;
        let mut revoked: Vec<String> = {
            let leases = self.leases();
            let revoked = leases.all().filter(|it| it.1.decision == Decision::Revoked);
            revoked.map(|it| it.0.clone()).collect()
        };
        if revoked.is_empty() {
            return Ok(());
        }
        let hidden: BTreeSet<Subject> = self
            .0
            .broker
            .suppressions()
            .into_iter()
            .filter(|it| it.active)
            .map(|it| it.notice.subject)
            .collect();
        revoked.retain(|it| !hidden.contains(&all_of(it)));
        let mut outcome = Ok(());
        for id in revoked {
            outcome = outcome.and(self.hide(&id).await);
        }
        outcome
    }

    /// Forgets the summary of a server, and takes what is known of it out of the collection, whoever has it; it is refused
    /// from now on. That comes last: where it is done, all is.
    async fn hide(&self, id: &str) -> Result<(), Error> {
        self.forget_summary(id).await?;
        let reason = "an administrator of the registry has revoked this server".to_owned();
        self.0.broker.suppress(all_of(id), reason).await.map(drop).map_err(failed)
    }

    /// Takes back [`hide`](Self::hide).
    async fn show(&self, id: &str) -> Result<(), Error> {
        match self.0.broker.lift(all_of(id)).await {
            Err(refused) if refused.status != StatusCode::NOT_FOUND => Err(failed(refused)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Approves a server, and returns the key and the address that are approved; `None`: it is not known.
    ///
    /// Without a key it is the one that is known. Everybody can be refused under any id, so the key of a refusal counts
    /// if it is named, or if nothing else is known of the id.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub async fn approve(&self, id: &str, key: Option<&str>) -> Result<Option<Approved>, Error> {
        let (asked, key) = {
            let _turn = self.0.turn.lock().await;
            let known = self.leases().get(id).cloned();
            let is_new = known.as_ref().is_none_or(|it| key.is_some_and(|key| key != it.pin.key));
            let refused = locked(&self.0.refusals).of(id, key).filter(|_| is_new);
            let refused = refused.and_then(|it| Some((it.key?, Url::parse(&it.url).ok()?)));
            let (key, url) = match (refused, &known) {
                (Some(refused), _) => refused,
                (None, Some(known)) => {
                    (key.unwrap_or(&known.pin.key).to_owned(), known.url.clone())
                }
                (None, None) => return Ok(None),
            };
            let mut lease = known.unwrap_or_else(|| {
                leased(&Description::default(), ServerKind::Gatherer, &url, clock::now_ms())
            });
            if key != lease.pin.key {
                lease.pin = Pin { key: key.clone(), sequence: 0 };
            }
            if lease.decision == Decision::Revoked {
                self.show(id).await?;
            }
            lease.decision = Decision::Approved;
            self.write(Vec::new(), vec![(id.to_owned(), Some(lease.clone()))]).await?;
            self.leases().put(id, lease);
            (Announcement { id: id.to_owned(), base_url: url }, key)
        };
        // It is listed once it has said what it is; if it cannot now, when it announces again.
        if let Ok((body, signature)) = self.0.asking.ask(&asked).await
            && let Err(refusal) = self.take(&asked, (&body, &signature)).await
        {
            tracing::warn!(id, reason = refusal.reason, "an approved server is not listed yet");
        }
        Ok(Some(Approved { key, url: asked.base_url.into() }))
    }

    /// Revokes a server that is known here, or that other registries list: it is listed and found no more, also by way of
    /// those, and its announcements are refused. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// The collection cannot be written. What the decision lacks is done later, or when it is called again.
    pub async fn revoke(&self, id: &str) -> Result<bool, Error> {
        let _turn = self.0.turn.lock().await;
        let known = self.leases().get(id).cloned();
        let known = if known.is_some() { known } else { self.relayed(id).await? };
        let Some(lease) = known else { return Ok(false) };
        let changes = vec![writing::released(id, &lease)];
        let lease = Some(Lease { decision: Decision::Revoked, written: String::new(), ..lease });
        // The decision comes first: it is carried out whatever happens then, also to who asks for it.
        let before = self.leases().get(id).cloned();
        self.leases().replace(id, lease.clone());
        let written = self.write(changes, vec![(id.to_owned(), lease)]).await;
        written.inspect_err(|_| self.leases().replace(id, before))?;
        self.hide(id).await?;
        Ok(true)
    }

    /// Returns a lease of a server that only other registries list; `None`: they do not.
    async fn relayed(&self, id: &str) -> Result<Option<Lease>, Error> {
        let (keeper, id) = (self.clone(), id.to_owned());
        blocking(move || {
            let collection = &keeper.0.collection;
            let mut directory = locked(&keeper.0.directory);
            directory.follow(collection)?;
            let Some(server) = directory.servers().find(|it| it.id == id) else { return Ok(None) };
            let stored = collection.get(&servers::oid(&id, &server.url))?;
            let key = stored.and_then(|it| it.record.text("Key").map(Cow::into_owned));
            let key = key.filter(|it| identity::id_of(it) == id).unwrap_or_default();
            let facts = Facts { name: server.name.clone(), ..Facts::default() };
            let description = Description { key, facts, ..Description::default() };
            let seen_ms = clock::now_ms().min(server.updated.saturating_mul(1_000));
            Ok(Some(leased(&description, server.kind, &server.url, seen_ms)))
        })
        .await
    }
}

fn failed(refused: Refused) -> Error {
    Error::Worker { what: refused.message }
}
