//! Which path a workspace stands for.

use codeworkspace_api::CodeWorkspace;
use codeworkspace_bundle::code::WorkspacePath;
use kube::ResourceExt as _;

use crate::controller::Readable;

/// The path that references of the same namespace find a workspace by: `spec.path`, else `./` and its name. One that cannot be
/// read is found by its name.
pub fn path(workspace: &Readable<CodeWorkspace>) -> Option<WorkspacePath> {
    let name = workspace.name_any();
    let path = workspace
        .0
        .as_ref()
        .ok()
        .and_then(|workspace| workspace.spec.path.as_deref());
    path.unwrap_or(&name).parse().ok()
}
