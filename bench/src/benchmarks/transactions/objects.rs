use crate::Result;
use crate::environment::{Environment, Medium, discard};
use crate::stamp::memory::Reliable;
use indelible::{Class, CreateOptions, Pool};

const POOL: u64 = 64 << 20;

pub struct Object {
    pool: Option<Pool>,
    class: Class,
}

impl Object {
    pub fn new(environment: &Environment, medium: Medium, class: Class) -> Result<Self> {
        let name = format!("words-{}-{class:?}", medium.short());
        Ok(Object { pool: Some(environment.pool(medium, &name, POOL)?), class })
    }

    pub fn fresh<R>(&self, what: impl FnOnce(&Reliable) -> Result<R>) -> Result<R> {
        let pool = self.pool.as_ref().ok_or("the pool is gone")?;
        pool.create_with("words", &CreateOptions::new(Reliable::SIZE).class(self.class))?;
        let memory = Reliable::attach(pool, "words")?;
        let done = what(&memory)?;
        memory.detach()?;
        pool.destroy("words")?;
        Ok(done)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.pool.take().into_iter().for_each(discard);
    }
}
