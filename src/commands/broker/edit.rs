//! Changing `[freshness]` in a settings file, and nothing else of it: comments, order and spacing stay.
//!
//! Sans-I/O.

use anyhow::Context as _;
use broker::config::Config;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value, value};

/// What says how much, each for other policies: one of them stands in a file.
const AIMS: [&str; 4] = ["theta", "interval", "price", "pulls_per_hour"];

/// A policy for the settings, by the names that they use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// `policy`.
    pub(super) policy: String,
    /// Which of [`AIMS`] the policy has, and its value; `None` for a policy that has none.
    pub(super) aim: Option<(&'static str, Aim)>,
}

/// How much.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Aim {
    Number(f64),
    Duration(String),
}

impl From<Aim> for Value {
    fn from(aim: Aim) -> Self {
        match aim {
            Aim::Number(number) => number.into(),
            Aim::Duration(text) => text.into(),
        }
    }
}

/// Returns the settings in `text` with another policy.
///
/// # Errors
///
/// The text is no TOML, `[freshness]` is no table, or the settings would not be accepted: nothing should
/// be written then.
pub(super) fn with_policy(text: &str, choice: &Choice) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let table = document.entry("freshness").or_insert_with(|| Item::Table(Table::new()));
    let table = table.as_table_like_mut().context("\"freshness\" is no table")?;
    set(table, "policy", choice.policy.clone().into());
    for key in AIMS {
        match &choice.aim {
            Some((aim, how_much)) if *aim == key => set(table, key, how_much.clone().into()),
            _ => drop(table.remove(key)),
        }
    }
    let text = document.to_string();
    if let Err(mistakes) = Config::parse(&text) {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        anyhow::bail!("the settings would not be accepted:\n{}", mistakes.join("\n"));
    }
    Ok(text)
}

/// Sets a key; the comments around one that was there stay.
fn set(table: &mut dyn TableLike, key: &str, mut new: Value) {
    match table.get_mut(key) {
        Some(old) => {
            if let Some(old) = old.as_value() {
                *new.decor_mut() = old.decor().clone();
            }
            *old = value(new);
        }
        None => drop(table.insert(key, value(new))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# ours\nname = \"n\" # short\ndata = \"d\"\n";

    fn choice(policy: &str, key: &'static str, aim: Aim) -> Choice {
        Choice { policy: policy.to_owned(), aim: Some((key, aim)) }
    }

    fn check(before: &str, choice: &Choice, after: &str) {
        let found = with_policy(&format!("{HEAD}{before}"), choice).unwrap();
        assert_eq!(found, format!("{HEAD}{after}"));
    }

    #[test]
    fn only_the_policy_changes() {
        let oap = choice("oap", "theta", Aim::Number(0.95));
        check(
            "[freshness]\n# asked for by the board\ntheta = 0.9 # of 1\ngain = 0.5\n\n[[source]]\nurl = \"http://h/\"\n",
            &oap,
            "[freshness]\n# asked for by the board\ntheta = 0.95 # of 1\ngain = 0.5\npolicy = \"oap\"\n\n[[source]]\nurl = \"http://h/\"\n",
        );
        check(
            "freshness = { theta = 0.9 }\n",
            &oap,
            "freshness = { theta = 0.95 , policy = \"oap\" }\n",
        );
        check("", &oap, "\n[freshness]\npolicy = \"oap\"\ntheta = 0.95\n");
    }

    #[test]
    fn what_the_new_policy_has_not_goes() {
        let fixed = choice("fixed", "interval", Aim::Duration("2 h".to_owned()));
        check(
            "[freshness]\npolicy = \"oap\"\ntheta = 0.9\n",
            &fixed,
            "[freshness]\npolicy = \"fixed\"\ninterval = \"2 h\"\n",
        );
    }

    #[test]
    fn what_would_not_be_accepted_is_refused() {
        let refused = |text: &str, choice: &Choice| {
            with_policy(&format!("{HEAD}{text}"), choice).unwrap_err().to_string()
        };
        let over = choice("oap", "theta", Aim::Number(1.5));
        assert!(refused("", &over).contains("\"theta\" is 1.5"));
        assert!(refused("freshness = 7\n", &over).contains("no table"));
        assert!(
            refused("[freshness\n", &over).contains("line 4"),
            "{}",
            refused("[freshness\n", &over)
        );
    }
}
