//! The benchmarks, one room each.

mod attach;
mod collections;
mod commit;
mod filebench;
mod heap;
mod kernels;
mod lane_bytes;
mod maps;
mod open;
mod psync;
mod recovery;
mod threads;

use crate::Result;
use crate::ground::Ground;
use crate::model::Section;

/// One benchmark.
pub struct Room {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Ground, &mut Section) -> Result<()>,
}

/// All of them, in the order in which they run.
pub const ALL: &[Room] = &[
    Room {
        name: "psync",
        about: "latency of psync against dirty pages and size of the object",
        run: psync::run,
    },
    Room {
        name: "lane-bytes",
        about: "bytes written to the lane for each changed byte",
        run: lane_bytes::run,
    },
    Room { name: "attach", about: "attach and detach against size of the object", run: attach::run },
    Room { name: "open", about: "open, create, lookup and attach against number of objects", run: open::run },
    Room { name: "recovery", about: "recovery after a kill against bytes in the lane", run: recovery::run },
    Room { name: "heap", about: "blocks of the heap beside allocators in DRAM", run: heap::run },
    Room {
        name: "commit",
        about: "random changes and a durable commit beside databases and libraries",
        run: commit::run,
    },
    Room { name: "maps", about: "maps with durable commits beside databases and libraries", run: maps::run },
    Room {
        name: "kernels",
        about: "the computations of the papers, made durable some times a second",
        run: kernels::run,
    },
    Room {
        name: "filebench",
        about: "Filebench's servers with objects for files, every update durable",
        run: filebench::run,
    },
    Room { name: "collections", about: "maps in an object beside std's maps in DRAM", run: collections::run },
    Room { name: "threads", about: "threads that psync different objects", run: threads::run },
];

/// The rooms named, in their own order; all without a name.
pub fn choose(names: &[String]) -> Result<Vec<&'static Room>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|room| room.name != **name)) {
        let known: Vec<&str> = ALL.iter().map(|room| room.name).collect();
        return Err(format!("no benchmark is called {unknown}; there are {}", known.join(", ")).into());
    }
    let wanted = |room: &&Room| names.is_empty() || names.iter().any(|name| name == room.name);
    Ok(ALL.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), ALL.len());
        let chosen = choose(&["threads".into(), "psync".into()]).unwrap();
        assert_eq!(chosen.iter().map(|room| room.name).collect::<Vec<_>>(), ["psync", "threads"]);
        assert!(choose(&["nothing".into()]).is_err());
    }
}
