//! Filling in the configuration files of `dev/cluster/node`.

use anyhow::{Context, Result, bail};

/// Replaces each `{{name}}` of a template. A name without a value, and a value without a place, are mistakes.
pub(super) fn render(template: &str, values: &[(&str, &str)]) -> Result<String> {
    if let Some((name, _)) = values
        .iter()
        .find(|(name, _)| !template.contains(&format!("{{{{{name}}}}}")))
    {
        bail!("the template has no place for `{name}`");
    }
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .context("`{{` without `}}` in a template")?;
        let (_, value) = values
            .iter()
            .find(|(candidate, _)| *candidate == name)
            .with_context(|| format!("no value for `{name}` of the template"))?;
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled() {
        assert_eq!(
            render("a {{x}} b {{y}}{{x}}", &[("x", "1"), ("y", "2")]).unwrap(),
            "a 1 b 21"
        );
    }

    #[test]
    fn a_value_is_not_read_as_a_template() {
        assert_eq!(render("{{x}}", &[("x", "{{x}}")]).unwrap(), "{{x}}");
    }

    #[test]
    fn mistakes_are_told() {
        assert_eq!(
            render("{{x}}", &[]).unwrap_err().to_string(),
            "no value for `x` of the template"
        );
        assert_eq!(
            render("", &[("x", "1")]).unwrap_err().to_string(),
            "the template has no place for `x`"
        );
        assert!(render("{{x", &[]).is_err());
    }
}
