//! The answers to `/healthz`, `/readyz` and `/metrics`, which programs read.
//!
//! `/healthz` says that the process lives and need not be restarted. `/readyz` says whether the
//! daemon can do its work, as named checks; its metrics and its status have the same checks.

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::metrics::{self, Sample};

/// One ability that a daemon must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name: `takes-changes`, `answers-searches` …
    pub name: String,
    /// Whether the daemon has it.
    pub ok: bool,
    /// If not, the fault and its remedy, for everybody: without names of files and secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// If not, the same for the administrator, with names of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Check {
    /// Returns a check that has failed if there is a `fault`. The administrator sees the fault,
    /// everybody else sees the `message`.
    pub fn new(name: &str, message: &str, fault: Option<String>) -> Self {
        let message = fault.is_some().then(|| message.to_owned());
        Self { name: name.to_owned(), ok: fault.is_none(), message, detail: fault }
    }

    /// Returns the fault for the administrator; `None` if the daemon has the ability.
    pub(crate) fn fault(&self) -> Option<String> {
        let message = self.message.as_deref().unwrap_or("it failed");
        let detail = self.detail.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
        (!self.ok).then(|| format!("{message}{detail}"))
    }
}

/// Readiness of a daemon for its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether all checks passed.
    pub ready: bool,
    /// The checks, always the same ones for one daemon.
    pub checks: Vec<Check>,
}

impl Readiness {
    /// Returns the readiness by `checks`: ready if all passed.
    pub fn new(checks: impl Into<Vec<Check>>) -> Self {
        let checks = checks.into();
        Self { ready: checks.iter().all(|it| it.ok), checks }
    }

    /// Returns the readiness for everybody, without the details for the administrator.
    #[must_use]
    pub fn for_anybody(mut self) -> Self {
        self.checks.iter_mut().for_each(|it| it.detail = None);
        self
    }

    /// Returns one line for people for each failed check.
    pub fn faults(&self) -> impl Iterator<Item = String> + '_ {
        self.checks.iter().filter_map(|it| Some(format!("NOT READY: {}: {}", it.name, it.fault()?)))
    }

    /// Returns the samples: one for the whole readiness, and one for each check.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let gauge = |name, help, ok| Sample::gauge(name, help, f64::from(u8::from(ok)));
        let help = "1 while the daemon can do its work: while all checks of /readyz pass.";
        let whole = gauge("harvest_ready", help, self.ready);
        let each = self.checks.iter().map(move |it| {
            let help = "1 while a check of /readyz passes.";
            gauge("harvest_ready_check", help, it.ok).with("check", it.name.as_str())
        });
        std::iter::once(whole).chain(each)
    }

    /// Answers `/readyz`: 200, or 503 if a check failed.
    pub fn respond(&self) -> Response {
        let status = if self.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        fresh((status, axum::Json(self)).into_response())
    }
}

/// Answers `/readyz` with the result of `look`, which may block for a moment.
pub async fn look(look: impl FnOnce() -> Readiness + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(look).await {
        Ok(found) => found.respond(),
        Err(error) => {
            tracing::error!(%error, "cannot check readiness");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Answers `/healthz`: the process lives. `service` is the daemon's kind (`gatherer`, `broker` …).
pub fn healthz(service: &str) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let body = json!({ "status": "ok", "service": service, "version": version });
    fresh(axum::Json(body).into_response())
}

/// Answers `/metrics` in Prometheus' text format.
pub fn metrics(samples: &[Sample]) -> Response {
    let mut response = metrics::render(samples).into_response();
    let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    fresh(response)
}

/// Keeps caches from answering in the daemon's place.
fn fresh(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(response: Response, status: u16, content_type: &str, body: &str) {
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[CONTENT_TYPE], content_type);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        assert_eq!(String::from_utf8(bytes.to_vec()).unwrap(), body);
    }

    fn failing() -> Readiness {
        let full = Some("no space on /srv".to_owned());
        Readiness::new([
            Check::new("answers-searches", "the index fails", None),
            Check::new("takes-changes", "free some space", full),
        ])
    }

    #[tokio::test]
    async fn a_live_process_is_healthy() {
        let version = env!("CARGO_PKG_VERSION");
        let body = format!(r#"{{"service":"broker","status":"ok","version":"{version}"}}"#);
        check(healthz("broker"), 200, "application/json", &body).await;
    }

    #[tokio::test]
    async fn ready_is_200_and_a_failed_check_is_503() {
        let well = Readiness::new([Check::new("takes-changes", "free some space", None)]);
        let body = r#"{"ready":true,"checks":[{"name":"takes-changes","ok":true}]}"#;
        check(well.respond(), 200, "application/json", body).await;
        let before = r#"{"ready":false,"checks":[{"name":"answers-searches","ok":true},{"name":"takes-changes","ok":false,"message":"free some space""#;
        let body = format!(r#"{before},"detail":"no space on /srv"}}]}}"#);
        check(failing().respond(), 503, "application/json", &body).await;
        let body = format!("{before}}}]}}");
        check(failing().for_anybody().respond(), 503, "application/json", &body).await;
    }

    #[test]
    fn people_and_metrics_get_the_same_checks() {
        let faults: Vec<String> = failing().faults().collect();
        assert_eq!(faults, ["NOT READY: takes-changes: free some space (no space on /srv)"]);
        let text = metrics::render(&failing().samples().collect::<Vec<_>>());
        for line in [
            "harvest_ready 0",
            r#"harvest_ready_check{check="answers-searches"} 1"#,
            r#"harvest_ready_check{check="takes-changes"} 0"#,
        ] {
            assert!(text.lines().any(|it| it == line), "{line:?} is not in\n{text}");
        }
    }

    #[tokio::test]
    async fn metrics_are_text() {
        let response = metrics(&[Sample::gauge("up", "Up.", 1.0)]);
        let body = "# HELP up Up.\n# TYPE up gauge\nup 1\n";
        check(response, 200, metrics::CONTENT_TYPE, body).await;
    }
}
