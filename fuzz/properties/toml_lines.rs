//! Any text is refused with a reason, or each of its keys and elements has a parent before it and a line of the text, the
//! line that holds the key where no escape hides it.

use rows::toml_lines::{Name, nodes};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = match nodes(&text) {
        Ok(found) => found,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let lines: Vec<&str> = text.split('\n').collect();
    for (number, node) in found.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent < number));
        assert!((1..=lines.len()).contains(&node.line));
        let line = lines[node.line - 1];
        match &node.name {
            Name::Key(key) => assert!(line.contains(key) || line.contains(['"', '\''])),
            Name::Element(_) => assert!(node.parent.is_some()),
        }
    }
}
