//! Tests of privacy: the files of members that other users of the machine can read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::cluster::Cluster;

/// A user that owns no files, and its group.
const NOBODY: u32 = 65_534;
/// Another group.
const STRANGERS: u32 = 65_533;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as the user [`NOBODY`].
fn as_nobody(program: &str, arguments: &[&Path]) -> Output {
    in_group(NOBODY, program, arguments)
}

/// Runs a command as the user [`NOBODY`], in this group only.
fn in_group(group: u32, program: &str, arguments: &[&Path]) -> Output {
    let root = rustix::process::geteuid().is_root();
    assert!(root, "it reads as another user, which only root can be: run it as root");
    let mut command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(group).current_dir("/").output().unwrap()
}

/// Returns the names of the files below a folder that the other user can read by their paths.
fn readable(dir: &Path) -> Vec<String> {
    let (mut files, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match fs::symlink_metadata(&path).unwrap() {
                it if it.is_dir() => open.push(path),
                it if it.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    let all: Vec<&Path> =
        [Path::new("-c"), Path::new("for it; do [ -r \"$it\" ] && echo \"$it\"; done"), dir]
            .into_iter()
            .chain(files.iter().map(|it| &**it))
            .collect();
    let found = String::from_utf8(as_nobody("sh", &all).stdout).unwrap();
    let mut names: Vec<String> =
        found.lines().map(|it| it.rsplit('/').next().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Opens the modes of a member's files, except in trees, as older members left them.
fn open_all_modes(dir: &Path) {
    chmod(dir, 0o755);
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_secret = ["identity.key", "admin.token"].contains(&name);
        if path.is_symlink() || is_secret || name == "tree" {
            continue;
        } else if path.is_dir() {
            open_all_modes(&path);
        } else {
            chmod(&path, 0o644);
        }
    }
}

/// Checks that readers go on while a member starts or fails to start, but not if they lost the
/// right.
async fn readers_go_on_while_it_starts(cluster: &mut Cluster, opened: usize) {
    let tree = cluster.folder(opened);
    cluster.halt(opened).await;
    cluster.resume(opened).await;
    cluster.halt(opened).await;
    let is_read = |cluster: &Cluster| readable(&cluster.data(opened)).contains(&"lease".to_owned());
    assert!(is_read(cluster));
    let wrong = tree.with_file_name("wrong@0000000000000001");
    fs::write(&wrong, "").unwrap();
    cluster.try_bind(opened).await.unwrap_err();
    assert!(is_read(cluster));
    chmod(&tree, 0o705);
    cluster.try_bind(opened).await.unwrap_err();
    // The tree's folder is closed, or has already got the right mode.
    let mode = fs::metadata(&tree).unwrap().permissions().mode() & 0o777;
    assert!([0o700, 0o755].contains(&mode));
    fs::remove_file(&wrong).unwrap();
    cluster.resume(opened).await;
    assert!(is_read(cluster));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_private_at_its_origin_is_private_at_all_members() {
    let mut cluster = Cluster::open("mode = \"755\"\n").await;
    // The other user has to pass the folder of the test.
    chmod(&cluster.beside(""), 0o755);
    for (path, mode) in [("public.txt", 0o644), ("team.txt", 0o640), ("private/key", 0o600)] {
        let path = cluster.source(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "what it says").unwrap();
        chmod(&path, mode);
    }
    chmod(&cluster.source("private"), 0o700);
    chmod(&cluster.source(""), 0o755);
    let opened = cluster.join_reading("mode = \"755\"\n").await;
    let closed = cluster.join().await;
    let version = cluster.publish().await.version;
    cluster.all_hold(&version).await;
    cluster.assert_equal();
    for member in [0, opened] {
        let replica = cluster.replica(member);
        let output = as_nobody("cat", &[&replica.join("public.txt")]);
        assert_eq!(output.stdout, b"what it says", "{output:?}");
        for denied in ["team.txt", "private/key"] {
            let output = as_nobody("cat", &[&replica.join(denied)]);
            assert!(!output.status.success() && output.stdout.is_empty(), "{denied}: {output:?}");
        }
        assert!(!as_nobody("ls", &[&replica.join("private")]).status.success());
        // Files beside the tree are private too, except the one that readers lock.
        let all = ["lease", "public.txt"];
        let found = readable(&cluster.data(member));
        assert!(found.iter().all(|it| all.contains(&it.as_str())), "{found:?}");
        assert!(found.iter().any(|it| it == "public.txt"), "{found:?}");
    }
    let is_closed = |cluster: &Cluster| {
        assert_eq!(readable(&cluster.data(closed)), Vec::<String>::new());
        assert!(!as_nobody("ls", &[&cluster.data(closed)]).status.success());
    };
    is_closed(&cluster);
    // A member with open modes is closed when it starts.
    cluster.halt(closed).await;
    open_all_modes(&cluster.data(closed));
    assert!(!readable(&cluster.data(closed)).is_empty());
    cluster.resume(closed).await;
    is_closed(&cluster);
    // Closing the files does not damage the tree.
    assert_eq!(cluster.verify(closed).await[0].damaged_total, 0);
    fs::set_permissions(cluster.source("public.txt"), Permissions::from_mode(0o600)).unwrap();
    let changed = cluster.publish().await;
    assert!(changed.is_changed);
    cluster.all_hold(&changed.version).await;
    for member in [0, opened] {
        let output = as_nobody("cat", &[&cluster.replica(member).join("public.txt")]);
        assert!(!output.status.success(), "{output:?}");
    }
    // A tree can be closed and opened again without a restart.
    cluster.reload_with(opened, "mode = \"755\"", "mode = \"700\"").await;
    cluster.until(|cluster| readable(&cluster.data(opened)).is_empty()).await;
    cluster.reload_with(opened, "mode = \"700\"", "mode = \"711\"").await;
    cluster.until(|cluster| readable(&cluster.data(opened)).contains(&"lease".to_owned())).await;
    // If a tree cannot be opened, the folders above it stay closed too.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (data, tree) = (cluster.data(opened), cluster.folder(opened));
    assert_eq!((mode(&data), mode(&data.join("trees"))), (0o711, 0o711));
    fs::rename(&tree, tree.with_extension("away")).unwrap();
    cluster.reload_with(opened, "mode = \"711\"", "mode = \"755\"").await;
    cluster.noted_by(opened, "only the owner has access to it").await;
    assert_eq!((mode(&data), mode(&data.join("trees"))), (0o700, 0o700));
    fs::rename(tree.with_extension("away"), &tree).unwrap();
    readers_go_on_while_it_starts(&mut cluster, opened).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_group_of_a_tree_can_read_it() {
    let mut cluster = Cluster::found().await;
    chmod(&cluster.beside(""), 0o755);
    let of_group = "mode = \"750\"\ngroup = \"65534\"\n";
    let member = cluster.join_reading(of_group).await;
    let publish = async |cluster: &Cluster, text: &str| {
        for (path, mode) in [("team.txt", 0o640), ("key", 0o600)] {
            let path = cluster.source(path);
            fs::write(&path, text).unwrap();
            chmod(&path, mode);
        }
        let version = cluster.publish().await.version;
        cluster.all_hold(&version).await;
    };
    let read = |cluster: &Cluster, group: u32, name: &str| {
        let output = in_group(group, "cat", &[&cluster.replica(member).join(name)]);
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let check = |cluster: &Cluster, text: &str| {
        assert_eq!(read(cluster, NOBODY, "team.txt").as_deref(), Some(text));
        assert_eq!(read(cluster, NOBODY, "key"), None);
        assert_eq!(read(cluster, STRANGERS, "team.txt"), None);
    };
    chmod(&cluster.source(""), 0o750);
    publish(&cluster, "first").await;
    check(&cluster, "first");
    // The tree with its content is taken from the group, and given back.
    cluster.reload_with(member, of_group, "mode = \"755\"\n").await;
    cluster.until(|cluster| read(cluster, NOBODY, "team.txt").is_none()).await;
    cluster.reload_with(member, "mode = \"755\"\n", of_group).await;
    cluster.until(|cluster| read(cluster, NOBODY, "team.txt").is_some()).await;
    check(&cluster, "first");
    publish(&cluster, "second").await;
    check(&cluster, "second");
    cluster.stop().await;
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    let this = std::env::current_exe().unwrap();
    let test = "privacy::a_file_that_is_private_at_its_origin_is_private_at_all_members";
    for umask in ["000", "077"] {
        let script = format!("umask {umask}; exec \"$0\" --exact {test}");
        let ran = Command::new("sh").args(["-c", &script]).arg(&this).output().unwrap();
        let stdout = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && stdout.contains("1 passed"), "{umask}: {stdout}");
    }
}
