//! What others of the machine can read of what members keep.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::World;

/// A user who owns nothing, and its group.
const NOBODY: u32 = 65_534;
/// Another group.
const STRANGERS: u32 = 65_533;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as somebody else.
fn as_nobody(program: &str, arguments: &[&Path]) -> Output {
    in_group(NOBODY, program, arguments)
}

/// The same, in this group alone.
fn in_group(group: u32, program: &str, arguments: &[&Path]) -> Output {
    let root = rustix::process::geteuid().is_root();
    assert!(root, "it reads as another user, which only root can be: run it as root");
    let mut command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(group).current_dir("/").output().unwrap()
}

/// The names of the files below a folder that somebody else can read who knows where they are.
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

/// Gives all that a member keeps the modes that it had before others were kept out; what readers of a tree see stays.
fn loosen(dir: &Path) {
    chmod(dir, 0o755);
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_secret = ["identity.key", "admin.token"].contains(&name);
        if path.is_symlink() || is_secret || name == "tree" {
            continue;
        } else if path.is_dir() {
            loosen(&path);
        } else {
            chmod(&path, 0o644);
        }
    }
}

/// While a member is started, and if it cannot be, its readers go on; who is not to be one any more does not.
async fn readers_go_on_while_it_starts(world: &mut World, opened: usize) {
    let tree = world.folder(opened);
    world.halt(opened).await;
    world.resume(opened).await;
    world.halt(opened).await;
    let is_read = |world: &World| readable(&world.data(opened)).contains(&"lease".to_owned());
    assert!(is_read(world));
    let wrong = tree.with_file_name("wrong@0000000000000001");
    fs::write(&wrong, "").unwrap();
    world.bind_again(opened).await.unwrap_err();
    assert!(is_read(world));
    chmod(&tree, 0o705);
    world.bind_again(opened).await.unwrap_err();
    // It is closed, or opened as it is to be, if its turn came before.
    let mode = fs::metadata(&tree).unwrap().permissions().mode() & 0o777;
    assert!([0o700, 0o755].contains(&mode));
    fs::remove_file(&wrong).unwrap();
    world.resume(opened).await;
    assert!(is_read(world));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_a_file_where_it_is_published_may_not_anywhere() {
    let mut world = World::open("mode = \"755\"\n").await;
    // Otherwise nobody would get as far as to what is looked at.
    chmod(&world.beside(""), 0o755);
    for (path, mode) in [("public.txt", 0o644), ("team.txt", 0o640), ("private/key", 0o600)] {
        let path = world.source(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "what it says").unwrap();
        chmod(&path, mode);
    }
    chmod(&world.source("private"), 0o700);
    chmod(&world.source(""), 0o755);
    let opened = world.join_reading("mode = \"755\"\n").await;
    let closed = world.join().await;
    let version = world.publish().await.version;
    world.all_hold(&version).await;
    world.assert_equal();
    for member in [0, opened] {
        let replica = world.replica(member);
        let said = as_nobody("cat", &[&replica.join("public.txt")]);
        assert_eq!(said.stdout, b"what it says", "{said:?}");
        for denied in ["team.txt", "private/key"] {
            let said = as_nobody("cat", &[&replica.join(denied)]);
            assert!(!said.status.success() && said.stdout.is_empty(), "{denied}: {said:?}");
        }
        assert!(!as_nobody("ls", &[&replica.join("private")]).status.success());
        // Nor what is kept beside the tree, but for what readers lock.
        let all = ["lease", "public.txt"];
        let found = readable(&world.data(member));
        assert!(found.iter().all(|it| all.contains(&it.as_str())), "{found:?}");
        assert!(found.iter().any(|it| it == "public.txt"), "{found:?}");
    }
    let is_closed = |world: &World| {
        assert_eq!(readable(&world.data(closed)), Vec::<String>::new());
        assert!(!as_nobody("ls", &[&world.data(closed)]).status.success());
    };
    is_closed(&world);
    // One that was kept with other modes is closed as it is started.
    world.halt(closed).await;
    loosen(&world.data(closed));
    assert!(!readable(&world.data(closed)).is_empty());
    world.resume(closed).await;
    is_closed(&world);
    // Nothing of that is another version, or damage.
    assert_eq!(world.verify(closed).await[0].damaged_total, 0);
    fs::set_permissions(world.source("public.txt"), Permissions::from_mode(0o600)).unwrap();
    let changed = world.publish().await;
    assert!(changed.is_changed);
    world.all_hold(&changed.version).await;
    for member in [0, opened] {
        let said = as_nobody("cat", &[&world.replica(member).join("public.txt")]);
        assert!(!said.status.success(), "{said:?}");
    }
    // It is closed, and opened again, without a restart.
    world.resettle(opened, "mode = \"755\"", "mode = \"700\"").await;
    world.until(|world| readable(&world.data(opened)).is_empty()).await;
    world.resettle(opened, "mode = \"700\"", "mode = \"711\"").await;
    world.until(|world| readable(&world.data(opened)).contains(&"lease".to_owned())).await;
    // A tree that cannot be opened opens nothing above it either.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (data, tree) = (world.data(opened), world.folder(opened));
    assert_eq!((mode(&data), mode(&data.join("trees"))), (0o711, 0o711));
    fs::rename(&tree, tree.with_extension("away")).unwrap();
    world.resettle(opened, "mode = \"711\"", "mode = \"755\"").await;
    world.noted_by(opened, "nobody but the owner gets at it").await;
    assert_eq!((mode(&data), mode(&data.join("trees"))), (0o700, 0o700));
    fs::rename(tree.with_extension("away"), &tree).unwrap();
    readers_go_on_while_it_starts(&mut world, opened).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_the_group_of_a_tree_reads_it_and_nobody_else() {
    let mut world = World::found().await;
    chmod(&world.beside(""), 0o755);
    let of_group = "mode = \"750\"\ngroup = \"65534\"\n";
    let member = world.join_reading(of_group).await;
    let publish = async |world: &World, text: &str| {
        for (path, mode) in [("team.txt", 0o640), ("key", 0o600)] {
            let path = world.source(path);
            fs::write(&path, text).unwrap();
            chmod(&path, mode);
        }
        let version = world.publish().await.version;
        world.all_hold(&version).await;
    };
    let read = |world: &World, group: u32, name: &str| {
        let said = in_group(group, "cat", &[&world.replica(member).join(name)]);
        said.status.success().then(|| String::from_utf8(said.stdout).unwrap())
    };
    let check = |world: &World, text: &str| {
        assert_eq!(read(world, NOBODY, "team.txt").as_deref(), Some(text));
        assert_eq!(read(world, NOBODY, "key"), None);
        assert_eq!(read(world, STRANGERS, "team.txt"), None);
    };
    chmod(&world.source(""), 0o750);
    publish(&world, "first").await;
    check(&world, "first");
    // It is taken from the group with all that is in it, and given back.
    world.resettle(member, of_group, "mode = \"755\"\n").await;
    world.until(|world| read(world, NOBODY, "team.txt").is_none()).await;
    world.resettle(member, "mode = \"755\"\n", of_group).await;
    world.until(|world| read(world, NOBODY, "team.txt").is_some()).await;
    check(&world, "first");
    publish(&world, "second").await;
    check(&world, "second");
    world.stop().await;
}

#[test]
fn the_umask_does_not_matter() {
    let this = std::env::current_exe().unwrap();
    let test = "privacy::who_may_not_read_a_file_where_it_is_published_may_not_anywhere";
    for umask in ["000", "077"] {
        let script = format!("umask {umask}; exec \"$0\" --exact {test}");
        let ran = Command::new("sh").args(["-c", &script]).arg(&this).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{umask}: {said}");
    }
}
