use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::text::hex;
use indelible_store::format::root::TREES;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Table {
    objects: u64,
    boots: u32,
    boot: String,
    next_binding: u64,
    virgin: u64,
    free_pages: u64,
    free_page: u64,
    free_page_count: u64,
    chunk_next: u64,
    chunk_end: u64,
    free_slot: u64,
    trees: Vec<Tree>,
}

#[derive(Serialize)]
struct Tree {
    tree: String,
    node: u64,
    count: u64,
    height: u32,
}

pub fn run(context: &Context, pool: &Path) -> Result {
    let pool = context.look(pool)?;
    let root = pool.insides("dump", |store| store.info())?.root;
    let trees = TREES.iter().zip(&root.trees).map(|(id, tree)| Tree {
        tree: format!("{id:?}"),
        node: tree.node.get(),
        count: tree.count.get(),
        height: tree.height.get(),
    });
    let table = Table {
        objects: root.objects.get(),
        boots: root.boots.get(),
        boot: hex(&root.boot),
        next_binding: root.next_binding.get(),
        virgin: root.virgin.get(),
        free_pages: root.free_pages.get(),
        free_page: root.free_page.get(),
        free_page_count: root.free_page_count.get(),
        chunk_next: root.chunk_next.get(),
        chunk_end: root.chunk_end.get(),
        free_slot: root.free_slot.get(),
        trees: trees.collect(),
    };
    show(context.json, &table, table_text)
}

fn table_text(table: &Table, out: &mut Out) -> Result {
    out.fields(&[
        ("objects", table.objects.to_string()),
        ("boots", format!("{}, last {}", table.boots, table.boot)),
        ("next binding", table.next_binding.to_string()),
        ("virgin", format!("from {}", table.virgin)),
        ("free pages", format!("{} ({})", table.free_pages, human(table.free_pages.saturating_mul(4096)))),
        ("table pages", format!("{} free, first at {}", table.free_page_count, table.free_page)),
        ("chunk", format!("{} to {}", table.chunk_next, table.chunk_end)),
        ("free slot", format!("first at {}", table.free_slot)),
    ])?;
    out.line(&format!("\n{:<14} {:>12}  {:>12}  HEIGHT", "TREE", "KEYS", "NODE"))?;
    for Tree { tree, node, count, height } in &table.trees {
        out.line(&format!("{tree:<14} {count:>12}  {node:>12}  {height}"))?;
    }
    Ok(())
}
