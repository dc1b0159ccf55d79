//! TPC-C 5.11 in memory, without terminals and waits, as a workload of data retention: rows in
//! blocks under B+-trees, whose nodes change between two versions. Each operation is one durable
//! step.

mod check;
mod load;
mod programs;
mod requests;
mod rows;
mod scale;
#[cfg(test)]
mod tests;
mod transactions;
mod tree;

pub use programs::{Found, Programs};
pub use requests::Script;
pub use scale::Scale;

use super::{Space, node};
use rows::History;
use tree::{Node, Tree};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Table {
    Warehouses,
    Districts,
    Customers,
    CustomersByName,
    Items,
    Stock,
    Orders,
    OrdersByCustomer,
    NewOrders,
    OrderLines,
}

impl Table {
    const ALL: [Table; TABLES] = [
        Table::Warehouses,
        Table::Districts,
        Table::Customers,
        Table::CustomersByName,
        Table::Items,
        Table::Stock,
        Table::Orders,
        Table::OrdersByCustomer,
        Table::NewOrders,
        Table::OrderLines,
    ];
}

const TABLES: usize = 10;

#[repr(C)]
struct Root {
    trees: [u64; TABLES],
    history: *mut History,
}

struct Database<N> {
    root: *mut Root,
    scale: Scale,
    of: std::marker::PhantomData<N>,
}

impl<N> Clone for Database<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Database<N> {}

impl<N> Database<N> {
    fn new<S: Space>(scale: Scale, space: &mut S) -> Self
    where
        N: Node<S>,
    {
        // SAFETY: a new block, and trees that were never made.
        unsafe {
            let database = Database { root: node(space), scale, of: std::marker::PhantomData };
            Table::ALL.into_iter().for_each(|table| database.tree(table).make(space));
            database
        }
    }

    fn tree(self, table: Table) -> Tree<N> {
        // SAFETY: the root is in the space.
        Tree::at(unsafe { &raw mut (*self.root).trees[table as usize] })
    }

    unsafe fn row<S: Space, R>(self, table: Table, key: u64, space: &mut S) -> *mut R
    where
        N: Node<S>,
    {
        // SAFETY: the caller's promise.
        let found = unsafe { self.tree(table).get(key, space) };
        row(found.unwrap_or_else(|| panic!("{table:?}: no row has the key {key}")))
    }

    unsafe fn add<S: Space, R>(self, table: Table, key: u64, value: R, space: &mut S) -> *mut R
    where
        N: Node<S>,
    {
        // SAFETY: the caller's promise, and a new block.
        unsafe {
            let at = node::<S, R>(space);
            at.write(value);
            self.link(table, key, at, space);
            at
        }
    }

    unsafe fn link<S: Space, R>(self, table: Table, key: u64, row: *mut R, space: &mut S)
    where
        N: Node<S>,
    {
        // SAFETY: the caller's promise.
        unsafe { self.tree(table).insert(key, row.expose_provenance() as u64, space) };
    }

    unsafe fn add_history<S: Space>(self, payment: History, space: &mut S) {
        // SAFETY: the root, and a new block.
        unsafe {
            let at = node::<S, History>(space);
            at.write(History { next: (*self.root).history, ..payment });
            super::set(&raw mut (*self.root).history, at, space);
        }
    }

    fn recast<F>(self) -> Database<F> {
        Database { root: self.root, scale: self.scale, of: std::marker::PhantomData }
    }
}

fn row<R>(address: u64) -> *mut R {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
