//! Security headers, which restrict a browser's use of our answers.

use axum::response::Response;
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

/// Policy: only our own style sheet and images. No script at all, so text of a foreign document
/// could never run even if it got past the escaping; no framing; forms only to this site.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                          base-uri 'none'; frame-ancestors 'none'";

const SECURE: [(HeaderName, HeaderValue); 5] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // Queries are private: the site of a hit does not learn them.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Lets the page of `response` post forms to `address`, a URL of another port of its host. For such
/// a form a browser tells the page's origin only if the policy for referrers lets it: Fetch §3.2.
/// Queries stay private. The page is for one browser, so no cache shares it.
pub fn allow_forms_to(response: &mut Response, address: &str) {
    let policy = POLICY.replace("form-action 'self'", &format!("form-action 'self' {address}"));
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
}

/// Adds the security headers that `response` lacks; for `axum::middleware::map_response`.
#[allow(clippy::unused_async, reason = "axum's map_response takes an async function")]
pub async fn secure(mut response: Response) -> Response {
    for (name, value) in SECURE {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}
