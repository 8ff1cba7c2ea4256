//! The one path that a thread's calls name at a time, rewritten in place.

use std::ffi::{CStr, CString};

use workload::metadata::{FilePosition, MetadataJob};

pub struct Path {
    /// The directory with its slash, then the subdirectory with its slash, then the name, then a zero byte.
    bytes: Vec<u8>,
    base_bytes: usize,
    subdirectory: Option<u32>,
    name_bytes: usize,
    name_at: usize,
}

impl Path {
    /// `directory` is empty if calls start from its descriptor.
    pub fn new(directory: &str, name_bytes: usize) -> Path {
        let mut bytes = directory.as_bytes().to_vec();
        if !bytes.is_empty() && !bytes.ends_with(b"/") {
            bytes.push(b'/');
        }
        let base_bytes = bytes.len();
        let mut path = Path { bytes, base_bytes, subdirectory: None, name_bytes, name_at: base_bytes };
        path.make_room(&[]);
        path
    }

    #[inline]
    pub fn of_file(&mut self, place: FilePosition, job: &MetadataJob) -> &CStr {
        if place.subdirectory != self.subdirectory {
            let name = place.subdirectory.map_or(String::new(), directory_name);
            let slash = if name.is_empty() { "" } else { "/" };
            self.make_room((name + slash).as_bytes());
            self.subdirectory = place.subdirectory;
        }
        let name = &mut self.bytes[self.name_at..self.name_at + self.name_bytes];
        job.write_name(place.file, name);
        self.as_c_str()
    }

    pub fn of_subdirectory(&self, directory: u32) -> CString {
        let mut bytes = self.bytes[..self.base_bytes].to_vec();
        bytes.extend_from_slice(directory_name(directory).as_bytes());
        CString::new(bytes).expect("no zero byte")
    }

    /// The path of the file that was asked for last.
    #[inline]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes).expect("a zero byte at the end and nowhere else")
    }

    fn make_room(&mut self, subdirectory: &[u8]) {
        self.bytes.truncate(self.base_bytes);
        self.bytes.extend_from_slice(subdirectory);
        self.name_at = self.bytes.len();
        // Not zeros, which would end the path early.
        self.bytes.resize(self.name_at + self.name_bytes, b'~');
        self.bytes.push(0);
    }
}

fn directory_name(directory: u32) -> String {
    format!("{directory:02x}")
}

#[cfg(test)]
mod tests {
    use workload::metadata::{MetadataSpec, NameSpec, SyncMethod};

    use super::*;

    fn job() -> MetadataJob {
        let names = NameSpec { bytes: 4, random_bytes: 0, first: 0, step: 1 };
        MetadataJob::new(&MetadataSpec {
            name: "thread".into(),
            files: 1,
            file_bytes: 0,
            write_bytes: 1,
            sync: SyncMethod::None,
            keep: true,
            until_full: false,
            subdirectories: None,
            names,
            seed: 0,
        })
        .unwrap()
    }

    fn place(file: u64, subdirectory: Option<u32>) -> FilePosition {
        FilePosition { file, subdirectory }
    }

    #[test]
    fn a_path_follows_the_directory_and_the_name() {
        let (job, mut path) = (job(), Path::new("/mnt/test", 4));
        for (place, expected) in [
            (place(10, None), c"/mnt/test/a~~~"),
            (place(11, Some(3)), c"/mnt/test/03/b~~~"),
            (place(12, Some(3)), c"/mnt/test/03/c~~~"),
            (place(13, Some(300)), c"/mnt/test/12c/d~~~"),
        ] {
            assert_eq!(path.of_file(place, &job), expected);
        }
        assert_eq!(path.of_subdirectory(1).as_c_str(), c"/mnt/test/01");
        assert_eq!(path.of_file(place(1, None), &job), c"/mnt/test/1~~~");
        assert_eq!(path.as_c_str(), c"/mnt/test/1~~~");
    }

    #[test]
    fn from_a_descriptor_only_what_is_below_is_named() {
        let (job, mut path) = (job(), Path::new("", 4));
        assert_eq!(path.of_file(place(1, None), &job), c"1~~~");
        assert_eq!(path.of_subdirectory(2).as_c_str(), c"02");
    }
}
