//! From the method and the raw path of a request to an operation.

use http::Method;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::{
    identifier::{IdentifierError, InterpreterIdentifier},
    operation::Operation,
};

/// An operation, with the interpreter that its path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// [`Operation::StartSession`]
    StartSession(InterpreterIdentifier),
    /// [`Operation::InvokeSession`]
    InvokeSession(InterpreterIdentifier),
    /// [`Operation::GetSession`]
    GetSession(InterpreterIdentifier),
    /// [`Operation::ListSessions`]
    ListSessions(InterpreterIdentifier),
    /// [`Operation::StopSession`]
    StopSession(InterpreterIdentifier),
    /// [`Operation::CreateInterpreter`]
    CreateInterpreter,
    /// [`Operation::GetInterpreter`]
    GetInterpreter(InterpreterIdentifier),
    /// [`Operation::ListInterpreters`]
    ListInterpreters,
    /// [`Operation::DeleteInterpreter`]
    DeleteInterpreter(InterpreterIdentifier),
}

impl Route {
    /// The operation without its interpreter.
    pub fn operation(&self) -> Operation {
        match self {
            Self::StartSession(_) => Operation::StartSession,
            Self::InvokeSession(_) => Operation::InvokeSession,
            Self::GetSession(_) => Operation::GetSession,
            Self::ListSessions(_) => Operation::ListSessions,
            Self::StopSession(_) => Operation::StopSession,
            Self::CreateInterpreter => Operation::CreateInterpreter,
            Self::GetInterpreter(_) => Operation::GetInterpreter,
            Self::ListInterpreters => Operation::ListInterpreters,
            Self::DeleteInterpreter(_) => Operation::DeleteInterpreter,
        }
    }
}

/// A request that leads to no operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouteError {
    /// No operation has this path. Answered with `UnknownOperationException`, 404.
    #[error("no operation of the code interpreter has this path")]
    UnknownPath,
    /// The path has operations with other methods. Answered with `UnknownOperationException`, 405.
    #[error("this path takes {allow}")]
    WrongMethod {
        /// For the header `Allow`.
        allow: &'static str,
    },
    /// The path names no interpreter. Answered as an error of the operation.
    #[error("{member}: {error}")]
    Identifier {
        /// What was called.
        operation: Operation,
        /// The path's member, as the operation calls it.
        member: &'static str,
        /// What is allowed there.
        error: IdentifierError,
    },
}

/// Finds the operation. `path` is as it was received: a client encodes the colons and slashes of an ARN, so only slashes that are
/// not encoded part it.
pub fn route(method: &Method, path: &str) -> Result<Route, RouteError> {
    let segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).splitn(5, '/').collect();
    let method = method.as_str();
    match segments[..] {
        ["code-interpreters"] => match method {
            "PUT" => Ok(Route::CreateInterpreter),
            "POST" => Ok(Route::ListInterpreters),
            _ => Err(RouteError::WrongMethod { allow: "POST, PUT" }),
        },
        ["code-interpreters", label] => match method {
            "GET" => of_interpreter(label, Operation::GetInterpreter).map(Route::GetInterpreter),
            "DELETE" => of_interpreter(label, Operation::DeleteInterpreter).map(Route::DeleteInterpreter),
            _ => Err(RouteError::WrongMethod { allow: "DELETE, GET" }),
        },
        ["code-interpreters", label, group, verb] => {
            let (operation, allow, build): (_, _, fn(_) -> _) = match (group, verb) {
                ("sessions", "start") => (Operation::StartSession, "PUT", Route::StartSession),
                ("sessions", "stop") => (Operation::StopSession, "PUT", Route::StopSession),
                ("sessions", "get") => (Operation::GetSession, "GET", Route::GetSession),
                ("sessions", "list") => (Operation::ListSessions, "POST", Route::ListSessions),
                ("tools", "invoke") => (Operation::InvokeSession, "POST", Route::InvokeSession),
                _ => return Err(RouteError::UnknownPath),
            };
            if method != allow {
                return Err(RouteError::WrongMethod { allow });
            }
            of_interpreter(label, operation).map(build)
        }
        _ => Err(RouteError::UnknownPath),
    }
}

fn of_interpreter(label: &str, operation: Operation) -> Result<InterpreterIdentifier, RouteError> {
    percent_decode_str(label)
        .decode_utf8()
        .map_err(|_| IdentifierError)
        .and_then(|decoded| decoded.parse())
        .map_err(|error| RouteError::Identifier {
            operation,
            member: match operation {
                Operation::GetInterpreter | Operation::DeleteInterpreter => "codeInterpreterId",
                _ => "codeInterpreterIdentifier",
            },
            error,
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SYSTEM: &str = "aws.codeinterpreter.v1";

    #[test]
    fn each_operation_has_its_route() {
        let found: Vec<_> = [
            (Method::PUT, format!("/code-interpreters/{SYSTEM}/sessions/start")),
            (Method::POST, format!("/code-interpreters/{SYSTEM}/tools/invoke")),
            (Method::GET, format!("/code-interpreters/{SYSTEM}/sessions/get")),
            (Method::POST, format!("/code-interpreters/{SYSTEM}/sessions/list")),
            (Method::PUT, format!("/code-interpreters/{SYSTEM}/sessions/stop")),
            (Method::PUT, "/code-interpreters".to_owned()),
            (Method::GET, format!("/code-interpreters/{SYSTEM}")),
            (Method::POST, "/code-interpreters".to_owned()),
            (Method::DELETE, format!("/code-interpreters/{SYSTEM}")),
        ]
        .iter()
        .map(|(method, path)| route(method, path).unwrap().operation())
        .collect();
        assert_eq!(found, Operation::ALL);
    }

    #[test]
    fn an_encoded_arn_is_one_label() {
        let arn = "arn:aws:bedrock-agentcore:us-east-1:123456789012:code-interpreter-custom/data-0123456789";
        let label = arn.replace(':', "%3A").replace('/', "%2F");
        let found = route(&Method::PUT, &format!("/code-interpreters/{label}/sessions/stop"));
        assert_eq!(found, Ok(Route::StopSession(arn.parse().unwrap())));
    }

    #[test]
    fn other_paths_and_methods_are_no_operations() {
        for path in [
            "",
            "/",
            "/code-interpreters/a/b",
            "/code-interpreters/a/sessions/pause",
            "/code-interpreters/a/sessions/start/",
            "//code-interpreters",
            "/Code-Interpreters",
            "/browsers",
        ] {
            assert_eq!(route(&Method::PUT, path), Err(RouteError::UnknownPath), "{path}");
        }
        for (method, path, allow) in [
            (Method::DELETE, "/code-interpreters", "POST, PUT"),
            (Method::POST, "/code-interpreters/x", "DELETE, GET"),
            (Method::POST, "/code-interpreters/x/sessions/start", "PUT"),
            (Method::POST, "/code-interpreters/x/sessions/get", "GET"),
            (Method::GET, "/code-interpreters/x/tools/invoke", "POST"),
        ] {
            assert_eq!(
                route(&method, path),
                Err(RouteError::WrongMethod { allow }),
                "{path}"
            );
        }
    }

    #[test]
    fn a_label_that_names_no_interpreter_is_an_error_of_its_operation() {
        for label in ["", "%FF", "..", "a%2Fb", "aws.codeinterpreter.v2"] {
            let expected = RouteError::Identifier {
                operation: Operation::ListSessions,
                member: "codeInterpreterIdentifier",
                error: IdentifierError,
            };
            let path = format!("/code-interpreters/{label}/sessions/list");
            assert_eq!(route(&Method::POST, &path), Err(expected), "{label}");
        }
    }

    proptest! {
        #[test]
        fn no_path_is_too_strange(path in ".{0,60}") {
            for method in [Method::GET, Method::PUT, Method::POST, Method::DELETE] {
                if let Ok(found) = route(&method, &path) {
                    prop_assert!(path.contains("code-interpreters"));
                    prop_assert!(Operation::ALL.contains(&found.operation()));
                }
            }
        }
    }
}
