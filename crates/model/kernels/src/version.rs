//! A kernel's version as a number.

/// A kernel's version; a part that is left out is 0, and x is the last there is.
pub type Version = [u32; 3];

/// "2.6.35", "2.5.59-mm2", "6.1", "6.x" (any of them: the last).
pub fn version(kernel: &str) -> Option<Version> {
    let numbers = kernel.split('-').next()?;
    let mut parsed = [0; 3];
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() < 2 {
        return None;
    }
    for (slot, part) in parsed.iter_mut().zip(parts) {
        *slot = if part == "x" {
            u32::MAX - 1
        } else {
            // Old release candidates: 2.4.20pre10, 2.4.20aa1.
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().ok()?
        };
    }
    Some(parsed)
}

/// The number of a kernel's -mm patch.
pub fn mm_patch(kernel: &str) -> Option<u32> {
    kernel.split_once("-mm")?.1.parse().ok()
}
