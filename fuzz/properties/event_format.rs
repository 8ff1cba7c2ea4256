//! Any text is a format or an error; its fields can be read from any record without going beyond it.

use trace::format::EventFormat;
use trace::page::{PageFormat, RawEvent};
use trace::sched::SchedDecoder;
use trace::tracepoints::BlockDecoder;

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(format) = PageFormat::parse(&text) {
        assert!(format.subbuffer_bytes() <= 1 << 17);
    }
    let Ok(format) = EventFormat::parse(&text) else {
        return;
    };
    for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        match format.field(name) {
            Ok(field) => {
                for record in [bytes, &[], &[0xff; 64]] {
                    let _ = (field.unsigned(record), field.signed(record), field.text(record));
                    if let Some(found) = field.bytes(record) {
                        assert!(found.len() <= record.len());
                    }
                }
            }
            Err(error) => assert!(error.to_string().contains(&format.name)),
        }
    }
    // As the decoders of an event each, which need other formats besides.
    let raw = RawEvent { at_ns: 0, record: bytes };
    let formats = [format.clone(), format.clone(), format];
    if let Ok(decoder) = BlockDecoder::new(&[], &formats) {
        let _ = decoder.decode(0, &raw);
    }
    if let Ok(decoder) = SchedDecoder::new(&formats) {
        let _ = decoder.decode(0, &raw);
    }
}
