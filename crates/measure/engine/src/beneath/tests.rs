use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A directory of the test's own with `inside/file` in it, removed at the end.
struct TestPath(PathBuf);

impl TestPath {
    fn new(name: &str) -> TestPath {
        let path = std::env::temp_dir().join(format!("iolab-beneath-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("root/inside")).unwrap();
        fs::write(path.join("root/inside/file"), "ours").unwrap();
        fs::write(path.join("precious"), "kept").unwrap();
        TestPath(path)
    }

    fn root(&self) -> Directory {
        let path = self.0.join("root");
        let metadata = fs::metadata(&path).unwrap();
        Directory {
            path: path.to_str().unwrap().into(),
            identity: Identity { device: metadata.dev(), inode: metadata.ino() },
        }
    }
}

impl Drop for TestPath {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const READ: c_int = libc::O_RDONLY;
const MAKE: c_int = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;

#[test]
fn both_ways_open_what_lies_below_and_nothing_that_a_link_leads_to() {
    let place = TestPath::new("both");
    symlink("../precious", place.0.join("root/link")).unwrap();
    symlink("..", place.0.join("root/up")).unwrap();
    symlink("inside", place.0.join("root/aside")).unwrap();
    let root = Root::open(&place.root()).unwrap();
    let root = root.file.as_raw_fd();
    for open in [in_one_call, step_by_step] {
        let with = |path: &str, flags| open(root, Path::new(path), flags);
        let errno = |path: &str, flags| with(path, flags).unwrap_err().raw_os_error().unwrap();
        assert!(with("inside/file", READ).is_ok());
        assert!(with(".", READ).is_ok());
        assert_eq!(errno("inside/none", READ), libc::ENOENT);
        assert_eq!(errno("inside/file", MAKE), libc::EEXIST);
        assert_eq!(errno("link", READ), libc::ELOOP);
        for (path, flags) in
            [("up/precious", READ), ("aside/file", READ), ("link", MAKE), ("../precious", READ), ("/etc/passwd", READ)]
        {
            assert!(with(path, flags).is_err(), "{path}");
        }
        assert!(with("inside/new", MAKE).is_ok());
        fs::remove_file(place.0.join("root/inside/new")).unwrap();
    }
    assert_eq!(fs::read(place.0.join("precious")).unwrap(), b"kept");
}

#[test]
fn another_directory_under_the_same_path_is_refused() {
    let place = TestPath::new("another");
    let checked = place.root();
    fs::rename(place.0.join("root"), place.0.join("moved")).unwrap();
    fs::create_dir(place.0.join("root")).unwrap();
    assert!(matches!(Root::open(&checked), Err(StartError::Spec(_))));
    fs::remove_dir(place.0.join("root")).unwrap();
    symlink("moved", place.0.join("root")).unwrap();
    assert!(Root::open(&checked).is_err());
}

#[test]
fn another_file_under_the_same_path_is_not_opened() {
    let place = TestPath::new("file");
    let path = place.0.join("root/inside/file");
    let expected = identity(&File::open(&path).unwrap()).unwrap();
    assert!(known(&path, expected, READ).unwrap().is_ok());
    fs::rename(&path, place.0.join("moved")).unwrap();
    let missing = known(&path, expected, READ).unwrap().unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    symlink(place.0.join("moved"), &path).unwrap();
    assert!(known(&path, expected, READ).is_err());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "another").unwrap();
    assert!(known(&path, expected, READ).is_err());
}

#[test]
fn directories_are_made_below_and_not_through_links() {
    let place = TestPath::new("made");
    let root = Root::open(&place.root()).unwrap();
    let below = |name: &str| place.0.join("root").join(name);
    assert!(root.directory(&below("inside/new")).is_ok());
    assert!(root.directory(&below("inside/new")).is_ok());
    assert!(root.directory(&below("")).is_ok());
    assert!(root.directory(&place.0.join("elsewhere")).is_err());
    symlink("..", below("up")).unwrap();
    assert!(root.directory(&below("up/new")).is_err());
    assert!(!place.0.join("new").exists());
    assert!(root.directory(&below("up")).is_err());
}
