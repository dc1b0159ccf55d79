use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indelible::{CreateOptions, ErrorKind, MediumKind, Object, Pool, PoolOptions, ReadObject, Tracking};
use std::path::{Path, PathBuf};

const FIRST: u64 = 1 << 20;

#[derive(clap::Args, Clone)]
pub(crate) struct Place {
    /// File of the pool [default: in $XDG_DATA_HOME/indelible, explicit after the program]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) pool: Option<PathBuf>,
    /// Object of the pool; builders of different objects may work at once
    #[arg(long, global = true, value_name = "OBJECT", default_value = "words")]
    pub(crate) name: String,
    /// How stores are noticed
    #[arg(long, global = true, value_name = "HOW", default_value = "auto", value_parser = tracking())]
    pub(crate) tracking: Tracking,
    /// Kind of medium
    #[arg(long, global = true, value_name = "KIND", default_value = "auto", value_parser = medium())]
    pub(crate) medium: MediumKind,
    #[arg(skip)]
    program: &'static str,
}

fn tracking() -> impl TypedValueParser<Value = Tracking> {
    words(&Tracking::WORDS)
}

fn medium() -> impl TypedValueParser<Value = MediumKind> {
    words(&MediumKind::WORDS)
}

fn words<T: Copy + Send + Sync>(words: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let known = PossibleValuesParser::new(words.iter().map(|(word, _)| *word));
    known.try_map(|given| {
        words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or("unknown")
    })
}

impl Place {
    pub(crate) fn of(self, program: &'static str) -> Place {
        Place { program, ..self }
    }

    pub(crate) fn pool_in(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.pmo", self.program))
    }

    pub(crate) fn path(&self) -> PathBuf {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let default = || {
            let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
            self.pool_in(&data.map_or_else(PathBuf::new, |data| data.join("indelible")))
        };
        self.pool.clone().unwrap_or_else(default)
    }

    pub(crate) fn tracking_word(&self) -> &'static str {
        Tracking::WORDS
            .iter()
            .find(|(_, tracking)| *tracking == self.tracking)
            .map_or("auto", |(word, _)| word)
    }

    fn options(&self) -> PoolOptions {
        PoolOptions::new().tracking(self.tracking).medium(self.medium)
    }

    pub(crate) fn attach(&self, pool_size: u64, fresh: bool) -> Result<Object> {
        let path = self.path();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let pool = self.options().open_or_format(&path, pool_size)?;
        if fresh {
            unless(ErrorKind::NotFound, pool.destroy(&self.name))?;
        }
        match pool.attach(&self.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => return Ok(done?),
        }
        let options = CreateOptions::new(FIRST).reach(pool_size);
        unless(ErrorKind::Exists, pool.create_with(&self.name, &options))?;
        Ok(pool.attach(&self.name)?)
    }

    pub(crate) fn attach_read(&self) -> Result<(Pool, ReadObject)> {
        let pool = match self.options().open(self.path()) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                self.options().read_only(true).open(self.path())?
            }
            opened => opened?,
        };
        let object = pool.attach_read(&self.name)?;
        Ok((pool, object))
    }
}

fn unless(kind: ErrorKind, result: indelible::Result<()>) -> indelible::Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        done => done,
    }
}
