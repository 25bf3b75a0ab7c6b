//! The settings of a replicator: read, checked against this machine, and written for a new member.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use replicator::Config;
use replicator::config::TreeConfig;

use super::{Place, Publishing};
use crate::settings;

/// Reads the settings; relative paths in them are taken from the file's folder.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    let mut config = settings::load(path, Config::parse)?;
    // Whole, since they are shown to those who work in other folders.
    let whole = |it: &Path| std::path::absolute(settings::beside(path, it));
    config.daemon.resolve(&std::path::absolute(settings::folder(path))?);
    let folder = std::path::absolute(settings::folder(path))?;
    for files in config.collections.iter_mut().filter_map(|it| it.certificate.as_mut()) {
        files.resolve(&folder);
    }
    for it in &mut config.trees {
        it.directory = whole(&it.directory)?;
    }
    for it in &mut config.replicas {
        it.directory = whole(&it.directory)?;
    }
    Ok(config)
}

/// Says what of the settings is not so on this machine.
pub(super) fn check(path: &Path, config: &Config) -> anyhow::Result<()> {
    let mut wrong: Vec<String> = config.trees.iter().filter_map(unpublishable).collect();
    let is_taken = |it: &Path| fs::symlink_metadata(it).is_ok_and(|it| !it.is_symlink());
    for it in config.replicas.iter().filter(|it| is_taken(&it.directory)) {
        let shown = it.directory.display();
        wrong.push(format!(
            "{shown}, where readers are to find {}, is there already: move it away",
            it.name
        ));
    }
    let own = config.trees.iter().map(|it| (&it.name, &it.passage));
    let passages = own.chain(config.replicas.iter().map(|it| (&it.name, &it.passage)));
    wrong.extend(
        passages.filter_map(|(name, it)| Some(format!("tree {name}: {}", it.resolve().err()?))),
    );
    wrong.extend(keyless(&config.daemon.data));
    if wrong.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = wrong.iter().map(|it| format!("{}: {it}", path.display())).collect();
    bail!(lines.join("\n"))
}

/// Why a tree cannot be published, if so.
fn unpublishable(tree: &TreeConfig) -> Option<String> {
    let (name, shown) = (&tree.name, tree.directory.display());
    match fs::metadata(&tree.directory) {
        Ok(it) if it.is_dir() => None,
        Ok(_) => Some(format!("tree {name}: {shown} is no directory")),
        Err(error) => Some(format!("tree {name}: {shown}: {error}; make or mount it")),
    }
}

/// Says that there is no key in a data directory, without which the member would be another.
pub(super) fn keyless(data: &Path) -> Option<String> {
    let key = data.join(net::identity::FILE_NAME);
    let shown = key.display();
    (!key.exists()).then(|| {
        format!(
            "{shown} is not there, the key of this member, which `init` and `join` make: mount or restore it; or run it \
             as a new member, with `--new-identity`"
        )
    })
}

/// The settings of a new member, with what else there is to say as comments.
pub(super) fn written(
    group: &str,
    place: &Place,
    publishing: &Publishing,
) -> anyhow::Result<String> {
    let Place { address, site } = place;
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
        text.push_str("# watch = \"10 s\"      publish by itself whatever changes\n");
    }
    for (name, feed) in &publishing.collection {
        let shown = toml_quoted(feed.as_str());
        text.push_str(&format!("\n[[collection]]\nname = \"{name}\"\nfeed = {shown}\n"));
        text.push_str("# token = \"…\"         that the feed asks for\n");
    }
    Ok(text)
}

fn admin_port(port: &str) -> u16 {
    let port = port.parse().unwrap_or(4_000_u16);
    port.checked_add(1_000).unwrap_or_else(|| port.saturating_sub(1_000))
}

/// As a basic string of TOML.
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

/// Makes the folder with its settings; nobody else may read them, as an invitation may be in them.
pub(super) fn make(
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
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join("replicator.toml");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| {
        format!("cannot make {}; if it is there, it is of another member", path.display())
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
    fn what_init_writes_is_read() {
        let place = Place {
            address: Address::new("h.example:4100").unwrap(),
            site: Name::new("s").unwrap(),
        };
        let tree = vec![tree("t=/srv/a \"b\"\\\n").unwrap()];
        let collections = vec![collection("c=http://h:8501").unwrap()];
        let publishing = Publishing { tree, collection: collections };
        let text = written("name = \"g\"", &place, &publishing).unwrap();
        let config = Config::parse(&text).unwrap();
        assert_eq!((config.listen.port(), config.daemon.admin_listen.port()), (4_100, 5_100));
        assert_eq!(config.trees[0].directory, publishing.tree[0].1);
        assert_eq!(config.collections[0].feed, publishing.collection[0].1);
        // Whatever the port of links is, there is another for the page.
        let ports = ["80", "4000", "64535", "64536", "65535"].map(admin_port);
        assert_eq!(ports, [1_080, 5_000, 65_535, 63_536, 64_535]);
        for no in ["c", "C=http://h/", "c=h"] {
            assert!(collection(no).is_err(), "{no}");
        }
    }
}
