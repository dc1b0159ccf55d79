//! `pmo inspect`, as a browser and as others use it.

use crate::common::{PMO, Rig};
use indelible::collections::{PString, PVec};
use indelible::{CreateOptions, FarEntry, FarTarget, Heap, Persist, Pool, Rights};
use indelible_testing::not_tested;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

struct Inspector {
    child: Child,
    address: String,
    token: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.head, self.body))
    }
}

impl Inspector {
    fn start(pool: &Path, arguments: &[&str]) -> Inspector {
        let mut command = Command::new(PMO);
        command.arg("inspect").arg(pool).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the tool starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        let url = line.trim_end().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, token) = url.split_once("/?token=").unwrap_or_else(|| panic!("{line:?}"));
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line:?}");
        Inspector { address: address.to_owned(), token: token.to_owned(), child }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("connected")
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        answer(stream)
    }

    fn get(&self, path: &str) -> Answer {
        let Inspector { address, token, .. } = self;
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nX-Pmo-Token: {token}\r\n\r\n"))
    }

    #[track_caller]
    fn json(&self, path: &str) -> Value {
        let found = self.get(path);
        assert_eq!(found.status, 200, "{path}: {} {}", found.head, found.body);
        found.json()
    }

    /// Asks until the answer is like this: others change the pool meanwhile.
    fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        loop {
            let found = self.get(path);
            if wanted(&found) {
                return found;
            }
        }
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
        self.child.wait().expect("ended")
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("{head}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn names(page: &Value) -> Vec<&str> {
    page["rows"].as_array().expect("rows").iter().map(|row| row["name"].as_str().expect("a name")).collect()
}

#[test]
fn the_page_is_for_those_with_the_token() {
    let rig = Rig::new();
    let inspector = Inspector::start(&rig.pool, &[]);
    let (address, token) = (&inspector.address, &inspector.token);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let with = |path: &str, field: &str| {
        inspector.send(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{field}\r\n")).status
    };
    let other: String = token.chars().rev().collect();
    for path in ["/", "/script.js", "/style.css", "/api/overview", "/nothing"] {
        for wrong in ["", &token[..31], &format!("{token}0"), &other] {
            assert_eq!(with(&format!("{path}?token={wrong}"), ""), 403, "{path} {wrong}");
            assert_eq!(with(path, &format!("X-Pmo-Token: {wrong}\r\n")), 403, "{path} {wrong}");
        }
        assert_eq!(with(path, ""), 403, "{path}");
        let status = if path == "/nothing" { 404 } else { 200 };
        assert_eq!(with(&format!("{path}?token={token}"), ""), status, "{path}");
        assert_eq!(with(path, &format!("X-Pmo-Token: {token}\r\n")), status, "{path}");
    }
    let page = inspector.get("/");
    for field in [
        "Content-Type: text/html; charset=utf-8",
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
    ] {
        assert!(page.head.contains(field), "{field}: {}", page.head);
    }
    let script = format!("<script src=\"/script.js?token={token}\" defer></script>");
    assert!(page.body.contains(&script) && page.body.matches("<script").count() == 1);
    assert!(!inspector.get("/script.js").body.contains(token.as_str()));
}

#[test]
fn only_plain_requests_to_this_server_are_served() {
    let rig = Rig::new();
    let inspector = Inspector::start(&rig.pool, &[]);
    let (address, token) = (&inspector.address, &inspector.token);
    let port = address.rsplit(':').next().expect("a port");
    for (host, status) in [
        (address.as_str(), 200),
        (&format!("localhost:{port}"), 200),
        (&format!("evil.example:{port}"), 403),
        (&format!("127.0.0.1.evil.example:{port}"), 403),
        ("127.0.0.1", 403),
        ("", 403),
    ] {
        let request = format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(inspector.send(&request).status, status, "{host}");
    }
    assert_eq!(inspector.send(&format!("GET /?token={token} HTTP/1.1\r\n\r\n")).status, 400);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT"] {
        let found = inspector.send(&format!("{method} /?token={token} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert!(found.status == 405 && found.head.contains("\r\nAllow: GET\r\n"), "{method}: {}", found.head);
    }
    for (path, status) in [
        ("/../etc/passwd", 404),
        ("/%2e%2e/", 404),
        ("//", 404),
        ("/api/objects?from=-1", 400),
        ("/api/objects?prefix=%ff", 400),
        ("/api/objects?from=18446744073709551615", 200),
        ("/api/space?from=9&to=9", 400),
        ("/api/object", 400),
    ] {
        assert_eq!(inspector.get(path).status, status, "{path}");
    }
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "x".repeat(9000)), 431),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 18)), 431),
    ] {
        assert_eq!(inspector.send(&request).status, status, "{request:.60}");
    }
}

#[test]
fn slow_clients_delay_no_other() {
    let rig = Rig::new();
    let inspector = Inspector::start(&rig.pool, &[]);
    let mut slow: Vec<TcpStream> = (0..8).map(|_| inspector.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /api/overview?token=").expect("sent");
    }
    assert_eq!(inspector.json("/api/overview")["objects"], 0);
    // They are served as soon as they go on.
    for mut stream in slow {
        let rest = format!("{} HTTP/1.1\r\nHost: {}\r\n\r\n", inspector.token, inspector.address);
        stream.write_all(rest.as_bytes()).expect("sent");
        assert_eq!(answer(stream).status, 200);
    }
}

#[test]
fn objects_come_in_pages_and_by_prefix() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).expect("open");
    for number in 0..1000 {
        pool.create(&format!("{}/{number:03}", ["a", "b"][number % 2]), 4096).expect("made");
    }
    let inspector = Inspector::start(&rig.pool, &[]);
    let overview = inspector.json("/api/overview");
    assert_eq!(
        (&overview["totals"]["objects"], &overview["totals"]["states"]["D"]),
        (&1000.into(), &1000.into())
    );
    let first = inspector.json("/api/objects");
    assert_eq!((names(&first).len(), &first["total"], &first["matching"]), (200, &1000.into(), &1000.into()));
    assert_eq!(first["rows"][0]["name"], "a/000");
    let second = inspector.json("/api/objects?prefix=b/&from=400");
    assert_eq!((&second["matching"], &second["from"], names(&second).len()), (&500.into(), &400.into(), 100));
    assert_eq!((names(&second)[0], names(&second)[99]), ("b/801", "b/999"));
    assert_eq!(
        names(&inspector.json("/api/objects?prefix=b/77")),
        ["b/771", "b/773", "b/775", "b/777", "b/779"]
    );
    let behind = inspector.json("/api/objects?from=100000");
    assert_eq!((&behind["from"], names(&behind).len()), (&1000.into(), 0));
    pool.destroy("b/771").expect("destroyed");
    pool.create("b/770", 4096).expect("made");
    inspector.until("/api/objects?prefix=b/77", |page| names(&page.json())[..2] == ["b/770", "b/773"]);
}

const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\u{202e}gnp.exe\u{202c}",
    "line\u{2028}break\u{200f}\u{e0041}",
    "\"></title><img src=x onerror=alert(1)>&amp;",
    "id'; DROP TABLE objects --",
];

#[test]
fn hostile_names_are_data() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).expect("open");
    let long = "ü".repeat(255);
    let all: Vec<&str> = HOSTILE.into_iter().chain([long.as_str()]).collect();
    for name in &all {
        pool.create(name, 4096).expect("made");
        pool.snapshot(name, &format!("@{name}"), b"").expect("kept");
    }
    pool.tie(HOSTILE[0], HOSTILE[1], b"").expect("tied");
    let inspector = Inspector::start(&rig.pool, &[]);
    let encoded = |name: &str| name.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    for name in &all {
        let page = inspector.get(&format!("/api/objects?prefix={}", encoded(name)));
        assert!(page.head.contains("\r\nContent-Type: application/json; charset=utf-8\r\n"), "{}", page.head);
        let bare = |letter: char| {
            letter.is_control() || "\u{202e}\u{202c}\u{2028}\u{200f}\u{e0041}".contains(letter)
        };
        assert!(!page.body.contains(bare), "{:?}", page.body);
        assert_eq!(names(&page.json()), [*name]);
        let found = inspector.json(&format!("/api/object?name={}", encoded(name)));
        assert_eq!(found["name"], *name);
        let shown = found["shown"].as_str().expect("text");
        assert!(!shown.contains(bare), "{shown:?}");
    }
    let snapshots = inspector.json("/api/snapshots");
    assert_eq!(snapshots["matching"], all.len());
    let ties = inspector.json("/api/graph");
    let tied: Vec<&Value> =
        ties["nodes"].as_array().expect("nodes").iter().map(|node| &node["name"]).collect();
    let [from, to] = [0, 1].map(|end| ties["edges"][0][end].as_u64().expect("a place") as usize);
    assert_eq!((tied[from], tied[to], tied.len()), (&HOSTILE[0].into(), &HOSTILE[1].into(), 2));
    assert_eq!(inspector.json(&format!("/api/object?name={}", encoded(HOSTILE[0])))["ties"][0], HOSTILE[1]);
}

#[test]
fn the_map_of_space_has_each_byte_once() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).expect("open");
    for (name, size) in [("large", 4 << 20), ("gone", 64 << 10), ("small", 100)] {
        pool.create(name, size).expect("made");
    }
    pool.destroy("gone").expect("destroyed");
    let (info, large) = (pool.info().expect("read"), pool.stat("large").expect("there"));
    let inspector = Inspector::start(&rig.pool, &[]);
    let space = inspector.json("/api/space");
    let sum =
        |of: &Value| ["objects", "free", "lanes", "other"].map(|kind| of[kind].as_u64().expect("bytes"));
    let totals = sum(&space["totals"]);
    assert_eq!((totals.iter().sum::<u64>(), totals[1]), (info.length, info.free));
    assert_eq!(totals[0], large.extent + pool.stat("small").expect("there").extent);
    let cells = space["cells"].as_array().expect("cells");
    assert!(cells.len() <= 1024);
    let cell = space["cell"].as_u64().expect("bytes");
    let inner = &cells[((large.offset + large.extent / 2) / cell) as usize];
    let object = inner["object"].as_u64().expect("a place") as usize;
    assert_eq!((&space["objects"][object][0], sum(inner)), (&"large".into(), [cell, 0, 0, 0]));
    let (from, to) = (large.offset - 4096, large.offset + 4096);
    let part = inspector.json(&format!("/api/space?from={from}&to={to}"));
    assert_eq!(sum(&part["totals"]).iter().sum::<u64>(), 8192);
    let last = part["cells"].as_array().expect("cells").last().expect("one")["object"].as_u64();
    assert_eq!(part["objects"][last.expect("a place") as usize][0], "large");
}

#[derive(Persist)]
#[repr(C)]
struct Visit<'h> {
    page: PString<'h>,
    from: Place,
}

#[derive(Persist)]
#[repr(C)]
struct Place {
    x: u16,
    y: u32,
}

#[test]
fn roots_types_and_far_pointers_are_shown_without_an_attachment() {
    let rig = Rig::new();
    rig.pmo(["create"], ["data", "4K"]).fine();
    let pool = Pool::open(&rig.pool).expect("open");
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).expect("made")).expect("a heap");
    heap.root_or_default::<PVec<'_, Visit<'_>>>("visits").expect("a root");
    for number in 0..40 {
        heap.root_or_default::<u64>(&format!("count {number:02}")).expect("a root");
    }
    let data = pool.stat("data").expect("there").id;
    for target in [FarTarget::Object(data), FarTarget::Object([7; 16])] {
        heap.far_index(&FarEntry { target, rights: Rights::READ }).expect("an entry");
    }
    heap.psync().expect("durable");
    let inspector = Inspector::start(&rig.pool, &[]);
    let held = inspector.json("/api/heap?name=words");
    assert!(held["why"].as_str().is_some_and(|why| why.contains("held by")), "{held}");
    assert_eq!(inspector.json("/api/graph")["closed"], 1);
    drop(heap);
    let expected = rig.pmo(["types"], ["words", "--json"]).fine().json();
    let found = inspector.json("/api/heap?name=words");
    let roots = found["roots"].as_array().expect("roots");
    assert_eq!((&found["why"], roots.len()), (&Value::Null, 41));
    for (root, expected) in roots.iter().zip(expected.as_array().expect("roots")) {
        for field in ["root", "type", "size", "fingerprint", "definitions"] {
            assert_eq!(root[field], expected[field], "{field}");
        }
    }
    let listed = rig.pmo(["heap", "roots"], ["words", "--json"]).fine().json();
    assert_eq!((&roots[40]["root"], &roots[40]["offset"]), (&"visits".into(), &listed[40]["offset"]));
    assert_eq!((&found["others"][0]["name"], &found["others"][0]["rights"]), (&"data".into(), &"r".into()));
    assert_eq!(found["others"][1]["name"], Value::Null);
    let graph = inspector.json("/api/graph");
    assert_eq!((&graph["closed"], &graph["edges"][0][2]), (&0.into(), &"far".into()));
    assert_eq!(graph["nodes"].as_array().map(Vec::len), Some(3));
    // Readers change nothing.
    let reader = rig.hold("words", false);
    assert_eq!(inspector.json("/api/heap?name=words")["why"], Value::Null);
    reader.release();
    let none = inspector.json("/api/heap?name=data");
    assert!(none["why"].is_string() && none["roots"] == Value::Array(Vec::new()), "{none}");
    // Keys keep their objects closed.
    pool.create_with("secret", &CreateOptions::new(8192).read_key(b"k")).expect("made");
    let secret = inspector.json("/api/heap?name=secret");
    assert!(secret["why"].as_str().is_some_and(|why| why.contains("key")), "{secret}");
}

#[test]
fn a_pool_may_go_and_come_back() {
    let rig = Rig::new();
    rig.pmo(["create"], ["first", "4K"]).fine();
    let inspector = Inspector::start(&rig.pool, &[]);
    assert_eq!(names(&inspector.json("/api/objects")), ["first"]);
    fs::rename(&rig.pool, rig.path("away")).expect("moved");
    let gone = inspector.get("/api/objects");
    assert_eq!((gone.status, &gone.json()["kind"]), (503, &"NoPool".into()), "{}", gone.body);
    assert!(gone.json()["help"].is_string());
    fs::write(&rig.pool, b"no pool").expect("written");
    assert_eq!(inspector.get("/api/overview").status, 503);
    fs::remove_file(&rig.pool).expect("removed");
    rig.pmo(["format"], ["--size", "16M"]).fine();
    rig.pmo(["create"], ["second", "4K"]).fine();
    assert_eq!(names(&inspector.json("/api/objects")), ["second"]);
    fs::rename(rig.path("away"), &rig.pool).expect("moved");
    assert_eq!(names(&inspector.json("/api/objects")), ["first"]);
    // Cut off, as by a full disk of a copy.
    fs::File::options().write(true).open(&rig.pool).expect("open").set_len(1 << 20).expect("cut");
    for path in [
        "/api/overview",
        "/api/objects",
        "/api/space",
        "/api/snapshots",
        "/api/graph",
        "/api/object?name=first",
    ] {
        let cut = inspector.get(path);
        assert!([200, 503].contains(&cut.status), "{path}: {} {}", cut.head, cut.body);
    }
    assert_eq!(inspector.get("/").status, 200);
}

#[test]
fn holders_are_shown_and_keep_the_object() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let inspector = Inspector::start(&rig.pool, &[]);
    assert_eq!(inspector.json("/api/object?name=a")["state"], "D");
    // It keeps no writer out.
    let writer = rig.hold("a", true);
    let held = inspector.json("/api/object?name=a");
    assert_eq!((&held["state"], &held["holder"]["pid"]), (&"W".into(), &writer.pid().into()));
    let row = &inspector.json("/api/objects")["rows"][0];
    assert!(
        row["held_by"].as_str().is_some_and(|by| by.starts_with(&format!("{} pmo", writer.pid()))),
        "{row}"
    );
    writer.kill();
    let left = inspector.json("/api/object?name=a");
    assert_eq!((&left["holder"], &left["needs_recovery"]), (&Value::Null, &true.into()));
    inspector.until("/api/overview", |found| found.json()["totals"]["needs_recovery"] == 1);
    rig.hold("a", true).release();
    assert_eq!(inspector.json("/api/object?name=a")["state"], "D");
    let pool = Pool::open(&rig.pool).expect("open");
    let mut object = pool.attach("a").expect("attached");
    let before = inspector.json("/api/object?name=a")["psyncs"].as_u64().expect("a number");
    object.as_mut_slice()[0] = 7;
    object.psync().expect("durable");
    assert_eq!(inspector.json("/api/object?name=a")["psyncs"], before + 1);
}

#[test]
fn nothing_is_written() {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], &[7; 9000]).fine();
    rig.pmo(["snapshot"], ["a", "--as", "s", "--quiet"]).fine();
    rig.pmo(["create"], ["b", "4K"]).fine();
    rig.hold("b", true).kill();
    let before = fs::read(&rig.pool).expect("read");
    let inspector = Inspector::start(&rig.pool, &[]);
    for path in [
        "/",
        "/api/overview",
        "/api/objects",
        "/api/object?name=a",
        "/api/object?name=b",
        "/api/object?name=s",
        "/api/heap?name=a",
        "/api/heap?name=b",
    ] {
        assert_eq!(inspector.get(path).status, 200, "{path}");
    }
    for path in ["/api/space", "/api/snapshots", "/api/graph"] {
        assert_eq!(inspector.get(path).status, 200, "{path}");
    }
    assert!(fs::read(&rig.pool).expect("read") == before, "the pool was written");
}

#[test]
fn it_starts_for_a_pool_and_ends_at_a_signal() {
    let rig = Rig::empty();
    rig.pmo(["inspect"], [""; 0]).fails(5, "t.pmo");
    rig.pmo(["format"], ["--size", "16M"]).fine();
    rig.pmo(["inspect"], ["--listen", "nowhere"]).fails(2, "nowhere");
    rig.pmo(["inspect"], ["--listen", "192.0.2.1:0"]).fails(1, "cannot listen at 192.0.2.1:0");
    let inspector = Inspector::start(&rig.pool, &[]);
    assert_eq!(inspector.get("/").status, 200);
    // A suite in the background ignores the signal of Ctrl-C, and so do its children.
    assert_eq!(inspector.end(Signal::TERM).signal(), Some(15));
}

/// The page as a browser has it after a while of its own time, which stands still during requests.
fn browse(rig: &Rig, url: &str) -> Option<String> {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--virtual-time-budget=3000",
        "--dump-dom",
    ]);
    let profile = format!("--user-data-dir={}", rig.path("profile").display());
    let found =
        command.args([profile.as_str(), url]).env("HOME", rig.dir.path()).stderr(Stdio::null()).output();
    match found {
        Ok(found) => Some(String::from_utf8(found.stdout).expect("UTF-8")),
        Err(_) => {
            not_tested("pmo inspect in a browser: chromium is not installed");
            None
        }
    }
}

#[test]
fn a_browser_shows_all_views_and_hostile_names_as_text() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).expect("open");
    for name in HOSTILE {
        pool.create(name, 4096).expect("made");
    }
    pool.tie(HOSTILE[0], HOSTILE[1], b"").expect("tied");
    pool.snapshot(HOSTILE[3], "@now", b"").expect("kept");
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).expect("made")).expect("a heap");
    heap.root_or_default::<PVec<'_, Visit<'_>>>("<b>visits").expect("a root");
    heap.psync().expect("durable");
    drop(heap);
    let inspector = Inspector::start(&rig.pool, &[]);
    let url = |view: &str| format!("http://{}/?token={}#/{view}", inspector.address, inspector.token);
    let script = "&lt;script&gt;alert(1)&lt;/script&gt;";
    for (view, shown) in [
        ("overview", &["<dd>version 2</dd>", "<dt>Psyncs a second</dt>"][..]),
        ("objects", &[script, "<bdi>\"&gt;&lt;/title&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;</bdi>"]),
        ("objects?prefix=", &[r"\u{202e}gnp.exe\u{202c}", r"line\u{2028}break\u{200f}\u{e0041}"]),
        ("object?name=words", &["&lt;b&gt;visits", "PVec&lt;Visit&gt;", "aria-expanded=\"false\""]),
        ("space", &["<rect", "bytes 0 to 16,777,216"]),
        ("snapshots", &["<bdi>@now</bdi>", "<circle"]),
        ("graph", &[script, "class=\"edge tie\""]),
    ] {
        let Some(page) = browse(&rig, &url(view)) else { return };
        for text in shown.iter().chain(&["class=\"live\">live<"]) {
            assert!(page.contains(text), "{view}: {text} is not in {page}");
        }
        assert!(page.matches("<script src=").count() == 1 && !page.contains("<b>visits"), "{page}");
    }
    drop(pool);
    fs::rename(&rig.pool, rig.path("away")).expect("moved");
    let page = browse(&rig, &url("objects")).expect("as before");
    assert!(page.contains("Trying again.") && page.contains(">not live<"), "{page}");
}
