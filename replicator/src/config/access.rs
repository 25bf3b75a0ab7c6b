//! Access to a tree on this machine, in the settings.

use std::fs;
use std::path::Path;

use settings::Table;

use crate::tree::access::{Access, FOLDER};

/// File with the numbers of groups.
const GROUPS: &str = "/etc/group";

/// Access to a tree; by default only the owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessConfig {
    /// Mode of the tree's folder: rwx for the owner, and r and x at most for group and others.
    pub mode: u32,
    /// Group of that folder and of all files in it, by its name or number.
    pub group: Option<String>,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self { mode: FOLDER, group: None }
    }
}

impl AccessConfig {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let mode = table.string("mode").map(|text| {
            let mode = u32::from_str_radix(&text, 8).ok().filter(|it| it & !0o055 == 0o700);
            if mode.is_none() {
                let message = format!("\"mode\" is {text:?}");
                let expected = "7 for the owner, and 0, 1, 4 or 5 for group and others: \"750\"";
                table.mistake("mode", message, expected);
            }
            mode.unwrap_or(FOLDER)
        });
        let group = table.string("group");
        if group.as_ref().is_some_and(String::is_empty) {
            table.mistake("group", "\"group\" is empty", "a group of this machine: \"papers\"");
        }
        Self { mode: mode.unwrap_or(FOLDER), group }
    }

    /// Returns the access with the group's number.
    ///
    /// # Errors
    ///
    /// `/etc/group` cannot be read or has no such name. Then give access only to the owner.
    pub fn resolve(&self) -> Result<Access, String> {
        let Some(name) = &self.group else { return Ok(Access { mode: self.mode, group: None }) };
        let group = match name.parse() {
            // `chown` takes the largest number to mean that the group stays.
            Ok(number) if number != u32::MAX => number,
            _ => number_of(Path::new(GROUPS), name)?,
        };
        Ok(Access { mode: self.mode, group: Some(group) })
    }
}

/// Returns the number of a group; each line of the file has name, password, number and members,
/// separated by colons.
fn number_of(file: &Path, name: &str) -> Result<u32, String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    let mut lines = text.lines().map(|it| it.split(':').collect::<Vec<_>>());
    let found = lines.find_map(|it| match it.as_slice() {
        [found, _, number, ..] if *found == name => number.parse().ok(),
        _ => None,
    });
    found.ok_or_else(|| {
        format!("there is no group {name:?} in {shown}: create it, or set the number of another")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name_and_number() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("group");
        fs::write(&file, "root:x:0:\nbad:x:y:\npapers:x:1007:ann,bob\n").unwrap();
        assert_eq!(number_of(&file, "papers"), Ok(1_007));
        for none in ["paper", "bad", ""] {
            assert!(number_of(&file, none).unwrap_err().contains("there is no group"), "{none}");
        }
        let of = |group: &str| AccessConfig { mode: 0o750, group: Some(group.to_owned()) };
        assert_eq!(of("33").resolve(), Ok(Access { mode: 0o750, group: Some(33) }));
        assert!(of("4294967295").resolve().is_err());
        assert_eq!(of("root").resolve(), Ok(Access { mode: 0o750, group: Some(0) }));
        assert_eq!(AccessConfig::default().resolve(), Ok(Access::default()));
    }
}
