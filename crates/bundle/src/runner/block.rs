use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use super::{Limits, Needs};
use crate::{
    field::FieldError,
    object::{Object, Shape},
};

/// The fields below `inline`: those of the block itself, without its composition forms.
pub(crate) const SHAPE: Shape = Shape {
    fields: &["engine", "image", "needs", "limits"],
    hints: super::SHAPE.hints,
};

/// Where a body runs (AIP-17, `runner.engine`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// In a pod that installs nothing.
    #[default]
    Subprocess,
    /// In a pod whose image can be chosen and that installs what the body needs.
    Sandbox,
    /// In the host's own process. No manifest gets this.
    InProcess,
}

impl Engine {
    const NAMES: [(&str, Self); 3] = [
        (Self::Subprocess.as_str(), Self::Subprocess),
        (Self::Sandbox.as_str(), Self::Sandbox),
        (Self::InProcess.as_str(), Self::InProcess),
    ];

    /// The engine as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Sandbox => "sandbox",
            Self::InProcess => "in-process",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The fields of a `runner` block as they were written; what is absent has no default yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerBlock {
    /// Where the block stands, for messages about it.
    pub(crate) field: Cow<'static, str>,
    /// Where to run.
    pub engine: Option<Engine>,
    /// The name of a runner template.
    pub image: Option<String>,
    /// What the body depends on.
    pub needs: Needs,
    /// What it may use.
    pub limits: Limits,
}

impl Default for RunnerBlock {
    fn default() -> Self {
        let (needs, limits) = (Needs::default(), Limits::default());
        Self {
            field: super::FIELD.into(),
            engine: None,
            image: None,
            needs,
            limits,
        }
    }
}

impl RunnerBlock {
    /// What `runner: {ref: name}` is short for.
    pub(crate) fn of_template(name: &str) -> Self {
        Self {
            engine: Some(Engine::Sandbox),
            image: Some(name.to_owned()),
            ..Self::default()
        }
    }

    pub(crate) fn read(
        object: &Object<'_>,
        field: impl Into<Cow<'static, str>>,
        issues: &mut Vec<FieldError>,
    ) -> Self {
        let image = object.string("image", issues);
        if image.is_some_and(|image| {
            image.is_empty() || image.contains(|c: char| c.is_whitespace() || c.is_control())
        }) {
            let message = "must be the name of a RunnerTemplate, without spaces";
            issues.push(FieldError::new(object.place("image"), message));
        }
        Self {
            field: field.into(),
            engine: object.one_of("engine", &Engine::NAMES, issues),
            image: image.map(str::to_owned),
            needs: Needs::read(object, issues),
            limits: Limits::read(object, issues),
        }
    }
}
