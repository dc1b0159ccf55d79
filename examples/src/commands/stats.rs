use crate::index::{Index, Reader};
use crate::place::Place;
use anyhow::Result;
use indicatif::{HumanBytes, HumanCount};

pub(crate) fn run<I: Index>(place: &Place) -> Result<()> {
    let (pool, object) = place.attach_read()?;
    let (len, base) = (object.len(), object.as_ptr());
    let index = super::attach::<I>(object)?;
    let reader = I::read(&index)?;
    let totals = reader.totals()?;
    let (used, unused) = I::space(&index)?;
    println!("files      {}", HumanCount(totals.files));
    println!("words      {} different, {} in all", HumanCount(totals.words), HumanCount(totals.tokens));
    println!("postings   {}", HumanCount(totals.postings));
    println!("text       {}", HumanBytes(totals.bytes));
    println!("object     {} at {base:p}", HumanBytes(len as u64));
    println!("in use     {}, of which {} unused", HumanBytes(used), HumanBytes(unused));
    println!("psyncs     {}", HumanCount(totals.step));
    println!("pool       {} ({})", place.path().display(), pool.medium().word());
    println!("most used  {}", most_used(reader, 12)?.join(" "));
    Ok(())
}

fn most_used<'a, R: Reader<'a>>(reader: R, count: usize) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for word in reader.find_prefix("")? {
        words.push(reader.word(word)?);
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.count));
    words.truncate(count);
    Ok(words.iter().map(|word| String::from_utf8_lossy(word.text).into_owned()).collect())
}
