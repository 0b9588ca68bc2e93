use codeworkspace_bundle::runner::{RunnerDefinition, define_runner};
use serde_json::{Value, json};

use super::*;

fn template(name: &str, weight: i32, languages: &[&str], native: &[&str]) -> RunnerTemplate {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"image": "example", "weight": weight, "languages": languages, "native": native}
    }))
    .unwrap()
}

fn templates() -> Vec<RunnerTemplate> {
    vec![
        template("zebra", 10, &["python", "multi"], &[]),
        template("python", 10, &["python", "multi"], &[]),
        template(
            "documents",
            50,
            &["python", "node", "multi"],
            &["weasyprint", "ffmpeg"],
        ),
        template("node", 20, &["node", "multi"], &[]),
    ]
}

fn picked(runner: &Value, language: Language) -> Result<(String, bool), NoTemplate> {
    let definition = if runner.is_null() {
        RunnerDefinition::default()
    } else {
        define_runner(runner).unwrap()
    };
    let handle = definition.resolve(language).unwrap();
    pick(&handle, &templates()).map(|picked| (picked.template.name_any(), picked.auto_picked))
}

#[test]
fn the_lightest_template_that_has_everything_is_picked_and_names_break_ties() {
    assert_eq!(
        picked(&Value::Null, Language::Python),
        Ok(("python".to_owned(), true))
    );
    assert_eq!(
        picked(&Value::Null, Language::Node),
        Ok(("node".to_owned(), true))
    );
    assert_eq!(
        picked(&Value::Null, Language::Multi),
        Ok(("python".to_owned(), true))
    );
    let with_native = json!({"engine": "sandbox", "needs": {"native": ["ffmpeg"]}});
    assert_eq!(
        picked(&with_native, Language::Node),
        Ok(("documents".to_owned(), true))
    );
}

#[test]
fn a_named_template_is_taken_as_it_is_named() {
    assert_eq!(
        picked(&json!({"engine": "sandbox", "image": "zebra"}), Language::Python),
        Ok(("zebra".to_owned(), false))
    );
}

#[test]
fn an_unknown_template_is_refused_with_those_that_there_are() {
    let refused = picked(&json!({"engine": "sandbox", "image": "pyton"}), Language::Python).unwrap_err();
    assert_eq!(
        refused,
        NoTemplate {
            reason: reason::UNKNOWN_TEMPLATE,
            message:
                "runner.image: there is no RunnerTemplate `pyton`; available: documents, node, python, zebra"
                    .to_owned()
        }
    );
}

#[test]
fn needs_that_nobody_meets_are_refused_with_what_each_template_lacks() {
    let needs = json!({"engine": "sandbox", "needs": {"native": ["weasyprint", "pandoc"]}});
    let refused = picked(&needs, Language::Node).unwrap_err();
    assert_eq!(
        refused.message,
        "runner.needs: no RunnerTemplate fits: `documents` lacks native package pandoc; `node` lacks native package \
         weasyprint, native package pandoc; `python` lacks language node, native package weasyprint, native package pandoc; \
         `zebra` lacks language node, native package weasyprint, native package pandoc"
    );
}
