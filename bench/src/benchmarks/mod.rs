mod attach;
mod bytes;
mod collections;
mod commit;
mod filebench;
mod files;
mod heap;
mod kernels;
mod lane_bytes;
mod maps;
mod messages;
mod models;
mod open;
mod pointers;
mod programs;
mod psync;
mod recovery;
mod retention;
mod sealing;
mod snapshots;
mod sqlite;
mod threads;
mod tickets;
mod transactions;

use crate::Result;
use crate::environment::Environment;
use crate::model::Section;

pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Environment, &mut Section) -> Result<()>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "psync",
        about: "latency of psync against dirty pages and size of the object",
        run: psync::run,
    },
    Benchmark {
        name: "lane-bytes",
        about: "bytes written to the lane for each changed byte",
        run: lane_bytes::run,
    },
    Benchmark { name: "attach", about: "attach and detach against size of the object", run: attach::run },
    Benchmark {
        name: "open",
        about: "open, create, lookup and attach against number of objects",
        run: open::run,
    },
    Benchmark {
        name: "recovery",
        about: "recovery after a kill against bytes in the lane",
        run: recovery::run,
    },
    Benchmark { name: "heap", about: "blocks of the heap beside allocators in DRAM", run: heap::run },
    Benchmark {
        name: "commit",
        about: "random changes and a durable commit beside databases and libraries",
        run: commit::run,
    },
    Benchmark {
        name: "maps",
        about: "maps with durable commits beside databases and libraries",
        run: maps::run,
    },
    Benchmark {
        name: "kernels",
        about: "the computations of the papers, made durable some times a second",
        run: kernels::run,
    },
    Benchmark {
        name: "filebench",
        about: "Filebench's servers with objects for files, every update durable",
        run: filebench::run,
    },
    Benchmark {
        name: "collections",
        about: "maps in an object beside std's maps in DRAM",
        run: collections::run,
    },
    Benchmark { name: "bytes", about: "values and keys of bytes beside one copy of them", run: bytes::run },
    Benchmark {
        name: "retention",
        about: "data that survive a change of their types: conversion and extension in place",
        run: retention::run,
    },
    Benchmark {
        name: "sealing",
        about: "sealed objects: first touches, prediction, psyncs, the computations of the papers",
        run: sealing::run,
    },
    Benchmark {
        name: "models",
        about: "modelled media: whether calls take the time that their parameter files say",
        run: models::run,
    },
    Benchmark {
        name: "snapshots",
        about: "snapshots beside a writer, first changes of shared pages, readers that follow",
        run: snapshots::run,
    },
    Benchmark {
        name: "pointers",
        about: "far pointers followed and stored, beside plain ones",
        run: pointers::run,
    },
    Benchmark {
        name: "programs",
        about: "a tree and a store of keys and values on far pointers, beside mapped files",
        run: programs::run,
    },
    Benchmark {
        name: "messages",
        about: "processes that wake each other, send messages, append to a durable log; a view attached as a whole",
        run: messages::run,
    },
    Benchmark {
        name: "sqlite",
        about: "SQLite with its database in an object beside native SQLite",
        run: sqlite::run,
    },
    Benchmark {
        name: "files",
        about: "programs on a mounted volume beside the same medium's own file system",
        run: files::run,
    },
    Benchmark { name: "threads", about: "threads that psync different objects", run: threads::run },
    Benchmark {
        name: "tickets",
        about: "threads and tasks that share a heap and its durable writes, beside one writer",
        run: tickets::run,
    },
    Benchmark {
        name: "transactions",
        about: "transactions of many threads beside GCC's; words that are repaired",
        run: transactions::run,
    },
];

pub fn choose(names: &[String]) -> Result<Vec<&'static Benchmark>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|benchmark| benchmark.name != **name)) {
        let known: Vec<&str> = ALL.iter().map(|benchmark| benchmark.name).collect();
        return Err(format!("no benchmark is called {unknown}; there are {}", known.join(", ")).into());
    }
    let wanted = |benchmark: &&Benchmark| names.is_empty() || names.iter().any(|name| name == benchmark.name);
    Ok(ALL.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), ALL.len());
        let chosen = choose(&["threads".into(), "psync".into()]).unwrap();
        assert_eq!(chosen.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>(), ["psync", "threads"]);
        assert!(choose(&["nothing".into()]).is_err());
    }
}
