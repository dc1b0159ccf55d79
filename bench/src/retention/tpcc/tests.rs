use super::check::check;
use super::programs::{convert, operate, original};
use super::requests::{By, Line, Request};
use super::rows::{Customer, District, Order, OrderLine, Warehouse};
use super::transactions::Seen;
use super::tree::{Node, Tree};
use super::{Database, Found, Programs, Scale, Script, Space, Table};
use crate::environment::{Environment, Extent};
use crate::pattern::Random;
use crate::retention::{Body, Change, ORDER, Own, Plain32, PmemSpace, TreeNode, Versions, node};
use indelible::Tracking;
use std::collections::BTreeMap;
use std::path::Path;

const SMALL: Scale = Scale { warehouses: 2, items: 100, customers: 30, operations: 150 };
const ROOM: u64 = 64 << 20;

type Plain = Plain32<Body, ORDER>;
type Eager = <Change<TreeNode> as Versions<Own, ORDER>>::Auto;
type Lazy = <Change<TreeNode> as Versions<Own, ORDER>>::Computed;

fn environment() -> Environment {
    let memory = Path::new("/dev/shm");
    Environment::new(memory, &std::env::temp_dir(), Extent::Smoke).expect("folders to write to")
}

fn own(environment: &Environment) -> Own {
    Own::new(environment, "tpcc", Tracking::Explicit, ROOM).expect("a pool in memory")
}

fn rounds<S: Space>(
    environment: &Environment,
    programs: &Programs<S>,
    make: &mut dyn FnMut() -> crate::Result<S>,
) -> [Found; 2] {
    let script = Script::new(SMALL, &mut Random::new(1));
    programs.rounds.map(|round| round(environment, &script, make).expect("a consistent database"))
}

#[test]
fn programs_of_all_models_leave_the_same_consistent_database() {
    let environment = environment();
    for tracking in [Tracking::Auto, Tracking::Explicit] {
        let mut make = || Own::new(&environment, "tpcc", tracking, ROOM);
        let [change, add] = rounds(&environment, &Programs::<Own>::new(), &mut make);
        assert!(0 < change.extended && change.extended < change.nodes, "used nodes are extended, others not");
        assert_eq!((add.extended, add.nodes), (0, change.nodes), "no program uses the name");
        assert!(change.retained > change.nodes * 128, "each node is made anew");
    }
    let mut make = || PmemSpace::new(&environment, ROOM)?.map_err(Into::into);
    if make().is_ok() {
        let [change, add] = rounds(&environment, &Programs::<PmemSpace>::new(), &mut make);
        assert!(0 < change.extended && change.extended < change.nodes);
        assert_eq!(add.extended, 0);
    }
}

fn tree_is_a_map<N: Node<Own>>(space: &mut Own) {
    let (mut map, mut random) = (BTreeMap::new(), Random::new(3));
    // SAFETY: a tree in the space.
    let result = space.step(|space| unsafe {
        let tree = Tree::<N>::at(node(space));
        tree.make(space);
        for step in 0..4_000_u64 {
            let key = random.below(600);
            if map.contains_key(&key) || random.below(4_000) < step {
                assert_eq!(tree.remove(key, space), map.remove(&key).is_some());
            } else {
                tree.insert(key, key + step, space);
                map.insert(key, key + step);
            }
            let (from, to) = (random.below(600), random.below(700));
            assert_eq!(tree.get(from, space), map.get(&from).copied());
            if from <= to {
                let pair = |(key, value): (&u64, &u64)| (*key, *value);
                assert_eq!(tree.first(from..=to, space), map.range(from..=to).next().map(pair));
                assert_eq!(tree.last(from..=to, space), map.range(from..=to).next_back().map(pair));
            }
            if step % 500 == 0 {
                let mut all = Vec::new();
                tree.scan(from..=from + 99, space, &mut |key, value| {
                    all.push((key, value));
                    true
                });
                assert_eq!(all, map.range(from..=from + 99).map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
            }
        }
        let keys: Vec<u64> = map.into_keys().collect();
        assert!(keys.iter().all(|key| tree.remove(*key, space)));
        assert_eq!(tree.first(0..=u64::MAX, space), None);
    });
    result.expect("a psync");
}

#[test]
fn a_tree_is_a_map_in_every_version() {
    let environment = environment();
    let mut space = own(&environment);
    tree_is_a_map::<Plain>(&mut space);
    tree_is_a_map::<Eager>(&mut space);
    tree_is_a_map::<Lazy>(&mut space);
}

fn database(space: &mut Own) -> Database<Plain> {
    let script = Script::new(SMALL, &mut Random::new(2));
    original(&script, space).expect("a database")
}

fn broken<T: Copy>(condition: u32, at: *mut T, value: T, database: Database<Plain>, space: &mut Own) {
    // SAFETY: a field of a row.
    let before = unsafe { at.replace(value) };
    let error = check(database, space).expect_err("the database is inconsistent").to_string();
    assert!(error.contains(&format!("condition {condition} of")), "{condition}: {error}");
    // SAFETY: as above.
    unsafe { at.write(before) };
    check(database, space).expect("it is as before");
}

#[test]
fn each_condition_is_noticed_where_it_does_not_hold() {
    let environment = environment();
    let mut space = own(&environment);
    let database = database(&mut space);
    check(database, &mut space).expect("a consistent database");
    let scale = database.scale;
    let space = &mut space;
    // SAFETY: rows of the database.
    unsafe {
        let warehouse = database.row::<_, Warehouse>(Table::Warehouses, 0, space);
        broken(1, &raw mut (*warehouse).year_to_date, 1, database, space);
        let district = database.row::<_, District>(Table::Districts, 0, space);
        let next = (*district).next_order;
        broken(2, &raw mut (*district).next_order, next + 1, database, space);
        broken(9, &raw mut (*district).year_to_date, 1, database, space);
        let customer = database.row::<_, Customer>(Table::Customers, 0, space);
        let account = (*customer).account;
        broken(10, &raw mut (*customer).account.balance, account.balance + 1, database, space);
        broken(12, &raw mut (*customer).account.paid, account.paid + 1, database, space);
        let oldest = database.row::<_, Order>(Table::Orders, scale.order(0, 0), space);
        broken(4, &raw mut (*oldest).lines, (*oldest).lines + 1, database, space);
        broken(5, &raw mut (*oldest).carrier, 0, database, space);
        let line = database.row::<_, OrderLine>(Table::OrderLines, scale.line(0, 0, 0), space);
        broken(7, &raw mut (*line).delivered, 0, database, space);
        let newer = database.row::<_, Order>(Table::Orders, scale.order(0, 1), space);
        (*newer).lines -= 1;
        (*oldest).lines += 1;
        let error = check(database, space).expect_err("a line is missing").to_string();
        assert!(error.contains("condition 6 of"), "{error}");
        (*newer).lines += 1;
        (*oldest).lines -= 1;
        let new_orders = database.tree(Table::NewOrders);
        let (first, _) = new_orders.first(scale.orders(0), space).expect("an order that is not delivered");
        assert!(new_orders.remove(first + 1, space));
        let error = check(database, space).expect_err("an order is missing").to_string();
        assert!(error.contains("condition 3 of"), "{error}");
    }
}

fn run(request: &Request, database: Database<Plain>, space: &mut Own) -> Seen {
    operate(database, std::slice::from_ref(request), 1_000, space).expect("a psync")
}

#[test]
fn an_order_for_an_item_that_does_not_exist_changes_nothing() {
    let environment = environment();
    let mut space = own(&environment);
    let database = database(&mut space);
    let line = |item| Line { item, supplier: 0, quantity: 3 };
    let order = |lines| Request::NewOrder { warehouse: 0, district: 0, customer: 0, lines };
    space.stored();
    run(&order(vec![line(1), line(SMALL.items)]), database, &mut space);
    assert_eq!(space.stored(), 0);
    // SAFETY: a row of the database.
    let next =
        |space: &mut Own| unsafe { (*database.row::<_, District>(Table::Districts, 0, space)).next_order };
    let before = next(&mut space);
    run(&order(vec![line(1), line(2)]), database, &mut space);
    assert_eq!(next(&mut space), before + 1);
    assert!(space.stored() > 0);
    check(database, &mut space).expect("a consistent database");
}

#[test]
fn a_payment_by_name_is_of_the_customer_in_the_middle() {
    let environment = environment();
    let mut space = own(&environment);
    let database = database(&mut space);
    // SAFETY: rows of the database.
    unsafe {
        let name = |namesake| database.scale.name(0, 999, namesake);
        let customers = [4, 5, 6].map(|number| {
            database.row::<_, Customer>(Table::Customers, database.scale.customer(0, number), &mut space)
        });
        for (namesake, customer) in (0..).zip(customers) {
            database.link(Table::CustomersByName, name(namesake), customer, &mut space);
        }
        let before = customers.map(|customer| (*customer).account.balance);
        let (customer, amount) = (By::Name(999), 77);
        let payment = Request::Payment { warehouse: 1, district: 3, home: (0, 0), customer, amount };
        run(&payment, database, &mut space);
        let after = customers.map(|customer| (*customer).account.balance);
        assert_eq!(after, [before[0], before[1] - 77, before[2]]);
    }
    check(database, &mut space).expect("a consistent database");
}

fn converts_the_papers_sizes<S: Space>(space: &mut S)
where
    Change<TreeNode>: Versions<S, ORDER, Rest = Body>,
{
    let script = Script::new(Scale::PAPER, &mut Random::new(1));
    let database = original::<S, Plain>(&script, space).expect("room for a database");
    let database = convert::<S, Plain, <Change<TreeNode> as Versions<S, ORDER>>::Manual>(database, space);
    let database = database.expect("room for a conversion");
    operate(database, &script.updates, 1_000_000, space).expect("room for operations");
    check(database, space).expect("a consistent database");
}

#[test]
#[ignore = "takes minutes and 4 GiB of memory"]
fn the_papers_sizes_fit() {
    let environment = environment();
    let space = Own::new(&environment, "tpcc", Tracking::Explicit, Scale::PAPER.room());
    converts_the_papers_sizes(&mut space.expect("a pool in memory"));
}

#[test]
#[ignore = "takes minutes and 4 GiB of memory"]
fn the_papers_sizes_fit_into_libpmemobj() {
    let environment = environment();
    if let Ok(mut space) = PmemSpace::new(&environment, Scale::PAPER.room()).expect("a pool in memory") {
        converts_the_papers_sizes(&mut space);
    }
}
