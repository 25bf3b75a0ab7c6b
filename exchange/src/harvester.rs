//! A repository as a source: the harvest of `oai`, performed over HTTP, with checkpoints on disk.
