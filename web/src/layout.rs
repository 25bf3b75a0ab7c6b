//! A daemon's pages: their rendering, and the common routes and headers of all daemons.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::body::Body;
use axum::extract;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderMap, Method, StatusCode, Uri};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, ErrorKind};
use serde::Serialize;
use serde_json::json;

use crate::Error;
use crate::assets::Assets;
use crate::failure::{Failure, Wants};
use crate::headers;
use crate::templates::{Folder, SHARED, Source, Templates};

/// Facts about the daemon on every page; templates see them as `site`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// The daemon's name.
    pub name: String,
    /// The public path of the daemon, `/` without a proxy; starts and ends with `/`.
    pub base: String,
    /// The program's version.
    pub version: &'static str,
    /// Links at the foot of its pages.
    pub links: Vec<Link>,
}

/// A link to something else that a daemon serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its path below [`Site::base`], and its query.
    pub path: &'static str,
    /// Its name.
    pub name: &'static str,
}

impl Site {
    /// Returns the site of a daemon called `name` at the root of its host.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base: "/".to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            links: Vec::new(),
        }
    }

    /// Adds `link` at the foot of the pages.
    #[must_use]
    pub fn with(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// Moves the site below the path of `base_url`, its public address behind a proxy.
    #[must_use]
    pub fn at(mut self, base_url: Option<&url::Url>) -> Self {
        if let Some(url) = base_url {
            self.base = format!("{}/", url.path().trim_end_matches('/'));
        }
        self
    }
}

/// The pages of one daemon. Clones share them.
#[derive(Clone, Debug)]
pub struct Pages(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    site: Site,
    sources: Vec<Source>,
    folder: Option<PathBuf>,
    loaded: RwLock<Arc<Loaded>>,
}

/// Templates and assets, from the administrator's folder and from the binary.
#[derive(Debug)]
struct Loaded {
    templates: Templates,
    assets: Arc<Assets>,
}

impl Pages {
    /// Reads the templates: the shared ones, `sources`, and `folder`, which replaces both. Blocks.
    ///
    /// A file of the folder that is wrong is not an error: see [`Self::problems`].
    ///
    /// # Errors
    ///
    /// The folder cannot be read; or a built-in template is wrong, a fault of this program.
    pub fn new(site: Site, sources: &[Source], folder: Option<PathBuf>) -> Result<Self, Error> {
        let sources = [SHARED, sources].concat();
        let loaded = load(&site, &sources, folder.as_deref())?;
        let loaded = RwLock::new(Arc::new(loaded));
        Ok(Self(Arc::new(Inner { site, sources, folder, loaded })))
    }

    /// Reads the folder again. Blocks.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`]; the files read before stay in use.
    pub fn reload(&self) -> Result<(), Error> {
        let loaded = load(&self.0.site, &self.0.sources, self.0.folder.as_deref())?;
        *self.0.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
        Ok(())
    }

    /// Returns the problems of the folder's files, one line each that names the file.
    pub fn problems(&self) -> Vec<String> {
        self.loaded().templates.problems()
    }

    /// Returns the facts about the daemon.
    pub fn site(&self) -> &Site {
        &self.0.site
    }

    /// Renders the template `name`.
    ///
    /// # Errors
    ///
    /// The built-in template failed, too: a fault of this program.
    pub fn render(&self, name: &str, context: &impl Serialize) -> Result<Html<String>, Error> {
        self.loaded().templates.render(name, context).map(Html)
    }

    /// Renders the template `name` as an answer; if it fails, answers 500 and logs the error.
    pub fn respond(&self, status: StatusCode, name: &str, context: &impl Serialize) -> Response {
        match self.render(name, context) {
            Ok(html) => (status, html).into_response(),
            Err(error) => {
                tracing::error!(%error, "page failed");
                (StatusCode::INTERNAL_SERVER_ERROR, Failure::internal().message).into_response()
            }
        }
    }

    /// Answers with a failure, as a page or as JSON.
    pub fn fail(&self, wants: Wants, failure: &Failure) -> Response {
        match wants {
            Wants::Json => (failure.status, axum::Json(failure.to_json())).into_response(),
            Wants::Html => {
                let Failure { status, title, message, advice } = failure;
                let shown = json!({
                    "status": status.as_u16(), "title": title, "message": message, "advice": advice,
                });
                self.respond(*status, "failure.html", &json!({ "failure": shown }))
            }
        }
    }

    /// Frames a daemon's routes: adds `/assets/…`, answers 404 and 405 as pages or JSON, and puts
    /// the security headers on every answer. `router` must not have a fallback of its own.
    pub fn frame(&self, router: Router) -> Router {
        let (assets, none, other) = (self.clone(), self.clone(), self.clone());
        let asset =
            async move |extract::Path(name): extract::Path<String>,
                        uri: Uri,
                        headers: HeaderMap| { assets.asset(&name, &uri, &headers) };
        let not_found = async move |uri: Uri, headers: HeaderMap| {
            let failure = Failure::not_found("There is no page at this address.");
            none.fail(Wants::of(uri.path(), &headers), &failure)
        };
        let not_allowed = async move |method: Method, uri: Uri, headers: HeaderMap| {
            let failure = Failure::method_not_allowed(&method);
            other.fail(Wants::of(uri.path(), &headers), &failure)
        };
        router
            .route("/assets/{name}", get(asset))
            .fallback(not_found)
            .method_not_allowed_fallback(not_allowed)
            .layer(axum::middleware::map_response(headers::secure))
    }

    fn asset(&self, name: &str, uri: &Uri, headers: &HeaderMap) -> Response {
        let loaded = self.loaded();
        match loaded.assets.respond(name, uri.query(), headers) {
            Some(response) => response.map(Body::from),
            None => {
                let failure = Failure::not_found("There is no such asset.");
                self.fail(Wants::of(uri.path(), headers), &failure)
            }
        }
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.0.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn load(site: &Site, sources: &[Source], folder: Option<&Path>) -> Result<Loaded, Error> {
    let folder = folder.map(Folder::read).transpose()?.unwrap_or_default();
    let assets = Arc::new(Assets::new(&folder));
    let prepare = |environment: &mut Environment<'static>| {
        environment.add_global("site", Value::from(Serde(site)));
        let (assets, base) = (assets.clone(), site.base.clone());
        environment.add_function("asset", move |name: &str| {
            assets.address(&base, name).ok_or_else(|| {
                minijinja::Error::new(ErrorKind::InvalidOperation, format!("no asset {name:?}"))
            })
        });
    };
    let templates = Templates::new(sources, &folder, prepare)?;
    for problem in templates.problems() {
        tracing::warn!(problem, "a file of the templates folder has a problem");
    }
    Ok(Loaded { templates, assets: assets.clone() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http::Request;
    use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
    use tower::ServiceExt as _;

    use super::*;

    fn pages(folder: Option<PathBuf>) -> Pages {
        let url = url::Url::parse("https://example.org/find").unwrap();
        Pages::new(Site::new("A <b>").at(Some(&url)), &[], folder).unwrap()
    }

    async fn ask(
        pages: &Pages,
        method: &str,
        uri: &str,
        accept: &str,
    ) -> (StatusCode, HeaderMap, String) {
        let router = pages.frame(Router::new().route("/here", get(|| async { "here" })));
        let request = Request::builder().method(method).uri(uri).header(ACCEPT, accept);
        let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_missing_page_is_a_page() {
        let (status, headers, body) =
            ask(&pages(None), "GET", "/none?q=%3Cy%3E", "text/html").await;
        assert_eq!(status, 404);
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        // Style and version change more often than this page.
        let mut pieces = body.split("?v=");
        let mut masked = pieces.next().unwrap().to_owned();
        pieces.for_each(|piece| masked += &format!("?v=HASH{}", &piece[16..]));
        insta::assert_snapshot!(masked.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }

    #[tokio::test]
    async fn programs_get_json_and_other_methods_405() {
        let pages = pages(None);
        let (status, _, body) = ask(&pages, "GET", "/none", "application/json").await;
        assert_eq!(
            (status.as_u16(), body.as_str()),
            (404, r#"{"error":{"message":"There is no page at this address."}}"#)
        );
        let (status, headers, body) = ask(&pages, "POST", "/here", "application/json").await;
        assert_eq!(status, 405);
        assert_eq!(headers["allow"], "GET,HEAD");
        assert!(body.contains("POST"), "{body}");
    }

    #[tokio::test]
    async fn every_answer_has_the_security_headers() {
        let pages = pages(None);
        for (uri, expected) in
            [("/here", 200), ("/none", 404), ("/assets/style.css", 200), ("/assets/x", 404)]
        {
            let (status, headers, _) = ask(&pages, "GET", uri, "*/*").await;
            assert_eq!(status, expected, "{uri}");
            assert_eq!(headers[CONTENT_SECURITY_POLICY], headers::POLICY, "{uri}");
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert_eq!(headers["referrer-policy"], "same-origin");
        }
    }

    #[tokio::test]
    async fn an_own_folder_is_read_anew_on_demand() {
        let dir = tempfile::tempdir().unwrap();
        let pages = pages(Some(dir.path().to_owned()));
        let failure = Failure::not_found("gone");
        let body = async |response: Response| {
            let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        assert!(body(pages.fail(Wants::Html, &failure)).await.contains("<h1>Nothing here</h1>"));

        fs::write(dir.path().join("failure.html"), "mine: {{ failure.message }}").unwrap();
        fs::write(dir.path().join("style.css"), "a {}").unwrap();
        pages.reload().unwrap();
        assert_eq!(body(pages.fail(Wants::Html, &failure)).await, "mine: gone");
        assert_eq!(ask(&pages, "GET", "/assets/style.css", "*/*").await.2, "a {}");

        fs::write(dir.path().join("layout.html"), "{% block main %}{% endblock %}{{ asset('x') }}")
            .unwrap();
        fs::remove_file(dir.path().join("failure.html")).unwrap();
        pages.reload().unwrap();
        assert!(body(pages.fail(Wants::Html, &failure)).await.contains("<h1>Nothing here</h1>"));
        let problems = pages.problems();
        assert!(problems.len() == 1 && problems[0].starts_with("layout.html: "), "{problems:?}");

        dir.close().unwrap();
        assert!(pages.reload().is_err());
        assert_eq!(ask(&pages, "GET", "/assets/style.css", "*/*").await.2, "a {}", "the old stay");
    }
}
