//! Tests of the choice among an object's home and its mirrors: a nearer one, dead ones, and liars.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Site, answer};
use crate::peer::free_port;
use cache::policy::mirrors::Mirror;
use http::{HeaderMap, Request, Response};
use net::body::{self, Body};
use net::server::{Limits, serve};
use net::shutdown::Shutdown;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

/// A server and the requests that it has got. It ends with the value.
struct Place {
    url: Url,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    stop: Shutdown,
}

type Script = fn(&str) -> Response<Body>;

impl Place {
    /// Starts a server that answers each path by `script`.
    async fn start(script: Script) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    fn at(listener: TcpListener, script: Script) -> Self {
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let (stop, seen) = (Shutdown::new(), Arc::<Mutex<Vec<_>>>::default());
        let noted = Arc::clone(&seen);
        let service = service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let response = script(&path);
            noted.lock().unwrap().push((path, request.headers().clone()));
            async move { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(serve(listener, service, Limits::default(), stop.clone()));
        Self { url, seen, stop }
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|it| it.0.clone()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.start();
    }
}

/// A home that is far: nobody is connected, since its queue is full, before it starts.
struct Far {
    listener: TcpListener,
    held: Vec<TcpStream>,
}

impl Far {
    async fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(socket.into()).unwrap();
        let (at, mut held) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(200), TcpStream::connect(at)).await
        {
            held.push(stream);
        }
        Self { listener, held }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listener.local_addr().unwrap())
    }

    /// Has a cache fetch its first object from it, which takes long; returns the home and the body.
    async fn give(self, site: &Site, path: &str, script: Script) -> (Place, String) {
        let url = self.url(path);
        let mut asking = Box::pin(site.get(&url));
        let soon = Duration::from_millis(500);
        assert!(timeout(soon, &mut asking).await.is_err(), "its queue is not full");
        drop(self.held);
        let place = Place::at(self.listener, script);
        (place, asking.await.body)
    }
}

fn mirror(home: &str, mirror: &Url) -> Mirror {
    Mirror { url: Url::parse(home).unwrap(), mirrors: vec![mirror.join("copy/").unwrap()] }
}

async fn cache(mirrors: Vec<Mirror>) -> Site {
    Site::with(|_, _| async { answer(500, &[], body::empty()) }, |it| it.mirrors = mirrors).await
}

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

fn of_home(path: &str) -> Response<Body> {
    answer(200, &[FRESH], body::full(format!("{path} of the home")))
}

fn of_mirror(path: &str) -> Response<Body> {
    match path.strip_prefix("/copy") {
        Some("/none") => answer(404, &[], body::empty()),
        Some(path) => {
            answer(200, &[FRESH, ("etag", "\"m\"")], body::full(format!("{path} of the mirror")))
        }
        None => answer(400, &[], body::empty()),
    }
}

#[tokio::test]
async fn a_nearer_mirror_gives_what_the_settings_say() {
    let (far, near) = (Far::new().await, Place::start(of_mirror).await);
    let base = far.url("/pub/");
    let site = cache(vec![mirror(&base, &near.url)]).await;
    let at = |path: &str| format!("{base}{path}");
    let (home, first) = far.give(&site, "/pub/1", of_home).await;
    assert_eq!(first, "/pub/1 of the home", "no distance is known");

    let second = site.get_with(&at("2"), &[("referer", "http://h/"), ("accept", "text/*")]).await;
    assert_eq!(second.body, "/2 of the mirror");
    let told = near.seen.lock().unwrap()[0].1.clone();
    assert!(told["accept"] == "text/*" && !told.contains_key("referer"), "{told:?}");
    assert_eq!(second.how(), "fwd=uri-miss; fwd-status=200; stored");
    let again = site.get(&at("2")).await;
    assert!(again.how().starts_with("hit") && again.body == second.body, "{again:?}");
    assert_eq!(site.get_with(&at("2"), &[("range", "bytes=1-1")]).await.body, "2");
    assert_eq!(site.handle.status().routes.get("MIRROR"), Some(&1));
    assert_eq!((home.paths(), near.paths()), (vec!["/pub/1".into()], vec!["/copy/2".into()]));

    for own in [("cookie", "a=b"), ("authorization", "Basic eDp5"), ("range", "bytes=0-3")] {
        let answer = site.get_with(&at(own.0), &[own]).await;
        assert!(answer.body.starts_with("/pub"), "{own:?}: {answer:?}");
    }
    assert_eq!(site.get(&at("none")).await.body, "/pub/none of the home", "the mirror has it not");
    let valid = site.get_with(&at("2"), &[("cache-control", "no-cache")]).await;
    assert_eq!(valid.body, "/pub/2 of the home", "the home says what is valid");
    let last = home.seen.lock().unwrap().last().unwrap().clone();
    assert_eq!((last.0.as_str(), &last.1["if-none-match"]), ("/pub/2", &"\"m\"".parse().unwrap()));
    assert_eq!(near.paths().len(), 2);
    assert_eq!(site.get(&at("3")).await.body, "/3 of the mirror", "it has not been dropped");
}

#[tokio::test]
async fn what_is_dead_is_gone_around() {
    let dead = || Url::parse(&format!("http://127.0.0.1:{}/", free_port())).unwrap();
    let (home, near, gone) = (Place::start(of_home).await, Place::start(of_mirror).await, dead());
    let site =
        cache(vec![mirror(gone.as_str(), &near.url), mirror(home.url.as_str(), &dead())]).await;
    let instead = site.get(gone.join("1").unwrap().as_str()).await;
    assert_eq!((instead.status, instead.body.as_str()), (200, "/1 of the mirror"), "{instead:?}");
    for path in ["1", "2"] {
        let answer = site.get(home.url.join(path).unwrap().as_str()).await;
        assert_eq!(answer.body, format!("/{path} of the home"));
    }
}

#[tokio::test]
async fn a_mirror_that_lies_is_cut_off_and_dropped() {
    // The digest is that of "hello world".
    let liar: Script = |_| {
        let digest = "sha-256=:uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=:";
        answer(200, &[FRESH, ("repr-digest", digest)], body::full("hello World"))
    };
    let near = Place::start(liar).await;
    let gone = format!("http://127.0.0.1:{}/", free_port());
    let site = cache(vec![mirror(&gone, &near.url)]).await;
    let broken = site.send(&format!("{gone}1"), &[]).await;
    assert_eq!(broken.status, 200);
    assert!(broken.bytes(1_000).await.is_err());
    let next = site.get(&format!("{gone}1")).await;
    assert_eq!(next.status, 502, "{next:?}");
    assert_eq!(near.paths(), ["/copy/1"]);
}

/// The body of a long object; the digest of each is that of the same bytes.
const LONG: usize = 300 << 10;

fn long(path: &str) -> Vec<u8> {
    let lies = path.ends_with("lie");
    let mut bytes = vec![b'x'; LONG];
    if lies {
        bytes[LONG - 1] = b'y';
    }
    bytes
}

fn long_of_mirror(path: &str) -> Response<Body> {
    match path {
        "/short" => answer(200, &[], body::full("short")),
        "/dead" => answer(503, &[], body::empty()),
        path => answer(200, &[("etag", "\"m\"")], body::full(long(path))),
    }
}

/// Returns a home that names one mirror, whose address is in the path before the last part.
fn long_of_home(path: &str) -> Response<Body> {
    let (mirror, name) = path[1..].split_once('/').unwrap();
    let digest = "sha-256=:3viVF7fRaQqsdij8y+JmpsWzDEvE5OImsvMuJ6NwpYg=:";
    let link = format!("<http://{mirror}/{name}>; rel=duplicate; pri=1");
    let lines = [FRESH, ("etag", "\"h\""), ("link", &link), ("repr-digest", digest)];
    answer(200, &lines, body::full(long("")))
}

#[tokio::test]
async fn a_mirror_that_the_home_names_gives_the_body_if_it_is_right() {
    let (far, near) = (Far::new().await, Place::start(long_of_mirror).await);
    let base = far.url(&format!("/{}/", near.url.authority()));
    let site = cache(Vec::new()).await;
    let first = format!("/{}/1", near.url.authority());
    let (home, body) = far.give(&site, &first, long_of_home).await;
    assert!(body.as_bytes() == long("") && near.paths().is_empty(), "no distance is known");

    let second = site.get(&format!("{base}2")).await;
    assert!(second.body.as_bytes() == long(""));
    assert_eq!((second.header("etag"), second.header("content-length")), ("\"h\"", "307200"));
    assert_eq!((near.paths(), home.paths().len()), (vec!["/2".to_owned()], 2));
    assert!(site.get(&format!("{base}2")).await.how().starts_with("hit"));
    let part = site.get_with(&format!("{base}2"), &[("range", "bytes=5-6")]).await;
    assert_eq!((part.status, part.body.as_str()), (206, "xx"));

    let mut lie = site.send(&format!("{base}lie"), &[]).await;
    let mut came = 0;
    let end = loop {
        match lie.chunk().await {
            Ok(Some(piece)) => came += piece.len(),
            end => break end,
        }
    };
    assert!(end.is_err() && came < LONG, "{came} bytes: {end:?}");
    let after = site.get(&format!("{base}lie")).await;
    assert!(
        after.body.as_bytes() == long("") && after.how().contains("uri-miss"),
        "{}",
        after.how()
    );
    assert_eq!(near.paths(), ["/2", "/lie"], "it has been dropped");
}

#[tokio::test]
async fn the_home_goes_on_where_the_mirror_that_it_names_has_not_the_object() {
    for name in ["short", "dead"] {
        let (far, near) = (Far::new().await, Place::start(long_of_mirror).await);
        let base = far.url(&format!("/{}/", near.url.authority()));
        let site = cache(Vec::new()).await;
        let first = format!("/{}/1", near.url.authority());
        let (_home, _) = far.give(&site, &first, long_of_home).await;
        let answer = site.get(&format!("{base}{name}")).await;
        assert!(answer.body.as_bytes() == long(""), "{name}");
        assert_eq!(near.paths(), [format!("/{name}")]);
        site.get(&format!("{base}3")).await;
        assert_eq!(near.paths().len(), 1, "it has been dropped");
    }
}
