use crate::index::{Index, Reader, ensure};
use crate::place::Place;
use crate::progress::Progress;
use crate::text;
use anyhow::Result;
use indicatif::HumanCount;

/// Check that the index is whole.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also read the files again and compare what they say
    #[arg(long)]
    recount: bool,
}

pub(crate) fn run<I: Index>(place: &Place, args: &Args) -> Result<()> {
    let (_pool, object) = place.attach_read()?;
    if super::is_blank(&object) {
        println!("step 0: killed before its first psync");
        return Ok(());
    }
    let index = I::attach(object)?;
    let reader = I::read(&index)?;
    I::check(&index)?;
    let totals = reader.totals()?;
    println!(
        "step {}: {} files, {} words, {} postings, every pointer good, nothing lost",
        totals.step,
        HumanCount(totals.files),
        HumanCount(totals.words),
        HumanCount(totals.postings),
    );
    if args.recount {
        recount(reader)?;
    }
    Ok(())
}

fn recount<'a>(reader: impl Reader<'a>) -> Result<()> {
    let mut progress = Progress::new(false);
    let files = reader.files()?;
    progress.start(0, files.len() as u64);
    let mut changed = 0;
    for found in files {
        let file = reader.file(found)?;
        let digest = match text::read(file.path) {
            Ok((version, digest)) if version == file.version => digest.unwrap_or_default(),
            _ => {
                changed += 1;
                continue;
            }
        };
        let same = (digest.tokens, digest.bytes) == (file.tokens, file.bytes);
        ensure(same && reader.agrees(found, &digest)?, || {
            format!("{} ({} bytes) does not say what the index says", file.path.display(), file.version.size)
        })?;
        progress.file(file.tokens, file.bytes);
    }
    progress.finish();
    println!("recounted: {} files say what the index says", HumanCount(progress.files));
    if changed > 0 {
        println!("{} files have changed since: build again", HumanCount(changed));
    }
    Ok(())
}
