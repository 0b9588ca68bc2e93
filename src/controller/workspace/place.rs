//! Which path a workspace stands for.

use codeworkspace_api::CodeWorkspace;
use codeworkspace_bundle::code::WorkspacePath;
use kube::ResourceExt as _;

use crate::controller::Readable;

/// The path that references of the same namespace find a workspace by: `spec.path`, else `./` and its name. Nothing for one that cannot
/// be read, or whose path is none.
pub fn path(workspace: &Readable<CodeWorkspace>) -> Option<WorkspacePath> {
    let workspace = workspace.0.as_ref().ok()?;
    let name = workspace.name_any();
    workspace.spec.path.as_deref().unwrap_or(&name).parse().ok()
}
