//! Tests of whole members on this machine: they join, publish, and become equal.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod privacy;
mod watching;

use std::fs;
use std::time::Duration;

use cluster::Cluster;
use replicator::group::join::Invitation;
use replicator::id::InvitationId;
use replicator::status::{InvitationStanding, Status};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_joins_gets_the_published_tree() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a.txt"), "one").unwrap();
    fs::create_dir(cluster.source("sub")).unwrap();
    fs::write(cluster.source("sub/b.bin"), vec![7; 300_000]).unwrap();
    let first = cluster.publish().await;
    assert!(first.is_changed && first.entries == 3 && first.bytes == 300_003, "{first:?}");
    for _ in 0..3 {
        cluster.join().await;
    }
    cluster.all_hold(&first.version).await;
    cluster.assert_equal();
    // A change makes one more version; without a change there is none.
    fs::write(cluster.source("a.txt"), "two").unwrap();
    fs::remove_file(cluster.source("sub/b.bin")).unwrap();
    let second = cluster.publish().await;
    assert_ne!(first.version, second.version);
    cluster.all_hold(&second.version).await;
    cluster.assert_equal();
    // Each member knows that all others hold it.
    cluster.all_seen(&second.version).await;
    let third = cluster.publish().await;
    assert_eq!((third.is_changed, &third.version), (false, &second.version));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_member_catches_up_and_a_restarted_writer_goes_on() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a"), "1").unwrap();
    let first = cluster.publish().await;
    let (one, two) = (cluster.join().await, cluster.join().await);
    cluster.all_hold(&first.version).await;
    cluster.halt(one).await;
    fs::write(cluster.source("a"), "2").unwrap();
    let second = cluster.publish().await;
    cluster.holds(two, &second.version).await;
    // The writer is away when the other comes back.
    cluster.halt(0).await;
    cluster.resume(one).await;
    cluster.holds(one, &second.version).await;
    cluster.resume(0).await;
    let unchanged = cluster.publish().await;
    assert_eq!((unchanged.is_changed, &unchanged.version), (false, &second.version));
    fs::write(cluster.source("a"), "3").unwrap();
    let third = cluster.publish().await;
    cluster.all_hold(&third.version).await;
    cluster.assert_equal();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_fetched_again() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a"), vec![1; 100_000]).unwrap();
    fs::write(cluster.source("b"), "b").unwrap();
    let one = cluster.join().await;
    let version = cluster.publish().await.version;
    cluster.all_hold(&version).await;
    let file = cluster.replica(one).join("a");
    // Somebody writes to a read-only file.
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(&file, permissions).unwrap();
    fs::write(&file, vec![2; 100_000]).unwrap();
    let found = cluster.verify(one).await;
    assert_eq!((found[0].entries, found[0].damaged_total), (2, 1), "{found:?}");
    cluster.until(|cluster| fs::read(cluster.replica(one).join("a")).unwrap()[0] == 1).await;
    cluster.assert_equal();
    assert_eq!(cluster.verify(one).await[0].damaged_total, 0);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_ready_while_its_replica_is_whole() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a"), "a").unwrap();
    let one = cluster.join().await;
    let version = cluster.publish().await.version;
    cluster.all_hold(&version).await;
    assert!(cluster.status(one).await.ready.ready);
    // While the writer is away, nobody can repair the replica.
    cluster.halt(0).await;
    let file = cluster.replica(one).join("a");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(&file, permissions).unwrap();
    fs::write(&file, "b").unwrap();
    assert_eq!(cluster.verify(one).await[0].damaged_total, 1);
    let ready = cluster.status(one).await.ready;
    let failed: Vec<_> = ready.checks.iter().filter(|it| !it.ok).map(|it| &it.name).collect();
    assert_eq!(failed, ["replica-whole"]);
    cluster.resume(0).await;
    cluster.until_ready(one).await;
    assert_eq!(fs::read_to_string(cluster.replica(one).join("a")).unwrap(), "a");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_denied_by_one_group_may_join_another_at_a_member_of_both() {
    let mut cluster = Cluster::found().await;
    let between = cluster.join().await;
    cluster.found_beside(between).await;
    let far = cluster.join().await;
    let id = cluster.status(far).await.id;
    let first = cluster.publish().await.version;
    cluster.all_hold(&first).await;
    cluster.deny(&[&id]).await;
    cluster.until_unlinked(far, &id).await;
    cluster.move_to(far, between, "far").await;
    fs::write(cluster.source("a"), "1").unwrap();
    let version = cluster.publish().await.version;
    cluster.holds(far, &version).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_cannot_take_a_version_is_not_ready_until_it_can() {
    let mut cluster = Cluster::found().await;
    let one = cluster.join().await;
    // No version was published yet.
    cluster.until_ready(0).await;
    cluster.until_ready(one).await;
    // A file stands where the tree's folder has to be made.
    fs::write(cluster.folder(one), "").unwrap();
    fs::write(cluster.source("a"), "a").unwrap();
    let version = cluster.publish().await.version;
    cluster.noted_by(one, &version).await;
    let ready = cluster.status(one).await.ready;
    let fault = ready.checks.iter().find(|it| it.name == "takes-changes").unwrap();
    assert!(fault.detail.as_ref().unwrap().contains(&format!(" {version}: ")), "{ready:?}");
    fs::remove_file(cluster.folder(one)).unwrap();
    cluster.until_ready(one).await;
    cluster.holds(one, &version).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_two_groups_carries_updates_across() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a"), "1").unwrap();
    let between = cluster.join().await;
    // It also founds its own group, into which it carries the trees of the first.
    cluster.found_beside(between).await;
    let far = cluster.join_group(between, "far").await;
    let version = cluster.publish().await.version;
    cluster.holds(far, &version).await;
    cluster.assert_equal();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_to_an_unknown_group_is_reported() {
    let mut cluster = Cluster::found().await;
    let member = cluster.join_misspelled().await;
    cluster.noted_by(member, "the member that was asked is not in it").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_member_is_cut_off_and_cannot_return_under_another_key() {
    let mut cluster = Cluster::found().await;
    fs::write(cluster.source("a"), "1").unwrap();
    let line = cluster.invite().await;
    let denied = cluster.join_by(&line).await;
    let (two, three) = (cluster.join().await, cluster.join().await);
    let first = cluster.publish().await.version;
    cluster.all_hold(&first).await;
    let id = cluster.status(denied).await.id;
    let by = InvitationId::of(&line.public().unwrap()).to_string();
    let came = |status: &Status| {
        let member = status.groups[0].members.iter().find(|it| it.id == id);
        member.and_then(|it| it.invitation.clone())
    };
    assert_eq!(came(&cluster.status(two).await).as_ref(), Some(&by));
    cluster.deny(&[&id]).await;
    let took = cluster.until_unlinked(denied, &id).await;
    assert!(took < Duration::from_secs(10), "links were open for {took:?}");
    cluster.noted_by(denied, "its group's access list denies this member").await;
    // The invitation has been used, so it does not admit another key.
    let again = cluster.join_by(&line).await;
    cluster.noted_by(again, "its invitation was used by another member").await;
    let withdrawn = cluster.invite().await;
    cluster.revoke(&withdrawn).await;
    let other = cluster.join_by(&withdrawn).await;
    cluster.noted_by(other, "its invitation was withdrawn").await;
    // None of them gets the next version.
    fs::write(cluster.source("a"), "2").unwrap();
    let second = cluster.publish().await.version;
    for member in [0, two, three] {
        cluster.holds(member, &second).await;
    }
    assert_eq!(cluster.status(denied).await.trees[0].held.as_ref(), Some(&first));
    for member in [again, other] {
        let status = cluster.status(member).await;
        assert!(!status.groups[0].is_member && status.trees.is_empty(), "{status:#?}");
    }
    assert!(cluster.until_unlinked(denied, &id).await < Duration::from_secs(5), "it stays cut off");
    // All members know the standing of the invitations.
    let standing = |status: &Status, line: &Invitation| {
        let id = InvitationId::of(&line.public().unwrap()).to_string();
        let invited = status.groups[0].invitations.iter().find(|it| it.id == id).unwrap();
        (invited.standing, invited.used_by.clone())
    };
    let status = cluster.status(three).await;
    assert_eq!(standing(&status, &line), (InvitationStanding::Withdrawn, Some(id.clone())));
    assert_eq!(standing(&status, &withdrawn), (InvitationStanding::Withdrawn, None));
    // With a new invitation, the refused member gets in.
    let new = cluster.invite().await;
    cluster.reload_with(other, &withdrawn.to_string(), &new.to_string()).await;
    cluster.holds(other, &second).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_that_has_ended_lets_nobody_in() {
    let (mut cluster, secret) = Cluster::found_late().await;
    let line = Invitation { secret: Some(secret), ..cluster.invite().await };
    let member = cluster.join_by(&line).await;
    cluster.noted_by(member, "its invitation has ended").await;
    let status = cluster.status(0).await;
    let standings: Vec<_> = status.groups[0].invitations.iter().map(|it| it.standing).collect();
    assert_eq!(standings, [InvitationStanding::Open, InvitationStanding::Ended]);
    // The charter still lists the ended invitation, but no file has its secret.
    let files = fs::read_dir(cluster.data(0).join("groups")).unwrap().map(|it| it.unwrap().path());
    let secrets: Vec<_> = files.filter(|it| it.extension().is_some()).collect();
    assert!(secrets.is_empty(), "{secrets:?}");
    assert_eq!(status.groups[0].members.len(), 1);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_never_share_their_data() {
    let mut cluster = Cluster::found().await;
    let refused = cluster.try_bind(0).await.unwrap_err().to_string();
    assert!(refused.contains("is in use by another process"), "{refused}");
    // The running member is not disturbed, and after it another may use the data.
    cluster.publish().await;
    cluster.halt(0).await;
    cluster.resume(0).await;
    cluster.stop().await;
}
