/// Swap devices that keep pages as they are: neither memory (zram) nor encrypted (dm-crypt).
pub(crate) fn readable() -> Vec<String> {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    of(&swaps, |device| std::fs::read_to_string(format!("/sys/block/{device}/dm/uuid")).unwrap_or_default())
}

fn of(swaps: &str, mapping: impl Fn(&str) -> String) -> Vec<String> {
    let paths = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let kept = paths.filter(|path| {
        let device = path.rsplit('/').next().unwrap_or_default();
        !device.starts_with("zram") && !mapping(device).starts_with("CRYPT-")
    });
    kept.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn memory_and_encrypted_devices_are_left_out() {
        let swaps = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/dm-1                               partition\t1048572\t\t0\t\t-2\n\
                     /dev/dm-2                               partition\t1048572\t\t0\t\t-2\n\
                     /dev/zram0                              partition\t1048572\t\t0\t\t100\n\
                     /swap.img                               file\t\t1048572\t\t0\t\t-3\n";
        let mapping = |device: &str| match device {
            "dm-1" => "CRYPT-PLAIN-cryptswap\n".to_owned(),
            "dm-2" => "LVM-abc\n".to_owned(),
            _ => String::new(),
        };
        assert_eq!(of(swaps, mapping), ["/dev/dm-2", "/swap.img"]);
        assert_eq!(of("Filename Type Size Used Priority\n", mapping), [""; 0]);
        assert_eq!(of("", mapping), [""; 0]);
    }
}
