use super::Secrets;
use crate::{
    field::FieldError,
    object::{Object, Shape},
    secrets::{by_convention, wrong_variable},
};

const ENV: Shape = Shape {
    fields: &["auth", "passthrough"],
    hints: &[
        (
            "secrets",
            "secrets stand in the block `secrets`, beside `sandbox`",
        ),
        ("vars", VARIABLES),
        ("variables", VARIABLES),
        ("env", VARIABLES),
    ],
};

const VARIABLES: &str =
    "variables are given in the block `secrets`, beside `sandbox`, as in `REGION: {value: eu}`";

const AUTH: Shape = Shape {
    fields: &["ref", "state"],
    hints: &[("env", "it belongs into `state`")],
};

const STATE: Shape = Shape {
    fields: &["env"],
    hints: &[],
};

/// `env`: the names of variables, never their values (AIP-36, "Env credentials never inline").
pub(super) fn read(block: &Object<'_>, issues: &mut Vec<FieldError>) -> (Secrets, Vec<String>) {
    let none = (Secrets::default(), Vec::new());
    let Some(value) = block.get("env") else {
        return none;
    };
    let field = block.place("env");
    let Some(env) = Object::read(&field, value, &ENV, issues) else {
        return none;
    };
    let passthrough = env.strings("passthrough", issues, wrong_variable);
    (read_auth(&env, issues), passthrough)
}

fn read_auth(env: &Object<'_>, issues: &mut Vec<FieldError>) -> Secrets {
    let names = env.get("auth").and_then(|value| {
        let field = env.place("auth");
        let auth = Object::read(&field, value, &AUTH, issues)?;
        // Which inventory is asked is not the manifest's choice: it is that of the namespace.
        auth.string("ref", issues);
        let field = auth.place("state");
        let state = Object::read(&field, auth.get("state")?, &STATE, issues)?;
        Some((state.place("env"), state.strings("env", issues, |_| None)))
    });
    names
        .map(|(field, names)| by_convention(&field, &names, issues))
        .unwrap_or_default()
}
