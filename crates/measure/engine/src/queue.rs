//! What sysfs shows of request queues.

/// One attribute of the request queue under a file or device; None if there is none (btrfs, tmpfs, ...).
pub fn queue_attribute(device: u64, name: &str) -> Option<String> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let disk = format!("/sys/dev/block/{major}:{minor}");
    let read = |path: String| std::fs::read_to_string(path).ok();
    let text = read(format!("{disk}/queue/{name}")).or_else(|| read(format!("{disk}/../queue/{name}")))?;
    Some(text.trim().to_owned())
}
