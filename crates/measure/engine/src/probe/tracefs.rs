//! Where the kernel shows its trace events, or why it doesn't.

use std::io;
use std::path::{Path, PathBuf};

use super::Reason;

/// Where to look; tests look elsewhere.
#[derive(Clone, Debug)]
pub struct TracefsPaths {
    /// Mount points of tracefs, the preferred one first.
    pub tracefs: Vec<PathBuf>,
    /// The file that shows whether the kernel is locked down.
    pub lockdown: PathBuf,
}

impl Default for TracefsPaths {
    fn default() -> TracefsPaths {
        TracefsPaths {
            tracefs: vec![
                "/sys/kernel/tracing".into(),
                // Before Linux 4.1, and if only debugfs is mounted.
                "/sys/kernel/debug/tracing".into(),
            ],
            lockdown: "/sys/kernel/security/lockdown".into(),
        }
    }
}

impl TracefsPaths {
    /// The directory of a tracefs that can be used.
    pub fn find(&self) -> Result<PathBuf, Reason> {
        if self.locked_down() {
            return Err(
                "the kernel is locked down (lockdown=confidentiality), which closes tracefs; boot without it".into()
            );
        }
        let mut refused = None;
        for root in &self.tracefs {
            match std::fs::metadata(root.join("events")) {
                Ok(_) => return usable(root),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refused = Some(refusal(root, &error)),
            }
        }
        Err(refused.unwrap_or_else(|| self.not_mounted()))
    }

    fn locked_down(&self) -> bool {
        std::fs::read_to_string(&self.lockdown).is_ok_and(|modes| modes.contains("[confidentiality]"))
    }

    fn not_mounted(&self) -> Reason {
        let root = self.tracefs.first().map(PathBuf::as_path);
        let root = root.unwrap_or(Path::new("/sys/kernel/tracing")).display();
        format!("tracefs is not mounted on {root}: mount -t tracefs nodev {root}")
    }
}

/// For any file of tracefs that the kernel did not let us use.
pub fn refusal(path: &Path, error: &io::Error) -> Reason {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{path}: {error}; run as root (sudo)"),
        _ => format!("{path}: {error}"),
    }
}

fn usable(root: &Path) -> Result<PathBuf, Reason> {
    let instances = root.join("instances");
    match std::fs::metadata(&instances) {
        Ok(_) => Ok(root.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "{}: this kernel has no tracing instances (Linux 3.10), and the top-level one is not ours",
            instances.display()
        )),
        Err(error) => Err(refusal(&instances, &error)),
    }
}
