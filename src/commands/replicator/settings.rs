//! The settings of a replicator: reading, checks on this machine, and the file of a new member.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use replicator::Config;
use replicator::config::TreeConfig;

use super::{MemberLocation, Publishing};
use crate::settings;

/// Reads the settings; relative paths in them begin at the file's folder.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    let mut config = settings::load(path, Config::parse)?;
    // Absolute, as they are shown to people who work in other folders.
    let absolute = |it: &Path| std::path::absolute(settings::beside(path, it));
    config.daemon.resolve(&std::path::absolute(settings::folder(path))?);
    let folder = std::path::absolute(settings::folder(path))?;
    for files in config.collections.iter_mut().filter_map(|it| it.certificate.as_mut()) {
        files.resolve(&folder);
    }
    for it in &mut config.trees {
        it.directory = absolute(&it.directory)?;
    }
    for it in &mut config.replicas {
        it.link = absolute(&it.link)?;
    }
    Ok(config)
}

/// Checks the folders, owners and keys of the settings on this machine.
pub(super) fn check(path: &Path, config: &Config) -> anyhow::Result<()> {
    let mut wrong: Vec<String> = config.trees.iter().filter_map(tree_fault).collect();
    let is_taken = |it: &Path| fs::symlink_metadata(it).is_ok_and(|it| !it.is_symlink());
    for it in config.replicas.iter().filter(|it| is_taken(&it.link)) {
        let shown = it.link.display();
        wrong.push(format!(
            "{shown}, the directory for readers of {}, exists already: move it away",
            it.name
        ));
    }
    let own = config.trees.iter().map(|it| (&it.name, &it.access));
    let accesses = own.chain(config.replicas.iter().map(|it| (&it.name, &it.access)));
    wrong.extend(
        accesses.filter_map(|(name, it)| Some(format!("tree {name}: {}", it.resolve().err()?))),
    );
    wrong.extend(missing_key(&config.daemon.data));
    if wrong.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = wrong.iter().map(|it| format!("{}: {it}", path.display())).collect();
    bail!(lines.join("\n"))
}

/// Returns why a tree cannot be published; `None` if it can.
fn tree_fault(tree: &TreeConfig) -> Option<String> {
    let (name, shown) = (&tree.name, tree.directory.display());
    match fs::metadata(&tree.directory) {
        Ok(it) if it.is_dir() => None,
        Ok(_) => Some(format!("tree {name}: {shown} is no directory")),
        Err(error) => Some(format!("tree {name}: {shown}: {error}; create or mount it")),
    }
}

/// Returns a message if a data directory has no key: a new key would make a new member.
pub(super) fn missing_key(data: &Path) -> Option<String> {
    let key = data.join(net::identity::FILE_NAME);
    let shown = key.display();
    (!key.exists()).then(|| {
        format!(
            "{shown}, the key of this member, is missing (`init` and `join` create it): mount or restore it; or run as a \
             new member, with `--new-identity`"
        )
    })
}

/// Writes the settings of a new member, with hints as comments.
pub(super) fn settings_text(
    group: &str,
    location: &MemberLocation,
    publishing: &Publishing,
) -> anyhow::Result<String> {
    let MemberLocation { address, site } = location;
    let port = address.as_str().rsplit_once(':').map_or("4000", |it| it.1);
    let mut text = format!(
        "# A member of a group of replicators. All settings: docs/replication.md\n\
         data = \"data\"\n\
         address = \"{address}\"\n\
         site = \"{site}\"\n\
         listen = \"0.0.0.0:{port}\"\n\
         admin_listen = \"127.0.0.1:{}\"\n\n[[group]]\n{group}\n",
        admin_port(port),
    );
    for (name, directory) in &publishing.tree {
        let directory = std::path::absolute(directory)?;
        let Some(shown) = directory.to_str() else {
            bail!("{} cannot be written in settings: it is not UTF-8", directory.display());
        };
        let shown = toml_quoted(shown);
        text.push_str(&format!("\n[[tree]]\nname = \"{name}\"\ndirectory = {shown}\n"));
        text.push_str("# watch = \"10 s\"      publish changes automatically\n");
    }
    for (name, feed) in &publishing.collection {
        let shown = toml_quoted(feed.as_str());
        text.push_str(&format!("\n[[collection]]\nname = \"{name}\"\nfeed = {shown}\n"));
        text.push_str("# token = \"…\"         that the feed requires\n");
    }
    Ok(text)
}

fn admin_port(port: &str) -> u16 {
    let port = port.parse().unwrap_or(4_000_u16);
    port.checked_add(1_000).unwrap_or_else(|| port.saturating_sub(1_000))
}

/// Quotes `text` as a basic string of TOML.
fn toml_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for it in text.chars() {
        match it {
            '"' | '\\' => quoted.extend(['\\', it]),
            it if it.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(it))),
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

/// Creates the folder with its settings. They may hold an invitation: only the owner may read them.
pub(super) fn create(
    directory: &Path,
    text: &str,
    publishing: &Publishing,
) -> anyhow::Result<PathBuf> {
    for (name, directory) in &publishing.tree {
        let metadata = fs::metadata(directory);
        let metadata = metadata.with_context(|| format!("tree {name}: {}", directory.display()))?;
        if !metadata.is_dir() {
            bail!("tree {name}: {} is no directory", directory.display());
        }
    }
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join("replicator.toml");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| {
        format!("cannot create {}; if it exists, it belongs to another member", path.display())
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use replicator::group::charter::Address;
    use replicator::version::Name;

    use super::super::{collection, tree};
    use super::*;

    #[test]
    fn settings_of_a_new_member_can_be_read() {
        let location = MemberLocation {
            address: Address::new("h.example:4100").unwrap(),
            site: Name::new("s").unwrap(),
        };
        let tree = vec![tree("t=/srv/a \"b\"\\\n").unwrap()];
        let collections = vec![collection("c=http://h:8501").unwrap()];
        let publishing = Publishing { tree, collection: collections };
        let text = settings_text("name = \"g\"", &location, &publishing).unwrap();
        let config = Config::parse(&text).unwrap();
        assert_eq!((config.listen.port(), config.daemon.admin_listen.port()), (4_100, 5_100));
        assert_eq!(config.trees[0].directory, publishing.tree[0].1);
        assert_eq!(config.collections[0].feed, publishing.collection[0].1);
        // The page has another port than the links, for any port of the links.
        let ports = ["80", "4000", "64535", "64536", "65535"].map(admin_port);
        assert_eq!(ports, [1_080, 5_000, 65_535, 63_536, 64_535]);
        for no in ["c", "C=http://h/", "c=h"] {
            assert!(collection(no).is_err(), "{no}");
        }
    }
}
