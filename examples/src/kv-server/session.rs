//! Commands of connections and the server: PING, HELLO, CLIENT, INFO and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, integer, is, looks};
use crate::request::number;
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// Redis's version, for clients.
const VERSION: &str = "7.0.0";

pub(crate) const COMMANDS: &[Command] = &[
    looks("PING", 1..=2, |call| {
        match call.words.get(1) {
            Some(text) => call.reply.bulk(text),
            None => call.reply.simple("PONG"),
        }
        Ok(())
    }),
    looks("ECHO", 2..=2, |call| {
        call.reply.bulk(call.words[1]);
        Ok(())
    }),
    looks("SELECT", 2..=2, |call| match integer(call.words[1]) {
        Ok(0) => {
            call.reply.ok();
            Ok(())
        }
        Ok(_) => Err(Refusal::Other("DB index is out of range")),
        Err(_) => Err(Refusal::Other("invalid DB index")),
    }),
    looks("HELLO", 1..=MANY, hello),
    looks("CLIENT", 2..=MANY, client),
    looks("INFO", 1..=MANY, info),
    looks("TIME", 1..=1, |call| {
        call.reply.array(2);
        call.reply.bulk((call.now / 1000).to_string().as_bytes());
        call.reply.bulk((call.now % 1000 * 1000).to_string().as_bytes());
        Ok(())
    }),
    // Clients ask for commands and settings, and need no answer.
    looks("COMMAND", 1..=MANY, |call| {
        match call.words.get(1) {
            Some(word) if is(word, "COUNT") => call.reply.count(0),
            Some(word) if is(word, "DOCS") => call.reply.map(0),
            _ => call.reply.array(0),
        }
        Ok(())
    }),
    looks("CONFIG", 2..=MANY, |call| match call.words[1] {
        word if is(word, "GET") && call.words.len() > 2 => {
            call.reply.map(0);
            Ok(())
        }
        word if is(word, "RESETSTAT") => {
            call.reply.ok();
            Ok(())
        }
        // Test suites try several ways in which Redis packs small values, without its snapshots.
        word if is(word, "SET") && call.words.len() > 3 && call.words[2..].chunks(2).all(is_idle) => {
            call.reply.ok();
            Ok(())
        }
        word if is(word, "SET") => Err(Refusal::Other(
            "CONFIG SET failed: settings are arguments of the server, and cannot be changed",
        )),
        word => Err(unknown(word, "CONFIG")),
    }),
    looks("FUNCTION", 2..=MANY, |call| match call.words[1] {
        word if is(word, "FLUSH") => {
            call.reply.ok();
            Ok(())
        }
        _ => Err(Refusal::Other("the server has no functions")),
    }),
    looks("RESET", 1..=1, |call| {
        call.client.name.clear();
        call.reply.version = 2;
        call.reply.simple("RESET");
        Ok(())
    }),
    looks("QUIT", 1..=1, |call| {
        call.client.ends = true;
        call.reply.ok();
        Ok(())
    }),
    // `redis.rs` executes these.
    looks("MULTI", 1..=1, |_| Ok(())),
    changes("EXEC", 1..=1, |_| Ok(())),
    looks("DISCARD", 1..=1, |_| Ok(())),
];

pub(crate) fn unknown(word: &[u8], command: &'static str) -> Refusal {
    Refusal::Subcommand(String::from_utf8_lossy(word).into(), command)
}

/// Whether a setting of Redis, with its value, means nothing here.
fn is_idle(setting: &[&[u8]]) -> bool {
    let name = setting[0].to_ascii_lowercase();
    let is_empty = setting.get(1).is_some_and(|value| value.is_empty());
    name == b"save" && is_empty
        || name == b"list-compress-depth"
        || [&b"-listpack-"[..], b"-ziplist-", b"-intset-"]
            .iter()
            .any(|part| name.windows(part.len()).any(|window| window == *part))
}

fn hello(call: &mut Call<'_, '_>) -> Done {
    let mut version = call.reply.version;
    if let Some(word) = call.words.get(1) {
        let asked =
            number(word).ok_or(Refusal::Other("Protocol version is not an integer or out of range"))?;
        version = match asked {
            2 => 2,
            3 => 3,
            _ => {
                call.reply.error("NOPROTO unsupported protocol version");
                return Ok(());
            }
        };
    }
    let mut name = None;
    let mut options = call.words.get(2..).unwrap_or(&[]);
    loop {
        options = match options {
            [] => break,
            [option, value, rest @ ..] if is(option, "SETNAME") => {
                name = Some(*value);
                rest
            }
            [option, _, _, ..] if is(option, "AUTH") => {
                return Err(Refusal::Other("AUTH: the server has no users and no passwords"));
            }
            [option, ..] => {
                let option = String::from_utf8_lossy(option);
                call.reply.error(&format!("ERR Syntax error in HELLO option '{option}'"));
                return Ok(());
            }
        };
    }
    if let Some(name) = name {
        rename(call, name)?;
    }
    call.reply.version = version;
    call.reply.map(7);
    for (key, value) in
        [("server", "redis"), ("version", VERSION), ("mode", "standalone"), ("role", "master")]
    {
        call.reply.bulk(key.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    call.reply.bulk(b"proto");
    call.reply.integer(version.into());
    call.reply.bulk(b"id");
    call.reply.integer(call.client.id.cast_signed());
    call.reply.bulk(b"modules");
    call.reply.array(0);
    Ok(())
}

fn rename(call: &mut Call<'_, '_>, name: &[u8]) -> Done {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(Refusal::Other("Client names cannot contain spaces, newlines or special characters."));
    }
    call.client.name = name.to_vec();
    Ok(())
}

fn client(call: &mut Call<'_, '_>) -> Done {
    match call.words {
        [_, word] if is(word, "ID") => call.reply.integer(call.client.id.cast_signed()),
        [_, word] if is(word, "GETNAME") => {
            if call.client.name.is_empty() {
                call.reply.nil();
            } else {
                call.reply.bulk(&call.client.name);
            }
        }
        [_, word] if is(word, "INFO") => {
            let name = String::from_utf8_lossy(&call.client.name);
            let text = format!("id={} name={name} db=0 resp={}\n", call.client.id, call.reply.version);
            call.reply.verbatim(&text);
        }
        [_, word, name] if is(word, "SETNAME") => {
            rename(call, name)?;
            call.reply.ok();
        }
        // Ignored: no key is ever evicted.
        [_, word, _, _] if is(word, "SETINFO") => call.reply.ok(),
        [_, word, _] if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => call.reply.ok(),
        [_, word, ..] => return Err(unknown(word, "CLIENT")),
        [..] => return Err(Refusal::Syntax),
    }
    Ok(())
}

fn info(call: &mut Call<'_, '_>) -> Done {
    let figures = &call.service.figures;
    let (keys, ends) = call.keys.counts();
    let sections = [
        (
            "Server",
            format!(
                "redis_version:{VERSION}\nredis_mode:standalone\nprocess_id:{}\nuptime_in_seconds:{}\n",
                std::process::id(),
                figures.started.elapsed().as_secs()
            ),
        ),
        (
            "Clients",
            format!(
                "connected_clients:{}\nmaxclients:{}\n",
                figures.clients.load(Relaxed),
                call.service.most_clients
            ),
        ),
        ("Memory", format!("used_memory:{}\n", call.service.size())),
        ("Persistence", "loading:0\naof_enabled:1\ndurable:before each reply\n".into()),
        (
            "Stats",
            format!(
                "total_connections_received:{}\ntotal_commands_processed:{}\nexpired_keys:{}\n",
                figures.connections.load(Relaxed),
                figures.requests.load(Relaxed),
                figures.expired.load(Relaxed)
            ),
        ),
        ("Replication", "role:master\nconnected_slaves:0\n".into()),
        (
            "Keyspace",
            if keys > 0 { format!("db0:keys={keys},expires={ends},avg_ttl=0\n") } else { String::new() },
        ),
    ];
    let asked = &call.words[1..];
    let wants = |name| {
        asked.is_empty()
            || asked.iter().any(|word| ["all", "default", "everything", name].iter().any(|of| is(word, of)))
    };
    let mut text = String::new();
    for (name, lines) in sections.iter().filter(|(name, _)| wants(*name)) {
        let separator = if text.is_empty() { "" } else { "\r\n" };
        let _ = write!(text, "{separator}# {name}\r\n{}", lines.replace('\n', "\r\n"));
    }
    call.reply.verbatim(&text);
    Ok(())
}
