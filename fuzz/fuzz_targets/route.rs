//! The path of a request, and the identifier in it.
#![no_main]

use codeworkspace_agentcore::{
    error::ErrorAnswer,
    identifier::InterpreterIdentifier,
    route::{Route, route},
};
use http::Method;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (u8, &str)| {
    let (method, path) = texts;
    let methods = [Method::GET, Method::PUT, Method::POST, Method::DELETE];
    match route(&methods[usize::from(method) % methods.len()], path) {
        Err(error) => assert!(!ErrorAnswer::from(error).body.is_empty()),
        Ok(
            Route::StartSession(identifier)
            | Route::InvokeSession(identifier)
            | Route::GetSession(identifier)
            | Route::ListSessions(identifier)
            | Route::StopSession(identifier)
            | Route::GetInterpreter(identifier)
            | Route::DeleteInterpreter(identifier),
        ) => {
            assert_eq!(identifier.as_str().parse(), Ok(identifier.clone()));
            let id: InterpreterIdentifier = identifier.id().clone().into();
            assert_eq!(id.id(), identifier.id());
        }
        Ok(Route::CreateInterpreter | Route::ListInterpreters) => {
            assert!(path.ends_with("code-interpreters"))
        }
    }
});
