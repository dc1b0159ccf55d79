//! The rows of TPC-C's tables (clause 1.3), money in cents, shares in ten-thousandths. Changing
//! fields lie together.
//!
//! Zeros are a value of every row.

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Address {
    pub streets: [[u8; 20]; 2],
    pub city: [u8; 20],
    pub state: [u8; 2],
    pub zip: [u8; 9],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Warehouse {
    pub name: [u8; 10],
    pub address: Address,
    pub tax: u32,
    pub year_to_date: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct District {
    pub name: [u8; 10],
    pub address: Address,
    pub tax: u32,
    pub next_order: u32,
    pub year_to_date: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Customer {
    pub id: u32,
    pub first: [u8; 16],
    pub middle: [u8; 2],
    pub last: [u8; 16],
    pub address: Address,
    pub phone: [u8; 16],
    pub has_bad_credit: bool,
    pub discount: u32,
    pub credit_limit: i64,
    pub account: Account,
    pub data: [u8; 500],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Account {
    pub balance: i64,
    pub paid: i64,
    pub payments: u32,
    pub deliveries: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct History {
    pub next: *mut History,
    pub amount: i64,
    pub date: u64,
    pub customer: u32,
    pub home: u32,
    pub district: u32,
    pub data: [u8; 24],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Order {
    pub id: u32,
    pub customer: u32,
    pub entered: u64,
    pub lines: u32,
    pub is_local: bool,
    /// 0: undelivered.
    pub carrier: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct OrderLine {
    pub item: u32,
    pub supplier: u32,
    pub quantity: u32,
    pub amount: i64,
    /// 0: undelivered.
    pub delivered: u64,
    pub district: [u8; 24],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Item {
    pub image: u32,
    pub price: i64,
    pub name: [u8; 24],
    pub data: [u8; 50],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stock {
    pub level: Level,
    pub districts: [[u8; 24]; 10],
    pub data: [u8; 50],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Level {
    pub quantity: u32,
    pub sold: u32,
    pub orders: u32,
    pub remote: u32,
}
