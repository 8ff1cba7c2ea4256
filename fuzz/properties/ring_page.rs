//! Any bytes are a sub-buffer's events or an error; records lie within it, and are no more than fit.

use trace::page::{Page, PageFormat};

pub fn check(bytes: &[u8]) {
    let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    let format = PageFormat::parse(text).expect("the format of 64-bit kernels");
    let Ok(page) = Page::decode(bytes, &format) else {
        return;
    };
    let within = bytes.as_ptr_range();
    let (mut events, mut length) = (0, 0);
    let mut walk = page.events();
    while let Some(event) = walk.next() {
        events += 1;
        assert!(events <= bytes.len());
        let Ok(event) = event else {
            assert!(walk.next().is_none());
            break;
        };
        let record = event.record.as_ptr_range();
        assert!(within.start <= record.start && record.end <= within.end);
        length += event.record.len();
    }
    assert!(length <= bytes.len());
}
