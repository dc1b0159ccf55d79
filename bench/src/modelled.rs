//! Modelled media (S3.7): parameter files, shipped and others.

use crate::Result;
use indelible::{CacheModel, MediumModel};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const SHIPPED: [(&str, &str); 9] = [
    ("optane", include_str!("../media/optane.toml")),
    ("dram-battery", include_str!("../media/dram-battery.toml")),
    ("cxl-near", include_str!("../media/cxl-near.toml")),
    ("cxl-far", include_str!("../media/cxl-far.toml")),
    ("cxl-cached", include_str!("../media/cxl-cached.toml")),
    ("ssd-sata", include_str!("../media/ssd-sata.toml")),
    ("ssd-nvme", include_str!("../media/ssd-nvme.toml")),
    ("ssd-optane", include_str!("../media/ssd-optane.toml")),
    ("network-volume", include_str!("../media/network-volume.toml")),
];

#[derive(Clone, Debug)]
pub struct Model {
    pub short: String,
    pub name: String,
    pub beneath: Beneath,
    pub speed: MediumModel,
}

/// A parameter file. Times in nanoseconds, rates in bytes per second.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    name: String,
    beneath: Beneath,
    medium: Numbers,
    cache: Option<CacheNumbers>,
    sources: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beneath {
    Memory,
    File,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    read_ns: u64,
    read_bytes_per_second: u64,
    write_ns: u64,
    write_bytes_per_second: u64,
    buffer_bytes: u64,
    barrier_ns: u64,
    durable_ns: u64,
    unit_bytes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheNumbers {
    bytes: u64,
    read_ns: u64,
    read_bytes_per_second: u64,
}

impl Model {
    pub fn find(name: &str) -> Result<Model> {
        if let Some((short, text)) = SHIPPED.iter().find(|(short, _)| *short == name) {
            return Model::parse(short, text);
        }
        let path = Path::new(name);
        if !path.exists() {
            let known: Vec<&str> = SHIPPED.iter().map(|(short, _)| *short).collect();
            return Err(format!(
                "no medium is called {name}, and no file: there are {}; or name a parameter file such as bench/media/optane.toml",
                known.join(", ")
            )
            .into());
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let short = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Model::parse(&short, &text)
    }

    pub fn all() -> Result<Vec<Model>> {
        SHIPPED.iter().map(|(short, text)| Model::parse(short, text)).collect()
    }

    fn parse(short: &str, text: &str) -> Result<Model> {
        let file: Parameters = toml::from_str(text).map_err(|error| format!("{short}: {error}"))?;
        file.check().map_err(|why| format!("{short}: {why}"))?;
        let (numbers, nanos) = (&file.medium, Duration::from_nanos);
        let speed = MediumModel {
            read: nanos(numbers.read_ns),
            read_rate: numbers.read_bytes_per_second,
            write: nanos(numbers.write_ns),
            write_rate: numbers.write_bytes_per_second,
            buffer: numbers.buffer_bytes,
            barrier: nanos(numbers.barrier_ns),
            durable: nanos(numbers.durable_ns),
            unit: numbers.unit_bytes,
            cache: file.cache.as_ref().map(|cache| CacheModel {
                bytes: cache.bytes,
                read: nanos(cache.read_ns),
                read_rate: cache.read_bytes_per_second,
            }),
        };
        Ok(Model { short: short.to_owned(), name: file.name, beneath: file.beneath, speed })
    }
}

impl Parameters {
    fn check(&self) -> std::result::Result<(), String> {
        let numbers = &self.medium;
        if numbers.read_bytes_per_second == 0 || numbers.write_bytes_per_second == 0 {
            return Err("a rate of 0 bytes a second: nothing would ever arrive".into());
        }
        if !numbers.unit_bytes.is_power_of_two() {
            return Err(format!("unit_bytes is {}, which is no power of two", numbers.unit_bytes));
        }
        if self.cache.as_ref().is_some_and(|cache| cache.bytes < 4096 || cache.read_bytes_per_second == 0) {
            return Err("a cache has a page of 4096 bytes at least, and a rate".into());
        }
        let medium = [
            "read_ns",
            "read_bytes_per_second",
            "write_ns",
            "write_bytes_per_second",
            "buffer_bytes",
            "barrier_ns",
            "durable_ns",
            "unit_bytes",
        ];
        let cache = ["cache.bytes", "cache.read_ns", "cache.read_bytes_per_second"];
        let cache = cache.iter().filter(|_| self.cache.is_some());
        match medium.iter().chain(cache).find(|key| !self.sources.contains_key(**key)) {
            Some(key) => {
                Err(format!("[sources] says nothing about {key}: name a source, or that it is assumed"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_every_shipped_file_has_a_source() {
        for model in Model::all().unwrap() {
            assert!(model.speed.read > Duration::ZERO, "{}", model.name);
        }
        for (short, text) in SHIPPED {
            let file: Parameters = toml::from_str(text).unwrap();
            assert!(file.sources["read_ns"].contains("https://"), "{short}");
            let cited = file.sources.values().filter(|source| source.contains("https://")).count();
            assert!(cited >= 1, "{short}");
        }
    }

    #[test]
    fn files_that_make_no_sense_are_refused() {
        let good = SHIPPED[0].1;
        let refused = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            Model::parse("x", &good.replace(from, to)).unwrap_err().to_string()
        };
        assert!(
            refused("read_bytes_per_second = 6_600_000_000", "read_bytes_per_second = 0").contains("0 bytes")
        );
        assert!(refused("unit_bytes = 256", "unit_bytes = 100").contains("no power of two"));
        assert!(refused("barrier_ns = \"", "other_ns = \"").contains("says nothing about barrier_ns"));
        assert!(refused("durable_ns = 94", "durable_ns = -1").contains("x: "));
        assert!(refused("durable_ns = 94", "surprise = 94").contains("surprise"));
        assert!(
            refused("[sources]", "[cache]\nbytes = 1\nread_ns = 1\nread_bytes_per_second = 1\n[sources]")
                .contains("4096")
        );
        assert!(Model::find("no-such-medium").unwrap_err().to_string().contains("cxl-far"));
    }
}
