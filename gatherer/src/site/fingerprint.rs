//! The fingerprint of the settings that records depend on.
//!
//! A file whose record was made under another fingerprint is read again. The fingerprint is made of
//! named parts, each in a form that is defined here or by the serialization of its type, and of
//! [`FORM`]. It is the same in every run and on every machine.
//!
//! Sans-I/O.

use std::os::unix::ffi::OsStrExt as _;

use essence::fingerprint::fingerprint_of;
use serde::Serialize;

use crate::config::Config;

/// Version of the records of files and of fingerprints: a new number makes gatherers read
/// everything again.
pub(crate) const FORM: &str = "5";

#[derive(Debug)]
pub(crate) struct Fingerprint {
    parts: Vec<Vec<u8>>,
}

impl Fingerprint {
    pub(crate) fn new() -> Self {
        Self { parts: vec![FORM.as_bytes().to_vec()] }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.parts.extend([name.as_bytes().to_vec(), value.into()]);
        self
    }

    /// Adds a part as JSON, which includes the names of the part's fields.
    fn with_json(self, name: &str, value: &impl Serialize) -> Self {
        // A value without a JSON form adds the text of the error.
        let json = serde_json::to_vec(value).unwrap_or_else(|error| error.to_string().into());
        self.with(name, json)
    }

    pub(crate) fn finish(&self) -> u64 {
        let parts: Vec<&[u8]> = self.parts.iter().map(Vec::as_slice).collect();
        fingerprint_of(&parts)
    }
}

/// Returns the fingerprint of the settings that records of files depend on, and of the site's
/// programs.
pub(crate) fn of_files(config: &Config, programs: &str) -> u64 {
    let essence = &config.essence;
    let mut fingerprint = Fingerprint::new()
        .with_json("full-text", &config.full_text)
        .with("ttl", config.ttl.as_secs().to_string())
        .with("refresh-rate", config.refresh_rate.as_secs().to_string())
        .with("read-max", config.read_bytes_max.to_string())
        .with("types", essence.typing.fingerprint_source())
        .with_json("select", &essence.select)
        .with("rules", essence.rules.text())
        .with_json("markup", &essence.markup)
        .with_json("explode", &essence.explode)
        .with_json("summarizers", &essence.declared)
        .with("programs", programs)
        .with_json("pdf-templates", &essence.templates)
        .with_json("detail", &essence.detail);
    for map in &config.maps {
        fingerprint = fingerprint.with("map-from", map.directory.as_os_str().as_bytes());
        fingerprint = fingerprint.with("map-to", map.url_prefix.as_str());
    }
    // A program that failed may succeed with other values of these settings.
    if let Some(programs) = &essence.programs {
        fingerprint = fingerprint.with("program-folder", programs.folder.as_os_str().as_bytes());
        fingerprint = fingerprint.with("program-ms", programs.time_max.as_millis().to_string());
    }
    for path in &essence.programs_read {
        fingerprint = fingerprint.with("program-reads", path.as_os_str().as_bytes());
    }
    fingerprint.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use essence::extract::Explode;
    use formats::{Detail, FullText, Type};

    use super::*;
    use crate::spec::Map;

    /// A change of this value makes every gatherer read everything again: is that intended?
    #[test]
    fn the_fingerprint_is_the_same_on_every_machine() {
        assert_eq!(of_files(&Config::new("/d"), ""), 11_021_803_323_949_302_505);
    }

    #[test]
    fn every_setting_of_records_changes_the_fingerprint() {
        let map = |from: &str| Map {
            url_prefix: "http://h.example/".parse().unwrap(),
            directory: from.into(),
        };
        let changes: [fn(&mut Config); 8] = [
            |it| it.ttl += Duration::from_secs(1),
            |it| it.refresh_rate += Duration::from_secs(1),
            |it| it.read_bytes_max += 1,
            |it| it.full_text = FullText::All,
            |it| it.full_text = FullText::Types([Type::Text].into()),
            |it| it.essence.detail = Detail::BRIEF,
            |it| it.essence.explode = Explode::None,
            |it| it.essence.programs_read = vec!["/srv".into()],
        ];
        let mut fingerprints: Vec<u64> = changes
            .iter()
            .map(|change| {
                let mut config = Config::new("/d");
                change(&mut config);
                of_files(&config, "")
            })
            .collect();
        for maps in [vec![map("/a")], vec![map("/b")], vec![map("/a"), map("/b")]] {
            fingerprints.push(of_files(&Config { maps, ..Config::new("/d") }, ""));
        }
        fingerprints.extend([of_files(&Config::new("/d"), ""), of_files(&Config::new("/d"), "a")]);
        let count = fingerprints.len();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), count);
        // The name and the data folder are not part of the fingerprint.
        let named = Config { name: "a".to_owned(), ..Config::new("/elsewhere") };
        assert_eq!(of_files(&named, ""), of_files(&Config::new("/d"), ""));
    }
}
