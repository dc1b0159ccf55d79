//! Clients of `kv-server` see durable data, and are independent of each other.

#[path = "common/client.rs"]
mod client;
mod common;

use client::{Client, KV_SERVER, Reply, Server};
use common::Ground;
use indelible_testing::{Seeded, not_tested};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Integer(number) => *number,
        Reply::Bulk(text) => text.parse().unwrap(),
        Reply::Nil => 0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_was_read_is_there_after_a_kill() {
    let folder = Ground::Disk.folder();
    let pool = folder.path().join("kv.pmo");
    for kill in 0..16 {
        let server = Server::start(&pool);
        let seen = AtomicI64::new(0);
        let start = number(&server.client().ask("GET n"));
        std::thread::scope(|scope| {
            for at in 0..6 {
                let (mut client, seen) = (server.client(), &seen);
                let request = Client::request(if at % 2 == 0 { &["INCR", "n"] } else { &["GET", "n"] });
                scope.spawn(move || {
                    while client.send(&request).is_ok() {
                        let Ok(reply) = client.receive() else { return };
                        seen.fetch_max(number(&reply), SeqCst);
                    }
                });
            }
            while seen.load(SeqCst) < start + 200 {
                std::thread::yield_now();
            }
            server.kill();
        });
        let found = number(&Server::start(&pool).client().ask("GET n"));
        let seen = seen.load(SeqCst);
        assert!(found >= seen, "kill {kill}: {seen} was read, and {found} is there");
    }
}

#[test]
fn keys_that_are_over_give_their_memory_back() {
    let folder = Ground::Memory.folder();
    let server = Server::of_both(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    let value = "x".repeat(8 << 10);
    for round in 0..600 {
        let requests: Vec<u8> = (0..32)
            .flat_map(|at| Client::request(&["SET", &format!("{round}:{at}"), &value, "PX", "1"]))
            .collect();
        client.send(&requests).unwrap();
        (0..32).for_each(|_| assert_eq!(client.receive().unwrap(), Reply::Simple("OK".into()), "{round}"));
    }
    while client.ask("DBSIZE") != Reply::Integer(0) {
        std::thread::yield_now();
    }
    let mut cache = server.memcached();
    assert_eq!(cache.ask("set a 0 1 1|x"), "STORED");
    while !cache.ask("stats").contains("STAT curr_items 0|") {
        std::thread::yield_now();
    }
}

#[test]
fn a_key_ends_at_its_last_end() {
    let folder = Ground::Memory.folder();
    let pool = folder.path().join("kv.pmo");
    let server = Server::start(&pool);
    let mut client = server.client();
    for line in [
        "MULTI",
        "SET a 1 PX 1",
        "PERSIST a",
        "SET b 1 PX 1",
        "EXPIRE b 100",
        "SET c 1 PX 1",
        "SET c 2",
        "SET d 1 PX 1",
        "RENAME d e",
    ] {
        client.ask(line);
    }
    let Reply::Array(replies) = client.ask("EXEC") else { panic!() };
    assert!(replies.len() == 8 && replies.iter().all(|reply| !matches!(reply, Reply::Error(_))));
    while client.ask("DBSIZE") != Reply::Integer(3) {
        std::thread::yield_now();
    }
    client.ask("SET f 1 PX 1");
    server.kill();
    let server = Server::start(&pool);
    let mut client = server.client();
    while client.ask("DBSIZE") != Reply::Integer(3) {
        std::thread::yield_now();
    }
    assert_eq!(client.ask("EXISTS a b c"), Reply::Integer(3));
}

/// Version 3, which clients request first, has maps, doubles, and a null type.
#[test]
fn clients_choose_the_version_of_the_protocol() {
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    let bulk = |text: &str| Reply::Bulk(text.into());
    let Reply::Map(pairs) = client.ask("HELLO 3 SETNAME me") else { panic!() };
    assert!(pairs.contains(&(bulk("proto"), Reply::Integer(3))), "{pairs:?}");
    client.ask("HSET h f 1");
    client.ask("ZADD z 1.5 m");
    for (request, reply) in [
        ("CLIENT SETINFO LIB-NAME test", Reply::Simple("OK".into())),
        ("CLIENT GETNAME", bulk("me")),
        ("HGETALL h", Reply::Map(vec![(bulk("f"), bulk("1"))])),
        ("ZSCORE z m", Reply::Double("1.5".into())),
        (
            "ZRANGE z 0 -1 WITHSCORES",
            Reply::Array(vec![Reply::Array(vec![bulk("m"), Reply::Double("1.5".into())])]),
        ),
        ("GET none", Reply::Nil),
    ] {
        assert_eq!(client.ask(request), reply, "{request}");
    }
    assert!(matches!(client.ask("HELLO 4"), Reply::Error(text) if text.starts_with("NOPROTO")));
    assert!(matches!(client.ask("HELLO 2"), Reply::Array(parts) if parts.len() == 14));
    assert_eq!(client.ask("HGETALL h"), Reply::Array(vec![bulk("f"), bulk("1")]));
    assert_eq!(server.client().ask("ZSCORE z m"), bulk("1.5"));
}

/// Redis's own tests set these before they begin.
#[test]
fn settings_of_redis_s_memory_have_no_effect() {
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    for (request, reply) in [
        ("FUNCTION FLUSH", "OK"),
        ("CONFIG SET list-max-listpack-size -1", "OK"),
        ("CONFIG SET zset-max-ziplist-entries 0 List-Compress-Depth 2", "OK"),
        ("CONFIG SET save ", "OK"),
    ] {
        assert_eq!(client.ask(request), Reply::Simple(reply.into()), "{request}");
    }
    for (request, words) in [
        ("CONFIG SET maxmemory 1", "ERR CONFIG SET failed: settings are arguments"),
        ("CONFIG SET set-max-intset-entries 0 save x", "ERR CONFIG SET failed: settings are arguments"),
        ("CONFIG NONE", "ERR unknown subcommand 'NONE'. Try CONFIG HELP."),
        ("CLIENT NONE x", "ERR unknown subcommand 'NONE'. Try CLIENT HELP."),
        ("FUNCTION LOAD x", "ERR the server has no functions"),
    ] {
        let reply = client.ask(request);
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with(words)), "{request}: {reply:?}");
    }
}

/// As memcached's own tests expect.
#[test]
fn rare_requests_are_answered_as_memcached_does() {
    let folder = Ground::Memory.folder();
    let server = Server::of_both(&folder.path().join("kv.pmo"));
    let mut client = server.memcached();
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(client.ask("set a 0 0 1|x"), "STORED");
    for (command, left) in [("add", true), ("append", true), ("set", false)] {
        let reply = client.ask(&format!("{command} a 0 0 {}|{long}", long.len()));
        assert_eq!(reply, "SERVER_ERROR object too large for cache", "{command}");
        assert_eq!(client.ask("get a") != "END", left, "{command}");
    }
    for size in ["2147483647", "4294967295", "-1"] {
        assert_eq!(client.ask(&format!("set a 0 0 {size}")), "CLIENT_ERROR bad command line format");
    }
    assert_eq!(client.ask("set a 5 0 1|x"), "STORED");
    assert_eq!(client.ask("gat -1 a"), "VALUE a 5 1|x|END", "a value is shown before its end");
    assert_eq!(client.ask("get a"), "END");
    let key = "k".repeat(250);
    assert_eq!(client.ask(&format!("set {key} 0 0 1|x")), "STORED");
    let shown = client.ask(&format!("get{}", format!(" {key}").repeat(1_000)));
    assert_eq!(shown.matches(&format!("VALUE {key} 0 1|x")).count(), 1_000, "a line may name many keys");
    client.send("GET /a HTTP/1.1").unwrap();
    assert!(client.receive().is_err(), "the connection of a browser ends");
}

#[test]
fn a_server_without_files_waits() {
    let folder = Ground::Memory.folder();
    let mut command = Command::new(KV_SERVER);
    command.arg(folder.path().join("kv.pmo")).args(["--threads", "1"]).stderr(Stdio::piped());
    let mut server = Server::spawn(&mut command);
    let mut errors = BufReader::new(server.child.stderr.take().unwrap());
    let mut first = server.client();
    first.ask("PING");
    let pid = Pid::from_child(&server.child);
    let limit = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(4), maximum: None });
    let limit = match limit {
        Ok(limit) => limit,
        Err(_) => {
            let maximum = getrlimit(Resource::Nofile).maximum;
            prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(4), maximum }).unwrap()
        }
    };
    let mut second = server.client();
    second.send(&Client::request(&["PING"])).unwrap();
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("cannot accept clients"), "{line}");
    (0..200).for_each(|_| assert_eq!(first.ask("PING"), Reply::Simple("PONG".into())));
    prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    assert_eq!(second.receive().unwrap(), Reply::Simple("PONG".into()));
    server.child.kill().unwrap();
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "it said more");
}

#[test]
fn too_many_clients_are_refused() {
    let folder = Ground::Memory.folder();
    let mut command = Command::new("sh");
    let script = "ulimit -n 80 && exec \"$0\" \"$@\"";
    command.args(["-c", script, KV_SERVER]).arg(folder.path().join("kv.pmo")).args(["--threads", "1"]);
    let server = Server::spawn(&mut command);
    let mut clients: Vec<_> = (0..16).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask("PING"), Reply::Simple("PONG".into())));
    let mut refused = server.client();
    assert!(
        matches!(refused.receive().unwrap(), Reply::Error(text) if text.contains("max number of clients"))
    );
    drop(clients.pop());
    loop {
        let mut next = server.client();
        next.send(&Client::request(&["PING"])).unwrap();
        if let Ok(Reply::Simple(_)) = next.receive() {
            break;
        }
    }
}

fn busy(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let time = |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat")).unwrap();
    tasks.map(|task| time(task.unwrap()).split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn silent_clients_cost_nothing() {
    const SILENT: u64 = 4000;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < SILENT + 200) {
        return not_tested("kv-server with many silent clients: too few files may be open");
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    if fs::read_to_string("/proc/self/schedstat").is_err() {
        return not_tested("kv-server with many silent clients: the kernel does not count CPU time");
    }
    let folder = Ground::Memory.folder();
    let server = Server::with(&folder.path().join("kv.pmo"), &["--threads", "1"]);
    let mut client = server.client();
    let mut cost = || {
        let before = busy(server.child.id());
        (0..2000).for_each(|_| assert_eq!(client.ask("GET none"), Reply::Nil));
        busy(server.child.id()) - before
    };
    cost();
    let alone = cost();
    let silent: Vec<_> = (0..SILENT).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let mut last = server.client();
    last.ask("PING");
    let beside = cost();
    assert!(beside < 5 * alone, "{alone} ns alone, {beside} ns beside {} silent clients", silent.len());
}

#[test]
fn a_slow_reader_costs_little_memory() {
    const REQUESTS: usize = 400;
    let folder = Ground::Memory.folder();
    let server = Server::with(&folder.path().join("kv.pmo"), &["--threads", "1"]);
    let mut client = server.client();
    let value = "v".repeat(1 << 20);
    client.ask(&format!("SET big {value}"));
    let mut slow = TcpStream::connect(server.address).unwrap();
    slow.write_all(&Client::request(&["GET", "big"]).repeat(REQUESTS)).unwrap();
    (0..100).for_each(|_| drop(client.ask("PING")));
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 150 << 10, "{peak} KiB at most, for a pool of 64 MiB");
    let expected = format!("${}\r\n{value}\r\n", value.len());
    let mut reply = vec![0; expected.len()];
    for _ in 0..REQUESTS {
        slow.read_exact(&mut reply).unwrap();
        assert!(reply == expected.as_bytes());
    }
}

#[test]
fn malformed_input_is_survived() {
    let folder = Ground::Memory.folder();
    let server = Server::of_both(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    client.send(b"*-1\r\n*0\r\n\r\nPING\r\n").unwrap();
    assert_eq!(client.receive().unwrap(), Reply::Simple("PONG".into()));
    client.ask("SET kept 1");
    let mut random = Seeded::new(1);
    println!("seed {}", random.seed());
    let samples = [
        Client::request(&["SET", "a", "1", "PX", "100000"]),
        Client::request(&["ZADD", "z", "1", "m"]),
        Client::request(&["MULTI"]),
        b"set a 0 0 5\r\nhello\r\nget a\r\n".to_vec(),
        b"incr a 1\r\nGET a\r\n".to_vec(),
    ];
    for _ in 0..400 {
        let mut bytes: Vec<u8> =
            (0..random.usize(1..4)).flat_map(|_| samples[random.usize(0..samples.len())].clone()).collect();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(0..bytes.len());
            match random.u8(0..3) {
                0 => bytes[at] = random.u8(0..=255),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"*$-0159\r\n"[random.usize(0..9)]),
            }
            if bytes.is_empty() {
                bytes.push(b'*');
            }
        }
        for address in [server.address, server.memcached.unwrap()] {
            let mut broken = TcpStream::connect(address).unwrap();
            broken.write_all(&bytes).unwrap();
            broken.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = broken.read_to_end(&mut Vec::new());
        }
    }
    assert_eq!(client.ask("GET kept"), Reply::Bulk("1".into()));
    assert!(server.memcached().ask("version").starts_with("VERSION"));
}
