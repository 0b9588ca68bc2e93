//! Code that sets environment variables inside of a running kernel, in its own language.

use std::collections::BTreeMap;

/// The code for a kernel of `language`; `None` for languages that this program does not know.
///
/// A JSON object is a literal of each of them: `serde_json` escapes only quotes, backslashes and control characters, in forms that Python
/// and ECMAScript 2019 read alike.
pub(super) fn assertion(language: &str, environment: &BTreeMap<String, String>) -> Option<String> {
    let literal = serde_json::to_string(environment).ok()?;
    match language.to_lowercase().as_str() {
        // Looks nothing up that code may have replaced, except the builtin itself.
        "python" => Some(format!("__import__('os').environ.update({literal})")),
        "javascript" | "typescript" => Some(format!("void Object.assign(process.env, {literal});")),
        _ => None,
    }
}

/// Why a variable cannot be set.
pub(in crate::serve) fn fault(environment: &BTreeMap<String, String>) -> Option<String> {
    environment.iter().find_map(|(name, value)| {
        if name.is_empty() || name.contains(['=', '\0']) {
            Some(format!(
                "the environment variable `{}` has an impossible name: it must not be empty, nor hold `=` or NUL",
                name.escape_debug()
            ))
        } else if value.contains('\0') {
            Some(format!("the environment variable `{name}` holds a NUL character"))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn each_language_gets_its_own_code() {
        let environment = variables(&[("A", "it's \"ü\"\n\\")]);
        assert_eq!(
            assertion("python", &environment).as_deref(),
            Some(r#"__import__('os').environ.update({"A":"it's \"ü\"\n\\"})"#)
        );
        assert_eq!(
            assertion("TypeScript", &environment),
            assertion("javascript", &environment)
        );
        assert_eq!(assertion("R", &environment), None);
    }

    #[test]
    fn impossible_variables_are_named() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            assert!(fault(&variables(&[(name, value)])).is_some(), "{name:?}");
        }
        assert_eq!(fault(&variables(&[("A", "x=y"), ("ä b", "")])), None);
    }
}
