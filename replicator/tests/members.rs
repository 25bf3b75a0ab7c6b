//! Whole members on this machine: they join, publish, and become equal.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod watching;
mod world;

use std::fs;

use world::World;

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_gets_what_is_published() {
    let mut world = World::found().await;
    fs::write(world.source("a.txt"), "one").unwrap();
    fs::create_dir(world.source("sub")).unwrap();
    fs::write(world.source("sub/b.bin"), vec![7; 300_000]).unwrap();
    let first = world.publish().await;
    assert!(first.is_changed && first.entries == 2 && first.bytes == 300_003, "{first:?}");
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
