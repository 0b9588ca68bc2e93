//! `cluster down`: nothing of the cluster stays behind.

use anyhow::Result;
use fs_err as fs;

use super::control_groups::ControlGroups;
use super::instance::{INSTANCES, Instance};
use super::{namespaces, start};

/// Removes the cluster, and tells whether there was one.
pub(super) fn down(instance: &Instance) -> Result<bool> {
    let _lock = start::lock(instance)?;
    let existed = anything_left(instance)?;
    if existed {
        remove(instance)?;
    }
    Ok(existed)
}

/// Whether anything of a cluster, whole or half, is there.
pub(super) fn anything_left(instance: &Instance) -> Result<bool> {
    Ok(instance.directory().exists() || ControlGroups::of(instance)?.exist() || namespaces::exist(instance))
}

/// Removes whatever is there. Everything is found by names that derive from the checkout's path, not by what a start wrote down.
pub(super) fn remove(instance: &Instance) -> Result<()> {
    let groups = ControlGroups::of(instance)?;
    groups.kill_all()?;
    groups.remove()?;
    namespaces::remove(instance)?;
    if instance.directory().exists() {
        fs::remove_dir_all(instance.directory())?;
    }
    // The folder of all clusters goes with the last one.
    match fs::remove_dir(INSTANCES) {
        Err(error)
            if error.kind() != std::io::ErrorKind::NotFound
                && error.kind() != std::io::ErrorKind::DirectoryNotEmpty =>
        {
            Err(error.into())
        }
        _ => Ok(()),
    }
}
