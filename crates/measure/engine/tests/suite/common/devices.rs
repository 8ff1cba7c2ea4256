//! Loop devices and mounts that go away again, for tests that are root.

use super::{ScratchDirectory, sh};

pub struct Mount {
    pub directory: String,
    source: Option<LoopDevice>,
    _place: ScratchDirectory,
}

pub struct LoopDevice {
    pub path: String,
    pub backing: String,
    _place: ScratchDirectory,
}

impl Mount {
    /// A filesystem in memory that holds only `bytes`.
    pub fn small_tmpfs(bytes: u64) -> Mount {
        let place = ScratchDirectory::in_memory();
        let directory = place.path("mount");
        std::fs::create_dir(&directory).unwrap();
        sh("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs", &directory]);
        Mount { directory, source: None, _place: place }
    }

    pub fn ext4(bytes: u64) -> Mount {
        let device = LoopDevice::new(bytes);
        sh("mkfs.ext4", &["-q", "-F", &device.path]);
        let place = ScratchDirectory::in_memory();
        let directory = place.path("mount");
        std::fs::create_dir(&directory).unwrap();
        sh("mount", &[&device.path, &directory]);
        Mount { directory, source: Some(device), _place: place }
    }

    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    /// Writes hang from here on.
    pub fn freeze(&self) {
        sh("fsfreeze", &["-f", &self.directory]);
    }

    pub fn thaw(&self) {
        sh("fsfreeze", &["-u", &self.directory]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Threads that were left in the kernel let go of their files a moment later.
        let gone = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::process::Command::new("umount").arg(&self.directory).output().unwrap().status.success()
        });
        assert!(gone || std::thread::panicking(), "{} stays mounted", self.directory);
        drop(self.source.take());
    }
}

impl LoopDevice {
    pub fn new(bytes: u64) -> LoopDevice {
        let place = ScratchDirectory::in_memory();
        let backing = place.path("backing");
        std::fs::File::create(&backing).unwrap().set_len(bytes).unwrap();
        let path = sh("losetup", &["--find", "--show", &backing]);
        LoopDevice { path, backing, _place: place }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        sh("losetup", &["--detach", &self.path]);
    }
}
