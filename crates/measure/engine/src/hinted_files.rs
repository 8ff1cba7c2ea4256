//! The write hints of a phase's files, of which several may be one inode.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use workload::phase::{Phase, WriteHint};

use crate::error::StartError;
use crate::files::OpenFile;
use crate::write_hint::HintedInode;

/// An inode of the phase, by device and number.
struct KnownInode {
    inode: (u64, u64),
    write_hint: Option<WriteHint>,
    hinted: Option<Arc<HintedInode>>,
}

/// Sets the hint of each file that has one, for as long as one of the groups has it open. `groups`: the files that each
/// has open, at their indices in the phase.
pub fn set_hints<'a>(
    phase: &Phase,
    groups: impl Iterator<Item = &'a mut Vec<Option<OpenFile>>>,
) -> Result<(), StartError> {
    if phase.files.iter().all(|file| file.write_hint.is_none()) {
        return Ok(());
    }
    let mut known: Vec<KnownInode> = Vec::new();
    let all = groups.flat_map(|files| phase.files.iter().zip(files));
    let open = all.filter_map(|(spec, open)| Some((spec, open.as_mut()?)));
    // Commands past the block layer name their place themselves.
    for (spec, open) in open.filter(|(_, open)| open.namespace.is_none()) {
        let metadata = open.file.metadata().map_err(|error| StartError::os(&error, "can't stat", &spec.path))?;
        let inode = (metadata.dev(), metadata.ino());
        open.hinted = match known.iter().find(|other| other.inode == inode) {
            Some(other) if other.write_hint != spec.write_hint => {
                return Err(StartError::spec(format!(
                    "{}: a file has one write hint, and jobs that share this one give two; give each the same \
                     write_hint, or files of its own",
                    spec.path
                )));
            }
            Some(other) => other.hinted.clone(),
            None => {
                let set = |hint| HintedInode::set(&open.file, &spec.path, hint).map(Arc::new);
                let hinted = spec.write_hint.map(set).transpose()?;
                known.push(KnownInode { inode, write_hint: spec.write_hint, hinted: hinted.clone() });
                hinted
            }
        };
    }
    Ok(())
}
