use indelible::Pool;
use indelible_posix::{New, ROOT, Rename, Volume};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::open("files.pmo")?;
    let mut volume = Volume::open(&pool, "files")?;
    let garden = volume.find(b"/notes/garden")?;
    let file = volume.create_file(garden, b"new", &New::of(0o644, 0, 0))?;
    volume.write(file, 0, b"cut the hedge\n")?;
    volume.rename((garden, b"new"), (garden, b"today"), Rename::Replace)?;
    volume.create_link(ROOT, b"now", &New { target: b"notes/garden/today", ..New::of(0, 0, 0) })?;
    volume.sync()?; // the file, its name and the link: one step
    println!("{}", String::from_utf8(volume.read(file, 0, 100)?)?.trim_end());
    Ok(())
}
