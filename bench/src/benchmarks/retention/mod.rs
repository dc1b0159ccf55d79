mod access;
mod contestants;
mod maps;
mod parts;
mod sizes;
mod tpcc;

use crate::Result;
use crate::environment::Environment;
use crate::model::Section;
use contestants::Contestants;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    access::run(environment, section)?;
    let mut contestants = Contestants::new(environment, section)?;
    maps::run(environment, &mut contestants, section)?;
    parts::run(environment, &mut contestants, section)?;
    sizes::run(environment, &mut contestants, section)?;
    let has_pmem = contestants.has_pmem();
    drop(contestants);
    tpcc::run(environment, has_pmem, section)
}
