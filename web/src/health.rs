//! The answers to `/healthz` and `/metrics`, which programs read.

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::metrics::{self, Sample};

/// One thing that has to be well for the daemon to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is looked at: `collection`, `index` …
    pub name: &'static str,
    /// What is wrong with it; `None` when it is well.
    pub fault: Option<String>,
}

impl Check {
    /// A check that went well.
    pub fn well(name: &'static str) -> Self {
        Self { name, fault: None }
    }

    /// A check that did not: `fault` says what is wrong.
    pub fn failed(name: &'static str, fault: impl Into<String>) -> Self {
        Self { name, fault: Some(fault.into()) }
    }
}

/// Answers `/healthz`: 200 and `{"status":"ok", …}`, or 503 and `"failing"` when a check failed.
///
/// `service` is the daemon's kind (`gatherer`, `broker`).
pub fn healthz(service: &str, checks: &[Check]) -> Response {
    let well = checks.iter().all(|check| check.fault.is_none());
    let named = checks.iter().map(|check| {
        let said = check.fault.clone().unwrap_or_else(|| "ok".to_owned());
        (check.name.to_owned(), Value::String(said))
    });
    let body = json!({
        "status": if well { "ok" } else { "failing" },
        "service": service,
        "version": env!("CARGO_PKG_VERSION"),
        "checks": named.collect::<Map<_, _>>(),
    });
    let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    fresh((status, axum::Json(body)).into_response())
}

/// Answers `/metrics` in Prometheus' text format.
pub fn metrics(samples: &[Sample]) -> Response {
    let mut response = metrics::render(samples).into_response();
    let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    fresh(response)
}

/// Keeps caches from answering in our stead.
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

    #[tokio::test]
    async fn well_is_200_and_failing_is_503() {
        let well = healthz("broker", &[Check::well("index")]);
        let version = env!("CARGO_PKG_VERSION");
        let body = |status: &str, index: &str| {
            format!(
                r#"{{"checks":{{"index":"{index}"}},"service":"broker","status":"{status}","version":"{version}"}}"#
            )
        };
        check(well, 200, "application/json", &body("ok", "ok")).await;
        let failing = healthz("broker", &[Check::failed("index", "disk full")]);
        check(failing, 503, "application/json", &body("failing", "disk full")).await;
    }

    #[tokio::test]
    async fn metrics_are_text() {
        let response = metrics(&[Sample::gauge("up", "Up.", 1.0)]);
        let body = "# HELP up Up.\n# TYPE up gauge\nup 1\n";
        check(response, 200, metrics::CONTENT_TYPE, body).await;
    }
}
