use crate::{
    field::FieldError,
    language::Language,
    object::{Object, Shape},
    quote::Quoted,
};

const SHAPE: Shape = Shape {
    fields: &["language", "native", "npm", "pip"],
    hints: &[
        ("apt", "system packages are listed in `native`"),
        (
            "packages",
            "write system packages in `native`, others in `npm` or `pip`",
        ),
        ("system", "system packages are listed in `native`"),
    ],
};

const LANGUAGES: [(&str, Language); 3] = [
    ("node", Language::Node),
    ("python", Language::Python),
    ("multi", Language::Multi),
];

/// What a body depends on (AIP-17, `runner.needs`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The language runtime.
    pub language: Option<Language>,
    /// System packages, by their Debian names.
    pub native: Vec<String>,
    /// npm packages on top of the bundle's `package.json`.
    pub npm: Vec<String>,
    /// Python packages on top of the bundle's `requirements.txt`.
    pub pip: Vec<String>,
}

impl Needs {
    /// Reads `needs` of a `runner` block.
    pub(super) fn read(block: &Object<'_>, issues: &mut Vec<FieldError>) -> Self {
        let Some(value) = block.get("needs") else {
            return Self::default();
        };
        let field = block.place("needs");
        let Some(needs) = Object::read(&field, value, &SHAPE, issues) else {
            return Self::default();
        };
        Self {
            language: needs.one_of("language", &LANGUAGES, issues),
            native: needs.strings("native", issues, wrong_native),
            npm: needs.strings("npm", issues, wrong_package),
            pip: needs.strings("pip", issues, wrong_package),
        }
    }
}

/// The names reach an installer's command line, so none may look like one of its options.
fn wrong_package(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("is empty".to_owned());
    }
    (name.starts_with('-') || name.contains(char::is_control))
        .then(|| format!("{} is not the name of a package", Quoted(name)))
}

/// Debian's rule for package names (Debian Policy 5.6.1), but for its minimum of two characters.
fn wrong_native(name: &str) -> Option<String> {
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'));
    (!is_name).then(|| {
        format!(
            "{} is not the name of a Debian package: lower-case letters, digits, `+`, `-`, `.`",
            Quoted(name)
        )
    })
}
