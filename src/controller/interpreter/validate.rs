//! Whether sessions of an interpreter can be opened, and with what. Pure.

use codeworkspace_api::{CodeInterpreter, RunnerTemplate, SessionLanguage, reason};
use codeworkspace_bundle::FieldError;
use jiff::SignedDuration;
use kube::ResourceExt as _;

use crate::controller::fault::join;
use crate::controller::workspace::parse_duration;

/// What sessions get.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Name of the template.
    pub name: String,
    /// The template.
    pub template: RunnerTemplate,
    /// Languages that sessions may use, in the order of the API.
    pub languages: Vec<SessionLanguage>,
    /// Age at which a waiting pod is replaced, if the interpreter says so.
    pub maximum_age: Option<SignedDuration>,
}

/// Why no session can be opened until somebody changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One word of a closed list.
    pub reason: &'static str,
    /// For people: what, where, and what to do.
    pub message: String,
}

/// Resolves an interpreter against the templates of the cluster. Everything that is wrong is told at once.
pub fn validate(interpreter: &CodeInterpreter, templates: &[RunnerTemplate]) -> Result<Resolved, Problem> {
    let unsupported = unsupported(interpreter);
    if !unsupported.is_empty() {
        return Err(Problem {
            reason: reason::NOT_YET_SUPPORTED,
            message: join(&unsupported),
        });
    }
    let maximum_age = interpreter
        .spec
        .warm_pool
        .max_age
        .as_deref()
        .map(parse_duration)
        .transpose();
    let maximum_age = maximum_age.map_err(|message| Problem {
        reason: reason::MANIFEST_VALIDATION_ERROR,
        message: FieldError::new("spec.warmPool.maxAge", message).to_string(),
    })?;
    let template = template(interpreter, templates)?;
    let languages = languages(interpreter, template)?;
    Ok(Resolved {
        name: template.name_any(),
        template: template.clone(),
        languages,
        maximum_age,
    })
}

fn unsupported(interpreter: &CodeInterpreter) -> Vec<FieldError> {
    let spec = &interpreter.spec;
    let mut unsupported = Vec::new();
    let mut lacks = |field: &str, what: &str| {
        let message = format!("this version does not implement {what} yet: leave it out");
        unsupported.push(FieldError::new(field, message));
    };
    if spec.workspace_ref.is_some() {
        lacks("spec.workspaceRef", "bundles in sessions");
    }
    if spec
        .network
        .as_ref()
        .is_some_and(|network| !network.egress.is_empty())
    {
        lacks("spec.network.egress", "a network for sessions");
    }
    // An empty block asks for nothing.
    if spec
        .secrets
        .as_ref()
        .is_some_and(|secrets| secrets.as_object().is_none_or(|secrets| !secrets.is_empty()))
    {
        lacks("spec.secrets", "secrets in sessions");
    }
    unsupported
}

/// The template that is named, or the lightest of those that have kernels.
fn template<'a>(
    interpreter: &CodeInterpreter,
    templates: &'a [RunnerTemplate],
) -> Result<&'a RunnerTemplate, Problem> {
    let mut with_kernels: Vec<&RunnerTemplate> = templates
        .iter()
        .filter(|template| {
            !template.spec.kernels.is_empty() && template.metadata.deletion_timestamp.is_none()
        })
        .collect();
    with_kernels.sort_by_key(|template| (template.spec.weight, template.name_any()));
    let names = || {
        let names: Vec<String> = with_kernels.iter().map(|template| template.name_any()).collect();
        match names.as_slice() {
            [] => "no RunnerTemplate has kernels".to_owned(),
            names => format!("RunnerTemplates with kernels: {}", names.join(", ")),
        }
    };
    let Some(wanted) = &interpreter.spec.template else {
        return with_kernels.first().copied().ok_or_else(|| Problem {
            reason: reason::NO_MATCHING_TEMPLATE,
            message: format!("{}: ask for one", names()),
        });
    };
    let found = with_kernels
        .iter()
        .find(|template| template.name_any() == *wanted);
    found.copied().ok_or_else(|| {
        let there = templates.iter().any(|template| template.name_any() == *wanted);
        let (reason, why) = if there {
            (reason::NO_MATCHING_TEMPLATE, "has no kernels")
        } else {
            (reason::UNKNOWN_TEMPLATE, "does not exist")
        };
        Problem {
            reason,
            message: format!("spec.template: RunnerTemplate {wanted} {why}; {}", names()),
        }
    })
}

fn languages(
    interpreter: &CodeInterpreter,
    template: &RunnerTemplate,
) -> Result<Vec<SessionLanguage>, Problem> {
    let has = |language: SessionLanguage| {
        template
            .spec
            .kernels
            .iter()
            .any(|kernel| kernel == language.kernel())
    };
    let wanted = &interpreter.spec.languages;
    let lacking: Vec<FieldError> = wanted
        .iter()
        .enumerate()
        .filter(|(_, language)| !has(**language))
        .map(|(index, language)| {
            let message = format!(
                "RunnerTemplate {} has no kernel `{}` for {}; its kernels: {}",
                template.name_any(),
                language.kernel(),
                language.as_str(),
                template.spec.kernels.join(", ")
            );
            FieldError::new(format!("spec.languages[{index}]"), message)
        })
        .collect();
    if !lacking.is_empty() {
        return Err(Problem {
            reason: reason::NO_MATCHING_TEMPLATE,
            message: join(&lacking),
        });
    }
    Ok(SessionLanguage::ALL
        .into_iter()
        .filter(|language| has(*language) && (wanted.is_empty() || wanted.contains(language)))
        .collect())
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
