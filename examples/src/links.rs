//! A line of cities in three countries, each an object, in two pools. `links make ONE TWO` makes
//! it, `links walk POOL...` goes along it, wherever the countries lie by then.

use indelible::{CreateOptions, Far, Persist, Plain, Pool, Rights, Space};

#[derive(Plain, Persist)]
#[repr(C)]
struct City {
    name: [u8; 16],
    #[persist(target)]
    next: Far<City>,
}

const LINE: [(&str, usize); 6] =
    [("Oslo", 0), ("Hamburg", 1), ("Paris", 2), ("Lyon", 2), ("Basel", 1), ("Bergen", 0)];
const COUNTRIES: [&str; 3] = ["north", "middle", "west"];

fn main() -> indelible::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((make, pools)) if make == "make" && pools.len() == 2 => {
            let open = |path: &String| Pool::open_or_format(path, 16 << 20);
            make_line(&open(&pools[0])?, &open(&pools[1])?)
        }
        Some((_, pools)) => walk(pools),
        None => {
            println!("links make ONE TWO, or links walk POOL...");
            Ok(())
        }
    }
}

fn make_line(one: &Pool, two: &Pool) -> indelible::Result<()> {
    let mut space = Space::new();
    let mut countries = Vec::new();
    for (name, pool) in COUNTRIES.into_iter().zip([one, two, one]) {
        // Nothing in it depends on where it lies: types with addresses are refused.
        pool.create_with(name, &CreateOptions::new(1 << 20).position_independent(true))?;
        countries.push(space.attach(pool, name)?);
    }
    let mut next: Option<(usize, Far<City>)> = None;
    for (city, country) in LINE.into_iter().rev() {
        let mut name = [0; 16];
        name[..city.len()].copy_from_slice(city.as_bytes());
        let next_here = match next {
            // A pointer for this country to a city of that one.
            Some((there, city)) => space.far(&countries[country], &countries[there], city, Rights::READ)?,
            None => Far::null(),
        };
        next = Some((country, space.create(&countries[country], City { name, next: next_here })?));
    }
    if let Some((_, first)) = next {
        space.root_or_insert(&countries[0], "start", first)?;
    }
    space.psync_all() // the entries for other countries together with the pointers
}

fn walk(pools: &[String]) -> indelible::Result<()> {
    let mut space = Space::new();
    for path in pools {
        space.add(&Pool::open(path)?);
    }
    // Everything else is attached when it is first reached.
    let start = space.pools()[0].stat("north")?.id;
    space.attach_read(&start)?;
    let mut city = space.get(&start, *space.root::<Far<City>>(&start, "start")?)?;
    loop {
        print!("{}", String::from_utf8_lossy(&city.name).trim_end_matches('\0'));
        match city.follow(city.next)? {
            Some(next) => city = next,
            None => break,
        }
        print!(", ");
    }
    println!();
    Ok(())
}
