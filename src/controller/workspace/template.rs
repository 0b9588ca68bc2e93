//! Which runner template a workspace gets (AIP-17, "Image registry"). Pure and deterministic.

use codeworkspace_api::{RunnerLanguage, RunnerTemplate, reason};
use codeworkspace_bundle::Language;
use codeworkspace_bundle::runner::RunnerHandle;
use kube::ResourceExt as _;

/// The picked template.
#[derive(Clone, Debug)]
pub struct Picked {
    /// The template.
    pub template: RunnerTemplate,
    /// Whether the operator chose it.
    pub auto_picked: bool,
}

/// Why there is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTemplate {
    /// A reason of the condition `RunnerResolved`.
    pub reason: &'static str,
    /// For people: what each template lacks.
    pub message: String,
}

/// Picks the template that `runner.image` names, or the lightest (then the first by name) that has the language and every native
/// package.
pub fn pick(handle: &RunnerHandle, templates: &[RunnerTemplate]) -> Result<Picked, NoTemplate> {
    match &handle.image {
        Some(name) => named(name, handle, templates),
        None => lightest(handle, templates),
    }
}

fn named(name: &str, handle: &RunnerHandle, templates: &[RunnerTemplate]) -> Result<Picked, NoTemplate> {
    let Some(template) = templates.iter().find(|template| template.name_any() == name) else {
        return Err(NoTemplate {
            reason: reason::UNKNOWN_TEMPLATE,
            message: format!(
                "runner.image: there is no RunnerTemplate `{name}`; {}",
                available(templates)
            ),
        });
    };
    match lacks(template, handle) {
        Some(lacking) => Err(NoTemplate {
            reason: reason::NO_MATCHING_TEMPLATE,
            message: format!(
                "runner.image: RunnerTemplate `{name}` lacks {lacking}; {}",
                available(templates)
            ),
        }),
        None => Ok(Picked {
            template: template.clone(),
            auto_picked: false,
        }),
    }
}

fn lightest(handle: &RunnerHandle, templates: &[RunnerTemplate]) -> Result<Picked, NoTemplate> {
    templates
        .iter()
        .filter(|template| lacks(template, handle).is_none())
        .min_by_key(|template| (template.spec.weight, template.name_any()))
        .map(|template| Picked {
            template: template.clone(),
            auto_picked: true,
        })
        .ok_or_else(|| NoTemplate {
            reason: reason::NO_MATCHING_TEMPLATE,
            message: format!(
                "runner.needs: no RunnerTemplate fits: {}",
                shortcomings(handle, templates)
            ),
        })
}

/// What the template is short of, in words; nothing when it fits.
fn lacks(template: &RunnerTemplate, handle: &RunnerHandle) -> Option<String> {
    let language = language(handle.needs.language);
    let native = handle
        .needs
        .native
        .iter()
        .filter(|package| !template.spec.native.contains(package));
    let lacking: Vec<String> = (!template.spec.languages.contains(&language))
        .then(|| format!("language {}", language.as_str()))
        .into_iter()
        .chain(native.map(|package| format!("native package {package}")))
        .collect();
    (!lacking.is_empty()).then(|| lacking.join(", "))
}

fn language(language: Language) -> RunnerLanguage {
    match language {
        Language::Node => RunnerLanguage::Node,
        Language::Python => RunnerLanguage::Python,
        Language::Multi => RunnerLanguage::Multi,
    }
}

fn sorted(templates: &[RunnerTemplate]) -> Vec<&RunnerTemplate> {
    let mut sorted: Vec<_> = templates.iter().collect();
    sorted.sort_by_key(|template| template.name_any());
    sorted
}

fn available(templates: &[RunnerTemplate]) -> String {
    if templates.is_empty() {
        return "the cluster has no RunnerTemplate at all: its administrator adds one".to_owned();
    }
    let names: Vec<_> = sorted(templates)
        .iter()
        .map(|template| template.name_any())
        .collect();
    format!("available: {}", names.join(", "))
}

fn shortcomings(handle: &RunnerHandle, templates: &[RunnerTemplate]) -> String {
    if templates.is_empty() {
        return available(templates);
    }
    let each: Vec<_> = sorted(templates)
        .iter()
        .filter_map(|template| {
            Some(format!(
                "`{}` lacks {}",
                template.name_any(),
                lacks(template, handle)?
            ))
        })
        .collect();
    each.join("; ")
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
