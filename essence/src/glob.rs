//! Globs: the patterns of paths in all settings.
//!
//! `*` and `?` do not match slashes; `**` does. A pattern without a slash (except at its end)
//! matches at any depth, any other pattern only from the top. A pattern that matches a directory
//! matches everything below it.
//!
//! Sans-I/O.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Returns the mistake in a pattern; `None` if there is none.
pub fn mistake(pattern: &str) -> Option<String> {
    glob(pattern.trim_start_matches('/')).err()
}

/// Compiles patterns.
///
/// # Errors
///
/// Returns the first pattern that is not a glob, and its mistake.
pub fn globs(patterns: &[String]) -> Result<GlobSet, (String, String)> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        let trimmed = pattern.trim_end_matches('/');
        let inner = trimmed.trim_start_matches('/');
        let anchored = if inner.contains('/') || trimmed.starts_with('/') {
            inner.to_owned()
        } else {
            format!("**/{inner}")
        };
        for written in [anchored.clone(), format!("{anchored}/**")] {
            builder.add(glob(&written).map_err(|error| (pattern.clone(), error))?);
        }
    }
    builder.build().map_err(|error| (patterns.join(" "), error.kind().to_string()))
}

fn glob(pattern: &str) -> Result<globset::Glob, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    glob.map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_pattern_is_a_mistake() {
        assert!(mistake("a[").is_some() && mistake("/a/**").is_none());
    }
}
