//! The consistency conditions of clause 3.3.2, except the 8th, which follows from the 1st and the
//! 9th, and the 11th, on first contents only.

use super::rows::{Customer, District, Order, OrderLine, Warehouse};
use super::scale::{DISTRICTS, Scale};
use super::tree::Node;
use super::{Database, Space, Table, row};
use crate::Result;
use std::collections::HashSet;

struct Payments {
    by_district: Vec<i64>,
    by_customer: Vec<i64>,
}

pub fn check<S: Space, N: Node<S>>(database: Database<N>, space: &mut S) -> Result<()> {
    let scale = database.scale;
    let payments = Payments::of(database);
    for warehouse in 0..scale.warehouses {
        let mut districts = 0;
        for district in 0..DISTRICTS {
            let number = scale.district(warehouse, district);
            // Steps, as reading programs may extend nodes. SAFETY: a database of the space.
            districts +=
                space.step(|space| unsafe { check_district(database, number, &payments, space) })??;
        }
        let place = format!("warehouse {warehouse}");
        // SAFETY: a database of the space.
        let taken = space.step(|space| unsafe {
            (*database.row::<S, Warehouse>(Table::Warehouses, warehouse.into(), space)).year_to_date
        })?;
        holds(1, &place, taken == districts)?;
    }
    Ok(())
}

fn holds(condition: u32, place: &str, holds: bool) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(format!("TPC-C: condition {condition} of clause 3.3.2 does not hold in {place}").into()),
    }
}

impl Payments {
    fn of<N>(database: Database<N>) -> Payments {
        let scale = database.scale;
        let districts = scale.districts() as usize;
        let mut payments = Payments {
            by_district: vec![0; districts],
            by_customer: vec![0; districts * scale.customers as usize],
        };
        // SAFETY: a list of the space.
        unsafe {
            let mut at = (*database.root).history;
            while !at.is_null() {
                let customer = scale.customer((*at).home, (*at).customer) as usize;
                payments.by_district[(*at).district as usize] += (*at).amount;
                payments.by_customer[customer] += (*at).amount;
                at = (*at).next;
            }
        }
        payments
    }
}

unsafe fn rows<S: Space, N: Node<S>, R>(
    database: Database<N>,
    table: Table,
    range: std::ops::RangeInclusive<u64>,
    space: &mut S,
) -> Vec<*mut R> {
    let mut rows = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        database.tree(table).scan(range, space, &mut |_, at| {
            rows.push(row(at));
            true
        });
    }
    rows
}

unsafe fn check_district<S: Space, N: Node<S>>(
    database: Database<N>,
    number: u32,
    payments: &Payments,
    space: &mut S,
) -> Result<i64> {
    let scale = database.scale;
    let place = format!("district {number}");
    // SAFETY: the caller's promise.
    unsafe {
        let (next, taken) = {
            let district = &*database.row::<S, District>(Table::Districts, number.into(), space);
            (district.next_order, district.year_to_date)
        };
        holds(9, &place, taken == payments.by_district[number as usize])?;
        let new = rows::<S, N, Order>(database, Table::NewOrders, scale.orders(number), space);
        let new: Vec<u32> = new.into_iter().map(|order| (*order).id).collect();
        let orders = rows::<S, N, Order>(database, Table::Orders, scale.orders(number), space);
        holds(2, &place, orders.last().is_some_and(|order| (**order).id + 1 == next))?;
        holds(2, &place, new.last().is_none_or(|last| last + 1 == next))?;
        let span = new.first().map_or(0, |first| next - first);
        holds(3, &place, span as usize == new.len())?;
        let counted: u32 = orders.iter().map(|order| (**order).lines).sum();
        let lines = rows::<S, N, OrderLine>(database, Table::OrderLines, scale.lines(number, 0..next), space);
        holds(4, &place, counted as usize == lines.len())?;
        let delivered = check_orders(database, number, &orders, &new.into_iter().collect(), space)?;
        check_customers(database, number, payments, &delivered, space)?;
        Ok(taken)
    }
}

unsafe fn check_orders<S: Space, N: Node<S>>(
    database: Database<N>,
    number: u32,
    orders: &[*mut Order],
    new: &HashSet<u32>,
    space: &mut S,
) -> Result<Vec<i64>> {
    let scale = database.scale;
    let mut delivered = vec![0; scale.customers as usize];
    for order in orders {
        // SAFETY: the caller's promise.
        unsafe {
            let Order { id, customer, carrier, lines: count, .. } = **order;
            let place = format!("order {id} of district {number}");
            holds(5, &place, (carrier == 0) == new.contains(&id))?;
            let range = scale.lines(number, id..id + 1);
            let lines = rows::<S, N, OrderLine>(database, Table::OrderLines, range, space);
            holds(6, &place, count as usize == lines.len())?;
            for line in lines {
                holds(7, &place, ((*line).delivered == 0) == (carrier == 0))?;
                delivered[customer as usize] += if carrier == 0 { 0 } else { (*line).amount };
            }
        }
    }
    Ok(delivered)
}

unsafe fn check_customers<S: Space, N: Node<S>>(
    database: Database<N>,
    number: u32,
    payments: &Payments,
    delivered: &[i64],
    space: &mut S,
) -> Result<()> {
    let Scale { customers, .. } = database.scale;
    for customer in 0..customers {
        let key = database.scale.customer(number, customer);
        // SAFETY: the caller's promise.
        let account = unsafe { (*database.row::<S, Customer>(Table::Customers, key, space)).account };
        let place = format!("customer {customer} of district {number}");
        let delivered = delivered[customer as usize];
        holds(10, &place, account.balance == delivered - payments.by_customer[key as usize])?;
        holds(12, &place, account.balance + account.paid == delivered)?;
    }
    Ok(())
}
