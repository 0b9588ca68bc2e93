use super::*;
use crate::{
    identifier::IdentifierError,
    validation::{Reason, ValidationError},
};

fn all() -> [ServiceError; 7] {
    let message = || "what happened".to_owned();
    [
        ServiceError::AccessDenied(message()),
        ServiceError::Conflict(message()),
        ServiceError::InternalServer(message()),
        ServiceError::ResourceNotFound(message()),
        ServiceError::ServiceQuotaExceeded(message()),
        ServiceError::Throttling(message()),
        ServiceError::from(ValidationError::field("name", "is needed")),
    ]
}

fn written(answer: &ErrorAnswer) -> String {
    format!(
        "{} {} {} allow={:?}",
        answer.status.as_u16(),
        answer.error_type,
        String::from_utf8_lossy(&answer.body),
        answer.allow
    )
}

#[test]
fn each_error_has_its_name_status_and_body() {
    let mut lines: Vec<_> = all()
        .into_iter()
        .map(|error| {
            let member = error.stream_member();
            format!("{} ({member})", written(&error.answer(Operation::StartSession)))
        })
        .collect();
    for reason in [
        Reason::CannotParse,
        Reason::IdempotentParameterMismatchException,
        Reason::EventInOtherSession,
        Reason::ResourceConflict,
    ] {
        let error = ServiceError::from(ValidationError::new(reason, "what happened"));
        lines.push(written(&error.answer(Operation::StartSession)));
    }
    let too_long = ServiceError::from(ValidationError::body_too_long());
    lines.push(written(&too_long.answer(Operation::InvokeSession)));
    for error in [
        RouteError::UnknownPath,
        RouteError::WrongMethod { allow: "PUT" },
        RouteError::Identifier {
            operation: Operation::StartSession,
            member: "codeInterpreterIdentifier",
            error: IdentifierError,
        },
        RouteError::Identifier {
            operation: Operation::GetInterpreter,
            member: "codeInterpreterId",
            error: IdentifierError,
        },
    ] {
        lines.push(written(&error.into()));
    }
    for error in [
        SignatureError::Missing,
        SignatureError::Malformed("a parameter stands twice"),
        SignatureError::NoDate,
        SignatureError::SecurityToken,
        SignatureError::UnknownKey,
        SignatureError::UnsignedBody,
        SignatureError::Mismatch,
    ] {
        lines.push(written(&error.into()));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn an_operation_answers_only_errors_that_it_lists() {
    let mut table = Vec::new();
    for operation in Operation::ALL {
        let listed: Vec<_> = all()
            .iter()
            .filter(|error| error.is_listed_for(operation))
            .map(ServiceError::name)
            .collect();
        table.push(format!("{}: {}", operation.name(), listed.join(" ")));
        for error in all() {
            let message = error.to_string();
            let answered = error.listed_for(operation);
            assert!(answered.is_listed_for(operation), "{operation:?} {answered:?}");
            assert_eq!(answered.to_string(), message);
        }
    }
    insta::assert_snapshot!(table.join("\n"));
}
