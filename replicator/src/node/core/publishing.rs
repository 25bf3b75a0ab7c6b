//! Publishing: from this member's own trees and logs to versions that others have.

use std::time::Duration;

use super::super::job::Job;
use super::super::publishing::{Answer, Committed, Drafted, Drafting, Judged, OwnSource, Reply};
use super::super::sources::SourceTask;
use super::Core;
use crate::replica::PublishError;
use crate::version::Name;

impl Core {
    pub(super) fn publish_due(&mut self, due: impl IntoIterator<Item = SourceTask>, now: Duration) {
        for due in due {
            match due {
                SourceTask::Start(job) => self.jobs.start(job),
                SourceTask::Publish(source, reply) => self.publish(source, reply, now),
            }
        }
    }

    fn publish(&mut self, source: OwnSource, reply: Reply, now: Duration) {
        let of = self.own.namespace(&source.name);
        match self.spaces.open_one(&of, source.kind, &self.own, &mut self.notes) {
            Ok(store) => {
                self.sources.busy.insert(source.name.clone());
                self.jobs.start(Job::Draft(Drafting { source, of, store, reply }));
            }
            Err(error) => self.answer(&source.name, reply, Err(error), now),
        }
    }

    fn answer(&mut self, name: &Name, reply: Reply, answer: Answer, now: Duration) {
        self.sources.answer(name, reply, answer, now, &mut self.notes);
    }

    pub(super) fn handle_drafted(&mut self, drafted: Drafted, now: Duration) {
        let of = drafted.of.clone();
        let held = self.spaces.current(&of).map(|it| it.meta().number);
        let (reply, answer) = match drafted.judge(held, self.replica.flood(), &self.own.identity) {
            Judged::New(committing) => return self.jobs.start(Job::Commit(committing)),
            Judged::Same(draft, answer, reply) => {
                self.jobs.start(Job::Discard(draft));
                (reply, Ok(answer))
            }
            Judged::Failed(why, reply) => (reply, Err(why)),
        };
        self.sources.busy.remove(&of.name);
        self.answer(&of.name, reply, answer, now);
    }

    pub(super) fn handle_committed(&mut self, committed: Committed, now: Duration) {
        let Committed { version, made, reply } = committed;
        let of = &version.namespace;
        self.sources.busy.remove(&of.name);
        let mut answer = match made {
            Ok(answer) => answer,
            Err(why) => return self.answer(&of.name, reply, Err(why), now),
        };
        self.spaces.failures.remove(of);
        match self.replica.publish(&version, now) {
            Ok(()) => {}
            // The version is flooded once a group lists the tree.
            Err(PublishError::Unlisted) => answer.is_listed = false,
            Err(error @ PublishError::Old(_)) => {
                return self.answer(&of.name, reply, Err(error.to_string()), now);
            }
        }
        tracing::info!(tree = %of.name, version = %version.number, "published");
        self.handle_new(of);
        self.answer(&of.name, reply, Ok(answer), now);
    }
}
