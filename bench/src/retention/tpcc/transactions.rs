//! The transactions of clauses 2.4 to 2.8, each in the caller's durable step.

use super::requests::{By, Line, Request};
use super::rows::{Customer, District, History, Item, Order, OrderLine, Stock, Warehouse};
use super::scale::{DISTRICTS, Scale};
use super::tree::Node;
use super::{Database, Space, Table, row};
use crate::retention::set;

/// Combines all results seen by users: equal for programs with equal operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen(u64);

impl Seen {
    fn add(&mut self, value: i64) {
        self.0 = (self.0.rotate_left(5) ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

fn share(amount: i64, ten_thousandths: u32) -> i64 {
    amount * i64::from(ten_thousandths) / 10_000
}

fn is_original(data: &[u8; 50]) -> bool {
    data.windows(8).any(|word| word == b"ORIGINAL")
}

/// Transactions of a database of the space: what makes all unsafe code here sound.
pub struct Transactions<'s, S, N> {
    pub database: Database<N>,
    pub space: &'s mut S,
    pub seen: &'s mut Seen,
    pub date: u64,
}

impl<S: Space, N: Node<S>> Transactions<'_, S, N> {
    pub fn run(&mut self, request: &Request) {
        // SAFETY: a database of the space.
        unsafe {
            match request {
                Request::NewOrder { warehouse, district, customer, lines } => {
                    self.new_order(*warehouse, *district, *customer, lines);
                }
                Request::Payment { warehouse, district, home, customer, amount } => {
                    self.payment(*warehouse, *district, *home, *customer, *amount);
                }
                Request::OrderStatus { warehouse, district, customer } => {
                    self.order_status(self.scale().district(*warehouse, *district), *customer);
                }
                Request::Delivery { warehouse, carrier } => self.delivery(*warehouse, *carrier),
                Request::StockLevel { warehouse, district, threshold } => {
                    self.stock_level(*warehouse, *district, *threshold);
                }
            }
        }
    }

    fn scale(&self) -> Scale {
        self.database.scale
    }

    unsafe fn row<R>(&mut self, table: Table, key: u64) -> *mut R {
        // SAFETY: the caller's promise.
        unsafe { self.database.row(table, key, self.space) }
    }

    unsafe fn change<R: Copy>(&mut self, at: *mut R, change: impl FnOnce(&mut R)) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut value = *at;
            change(&mut value);
            set(at, value, self.space);
        }
    }

    unsafe fn new_order(&mut self, warehouse: u32, district: u32, customer: u32, lines: &[Line]) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut items: [*mut Item; 15] = [std::ptr::null_mut(); 15];
            for (item, line) in items.iter_mut().zip(lines) {
                let Some(found) = self.database.tree(Table::Items).get(line.item.into(), self.space) else {
                    return self.seen.add(-1);
                };
                *item = row(found);
            }
            let (scale, number) = (self.scale(), self.scale().district(warehouse, district));
            let warehouse_tax = (*self.row::<Warehouse>(Table::Warehouses, warehouse.into())).tax;
            let buyer = self.row::<Customer>(Table::Customers, scale.customer(number, customer));
            let place = self.row::<District>(Table::Districts, number.into());
            let id = (*place).next_order;
            set(&raw mut (*place).next_order, id + 1, self.space);
            let order = Order {
                id,
                customer,
                entered: self.date,
                lines: lines.len() as u32,
                is_local: lines.iter().all(|line| line.supplier == warehouse),
                carrier: 0,
            };
            let order = self.database.add(Table::Orders, scale.order(number, id), order, self.space);
            self.database.link(Table::NewOrders, scale.order(number, id), order, self.space);
            let key = scale.order_by_customer(number, customer, id);
            self.database.link(Table::OrdersByCustomer, key, order, self.space);
            let mut total = 0;
            for (index, (line, item)) in lines.iter().zip(items).enumerate() {
                let key = scale.line(number, id, index as u32);
                total += self.order_line(key, line, warehouse, district, &*item);
            }
            let discounted = total - share(total, (*buyer).discount);
            self.seen.add(discounted + share(discounted, warehouse_tax + (*place).tax));
        }
    }
}

impl<S: Space, N: Node<S>> Transactions<'_, S, N> {
    unsafe fn order_line(&mut self, key: u64, line: &Line, home: u32, district: u32, item: &Item) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            let stock = self.row::<Stock>(Table::Stock, self.scale().stock(line.supplier, line.item));
            self.change(&raw mut (*stock).level, |level| {
                let more = if level.quantity >= line.quantity + 10 { 0 } else { 91 };
                level.quantity = level.quantity + more - line.quantity;
                level.sold += line.quantity;
                level.orders += 1;
                level.remote += u32::from(line.supplier != home);
            });
            let amount = i64::from(line.quantity) * item.price;
            let is_brand = is_original(&item.data) && is_original(&(*stock).data);
            self.seen.add(amount + i64::from((*stock).level.quantity) + i64::from(is_brand));
            let row = OrderLine {
                item: line.item,
                supplier: line.supplier,
                quantity: line.quantity,
                amount,
                delivered: 0,
                district: (*stock).districts[district as usize],
            };
            self.database.add(Table::OrderLines, key, row, self.space);
            amount
        }
    }

    unsafe fn customer(&mut self, district: u32, by: By) -> *mut Customer {
        let scale = self.scale();
        // SAFETY: the caller's promise.
        unsafe {
            match by {
                By::Number(number) => self.row(Table::Customers, scale.customer(district, number)),
                By::Name(name) => {
                    let mut all = Vec::new();
                    let tree = self.database.tree(Table::CustomersByName);
                    tree.scan(scale.names(district, name), self.space, &mut |_, customer| {
                        all.push(customer);
                        true
                    });
                    row(all[(all.len() - 1) / 2])
                }
            }
        }
    }

    unsafe fn payment(
        &mut self,
        warehouse: u32,
        district: u32,
        (home, home_district): (u32, u32),
        customer: By,
        amount: i64,
    ) {
        let number = self.scale().district(warehouse, district);
        let home = self.scale().district(home, home_district);
        // SAFETY: the caller's promise.
        unsafe {
            let shop = self.row::<Warehouse>(Table::Warehouses, warehouse.into());
            self.change(&raw mut (*shop).year_to_date, |sum| *sum += amount);
            let place = self.row::<District>(Table::Districts, number.into());
            self.change(&raw mut (*place).year_to_date, |sum| *sum += amount);
            let payer = self.customer(home, customer);
            self.change(&raw mut (*payer).account, |account| {
                account.balance -= amount;
                account.paid += amount;
                account.payments += 1;
            });
            let id = (*payer).id;
            if (*payer).has_bad_credit {
                self.change(&raw mut (*payer).data, |data| {
                    let note = [u64::from(id), u64::from(home), u64::from(number), amount as u64];
                    let kept = data.len() - size_of_val(&note);
                    data.copy_within(..kept, size_of_val(&note));
                    let bytes = note.into_iter().flat_map(u64::to_le_bytes);
                    data.iter_mut().zip(bytes).for_each(|(at, byte)| *at = byte);
                });
            }
            let mut data = [0; 24];
            data[..10].copy_from_slice(&(*shop).name);
            data[14..].copy_from_slice(&(*place).name);
            let next = std::ptr::null_mut();
            let payment =
                History { next, amount, date: self.date, customer: id, home, district: number, data };
            self.database.add_history(payment, self.space);
            self.seen.add((*payer).account.balance);
        }
    }

    unsafe fn order_status(&mut self, district: u32, customer: By) {
        let scale = self.scale();
        // SAFETY: the caller's promise.
        unsafe {
            let customer = self.customer(district, customer);
            self.seen.add((*customer).account.balance);
            let orders = scale.orders_by_customer(district, (*customer).id);
            let tree = self.database.tree(Table::OrdersByCustomer);
            let Some((_, order)) = tree.last(orders, self.space) else { return };
            let order = &*row::<Order>(order);
            self.seen.add(i64::from(order.carrier));
            let lines = scale.lines(district, order.id..order.id + 1);
            let seen = &mut *self.seen;
            self.database.tree(Table::OrderLines).scan(lines, self.space, &mut |_, line| {
                let line = &*row::<OrderLine>(line);
                seen.add(line.amount + line.delivered as i64);
                true
            });
        }
    }

    unsafe fn delivery(&mut self, warehouse: u32, carrier: u32) {
        let scale = self.scale();
        for district in 0..DISTRICTS {
            let number = scale.district(warehouse, district);
            // SAFETY: the caller's promise.
            unsafe {
                let new_orders = self.database.tree(Table::NewOrders);
                let Some((key, order)) = new_orders.first(scale.orders(number), self.space) else { continue };
                new_orders.remove(key, self.space);
                let order = row::<Order>(order);
                set(&raw mut (*order).carrier, carrier, self.space);
                let lines = scale.lines(number, (*order).id..(*order).id + 1);
                let (mut all, mut sum) = (Vec::new(), 0);
                self.database.tree(Table::OrderLines).scan(lines, self.space, &mut |_, line| {
                    all.push(row::<OrderLine>(line));
                    true
                });
                for line in all {
                    set(&raw mut (*line).delivered, self.date, self.space);
                    sum += (*line).amount;
                }
                let key = scale.customer(number, (*order).customer);
                let customer = self.row::<Customer>(Table::Customers, key);
                self.change(&raw mut (*customer).account, |account| {
                    account.balance += sum;
                    account.deliveries += 1;
                });
                self.seen.add(sum);
            }
        }
    }

    unsafe fn stock_level(&mut self, warehouse: u32, district: u32, threshold: u32) {
        let (scale, number) = (self.scale(), self.scale().district(warehouse, district));
        // SAFETY: the caller's promise.
        unsafe {
            let next = (*self.row::<District>(Table::Districts, number.into())).next_order;
            let lines = scale.lines(number, next.saturating_sub(20)..next);
            let mut items = Vec::with_capacity(300);
            self.database.tree(Table::OrderLines).scan(lines, self.space, &mut |_, line| {
                items.push((*row::<OrderLine>(line)).item);
                true
            });
            items.sort_unstable();
            items.dedup();
            let mut count = 0;
            for item in items {
                let stock = self.row::<Stock>(Table::Stock, scale.stock(warehouse, item));
                count += i64::from((*stock).level.quantity < threshold);
            }
            self.seen.add(count);
        }
    }
}
