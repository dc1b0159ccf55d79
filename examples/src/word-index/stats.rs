//! `word-index stats`.

use crate::arena::View;
use crate::place::Place;
use crate::reader::Reader;
use anyhow::Result;
use indicatif::{HumanBytes, HumanCount};

pub(crate) fn run(place: &Place) -> Result<()> {
    let (pool, object) = place.attach_read()?;
    let reader = Reader::new(View::new(object.as_slice()))?;
    let root = reader.root();
    println!("files      {}", HumanCount(root.files.len));
    println!("words      {} different, {} in all", HumanCount(root.words.len), HumanCount(root.tokens));
    println!("postings   {}", HumanCount(root.postings));
    println!("text       {}", HumanBytes(root.bytes));
    println!("object     {} at {:p}", HumanBytes(object.len() as u64), object.as_ptr());
    println!("in use     {}, of which {} unused", HumanBytes(reader.used()), HumanBytes(root.garbage));
    println!("psyncs     {}", HumanCount(root.step));
    println!("pool       {} ({})", place.path().display(), pool.medium().word());
    println!("most used  {}", most_used(reader, 12)?.join(" "));
    Ok(object.detach()?)
}

fn most_used(reader: Reader<'_>, count: usize) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for word in reader.each(&reader.root().words)? {
        words.push(word?.1);
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.count));
    let text = |word: &&_| Ok(String::from_utf8_lossy(reader.text(word)?).into_owned());
    words.iter().take(count).map(text).collect()
}
