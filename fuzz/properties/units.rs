//! Any text is a quantity or an error that names it; a quantity survives being written and read again.

use base::units::{format_bytes, format_duration_ns, parse_bytes, parse_duration_ns, parse_rate};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse_bytes(&text) {
        Ok(size) => {
            assert_eq!(parse_bytes(&format_bytes(size)), Ok(size));
            assert_eq!(parse_rate(&format!("{text}/s")), Ok(size));
        }
        Err(error) => assert!(error.to_string().contains(&*text)),
    }
    match parse_duration_ns(&text) {
        Ok(duration_ns) => {
            assert_eq!(parse_duration_ns(&format_duration_ns(duration_ns)), Ok(duration_ns));
        }
        Err(error) => assert!(error.to_string().contains(&*text)),
    }
    if let Err(error) = parse_rate(&text) {
        assert!(error.to_string().contains(&*text));
    }
}
