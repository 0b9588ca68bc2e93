use serde_json::{Value, json};

use super::*;

fn interpreter(spec: &Value) -> CodeInterpreter {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": "tool", "namespace": "team-a"}, "spec": spec
    }))
    .unwrap()
}

fn template(name: &str, kernels: &[&str], weight: i32) -> RunnerTemplate {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "RunnerTemplate", "metadata": {"name": name},
        "spec": {"image": "example/image", "languages": ["python"], "kernels": kernels, "weight": weight}
    }))
    .unwrap()
}

fn templates() -> Vec<RunnerTemplate> {
    vec![
        template("python", &[], 1),
        template("heavy", &["python3", "javascript", "typescript"], 200),
        template("light", &["python3", "ir"], 100),
    ]
}

fn resolved(spec: &Value) -> (String, Vec<&'static str>) {
    let resolved = validate(&interpreter(spec), &templates()).unwrap();
    let languages = resolved.languages.iter().map(|language| language.as_str());
    (resolved.name, languages.collect())
}

fn problem(spec: &Value) -> (&'static str, String) {
    let problem = validate(&interpreter(spec), &templates()).unwrap_err();
    (problem.reason, problem.message)
}

#[test]
fn the_lightest_template_with_kernels_is_taken_when_none_is_named() {
    assert_eq!(resolved(&json!({})), ("light".to_owned(), vec!["python"]));
    assert_eq!(
        resolved(&json!({"template": "heavy"})),
        ("heavy".to_owned(), vec!["python", "javascript", "typescript"])
    );
    assert_eq!(
        resolved(&json!({"template": "heavy", "languages": ["typescript", "python", "python"]})),
        ("heavy".to_owned(), vec!["python", "typescript"])
    );
}

#[test]
fn a_template_that_cannot_serve_sessions_is_refused_and_those_that_can_are_listed() {
    assert_eq!(
        problem(&json!({"template": "gone"})),
        (
            reason::UNKNOWN_TEMPLATE,
            "spec.template: RunnerTemplate gone does not exist; RunnerTemplates with kernels: light, heavy"
                .to_owned()
        )
    );
    assert_eq!(
        problem(&json!({"template": "python"})),
        (
            reason::NO_MATCHING_TEMPLATE,
            "spec.template: RunnerTemplate python has no kernels; RunnerTemplates with kernels: light, heavy"
                .to_owned()
        )
    );
    let none = validate(&interpreter(&json!({})), &[]).unwrap_err();
    assert_eq!(none.message, "no RunnerTemplate has kernels: ask for one");
}

#[test]
fn a_language_without_a_kernel_is_refused_by_name() {
    assert_eq!(
        problem(&json!({"languages": ["python", "typescript"]})),
        (
            reason::NO_MATCHING_TEMPLATE,
            "spec.languages[1]: RunnerTemplate light has no kernel `typescript` for typescript; its kernels: python3, ir"
                .to_owned()
        )
    );
}

#[test]
fn what_is_not_implemented_is_named_field_by_field() {
    let (reason, message) = problem(&json!({
        "workspaceRef": {"name": "tool"}, "network": {"egress": ["example.com"]}, "secrets": {"TOKEN": {"vault": "x"}}
    }));
    assert_eq!(reason, reason::NOT_YET_SUPPORTED);
    for field in ["spec.workspaceRef: ", "spec.network.egress: ", "spec.secrets: "] {
        assert!(message.contains(field), "{message}");
    }
    // Lists that are empty ask for nothing.
    resolved(&json!({"network": {"egress": []}, "secrets": {}}));
}

#[test]
fn an_age_that_is_no_duration_is_refused() {
    let (reason, message) = problem(&json!({"warmPool": {"maxAge": "1 day"}}));
    assert_eq!(reason, reason::MANIFEST_VALIDATION_ERROR);
    assert!(message.starts_with("spec.warmPool.maxAge: "), "{message}");
}
