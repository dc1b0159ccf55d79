pub const DISTRICTS: u32 = 10;
pub const NAMES: u32 = 1_000;
pub const LINES: [u32; 2] = [5, 15];

/// Key bits of an order's number in its district; in another tree they follow the customer.
const ORDER_BITS: u32 = 16;
const CUSTOMER_ORDER_BITS: u32 = 13;
const LINE_BITS: u32 = 4;
const NAMESAKE_BITS: u32 = 7;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub warehouses: u32,
    pub items: u32,
    /// Customers of a district, with one initial order each.
    pub customers: u32,
    pub operations: usize,
}

impl Scale {
    /// The paper's warehouses and operations, with the rows of clause 1.2.1.
    pub const PAPER: Scale = Scale { warehouses: 10, items: 100_000, customers: 3_000, operations: 200_000 };

    pub fn divided(self, divisor: u32) -> Scale {
        Scale {
            warehouses: self.warehouses,
            items: (self.items / divisor).max(100),
            customers: (self.customers / divisor).max(30),
            operations: (self.operations / divisor as usize).max(100),
        }
    }

    pub fn room(self) -> u64 {
        let (stock, customers) = (self.warehouses * self.items, self.districts() * self.customers);
        let blocks = u64::from(stock) * 400 + u64::from(customers) * 2_400 + self.operations as u64 * 2 * 800;
        (64 << 20) + blocks * 2
    }

    pub fn districts(self) -> u32 {
        self.warehouses * DISTRICTS
    }

    pub fn undelivered(self) -> u32 {
        self.customers * 3 / 10
    }

    pub fn district(self, warehouse: u32, district: u32) -> u32 {
        warehouse * DISTRICTS + district
    }

    pub fn customer(self, district: u32, customer: u32) -> u64 {
        u64::from(district * self.customers + customer)
    }

    pub fn name(self, district: u32, name: u32, namesake: u32) -> u64 {
        assert!(namesake < 1 << NAMESAKE_BITS, "too many customers of one name");
        u64::from(district * NAMES + name) << NAMESAKE_BITS | u64::from(namesake)
    }

    pub fn names(self, district: u32, name: u32) -> std::ops::RangeInclusive<u64> {
        self.name(district, name, 0)..=self.name(district, name, (1 << NAMESAKE_BITS) - 1)
    }

    pub fn stock(self, warehouse: u32, item: u32) -> u64 {
        u64::from(warehouse * self.items + item)
    }

    pub fn order(self, district: u32, order: u32) -> u64 {
        assert!(order < 1 << ORDER_BITS, "too many orders in a district");
        u64::from(district << ORDER_BITS | order)
    }

    pub fn orders(self, district: u32) -> std::ops::RangeInclusive<u64> {
        self.order(district, 0)..=self.order(district, (1 << ORDER_BITS) - 1)
    }

    pub fn order_by_customer(self, district: u32, customer: u32, order: u32) -> u64 {
        assert!(order < 1 << CUSTOMER_ORDER_BITS, "too many orders in a district");
        self.customer(district, customer) << CUSTOMER_ORDER_BITS | u64::from(order)
    }

    pub fn orders_by_customer(self, district: u32, customer: u32) -> std::ops::RangeInclusive<u64> {
        let last = (1 << CUSTOMER_ORDER_BITS) - 1;
        self.order_by_customer(district, customer, 0)..=self.order_by_customer(district, customer, last)
    }

    pub fn line(self, district: u32, order: u32, line: u32) -> u64 {
        self.order(district, order) << LINE_BITS | u64::from(line)
    }

    pub fn lines(self, district: u32, orders: std::ops::Range<u32>) -> std::ops::RangeInclusive<u64> {
        self.line(district, orders.start, 0)..=self.line(district, orders.end, 0) - 1
    }
}
