//! A sorted linked list in an object: Listing 2 of the paper, in its own words.
//!
//! ```c
//! attach(head, 'w');
//! struct node *c = head;
//! while (c->next != NULL && c->data < data) c = c->next;
//! if (c->next == NULL) c->next = new_node;
//! else { tmp = c->next; c->next = new_node; c->next->next = tmp; }
//! psync(head);
//! detach(head);
//! ```
//!
//! As printed, it compares with the node before the insertion; comparing with the next one keeps
//! the list sorted. Objects are known by address (`indelible::raw`), as in C, so that the program
//! is responsible for its pointers:
//!
//! 1. `count` nodes follow the root back to back; `next` is null or points at one of them.
//! 2. Between attach and detach, the object is mapped, and only this thread stores to it.
//!
//! Both hold for psynced states, one of which a crash leaves.

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use indelible::raw::{self, Permission};
use indelible::{ErrorKind, Plain, Pool};
use std::path::PathBuf;
use std::ptr::null_mut;

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Node {
    data: i64,
    next: *mut Node,
}

#[derive(Plain)]
#[repr(C)]
struct List {
    magic: [u8; 8],
    /// Used nodes.
    count: u64,
    /// Before the first node; its data means nothing.
    head: Node,
}

const MAGIC: [u8; 8] = *b"LIST\0\0\r\n";
const NAME: &str = "list";
const SIZE: u64 = 1 << 20;
const ROOM: u64 = (SIZE - size_of::<List>() as u64) / size_of::<Node>() as u64;

/// Keep a sorted list of numbers in a persistent memory object.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// File of the pool
    #[arg(long, global = true, default_value = "linked-list.pmo", value_name = "PATH")]
    pool: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Insert numbers, each with a psync of its own
    Insert {
        #[arg(required = true, allow_negative_numbers = true)]
        numbers: Vec<i64>,
        /// Die (SIGKILL) with the last number in the list, before it is psynced: it is gone
        #[arg(long, conflicts_with = "crash_after_psync")]
        crash_before_psync: bool,
        /// Die (SIGKILL) as soon as the last number is psynced: it is kept
        #[arg(long)]
        crash_after_psync: bool,
    },
    /// Print the numbers
    Show,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let pool = Pool::open_or_format(&cli.pool, 64 << 20)?;
    match pool.create(NAME, SIZE) {
        Err(error) if error.kind() == ErrorKind::Exists => {}
        created => created?,
    }
    match cli.command {
        Command::Insert { numbers, crash_before_psync, crash_after_psync } => {
            let last = numbers.len() - 1;
            for (at, number) in numbers.into_iter().enumerate() {
                insert(&pool, number, crash_before_psync && at == last)?;
            }
            if crash_after_psync {
                crash();
            }
        }
        Command::Show => show(&pool)?,
    }
    Ok(())
}

fn insert(pool: &Pool, data: i64, crash_before_psync: bool) -> Result<()> {
    let list = raw::attach(pool, NAME, Permission::Write, b"")?.as_ptr().cast::<List>();
    // SAFETY: attached for writing; pointers are null or lead to nodes (1, 2).
    unsafe {
        ensure!(
            (*list).magic == MAGIC || (*list).magic == [0; 8],
            "the object {NAME:?} holds something else"
        );
        ensure!((*list).count < ROOM, "the list is full: it has {ROOM} numbers");
        (*list).magic = MAGIC;
        let new_node = list.add(1).cast::<Node>().add((*list).count as usize);
        (*list).count += 1;
        *new_node = Node { data, next: null_mut() };

        let mut c = &raw mut (*list).head;
        while !(*c).next.is_null() && (*(*c).next).data < data {
            c = (*c).next;
        }
        let tmp = (*c).next;
        (*c).next = new_node;
        (*new_node).next = tmp;

        if crash_before_psync {
            crash();
        }
        raw::psync(list.cast())?;
    }
    Ok(raw::detach(list.cast())?)
}

fn show(pool: &Pool) -> Result<()> {
    let list = raw::attach(pool, NAME, Permission::Read, b"")?.as_ptr().cast::<List>();
    // SAFETY: attached for reading; pointers are null or lead to nodes (1, 2).
    unsafe {
        let mut c = (*list).head.next;
        while !c.is_null() {
            println!("{}", (*c).data);
            c = (*c).next;
        }
    }
    Ok(raw::detach(list.cast())?)
}

fn crash() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!("SIGKILL cannot be survived");
}
