use crate::model::Machine;
use std::path::Path;

pub fn describe(file: &Path, memory: &Path) -> Machine {
    let doctor = indelible::doctor(None);
    let known = doctor.facilities.iter().filter(|facility| facility.name != "kernel");
    let facilities = known.map(|facility| (facility.name.to_owned(), facility.found.clone())).collect();
    Machine {
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory: field("/proc/meminfo", "MemTotal").map_or(0, |text| kibibytes(&text)),
        kernel: read("/proc/sys/kernel/osrelease"),
        facilities,
        media: vec![
            ("SSD file on".into(), mount_of(file)),
            ("memory-as-persistent on".into(), mount_of(memory)),
        ],
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    find_field(&text, name)
}

fn find_field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kibibytes(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn mount_of(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    find_mount(&read("/proc/self/mounts"), &path).unwrap_or_else(|| "an unknown file system".into())
}

fn find_mount(mounts: &str, path: &Path) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(source), Some(point), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let depth = Path::new(point).components().count();
        if path.starts_with(point) && best.as_ref().is_none_or(|(least, _)| depth >= *least) {
            let options = words.next().unwrap_or("");
            best = Some((depth, format!("{kind} ({source}, {options})")));
        }
    }
    best.map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_counts() {
        let mounts =
            "/dev/vda / ext4 rw,relatime 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/vdb /dev ext2 ro 0 0\n";
        assert_eq!(find_mount(mounts, Path::new("/home/x")).unwrap(), "ext4 (/dev/vda, rw,relatime)");
        assert_eq!(find_mount(mounts, Path::new("/dev/shm/a")).unwrap(), "tmpfs (tmpfs, rw)");
        assert_eq!(find_mount("", Path::new("/")), None);
    }

    #[test]
    fn fields_of_proc_are_found() {
        let text = "processor\t: 0\nmodel name\t: A CPU: fast\n";
        assert_eq!(find_field(text, "model name").unwrap(), "A CPU: fast");
        assert_eq!(find_field(text, "absent"), None);
        assert_eq!(kibibytes("24 kB"), 24576);
        assert_eq!(kibibytes(""), 0);
    }
}
