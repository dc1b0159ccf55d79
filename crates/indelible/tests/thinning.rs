use super::support::{Ground, World};
use indelible::{Keep, Pool, Tracking};
use std::time::{Duration, UNIX_EPOCH};

/// Snapshots of an object of one byte, with the byte in each.
fn kept(pool: &Pool) -> Vec<(String, u8)> {
    let names = pool.list().map(|stat| stat.unwrap().name).filter(|name| name.contains('@'));
    let mut all: Vec<_> = names
        .map(|name| {
            let state = pool.attach_read(&name).unwrap().as_slice()[0];
            (name, state)
        })
        .collect();
    all.sort();
    all
}

fn change(pool: &Pool, state: u8) {
    let mut object = pool.attach("a").unwrap();
    object.as_mut_slice()[0] = state;
    object.psync().unwrap();
}

/// 2026-11-24T12:30:00Z.
fn hourly() -> Keep {
    "24h:1h".parse::<Keep>().unwrap().at(UNIX_EPOCH + Duration::from_secs(1_795_523_400))
}

#[test]
fn the_last_snapshot_made_stays_whatever_its_name_says() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    pool.create("a", 4096).unwrap();
    // The second frees the first one's name; then the clock goes back by five seconds.
    for (state, name) in [
        (1, "a@2026-11-24T12:10:00Z"),
        (2, "a@2026-11-24T12:10:00Z-2"),
        (3, "a@2026-11-24T12:10:00Z"),
        (4, "a@2026-11-24T12:09:55Z"),
    ] {
        change(&pool, state);
        pool.snapshot("a", name, b"").unwrap();
        pool.thin("a", &hourly(), b"").unwrap();
        assert!(kept(&pool).contains(&(name.to_owned(), state)), "{state}: {:?}", kept(&pool));
    }
    // One that is later by name and by making lets the others go.
    change(&pool, 5);
    pool.snapshot("a", "a@2026-11-24T12:20:00Z", b"").unwrap();
    pool.thin("a", &hourly(), b"").unwrap();
    assert_eq!(kept(&pool), [("a@2026-11-24T12:20:00Z".to_owned(), 5)]);
}

#[test]
fn the_snapshot_made_after_a_rollback_stays() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    pool.create("a", 4096).unwrap();
    for (state, name) in [(1, "a@2026-11-24T12:10:00Z"), (2, "a@2026-11-24T12:11:00Z")] {
        change(&pool, state);
        pool.snapshot("a", name, b"").unwrap();
    }
    pool.rollback("a", "a@2026-11-24T12:10:00Z", b"").unwrap();
    change(&pool, 3);
    pool.snapshot("a", "a@2026-11-24T12:10:30Z", b"").unwrap();
    pool.thin("a", &hourly(), b"").unwrap();
    let last = ("a@2026-11-24T12:10:30Z".to_owned(), 3);
    assert!(kept(&pool).contains(&last), "{:?}", kept(&pool));
}
