//! What becomes of a workspace that cannot be read: only its status says so.

use std::sync::Arc;

use codeworkspace_api::{CodeWorkspace, CodeWorkspaceSpec};

use super::reconcile::write;
use super::status;
use crate::controller::{Context, Error, Unreadable};

/// Says in status why nothing is done about the workspace.
pub async fn refuse(unreadable: Unreadable, context: Arc<Context>) -> Result<(), Error> {
    if unreadable.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let workspace = without_spec(&unreadable);
    let status = status::refused(&workspace, &unreadable.error, context.clock.now());
    write(&context, &workspace, &status).await
}

/// The workspace as far as it can be read, with a spec that asks for nothing.
pub fn without_spec(unreadable: &Unreadable) -> CodeWorkspace {
    CodeWorkspace {
        metadata: unreadable.metadata.clone(),
        spec: CodeWorkspaceSpec::default(),
        status: serde_json::from_value(unreadable.status.clone()).ok(),
    }
}
