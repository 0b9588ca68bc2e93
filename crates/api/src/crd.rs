//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::core::CustomResourceExt as _;
use serde_json::json;

use crate::{CodeInterpreter, CodeRun, CodeSession, CodeWorkspace, RunnerTemplate, SecretInventory};

/// Every definition of this version, in the order in which they are listed to people.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        not_current_before_the_first_look(CodeWorkspace::crd()),
        not_current_before_the_first_look(CodeRun::crd()),
        RunnerTemplate::crd(),
        not_current_before_the_first_look(SecretInventory::crd()),
        not_current_before_the_first_look(CodeInterpreter::crd()),
        not_current_before_the_first_look(CodeSession::crd()),
    ]
}

/// The file that a definition is committed as, below `crds/`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// Defaults `status.observedGeneration` to -1: kstatus calls an object without it current as soon as it exists, although
/// no controller has looked at it.
fn not_current_before_the_first_look(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let status = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
        .filter_map(|schema| schema.properties.as_mut()?.get_mut("status"));
    for schema in status {
        schema.default = Some(JSON(json!({"observedGeneration": -1})));
    }
    crd
}
