use std::io::Write;

use trace::extents::LayoutResult;

use super::*;

const BLOCK: u64 = 4096;

#[test]
fn a_missing_file_is_named_and_the_others_are_read() {
    let path = std::env::temp_dir().join(format!("iolab-extents-{}", std::process::id()));
    let mut file = File::create(&path).unwrap();
    file.write_all(&[1; 3 * BLOCK as usize]).unwrap();
    let paths = [PathBuf::from("/nonexistent/file"), path.clone()];
    let bounds = Bounds { extents_max: 100, listed_max: 100, method: None };
    let found = examine(&paths, bounds);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(&found.files[0].found, LayoutResult::Refused(LayoutRefusal { errno: libc::ENOENT, .. })));
    match &found.files[1].found {
        LayoutResult::Layout(layout) => assert!(layout.mapped_bytes >= 3 * BLOCK),
        // The directory for temporary files may lie in memory.
        LayoutResult::Refused(LayoutRefusal { absent, .. }) => {
            assert!(absent.contains("no extents"), "{absent}")
        }
    }
}
