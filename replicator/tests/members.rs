//! Whole members on this machine: they join, publish, and become equal.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod privacy;
mod watching;
mod world;

use std::fs;
use std::time::Duration;

use replicator::group::join::Invitation;
use replicator::id::InvitationId;
use replicator::status::{InvitationStanding, Status};
use world::World;

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_gets_what_is_published() {
    let mut world = World::found().await;
    fs::write(world.source("a.txt"), "one").unwrap();
    fs::create_dir(world.source("sub")).unwrap();
    fs::write(world.source("sub/b.bin"), vec![7; 300_000]).unwrap();
    let first = world.publish().await;
    assert!(first.is_changed && first.entries == 3 && first.bytes == 300_003, "{first:?}");
    for _ in 0..3 {
        world.join().await;
    }
    world.all_hold(&first.version).await;
    world.assert_equal();
    // One more version, and none where there is nothing new.
    fs::write(world.source("a.txt"), "two").unwrap();
    fs::remove_file(world.source("sub/b.bin")).unwrap();
    let second = world.publish().await;
    assert_ne!(first.version, second.version);
    world.all_hold(&second.version).await;
    world.assert_equal();
    // And each knows it of each.
    world.all_seen(&second.version).await;
    let third = world.publish().await;
    assert_eq!((third.is_changed, &third.version), (false, &second.version));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_away_catches_up_and_a_writer_goes_on_where_it_was() {
    let mut world = World::found().await;
    fs::write(world.source("a"), "1").unwrap();
    let first = world.publish().await;
    let (one, two) = (world.join().await, world.join().await);
    world.all_hold(&first.version).await;
    world.halt(one).await;
    fs::write(world.source("a"), "2").unwrap();
    let second = world.publish().await;
    world.holds(two, &second.version).await;
    // The writer is away when the other comes back.
    world.halt(0).await;
    world.resume(one).await;
    world.holds(one, &second.version).await;
    world.resume(0).await;
    let unchanged = world.publish().await;
    assert_eq!((unchanged.is_changed, &unchanged.version), (false, &second.version));
    fs::write(world.source("a"), "3").unwrap();
    let third = world.publish().await;
    world.all_hold(&third.version).await;
    world.assert_equal();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_fetched_again() {
    let mut world = World::found().await;
    fs::write(world.source("a"), vec![1; 100_000]).unwrap();
    fs::write(world.source("b"), "b").unwrap();
    let one = world.join().await;
    let version = world.publish().await.version;
    world.all_hold(&version).await;
    let file = world.replica(one).join("a");
    // Somebody writes where nobody may.
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(&file, permissions).unwrap();
    fs::write(&file, vec![2; 100_000]).unwrap();
    let found = world.verify(one).await;
    assert_eq!((found[0].entries, found[0].damaged_total), (2, 1), "{found:?}");
    world.until(|world| fs::read(world.replica(one).join("a")).unwrap()[0] == 1).await;
    world.assert_equal();
    assert_eq!(world.verify(one).await[0].damaged_total, 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_ready_while_its_replica_is_whole() {
    let mut world = World::found().await;
    fs::write(world.source("a"), "a").unwrap();
    let one = world.join().await;
    let version = world.publish().await.version;
    world.all_hold(&version).await;
    assert!(world.status(one).await.ready.ready);
    // Nobody is there who could mend it.
    world.halt(0).await;
    let file = world.replica(one).join("a");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(&file, permissions).unwrap();
    fs::write(&file, "b").unwrap();
    assert_eq!(world.verify(one).await[0].damaged_total, 1);
    let told = world.status(one).await.ready;
    let failed: Vec<_> = told.checks.iter().filter(|it| !it.ok).map(|it| &it.name).collect();
    assert_eq!(failed, ["replica-whole"]);
    world.resume(0).await;
    world.until_ready(one).await;
    assert_eq!(fs::read_to_string(world.replica(one).join("a")).unwrap(), "a");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_denied_by_one_group_may_join_another_at_a_member_of_both() {
    let mut world = World::found().await;
    let between = world.join().await;
    world.found_beside(between).await;
    let far = world.join().await;
    let id = world.status(far).await.id;
    let first = world.publish().await.version;
    world.all_hold(&first).await;
    world.deny(&[&id]).await;
    world.until_unlinked(far, &id).await;
    world.turn_to(far, between, "far").await;
    fs::write(world.source("a"), "1").unwrap();
    let version = world.publish().await.version;
    world.holds(far, &version).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_cannot_take_a_version_is_not_ready_until_it_can() {
    let mut world = World::found().await;
    let one = world.join().await;
    // Nothing was published yet.
    world.until_ready(0).await;
    world.until_ready(one).await;
    // There is no room for the tree's folder.
    fs::write(world.folder(one), "").unwrap();
    fs::write(world.source("a"), "a").unwrap();
    let version = world.publish().await.version;
    world.noted_by(one, &version).await;
    let told = world.status(one).await.ready;
    let fault = told.checks.iter().find(|it| it.name == "takes-changes").unwrap();
    assert!(fault.detail.as_ref().unwrap().contains(&format!(" {version}: ")), "{told:?}");
    fs::remove_file(world.folder(one)).unwrap();
    world.until_ready(one).await;
    world.holds(one, &version).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_two_groups_carries_updates_across() {
    let mut world = World::found().await;
    fs::write(world.source("a"), "1").unwrap();
    let between = world.join().await;
    // It founds a group of its own besides, of which it brings the trees of the first.
    world.found_beside(between).await;
    let far = world.join_of(between, "far").await;
    let version = world.publish().await.version;
    world.holds(far, &version).await;
    world.assert_equal();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_another_group_is_told() {
    let mut world = World::found().await;
    let member = world.join_misspelled().await;
    world.noted_by(member, "who was asked is no member of it").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_denied_is_cut_off_and_does_not_come_back_under_another_key() {
    let mut world = World::found().await;
    fs::write(world.source("a"), "1").unwrap();
    let line = world.line().await;
    let denied = world.join_by(&line).await;
    let (two, three) = (world.join().await, world.join().await);
    let first = world.publish().await.version;
    world.all_hold(&first).await;
    let id = world.status(denied).await.id;
    let by = InvitationId::of(&line.public().unwrap()).to_string();
    let came = |status: &Status| {
        let member = status.groups[0].members.iter().find(|it| it.id == id);
        member.and_then(|it| it.invitation.clone())
    };
    assert_eq!(came(&world.status(two).await).as_ref(), Some(&by));
    world.deny(&[&id]).await;
    let took = world.until_unlinked(denied, &id).await;
    assert!(took < Duration::from_secs(10), "links were open for {took:?}");
    world.noted_by(denied, "its group's access list denies this member").await;
    // Under another key it is nobody who was invited.
    let again = world.join_by(&line).await;
    world.noted_by(again, "its invitation was used by another member").await;
    let withdrawn = world.line().await;
    world.revoke(&withdrawn).await;
    let other = world.join_by(&withdrawn).await;
    world.noted_by(other, "its invitation was withdrawn").await;
    // And none of them gets what comes next.
    fs::write(world.source("a"), "2").unwrap();
    let second = world.publish().await.version;
    for member in [0, two, three] {
        world.holds(member, &second).await;
    }
    assert_eq!(world.status(denied).await.trees[0].held.as_ref(), Some(&first));
    for member in [again, other] {
        let status = world.status(member).await;
        assert!(!status.groups[0].is_member && status.trees.is_empty(), "{status:#?}");
    }
    assert!(world.until_unlinked(denied, &id).await < Duration::from_secs(5), "it stays cut off");
    // All of the group know what became of the invitations.
    let standing = |status: &Status, line: &Invitation| {
        let id = InvitationId::of(&line.public().unwrap()).to_string();
        let invited = status.groups[0].invitations.iter().find(|it| it.id == id).unwrap();
        (invited.standing, invited.used_by.clone())
    };
    let status = world.status(three).await;
    assert_eq!(standing(&status, &line), (InvitationStanding::Withdrawn, Some(id.clone())));
    assert_eq!(standing(&status, &withdrawn), (InvitationStanding::Withdrawn, None));
    // Whoever has a new one comes.
    let new = world.line().await;
    world.resettle(other, &withdrawn.to_string(), &new.to_string()).await;
    world.holds(other, &second).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_that_has_ended_lets_nobody_in() {
    let (mut world, secret) = World::found_late().await;
    let line = Invitation { secret: Some(secret), ..world.line().await };
    let member = world.join_by(&line).await;
    world.noted_by(member, "its invitation has ended").await;
    let status = world.status(0).await;
    let standings: Vec<_> = status.groups[0].invitations.iter().map(|it| it.standing).collect();
    assert_eq!(standings, [InvitationStanding::Open, InvitationStanding::Ended]);
    // The charter has it, and its secret is nowhere any more.
    let kept = fs::read_dir(world.data(0).join("groups")).unwrap().map(|it| it.unwrap().path());
    let kept: Vec<_> = kept.filter(|it| it.extension().is_some()).collect();
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(status.groups[0].members.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_never_share_their_data() {
    let mut world = World::found().await;
    let refused = world.bind_again(0).await.unwrap_err().to_string();
    assert!(refused.contains("is in use by another process"), "{refused}");
    // What runs is not disturbed, and the next may have the data.
    world.publish().await;
    world.halt(0).await;
    world.resume(0).await;
    world.stop().await;
}
