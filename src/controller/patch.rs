//! Bodies of server-side apply. The API server reads them as YAML, which is not quite a superset of JSON.

use std::fmt::Write as _;

use kube::api::Patch;
use serde_json::value::RawValue;

/// A patch that the API server understands as it was meant.
pub fn apply_patch(object: &serde_json::Value) -> Result<Patch<Box<RawValue>>, kube::Error> {
    RawValue::from_string(escaped(object))
        .map(Patch::Apply)
        .map_err(kube::Error::SerdeError)
}

/// JSON that means the same as YAML.
///
/// YAML does not allow some characters at all (DEL, C1 controls, noncharacters) and folds others as line breaks (U+0085, U+2028,
/// U+2029), while JSON takes all of them as they are (YAML 1.2, 5.1 and 5.4). The output of a body and the words of a command may hold
/// any of them. Escapes are the same in both, and outside of strings JSON has only ASCII.
fn escaped(object: &serde_json::Value) -> String {
    let mut text = String::new();
    for character in object.to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::escaped;

    #[test]
    fn what_yaml_does_not_take_as_it_stands_is_escaped_and_nothing_else() {
        let object = json!({"tail": "\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}", "more": "ü\u{a0}😀\n\""});
        assert_eq!(
            escaped(&object),
            r#"{"more":"ü"#.to_owned()
                + "\u{a0}"
                + r#"😀\n\"","tail":"\u007f\u0085\u009b31m\u2028\u2029\ufeff\ufffe\uffff"}"#
        );
    }

    #[test]
    fn every_character_arrives_as_it_was() {
        let object = json!({"tail": ('\0'..=char::MAX).collect::<String>()});
        assert_eq!(serde_json::from_str::<Value>(&escaped(&object)).unwrap(), object);
    }
}
