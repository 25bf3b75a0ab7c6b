//! `harvest broker tune`: the forecast of another policy for a running broker, and applying it.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::admin::settings_file;
use broker::config::PolicyName;
use broker::config::edit::{self, Choice};
use broker::status::{self, Status};
use serde::Deserialize;

use super::seconds;
use crate::admin::Admin;
use crate::output;
use crate::settings::File;

/// Maximum number of sources whose intervals are shown.
const ROWS_MAX: usize = 20;

/// The new policy: by the value of one of its four options, by name, or by both.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest broker tune -c broker.toml --theta 0.95           show what it would take
  harvest broker tune -c broker.toml --theta 0.95 --apply   write it down, and apply it
  harvest broker tune -c broker.toml --pulls-per-hour 500
  harvest broker tune -c broker.toml --policy uap --theta 0.95

The admin listener shows the same as a page, at /freshness.")]
#[group(skip)]
pub(crate) struct Tune {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Write the policy into the settings file, and have the broker read the file again.
    #[arg(long)]
    apply: bool,
    /// Print the broker's answer as JSON.
    #[arg(long, conflicts_with = "apply")]
    json: bool,
}

/// The options for the policy; at least one is required.
#[derive(Debug, clap::Args)]
#[group(id = "choice", required = true, multiple = true)]
struct PolicyArgs {
    /// Freshness to keep, from 0 up to 0.9999 (policies oap, uap, ioap).
    #[arg(long, value_name = "THETA")]
    theta: Option<f64>,
    /// Price of one hour with everything stale, in pulls (policy combined_cost).
    #[arg(long, value_name = "PULLS", conflicts_with = "theta")]
    price: Option<f64>,
    /// Pulls an hour of all sources together (policy budget).
    #[arg(long, value_name = "PULLS", conflicts_with_all = ["theta", "price"])]
    pulls_per_hour: Option<f64>,
    /// Time between pulls of every source, such as "2 h" (policy fixed).
    #[arg(long, value_name = "TIME",
          conflicts_with_all = ["theta", "price", "pulls_per_hour"])]
    interval: Option<String>,
    /// The policy; by default that of the settings, or the one that takes the given value.
    #[arg(long, value_name = "POLICY", value_parser = PolicyName::NAMES)]
    policy: Option<String>,
}

/// The part of the broker's answer that is shown here.
#[derive(Debug, Deserialize)]
struct Answer {
    policy: String,
    aim: Option<status::Aim>,
    measured_freshness: Option<f64>,
    expected_freshness: f64,
    pulls_per_hour: f64,
    preview: Option<Preview>,
}

#[derive(Debug, Deserialize)]
struct Preview {
    policy: String,
    aim: Option<status::Aim>,
    outcome: String,
    expected_freshness: f64,
    pulls_per_hour: f64,
    sooner: u64,
    later: u64,
    same: u64,
    sources: Vec<Change>,
}

/// The change of one source's interval.
#[derive(Debug, Deserialize)]
struct Change {
    name: String,
    interval_seconds: Option<f64>,
    new_interval_seconds: Option<f64>,
}

/// Shows the forecast; with `--apply`, applies the policy.
pub(super) async fn run(file: &File, args: &Tune) -> anyhow::Result<ExitCode> {
    let admin = super::admin(file)?;
    let answer = admin.get(&args.policy.path()).await?;
    admin.print(&answer, args.json, render)?;
    if !args.apply {
        return Ok(ExitCode::SUCCESS);
    }
    let answer: Answer = serde_json::from_slice(&answer)?;
    let preview = answer.preview.context("the broker shows no preview")?;
    check_reads(&admin, &file.config).await?;
    let text = fs::read_to_string(&file.config)?;
    let edited = edit::with_policy(&text, &args.policy.choice(&preview))
        .with_context(|| format!("{} stays as it is", file.config.display()))?;
    settings_file::replace(&file.config, &edited)?;
    let taken_over = admin.post("reload", &[]).await;
    taken_over.with_context(|| {
        let file = file.config.display();
        format!("{file} is changed, but the broker has not read it: send it SIGHUP, or restart it")
    })?;
    let now: Answer = serde_json::from_slice(&admin.get("freshness?format=json").await?)?;
    if (&now.policy, &now.aim) != (&preview.policy, &preview.aim) {
        bail!("{} is changed, but the broker goes by {}", file.config.display(), now.policy);
    }
    output::line(&format!("{} is changed, and taken over", file.config.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that the answering broker reads these settings, and that commands to it are allowed.
pub(super) async fn check_reads(admin: &Admin, file: &Path) -> anyhow::Result<()> {
    admin.may_command()?;
    let status: Status = serde_json::from_slice(&admin.get("status").await?)?;
    let own = fs::canonicalize(file)?;
    match status.settings {
        Some(settings) if fs::canonicalize(&settings).is_ok_and(|it| it == own) => Ok(()),
        Some(settings) => bail!(
            "the broker that answers, {}, reads {settings} and not {}: give it that file",
            status.name,
            own.display()
        ),
        None => bail!("the broker that answers, {}, has no settings file", status.name),
    }
}

impl PolicyArgs {
    /// Returns the path and query to request from the broker.
    fn path(&self) -> String {
        // Debug form: short for large and small numbers.
        let number = |it: Option<f64>| it.map(|it| format!("{it:?}"));
        let fields = [
            ("policy", self.policy.clone()),
            ("theta", number(self.theta)),
            ("price", number(self.price)),
            ("pulls_per_hour", number(self.pulls_per_hour)),
            ("interval", self.interval.clone()),
        ];
        let page = String::from("freshness?");
        let begin = page.len();
        let mut query = url::form_urlencoded::Serializer::for_suffix(page, begin);
        query.append_pair("format", "json");
        for (name, value) in fields {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        }
        query.finish()
    }

    /// Returns the policy for the settings file, as the broker's answer gives it.
    fn choice(&self, preview: &Preview) -> Choice {
        let aim = preview.aim.as_ref().and_then(|aim| {
            let value = aim.value;
            Some(match (aim.setting.as_str(), &self.interval) {
                ("theta", _) => ("theta", value.into()),
                ("price", _) => ("price", value.into()),
                ("pulls_per_hour", _) => ("pulls_per_hour", value.into()),
                ("interval", Some(text)) => ("interval", text.into()),
                ("interval", None) => ("interval", format!("{value} s").into()),
                _ => return None,
            })
        });
        Choice { policy: preview.policy.clone(), aim }
    }
}

/// Writes the present state and the forecast side by side, for a person.
fn render(answer: &Answer) -> String {
    let Some(then) = &answer.preview else { return String::from("the broker shows no preview") };
    let share = |share: f64| format!("{:.2} %", share * 100.0);
    let interval = |it: Option<f64>| it.map_or_else(|| "never".to_owned(), seconds);
    let aim = |aim: &Option<status::Aim>| match aim {
        Some(status::Aim { setting, value }) => format!("{setting} = {value}"),
        None => "as often as each changes".to_owned(),
    };
    let measured = answer.measured_freshness.map_or_else(|| "–".to_owned(), share);
    let mut table = output::table(["", "now", "then"]);
    table.add_row(["policy", &answer.policy, &then.policy]);
    table.add_row(["aim", &aim(&answer.aim), &aim(&then.aim)]);
    table.add_row(["freshness, measured", &measured, ""]);
    let expected = [answer.expected_freshness, then.expected_freshness].map(share);
    table.add_row(["freshness, expected", &expected[0], &expected[1]]);
    let pulls =
        [answer.pulls_per_hour, then.pulls_per_hour].map(|it| format!("{:.1}", it.max(0.0)));
    table.add_row(["pulls an hour", &pulls[0], &pulls[1]]);
    let mut lines = vec![table.to_string()];
    match then.outcome.as_str() {
        "all_shortest" if then.policy == "budget" => lines.push(
            "So many pulls cannot be made: every source is at its shortest interval.".to_owned(),
        ),
        "all_longest" if then.policy == "budget" => lines.push(
            "More pulls than that are made: no source may wait longer than its longest interval."
                .to_owned(),
        ),
        "all_shortest" => lines.push(format!(
            "The aim cannot be met: with every source at its shortest interval, freshness is {}.",
            share(then.expected_freshness)
        )),
        "partly" => lines.push(
            "The bounds of some sources keep them from that; the expected freshness takes this into account."
                .to_owned(),
        ),
        "all_longest" => lines.push(
            "Every source is at its longest interval: a longer one would save pulls."
                .to_owned(),
        ),
        _ => {}
    }
    lines.push(format!(
        "\n{} pulled more often, {} less often, {} as often as now",
        then.sooner, then.later, then.same
    ));
    let mut table = output::table(["source", "interval now", "then"]);
    for it in then.sources.iter().take(ROWS_MAX) {
        table.add_row([
            it.name.clone(),
            interval(it.interval_seconds),
            interval(it.new_interval_seconds),
        ]);
    }
    lines.push(table.to_string());
    let all = then.sooner + then.later + then.same;
    if u64::try_from(ROWS_MAX).is_ok_and(|shown| shown < all) {
        lines.push(format!("… the {ROWS_MAX} of {all} that change most"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(policy: &str, aim: (&str, f64)) -> Preview {
        let change = Change {
            name: "docs".to_owned(),
            interval_seconds: Some(600.0),
            new_interval_seconds: None,
        };
        Preview {
            policy: policy.to_owned(),
            aim: Some(status::Aim { setting: aim.0.to_owned(), value: aim.1 }),
            outcome: "all_shortest".to_owned(),
            expected_freshness: 0.875,
            pulls_per_hour: 12.5,
            sooner: 1,
            later: 0,
            same: 30,
            sources: vec![change],
        }
    }

    fn policy_args(interval: Option<&str>) -> PolicyArgs {
        PolicyArgs {
            theta: interval.is_none().then_some(0.95),
            price: None,
            pulls_per_hour: None,
            interval: interval.map(str::to_owned),
            policy: None,
        }
    }

    #[test]
    fn the_options_become_the_query() {
        assert_eq!(policy_args(None).path(), "freshness?format=json&theta=0.95");
        assert_eq!(policy_args(Some("2 h")).path(), "freshness?format=json&interval=2+h");
    }

    #[test]
    fn the_settings_get_the_policy_that_the_broker_showed() {
        let check = |interval, policy, aim, expected: (&str, &str)| {
            let choice = policy_args(interval).choice(&preview(policy, aim));
            assert_eq!(choice.policy, policy);
            let (key, value) = choice.aim.unwrap();
            assert_eq!((key, value.to_string().trim()), expected);
        };
        check(None, "uap", ("theta", 0.95), ("theta", "0.95"));
        check(Some("2 h"), "fixed", ("interval", 7_200.0), ("interval", "\"2 h\""));
    }

    #[test]
    fn present_and_forecast_stand_side_by_side() {
        let answer = Answer {
            policy: "oap".to_owned(),
            aim: Some(status::Aim { setting: "theta".to_owned(), value: 0.9 }),
            measured_freshness: None,
            expected_freshness: 0.9,
            pulls_per_hour: 6.0,
            preview: Some(preview("oap", ("theta", 0.95))),
        };
        let text = render(&answer);
        for part in ["theta = 0.9 ", "theta = 0.95", "87.50 %", "12.5", "never", "10 min", "of 31"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(text.contains("cannot be met"), "{text}");
    }
}
